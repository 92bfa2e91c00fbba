//! Reads the file of jobs that a command names: a job file or a crontab.

use std::io::{self, Write};
use std::path::Path;

use super::job_file;
use crate::jobfile::SourceText;
pub use crate::views::analysis::FleetFileKind;
pub(crate) use crate::views::analysis::{FleetFile, kind_of, load, shared_zone};

/// The text of a file that may be a crontab. Old crontabs have comments in other encodings, which must not keep us from
/// reading the rest. A job file must be UTF-8.
pub(crate) fn read_or_report(
    path: &Path,
    kind: Option<FleetFileKind>,
    err: &mut dyn Write,
) -> io::Result<Option<SourceText>> {
    let read = job_file::read_bytes(path).and_then(|file| match file.text() {
        Err(_) if kind.unwrap_or_else(|| kind_of(&file.lossy_text())) != FleetFileKind::Jobs => {
            Ok(file.lossy_text())
        }
        text => text,
    });
    job_file::or_report(read, path, err)
}
