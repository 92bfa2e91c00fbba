//! `evenbeat run`: the runs of a server.

use std::io::{self, Write as _};
use std::time::Duration as Length;

use clap::{Args, Subcommand};
use evenbeat_core::ids::JobKey;
use evenbeat_core::time::Duration;

use super::client::{ApiRequest, CommandError};
use super::format::{BOLD, DIM, NOTICE, length, relative, style_of_word};
use super::log_lines::LogLines;
use super::period::PeriodArgs;
use super::remote::{CommandResult, RemoteContext};
use super::table::{Cell, Fit, short_id, words};
use super::{Exit, chart, run_id};
use crate::printable;
use crate::views::model::{CancelAnswer, Instant, Page, RecordView, RunView};

/// How long to wait before asking for more output when there was no new output.
const LOG_AGAIN: Length = Length::from_millis(500);

/// Arguments of `evenbeat run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    #[command(subcommand)]
    action: RunAction,
}

#[derive(Debug, Subcommand)]
enum RunAction {
    /// List runs, latest first.
    List(RunListArgs),
    /// List the skipped and missed occurrences of a job, with reasons.
    Records {
        /// Job key.
        job: JobKey,
        /// Show at most this many, latest first.
        #[arg(long, value_name = "N", default_value_t = RECORDS_MAX, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
        limit: u32,
    },
    /// Show the details of a run.
    Show {
        /// Run id or the start of one, or a job key for the job's last run.
        #[arg(value_name = "RUN")]
        run: String,
    },
    /// Print the output of a run. With `--json`, one document per line: `{"line":1,"text":"…"}`.
    Log {
        /// Run id or the start of one, or a job key for the job's last run.
        #[arg(value_name = "RUN")]
        run: String,
        /// Keep printing new output until the run ends.
        #[arg(short, long)]
        follow: bool,
        /// Print the output byte for byte, including control characters.
        #[arg(long)]
        raw: bool,
    },
    /// Cancel a run, or withdraw a requested run that has not started.
    Cancel {
        /// Run id or the start of one, or a job key for the job's last run.
        #[arg(value_name = "RUN")]
        run: String,
    },
}

/// Filters of `evenbeat run list`.
#[derive(Debug, Args)]
struct RunListArgs {
    /// Only runs of this job.
    #[arg(long, value_name = "KEY")]
    job: Option<JobKey>,
    /// Only runs with this outcome.
    #[arg(long, value_parser = ["succeeded", "failed", "timed_out", "blackout", "cancelled", "lost", "unknown", "superseded"])]
    outcome: Option<String>,
    /// Only runs that have not ended.
    #[arg(long, conflicts_with_all = ["outcome", "since", "until"])]
    open: bool,
    #[command(flatten)]
    period: PeriodArgs,
}

pub(crate) fn run(args: &RunArgs, remote: &mut RemoteContext<'_>) -> CommandResult {
    match &args.action {
        RunAction::List(args) => {
            let request = ApiRequest::get(&["runs"])
                .with("job", args.job.as_ref())
                .with("outcome", args.outcome.as_ref())
                .with("open", args.open.then_some(true));
            let request = args.period.narrow(request, &remote.clock);
            remote.fetch_all_and_print(&request, "before", args.period.most(), table)?;
            if let Some(job) = args.job.as_ref().filter(|_| !remote.json) {
                records(job, remote)?;
            }
        }
        RunAction::Records { job, limit } => {
            let request = ApiRequest::get(&["jobs", job.as_str(), "records"]);
            let most = usize::try_from(*limit).unwrap_or(usize::MAX);
            remote.fetch_all_and_print(&request, "before", most, |page: &Page<RecordView>, remote| {
                if page.items.is_empty() {
                    writeln!(remote.out, "no skipped or missed occurrences so far")?;
                }
                record_lines(page, remote)?;
                if page.next.is_some() {
                    writeln!(remote.out, "{NOTICE}there may be more (raise --limit){NOTICE:#}")?;
                }
                Ok(())
            })?;
        }
        RunAction::Show { run } => {
            let id = run_id::find(run, remote)?;
            remote.send_and_print(ApiRequest::get(&["runs", &id]), print)?;
        }
        RunAction::Log { run, follow, raw } => {
            let id = run_id::find(run, remote)?;
            log(&id, *follow, *raw, remote)?;
        }
        RunAction::Cancel { run } => {
            let id = run_id::find(run, remote)?;
            remote.send_and_print(
                ApiRequest::post(&["runs", &id, "cancel"]),
                |it: &CancelAnswer, remote| {
                    writeln!(remote.out, "cancelling run {BOLD}{}{BOLD:#}", it.run)?;
                    Ok(())
                },
            )?;
        }
    }
    Ok(Exit::Ok)
}

