//! Reads jobs from a job file or a crontab, for commands that accept both.

use std::io::{self, Write};
use std::path::Path;

use evenbeat_core::job::Job;
use evenbeat_core::time::Timestamp;
use evenbeat_core::zone::{Zone, Zones};

use super::source;
use crate::crontab::{self, CrontabForm, SkippedEntry};
use crate::jobfile::{self, Diagnostics, SourceText};

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputKind {
    /// A job file (TOML).
    Jobs,
    /// A crontab, with or without users: the reader detects which.
    Crontab,
    /// A crontab with a user before each command.
    SystemCrontab,
}

impl InputKind {
    /// The format that the options name, if any.
    pub(crate) fn said(crontab: bool, system: bool, jobs: bool) -> Option<InputKind> {
        match (crontab, system, jobs) {
            (_, true, _) => Some(InputKind::SystemCrontab),
            (true, ..) => Some(InputKind::Crontab),
            (.., true) => Some(InputKind::Jobs),
            _ => None,
        }
    }

    /// The name in text output.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            InputKind::Jobs => "job file",
            InputKind::Crontab => "crontab",
            InputKind::SystemCrontab => "system crontab",
        }
    }

    /// The name in JSON output.
    pub(crate) fn code(self) -> &'static str {
        match self {
            InputKind::Jobs => "jobs",
            InputKind::Crontab => "crontab",
            InputKind::SystemCrontab => "system_crontab",
        }
    }
}

/// The jobs of a file, and what the reader noticed.
#[derive(Debug)]
pub(crate) struct Input {
    pub(crate) name: String,
    pub(crate) kind: InputKind,
    pub(crate) jobs: Vec<InputJob>,
    pub(crate) left_out: Vec<SkippedEntry>,
    /// Lines of a crontab that could not be read.
    pub(crate) bad_lines: Option<Diagnostics>,
    /// Whether times are taken as UTC only because the file names no zone.
    pub(crate) assumes_utc: bool,
}

/// A job and its line in the file.
#[derive(Debug)]
pub(crate) struct InputJob {
    pub(crate) job: Job,
    pub(crate) line: usize,
    /// Whether the file pins its time.
    pub(crate) is_pinned: bool,
}

impl Input {
    /// The zone that all jobs share, or UTC.
    pub(crate) fn zone(&self) -> Zone {
        shared_zone(self.jobs.iter().map(|it| &it.job))
    }
}

/// The zone that all jobs share, or UTC.
pub(crate) fn shared_zone<'a>(jobs: impl IntoIterator<Item = &'a Job>) -> Zone {
    let mut zones = jobs.into_iter().map(|job| &job.zone);
    let first = zones.next().cloned().unwrap_or_else(Zone::utc);
    if zones.all(|zone| *zone == first) { first } else { Zone::utc() }
}

/// The text of a file that may be a crontab. Old crontabs have comments in other encodings, which must not keep us from
/// reading the rest. A job file must be UTF-8.
pub(crate) fn read_or_say(
    path: &Path,
    kind: Option<InputKind>,
    err: &mut dyn Write,
) -> io::Result<Option<SourceText>> {
    let read = source::read_bytes(path).and_then(|file| match file.text() {
        Err(_) if kind.unwrap_or_else(|| kind_of(&file.lossy_text())) != InputKind::Jobs => {
            Ok(file.lossy_text())
        }
        text => text,
    });
    source::or_say(read, path, err)
}

pub(crate) fn load(
    source: &SourceText,
    kind: Option<InputKind>,
    now: Timestamp,
) -> Result<Input, Diagnostics> {
    let mut zones = Zones::new();
    let form = match kind.unwrap_or_else(|| kind_of(source)) {
        InputKind::Jobs => return load_jobs(source, now, &mut zones),
        InputKind::Crontab => None,
        InputKind::SystemCrontab => Some(CrontabForm::System),
    };
    let crontab = crontab::read(source, form, now, &mut zones)?;
    let kind = match crontab.form {
        CrontabForm::User => InputKind::Crontab,
        CrontabForm::System => InputKind::SystemCrontab,
    };
    let jobs = crontab.entries.into_iter();
    Ok(Input {
        name: source.name.clone(),
        kind,
        jobs: jobs.map(|it| InputJob { job: it.job, line: it.line, is_pinned: it.is_pinned }).collect(),
        left_out: crontab.left_out,
        bad_lines: crontab.bad_lines,
        assumes_utc: !crontab.names_zone,
    })
}

fn load_jobs(source: &SourceText, now: Timestamp, zones: &mut Zones) -> Result<Input, Diagnostics> {
    let loaded = jobfile::load(std::slice::from_ref(source), now, zones)?;
    let jobs = loaded.files.into_iter().flat_map(|file| file.jobs);
    let jobs = jobs.map(|it| InputJob { job: it.job, line: it.line, is_pinned: false }).collect();
    Ok(Input {
        name: source.name.clone(),
        kind: InputKind::Jobs,
        jobs,
        left_out: Vec::new(),
        bad_lines: None,
        assumes_utc: false,
    })
}

/// Detects the format by the file extension, or by a table header that only job files have.
fn kind_of(source: &SourceText) -> InputKind {
    let has_ending = Path::new(&source.name).extension().is_some_and(|it| it.eq_ignore_ascii_case("toml"));
    let is_header = |line: &str| {
        let line = line.trim_start_matches('\u{feff}').trim_start();
        ["[[job]]", "[defaults]", "[template"].iter().any(|header| line.starts_with(header))
    };
    if has_ending || source.text.lines().any(is_header) { InputKind::Jobs } else { InputKind::Crontab }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, text: &str, expected: InputKind) {
        let source = SourceText { name: name.to_owned(), text: text.to_owned() };
        assert_eq!(kind_of(&source), expected, "{name}: {text}");
    }

    #[test]
    fn a_file_is_known_by_its_name_or_by_what_it_says() {
        check("fleet.toml", "", InputKind::Jobs);
        check("fleet.TOML", "0 3 * * * a", InputKind::Jobs);
        check("standard input", "# A fleet.\n  [[job]]\n", InputKind::Jobs);
        check("fleet", "\u{feff}[defaults]\n", InputKind::Jobs);
        check("fleet", "[template.crawl]\n", InputKind::Jobs);
        check("crontab", "0 3 * * * [[job]]\n", InputKind::Crontab);
        check("standard input", "", InputKind::Crontab);
    }
}
