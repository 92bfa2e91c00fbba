//! `evenbeat apply`, `diff` and `export`: job files and a server's fleet.

use std::path::PathBuf;

use evenbeat_core::zone::Zones;
use serde_json::Value as Json;

use super::client::{ApiRequest, CommandError};
use super::format::{BOLD, DIM, NOTICE};
use super::remote::{CommandResult, RemoteContext};
use super::{Exit, chart, job_file};
use crate::jobfile::{self, LoadedFiles, SourceText};
use crate::printable;
use crate::value_json::to_json;
use crate::views::definition_text;
use crate::views::model::{AppliedJob, ApplyAnswer, ApplyRequest, JobDefinition, Page};
use anstyle::{AnsiColor, Style};

const ADDED: Style = AnsiColor::Green.on_default();
const REMOVED: Style = AnsiColor::Red.on_default();

/// What to do with the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Apply them.
    Apply,
    /// Only show what would change.
    DryRun,
    /// Show what would change, and exit with 1 if anything would.
    Diff,
}

/// The jobs of some files, and the position of each.
struct FileJobs {
    jobs: Vec<JobDefinition>,
    places: Vec<String>,
    /// Warnings that were already printed.
    warned: String,
}

pub(crate) fn run(
    files: &[PathBuf],
    prune: bool,
    purpose: Purpose,
    remote: &mut RemoteContext<'_>,
) -> CommandResult {
    let declared = match read_files(files, remote)? {
        Ok(declared) => declared,
        Err(exit) => return Ok(exit),
    };
    let request = ApplyRequest { jobs: declared.jobs, prune, dry_run: purpose != Purpose::Apply };
    let request = ApiRequest::post(&["apply"]).json(&request);
    let answered = remote.send_and_print(request, |it: &ApplyAnswer, remote| print(it, purpose, remote));
    let answer = answered.map_err(|error| in_files(error, &declared.places))?;
    // Skip warnings that were already printed with the file.
    for doubt in answer.warnings.iter().filter(|it| !declared.warned.contains(&it.detail)) {
        let place = in_file(&doubt.pointer, &declared.places).unwrap_or_else(|| doubt.pointer.clone());
        writeln!(remote.err, "{NOTICE}warning{NOTICE:#}: {place}: job `{}`: {}", doubt.job, doubt.detail)?;
    }
    let counts = answer.counts;
    let is_same = counts.created + counts.changed + counts.removed == 0;
    Ok(if purpose == Purpose::Diff && !is_same { Exit::Failed } else { Exit::Ok })
}

fn read_files(
    files: &[PathBuf],
    remote: &mut RemoteContext<'_>,
) -> Result<Result<FileJobs, Exit>, CommandError> {
    let mut sources: Vec<SourceText> = Vec::new();
    for file in files {
        match job_file::read_or_report(file, remote.err)? {
            Some(source) => sources.push(source),
            None => return Ok(Err(Exit::Usage)),
        }
    }
    let loaded = match jobfile::load(&sources, remote.now, &mut Zones::new()).and_then(LoadedFiles::supported)
    {
        Ok(loaded) => loaded,
        Err(diagnostics) => {
            write!(remote.err, "{}", diagnostics.render(true))?;
            return Ok(Err(Exit::Failed));
        }
    };
    let mut declared = FileJobs { jobs: Vec::new(), places: Vec::new(), warned: String::new() };
    if !loaded.warnings.is_empty() {
        write!(remote.err, "{}", loaded.warnings.render(true))?;
        declared.warned = loaded.warnings.render(false);
    }
    for file in loaded.files {
        for job in file.jobs {
            let fields = job.spec.table().iter().map(|(name, value)| (name.clone(), to_json(value)));
            declared.jobs.push(JobDefinition(fields.collect()));
            declared.places.push(format!("{}:{}", file.name, job.line));
        }
    }
    Ok(Ok(declared))
}

