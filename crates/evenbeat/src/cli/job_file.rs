//! Reads the files that a command names, and finds a job in them.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use evenbeat_core::ids::JobKey;
use evenbeat_core::job::Job;
use evenbeat_core::nearest::nearest;
use evenbeat_core::time::Timestamp;
use evenbeat_core::zone::Zones;

use super::Exit;
use crate::crontab::looks_like_crontab;
use crate::jobfile::{self, FILE_BYTES_MAX, SourceText};

/// The bytes of a file, not decoded yet.
#[derive(Clone, Debug)]
pub(crate) struct SourceBytes {
    name: String,
    bytes: Vec<u8>,
}

impl SourceBytes {
    /// The text, which must be UTF-8.
    pub(crate) fn text(&self) -> Result<SourceText, String> {
        let text = str::from_utf8(&self.bytes).map_err(|error| {
            let line = self.bytes.iter().take(error.valid_up_to()).filter(|byte| **byte == b'\n').count() + 1;
            format!("is not UTF-8 (the first invalid byte is on line {line}; save the file as UTF-8)")
        })?;
        Ok(SourceText { name: self.name.clone(), text: text.to_owned() })
    }

    /// The text, with a replacement character for every byte that is not UTF-8.
    pub(crate) fn lossy_text(&self) -> SourceText {
        SourceText { name: self.name.clone(), text: String::from_utf8_lossy(&self.bytes).into_owned() }
    }
}

/// Reads a file, or standard input for `-`. An error reads as the continuation of the file's name.
pub(crate) fn read(path: &Path) -> Result<SourceText, String> {
    read_bytes(path)?.text()
}

/// Reads the bytes of a file, or of standard input for `-`, up to the size limit.
pub(crate) fn read_bytes(path: &Path) -> Result<SourceBytes, String> {
    let (name, input): (String, Box<dyn Read>) = if path == Path::new("-") {
        ("standard input".to_owned(), Box::new(io::stdin()))
    } else {
        let file = File::open(path).map_err(|error| format!("cannot be opened: {error}"))?;
        (path.display().to_string(), Box::new(file))
    };
    // One byte more than allowed is enough to know that the file is too large.
    let limit = u64::try_from(FILE_BYTES_MAX).unwrap_or(u64::MAX).saturating_add(1);
    let mut bytes = Vec::new();
    input.take(limit).read_to_end(&mut bytes).map_err(|error| format!("cannot be read: {error}"))?;
    if FILE_BYTES_MAX < bytes.len() {
        return Err(format!(
            "is larger than the {FILE_BYTES_MAX} bytes allowed (split it into several files)"
        ));
    }
    Ok(SourceBytes { name, bytes })
}

/// Reads the one file that a command needs, and reports an error to `err`.
pub(crate) fn read_or_report(path: &Path, err: &mut dyn Write) -> io::Result<Option<SourceText>> {
    or_report(read(path), path, err)
}

/// Returns what was read, or reports the error to `err` and returns `None`.
pub(crate) fn or_report(
    read: Result<SourceText, String>,
    path: &Path,
    err: &mut dyn Write,
) -> io::Result<Option<SourceText>> {
    match read {
        Ok(source) => Ok(Some(source)),
        Err(message) => {
            writeln!(err, "error: {} {message}", path.display())?;
            Ok(None)
        }
    }
}

/// The jobs of one file, or only the one with this key. Reports errors to `err`.
pub(crate) fn jobs(
    file: &Path,
    wanted: Option<&JobKey>,
    now: Timestamp,
    err: &mut dyn Write,
) -> io::Result<Result<Vec<Job>, Exit>> {
    let Some(source) = read_or_report(file, err)? else { return Ok(Err(Exit::Usage)) };
    if looks_like_crontab(&source.text) {
        writeln!(err, "error: {} {}", file.display(), not_a_crontab(file))?;
        return Ok(Err(Exit::Usage));
    }
    let loaded = match jobfile::load(&[source], now, &mut Zones::new()) {
        Ok(loaded) => loaded,
        Err(diagnostics) => {
            write!(err, "{}", diagnostics.render(true))?;
            return Ok(Err(Exit::Failed));
        }
    };
    let mut jobs: Vec<Job> =
        loaded.files.into_iter().flat_map(|file| file.jobs).map(|loaded| loaded.job).collect();
    if let Some(wanted) = wanted {
        if !jobs.iter().any(|job| job.key == *wanted) {
            report_unknown(wanted, &jobs, file, err)?;
            return Ok(Err(Exit::NotFound));
        }
        jobs.retain(|job| job.key == *wanted);
    }
    Ok(Ok(jobs))
}

/// The error for a crontab where a job file was expected, as the continuation of the file's name.
pub(crate) fn not_a_crontab(file: &Path) -> String {
    format!("looks like a crontab, not a job file (try `evenbeat analyze {}`)", file.display())
}

/// Reports that there is no such job, and suggests the closest name.
pub(crate) fn report_unknown(
    wanted: &JobKey,
    jobs: &[Job],
    file: &Path,
    err: &mut dyn Write,
) -> io::Result<()> {
    let hint = nearest(wanted.as_str(), jobs.iter().map(|job| job.key.as_str()))
        .map_or(String::new(), |near| format!(" (did you mean `{near}`?)"));
    writeln!(err, "error: no job `{wanted}` in {}{hint}", file.display())
}
