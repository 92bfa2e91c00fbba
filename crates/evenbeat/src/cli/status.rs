//! `evenbeat status` and `evenbeat probe`: the state of the fleet, for people and for monitoring systems.

use std::io::{self, Write};

use super::Exit;
use super::analyze::ScoreWord;
use super::chart::{counted, thousands};
use super::client::{ApiRequest, CommandError};
use super::exit::ProbeExit;
use super::format::{BOLD, DIM, NOTICE, relative, style_of_word};
use super::remote::{CommandResult, RemoteContext, ServerArgs, with_server};
use super::table::{Cell, Fit, words};
use crate::printable;
use crate::views::model::{JobCounts, StatusView};

/// Prints the state of the fleet. Exits with 1 if any job is in error.
pub(crate) fn status(remote: &mut RemoteContext<'_>) -> CommandResult {
    let status = remote.send_and_print(ApiRequest::get(&["status"]), |status: &StatusView, remote| {
        // Distances are from the server's time, also when this is shown again and again.
        remote.set_now(status.now.0);
        print(status, remote)
    })?;
    Ok(if status.condition == "error" { Exit::Failed } else { Exit::Ok })
}

fn print(status: &StatusView, remote: &mut RemoteContext<'_>) -> Result<(), CommandError> {
    let (jobs, style) = (&status.jobs, style_of_word(&status.condition));
    let condition = &status.condition;
    let count = |n: u32, word: &str| {
        let style = if n == 0 { DIM } else { style_of_word(word) };
        format!("{style}{} {word}{style:#}", thousands(n.into()))
    };
    if jobs.total == 0 {
        writeln!(remote.out, "{style}{condition}{style:#}  {BOLD}no jobs{BOLD:#}")?;
    } else {
        writeln!(
            remote.out,
            "{style}{condition}{style:#}  {BOLD}{}{BOLD:#}: {}, {}, {}{}",
            counted(jobs.total.into(), "job"),
            count(jobs.by_condition.ok, "ok"),
            count(jobs.by_condition.warning, "warning"),
            count(jobs.by_condition.error, "error"),
            inactive(jobs),
        )?;
    }
    let by = &jobs.by_status;
    let statuses: Vec<String> = [
        (by.running, "running"),
        (by.scheduled, "scheduled"),
        (by.pending, "pending"),
        (by.paused, "paused"),
        (by.disabled, "disabled"),
        (by.done, "done"),
    ]
    .into_iter()
    .filter(|(n, _)| 0 < *n)
    .map(|(n, word)| format!("{} {word}", thousands(n.into())))
    .collect();
    let fact = |what: &str, value: String| format!("  {what:14}{value}");
    let mut lines = Vec::new();
    if !statuses.is_empty() {
        lines.push(fact("jobs", statuses.join(", ")));
    }
    lines.push(fact("open runs", status.open_runs.to_string()));
    lines.push(fact("nodes", status.nodes.to_string()));
    if 0 < status.peak_count {
        let score = status.distribution_score;
        let peak = counted(status.peak_count.into(), "start");
        let from = format!("{} {}", remote.clock.minute_at(status.peak_at.0), remote.clock.zone_name());
        let word = ScoreWord::of(score).as_str();
        lines.push(fact(
            "evenness",
            format!("{score:.2} {word} over the next day, busiest hour {from} with {peak}"),
        ));
    }
    let since = relative(status.started_at.0, remote.now);
    lines.push(fact(
        "server",
        format!(
            "{} ({}), version {}, {}, started {since}",
            status.node, status.instance, status.version, status.store
        ),
    ));
    remote.lines(&lines)?;
    if !status.is_read {
        writeln!(remote.out, "{NOTICE}the server is still loading the fleet{NOTICE:#}")?;
    }
    if !status.worst.is_empty() {
        writeln!(remote.out)?;
        let rows: Vec<Vec<Cell>> = status
            .worst
            .iter()
            .map(|job| {
                vec![
                    Cell::plain(&job.key),
                    Cell::styled(&*job.condition, style_of_word(&job.condition)),
                    Cell::plain(&*job.reason),
                    Cell::styled(remote.clock.sentence(&job.sentence), DIM),
                ]
            })
            .collect();
        let columns = [
            ("JOB", Fit::Shorten(16)),
            ("CONDITION", Fit::Whole),
            ("REASON", Fit::Drop),
            ("WHY", Fit::Shorten(40)),
        ];
        let lines = words(&columns, &rows, remote.table_width);
        remote.lines(&lines)?;
    }
    Ok(())
}

/// The number of paused, disabled and done jobs. They have no condition, and are shown so that the counts add up.
fn inactive(jobs: &JobCounts) -> String {
    let by = &jobs.by_condition;
    match jobs.total.saturating_sub(by.ok + by.warning + by.error) {
        0 => String::new(),
        n => format!(", {} inactive", thousands(n.into())),
    }
}

/// Prints one line, and exits with a code that monitoring systems understand.
pub(crate) fn probe(
    args: &ServerArgs,
    now: evenbeat_core::time::Timestamp,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<Exit> {
    let mut found = None;
    let mut complaint: Vec<u8> = Vec::new();
    let ended = with_server(args, now, out, &mut complaint, |remote| {
        found = Some(remote.send(ApiRequest::get(&["status"]))?.read::<StatusView>()?);
        Ok(Exit::Ok)
    })?;
    let Some(status) = found else {
        if ended == Exit::Usage {
            err.write_all(&complaint)?;
        }
        let why = String::from_utf8_lossy(&complaint);
        let why = why.trim_start_matches("error: ").lines().next().unwrap_or("no answer").to_owned();
        // In plugin output a bar starts the performance data.
        writeln!(out, "UNKNOWN - {}", why.replace('|', "/"))?;
        return Ok(Exit::Probe(ProbeExit::Unknown));
    };
    let by = &status.jobs.by_condition;
    let (word, probe) = match &*status.condition {
        "ok" => ("OK", ProbeExit::Ok),
        "warning" => ("WARNING", ProbeExit::Warning),
        _ => ("CRITICAL", ProbeExit::Critical),
    };
    let worst = status
        .worst
        .first()
        .map_or(String::new(), |job| format!("; {}: {}", job.key, printable::line(&job.sentence)));
    writeln!(
        out,
        "{word} - {}: {} ok, {} warning, {} error{}{}|ok={} warning={} error={} open_runs={} score={:.2}",
        counted(status.jobs.total.into(), "job"),
        by.ok,
        by.warning,
        by.error,
        inactive(&status.jobs),
        worst.replace('|', "/"),
        by.ok,
        by.warning,
        by.error,
        status.open_runs,
        status.distribution_score,
    )?;
    Ok(Exit::Probe(probe))
}