/// Adds the file and line of the job to errors that only the server can detect.
fn in_files(error: CommandError, places: &[String]) -> CommandError {
    let CommandError::Problem(mut problem) = error else { return error };
    for error in &mut problem.errors {
        if let Some(place) = in_file(&error.pointer, places) {
            error.pointer = place;
        }
    }
    CommandError::Problem(problem)
}

/// Converts a pointer into the request body to a file, a line and a field.
fn in_file(pointer: &str, places: &[String]) -> Option<String> {
    let rest = pointer.strip_prefix("/jobs/")?;
    let (idx, field) = rest.split_once('/').unwrap_or((rest, ""));
    let place = places.get(idx.parse::<usize>().ok()?)?;
    Some(if field.is_empty() { place.clone() } else { format!("{place}: {field}") })
}

fn print(answer: &ApplyAnswer, purpose: Purpose, remote: &mut RemoteContext<'_>) -> Result<(), CommandError> {
    for it in &answer.changes {
        print_job(it, purpose, remote)?;
    }
    let counts = answer.counts;
    let would = if answer.dry_run { "would be " } else { "" };
    let parts: Vec<String> = [
        (counts.created, "created"),
        (counts.changed, "changed"),
        (counts.removed, "removed"),
        (counts.unchanged, "unchanged"),
    ]
    .into_iter()
    .filter(|(n, _)| 0 < *n)
    .map(|(n, word)| match word {
        "unchanged" => format!("{} {word}", chart::thousands(chart::to_u64(n))),
        _ => format!("{} {would}{word}", chart::thousands(chart::to_u64(n))),
    })
    .collect();
    let text = if parts.is_empty() { "no jobs".to_owned() } else { parts.join(", ") };
    writeln!(remote.out, "{text}")?;
    Ok(())
}

fn print_job(it: &AppliedJob, purpose: Purpose, remote: &mut RemoteContext<'_>) -> Result<(), CommandError> {
    let (mark, style) = match &*it.change {
        "created" => ('+', ADDED),
        "removed" => ('-', REMOVED),
        "changed" => ('~', NOTICE),
        _ => return Ok(()),
    };
    writeln!(remote.out, "{style}{mark}{style:#} {BOLD}{}{BOLD:#}", it.job)?;
    // `apply` shows what changed, `diff` shows everything.
    if it.change != "changed" && purpose == Purpose::Apply {
        return Ok(());
    }
    for field in &it.fields {
        let name = &field.field;
        let safe = |value: &Json| printable::line(&value.to_string()).into_owned();
        let (before, after) = (safe(&field.before), safe(&field.after));
        match (&field.before, &field.after) {
            (Json::Null, _) => writeln!(remote.out, "    {ADDED}{name} = {after}{ADDED:#}")?,
            (_, Json::Null) => {
                writeln!(remote.out, "    {REMOVED}{name} = {before}{REMOVED:#} {DIM}(removed){DIM:#}")?;
            }
            _ => {
                writeln!(remote.out, "    {name} = {REMOVED}{before}{REMOVED:#} → {ADDED}{after}{ADDED:#}")?;
            }
        }
    }
    Ok(())
}

/// Prints all jobs of the server as a job file.
pub(crate) fn export(remote: &mut RemoteContext<'_>) -> CommandResult {
    remote.fetch_all_and_print(
        &ApiRequest::get(&["export"]),
        "after",
        usize::MAX,
        |page: &Page<JobDefinition>, remote| {
            for definition in &page.items {
                writeln!(remote.out, "{}", as_job_file(definition)?)?;
            }
            Ok(())
        },
    )?;
    Ok(Exit::Ok)
}

/// A job as in a job file.
pub(crate) fn as_job_file(definition: &JobDefinition) -> Result<String, CommandError> {
    definition_text::job_file(definition)
        .map_err(|error| CommandError::Bad(format!("cannot write a job as TOML: {error}")))
}

/// Prints what an edit would change.
pub(crate) fn print_changes(
    answer: &ApplyAnswer,
    remote: &mut RemoteContext<'_>,
) -> Result<(), CommandError> {
    answer.changes.iter().try_for_each(|it| print_job(it, Purpose::Diff, remote))
}