fn table(page: &Page<RunView>, remote: &mut RemoteContext<'_>) -> Result<(), CommandError> {
    if page.items.is_empty() {
        writeln!(remote.out, "no runs")?;
        return Ok(());
    }
    let now = remote.now;
    let rows: Vec<Vec<Cell>> = page
        .items
        .iter()
        .map(|run| {
            vec![
                Cell::plain(&run.job),
                Cell::styled(&*run.status, style_of_word(&run.status)),
                Cell::plain(
                    run.started_at.or(run.claimed_at).map_or("-".to_owned(), |at| relative(at.0, now)),
                ),
                Cell::plain(run.took.map_or("-".to_owned(), |it| length(it.0))),
                Cell::styled(&run.id, DIM),
                Cell::plain(&*run.trigger),
                Cell::plain(run.node.as_deref().unwrap_or("-")),
            ]
        })
        .collect();
    let columns = [
        ("JOB", Fit::Shorten(12)),
        ("STATUS", Fit::Whole),
        ("STARTED", Fit::Drop),
        ("TOOK", Fit::Drop),
        ("RUN", short_id(page.items.iter().map(|run| run.id.as_str()))),
        ("TRIGGER", Fit::Drop),
        ("NODE", Fit::Drop),
    ];
    let lines = words(&columns, &rows, remote.table_width);
    remote.lines(&lines)?;
    if page.next.is_some() {
        let shown = chart::counted(chart::to_u64(page.items.len()), "run");
        writeln!(remote.out, "{NOTICE}{shown} shown; there are more (raise --limit){NOTICE:#}")?;
    }
    Ok(())
}

/// Number of records shown by default.
const RECORDS_MAX: u32 = 100;

/// Prints the skipped and missed occurrences of a job below its runs.
fn records(job: &JobKey, remote: &mut RemoteContext<'_>) -> Result<(), CommandError> {
    let request = ApiRequest::get(&["jobs", job.as_str(), "records"]).with("limit", Some(RECORDS_MAX));
    let page: Page<RecordView> = remote.send(request)?.read()?;
    if page.items.is_empty() {
        return Ok(());
    }
    writeln!(remote.out, "\nskipped or missed:")?;
    record_lines(&page, remote)?;
    if page.next.is_some() {
        writeln!(remote.out, "{NOTICE}there may be more (evenbeat run records {job} --limit N){NOTICE:#}")?;
    }
    Ok(())
}

fn record_lines(page: &Page<RecordView>, remote: &mut RemoteContext<'_>) -> Result<(), CommandError> {
    for it in &page.items {
        let first = remote.clock.at(it.first.0);
        let due = if it.count == 1 { first } else { format!("{first} to {}", remote.clock.at(it.last.0)) };
        let (what, reason) = (&it.what, &it.reason);
        writeln!(remote.out, "  {:>5}  {NOTICE}{what}{NOTICE:#} ({reason})  {due}", it.count)?;
    }
    Ok(())
}

fn print(run: &RunView, remote: &mut RemoteContext<'_>) -> Result<(), CommandError> {
    let style = style_of_word(&run.status);
    writeln!(
        remote.out,
        "{BOLD}{}{BOLD:#}  {style}{}{style:#}  {DIM}{}{DIM:#}",
        run.job, run.status, run.id
    )?;
    let clock = &remote.clock;
    let at = |at: Option<Instant>| at.map(|at| clock.at_and_distance(at.0));
    let reported = run.result.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>();
    let safe = |text: &str| printable::line(text).into_owned();
    if let Some(sentence) = &run.sentence {
        let shown = remote.clock.sentence(sentence);
        writeln!(remote.out, "  {shown}")?;
    }
    let facts: [(&str, Option<String>); 16] = [
        ("trigger", Some(run.trigger.to_string())),
        ("scheduled for", at(run.scheduled_for)),
        ("attempt", Some(run.attempt.to_string())),
        ("node", run.node.clone()),
        ("claimed at", at(run.claimed_at)),
        ("started at", at(run.started_at)),
        ("ended at", at(run.ended_at)),
        ("took", run.took.map(|it| length(it.0))),
        ("exit code", run.exit_code.map(|it| it.to_string())),
        ("frozen for", run.frozen_for.filter(|it| Duration::ZERO < it.0).map(|it| length(it.0))),
        ("reported", Some(safe(&reported.join(" "))).filter(|it| !it.is_empty())),
        ("cancel", run.cancel_asked.then(|| "requested".to_owned())),
        ("late result", run.late.as_ref().map(|it| format!("{} at {}", it.outcome, clock.at(it.ended_at.0)))),
        ("retry at", at(run.retry_at)),
        ("fence", run.fence.map(|it| it.to_string())),
        ("clock", run.clock_was_ahead.then(|| "was ahead: these times are in the future".to_owned())),
    ];
    for (what, value) in facts {
        if let Some(value) = value {
            writeln!(remote.out, "  {what:15}{value}")?;
        }
    }
    Ok(())
}

