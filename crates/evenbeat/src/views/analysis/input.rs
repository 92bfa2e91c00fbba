//! The jobs of a job file or a crontab, as a value.

use std::path::Path;

use evenbeat_core::job::Job;
use evenbeat_core::time::Timestamp;
use evenbeat_core::zone::{Zone, Zones};

use crate::crontab::{self, Crontab, CrontabEntry, CrontabForm, SkippedEntry};
use crate::jobfile::{self, Diagnostics, SourceText};

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FleetFileKind {
    /// A job file (TOML).
    Jobs,
    /// A crontab, with or without users: the reader detects which.
    Crontab,
    /// A crontab with a user before each command.
    SystemCrontab,
}

impl FleetFileKind {
    /// The format that the options name, if any.
    pub(crate) fn from_flags(crontab: bool, system: bool, jobs: bool) -> Option<FleetFileKind> {
        match (crontab, system, jobs) {
            (_, true, _) => Some(FleetFileKind::SystemCrontab),
            (true, ..) => Some(FleetFileKind::Crontab),
            (.., true) => Some(FleetFileKind::Jobs),
            _ => None,
        }
    }

    /// The name in text output.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            FleetFileKind::Jobs => "job file",
            FleetFileKind::Crontab => "crontab",
            FleetFileKind::SystemCrontab => "system crontab",
        }
    }

    /// The name in JSON output.
    pub(crate) fn code(self) -> &'static str {
        match self {
            FleetFileKind::Jobs => "jobs",
            FleetFileKind::Crontab => "crontab",
            FleetFileKind::SystemCrontab => "system_crontab",
        }
    }
}

/// The jobs of a file, and what the reader noticed.
#[derive(Debug)]
pub(crate) struct FleetFile {
    pub(crate) name: String,
    pub(crate) kind: FleetFileKind,
    pub(crate) jobs: Vec<FleetFileJob>,
    pub(crate) left_out: Vec<SkippedEntry>,
    /// Lines of a crontab that could not be read.
    pub(crate) bad_lines: Option<Diagnostics>,
    /// Whether times are taken as UTC only because the file names no zone.
    pub(crate) assumes_utc: bool,
}

/// A job and its line in the file.
#[derive(Debug)]
pub(crate) struct FleetFileJob {
    pub(crate) job: Job,
    pub(crate) line: usize,
    /// Whether the file pins its time.
    pub(crate) is_pinned: bool,
}

impl FleetFile {
    pub(crate) fn of_crontab(source: &SourceText, crontab: Crontab) -> FleetFile {
        let kind = match crontab.form {
            CrontabForm::User => FleetFileKind::Crontab,
            CrontabForm::System => FleetFileKind::SystemCrontab,
        };
        let job = |it: CrontabEntry| FleetFileJob { job: it.job, line: it.line, is_pinned: it.is_pinned };
        FleetFile {
            name: source.name.clone(),
            kind,
            jobs: crontab.entries.into_iter().map(job).collect(),
            left_out: crontab.left_out,
            bad_lines: crontab.bad_lines,
            assumes_utc: !crontab.names_zone,
        }
    }

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

pub(crate) fn load(
    source: &SourceText,
    kind: Option<FleetFileKind>,
    now: Timestamp,
) -> Result<FleetFile, Diagnostics> {
    let mut zones = Zones::new();
    let form = match kind.unwrap_or_else(|| kind_of(source)) {
        FleetFileKind::Jobs => return load_jobs(source, now, &mut zones),
        FleetFileKind::Crontab => None,
        FleetFileKind::SystemCrontab => Some(CrontabForm::System),
    };
    Ok(FleetFile::of_crontab(source, crontab::read(source, form, now, &mut zones)?))
}

fn load_jobs(source: &SourceText, now: Timestamp, zones: &mut Zones) -> Result<FleetFile, Diagnostics> {
    let loaded = jobfile::load(std::slice::from_ref(source), now, zones)?;
    let jobs = loaded.files.into_iter().flat_map(|file| file.jobs);
    let jobs = jobs.map(|it| FleetFileJob { job: it.job, line: it.line, is_pinned: false }).collect();
    Ok(FleetFile {
        name: source.name.clone(),
        kind: FleetFileKind::Jobs,
        jobs,
        left_out: Vec::new(),
        bad_lines: None,
        assumes_utc: false,
    })
}

/// Detects the format by the file extension, or by a table header that only job files have.
pub(crate) fn kind_of(source: &SourceText) -> FleetFileKind {
    let has_ending = Path::new(&source.name).extension().is_some_and(|it| it.eq_ignore_ascii_case("toml"));
    let is_header = |line: &str| {
        let line = line.trim_start_matches('\u{feff}').trim_start();
        ["[[job]]", "[defaults]", "[template"].iter().any(|header| line.starts_with(header))
    };
    if has_ending || source.text.lines().any(is_header) {
        FleetFileKind::Jobs
    } else {
        FleetFileKind::Crontab
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, text: &str, expected: FleetFileKind) {
        let source = SourceText { name: name.to_owned(), text: text.to_owned() };
        assert_eq!(kind_of(&source), expected, "{name}: {text}");
    }

    #[test]
    fn a_file_is_known_by_its_name_or_by_what_it_says() {
        check("fleet.toml", "", FleetFileKind::Jobs);
        check("fleet.TOML", "0 3 * * * a", FleetFileKind::Jobs);
        check("standard input", "# A fleet.\n  [[job]]\n", FleetFileKind::Jobs);
        check("fleet", "\u{feff}[defaults]\n", FleetFileKind::Jobs);
        check("fleet", "[template.crawl]\n", FleetFileKind::Jobs);
        check("crontab", "0 3 * * * [[job]]\n", FleetFileKind::Crontab);
        check("standard input", "", FleetFileKind::Crontab);
    }
}