/// Prints the output of a run.
fn log(id: &str, follow: bool, raw: bool, remote: &mut RemoteContext<'_>) -> Result<(), CommandError> {
    if raw && remote.json {
        return Err(CommandError::Usage("--raw cannot be used with --json".to_owned()));
    }
    // JSON escapes control characters itself.
    let unescaped = raw || remote.json;
    let mut lines = LogLines::default();
    let mut from = 0_u64;
    loop {
        let request = ApiRequest::get(&["runs", id, "log"])
            .with("from", Some(from))
            .with("raw", unescaped.then_some(true));
        let answer = remote.send(request)?;
        if remote.json {
            lines.push(&answer.body, remote.out)?;
            remote.out.flush()?;
        } else if raw {
            // Write to standard output directly: the wrapped stream strips escape sequences where there is no terminal.
            io::stdout().write_all(&answer.body).and_then(|()| io::stdout().flush())?;
        } else {
            remote.out.write_all(&answer.body)?;
            remote.out.flush()?;
        }
        let next = answer.header("evenbeat-log-next").and_then(|it| it.parse().ok()).unwrap_or(from);
        let more = answer.header("evenbeat-log-more") == Some("true");
        let has_moved = from < next;
        from = next;
        match (more, has_moved) {
            (true, true) => {}
            (true, false) if follow => remote.rest(LOG_AGAIN),
            _ => {
                lines.finish(remote.out)?;
                return Ok(());
            }
        }
    }
}

fn look(id: &str, remote: &RemoteContext<'_>) -> Result<RunView, CommandError> {
    remote.send(ApiRequest::get(&["runs", id]))?.read()
}

/// Prints the output of a requested run and exits with its exit code, if it has one. A run that was lost with its node
/// tells nothing, so we wait for the next attempt. A failed run is an answer, even if it will be retried.
pub(super) fn follow_request(request: &str, remote: &mut RemoteContext<'_>) -> CommandResult {
    let mut seen: Option<String> = None;
    loop {
        let run = look(request, remote)?;
        let is_new = seen.as_deref() != Some(run.id.as_str());
        if run.claimed_at.is_some() && is_new {
            match log(&run.id, true, false, remote) {
                // The log is on another node, or the run wrote nothing. Its outcome is known anyway.
                Err(CommandError::Problem(problem)) if problem.code == "no_log" => {
                    writeln!(remote.err, "{}", problem.detail)?;
                }
                logged => logged?,
            }
            seen = Some(run.id);
            continue;
        }
        let is_lost = &*run.status == "lost";
        if !run.is_open() && (run.retry_at.is_none() || !is_lost) {
            if &*run.status != "succeeded" {
                let again = run.retry_at.map(|at| format!("; next attempt {}", remote.clock.at(at.0)));
                writeln!(
                    remote.err,
                    "run {} of {}: {}{}",
                    run.id,
                    run.job,
                    run.status,
                    again.unwrap_or_default()
                )?;
            }
            return Ok(exit_of(&run));
        }
        remote.rest(LOG_AGAIN);
    }
}

fn exit_of(run: &RunView) -> Exit {
    match run.exit_code.map(u8::try_from) {
        Some(Ok(code)) if code != 0 || &*run.status == "succeeded" => Exit::OfRun(code),
        _ if &*run.status == "succeeded" => Exit::Ok,
        _ => Exit::Failed,
    }
}
