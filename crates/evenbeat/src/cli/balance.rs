//! `evenbeat distribution` and `evenbeat rebalance`: how evenly a server's fleet is spread.

use std::io::BufRead;

use super::analyze::ScoreWord;
use super::chart::{self, counted, to_u64};
use super::client::{ApiRequest, CommandError};
use super::confirm::Consent;
use super::format::{BOLD, DIM, NOTICE};
use super::remote::{CommandResult, RemoteContext};
use super::table::{Cell, Fit, words};
use super::{Exit, format};
use crate::views::model::{
    DistributionView, Instant, PreviewMove, RebalanceAnswer, RebalancePreview, RebalanceRequest, SkippedJob,
};

/// Number of moves shown without `--all`.
const MOVES_MAX: usize = 20;

pub(crate) fn distribution(hours: u32, remote: &mut RemoteContext<'_>) -> CommandResult {
    let request = ApiRequest::get(&["scheduler", "distribution"]).with("window_hours", Some(hours));
    remote.send_and_print(request, print_distribution)?;
    Ok(Exit::Ok)
}

fn print_distribution(it: &DistributionView, remote: &mut RemoteContext<'_>) -> Result<(), CommandError> {
    let word = ScoreWord::of(it.distribution_score);
    writeln!(
        remote.out,
        "{}, {} in {} h: evenness {BOLD}{:.2}{BOLD:#} {}",
        counted(to_u64(it.total_jobs), "job"),
        counted(it.total_runs, "start"),
        it.window_hours,
        it.distribution_score,
        word.as_str()
    )?;
    if word != ScoreWord::Good {
        writeln!(
            remote.out,
            "{NOTICE}run `evenbeat rebalance --preview` to see how to spread it more evenly{NOTICE:#}"
        )?;
    }
    writeln!(
        remote.out,
        "busiest hour {}, busiest {} min {}, busiest minute {}{}",
        it.peak_count,
        it.slot_minutes,
        it.peak_slot_count,
        it.peak_minute_count,
        if it.overdue == 0 { String::new() } else { format!("; {} overdue", it.overdue) }
    )?;
    writeln!(remote.out)?;
    let width = remote.width.saturating_sub(28).clamp(8, 60);
    let lines: Vec<String> = it
        .hourly_distribution
        .iter()
        .map(|hour| {
            let mark = if hour.hour == it.peak_hour && 0 < it.peak_count { " peak" } else { "" };
            let bar = chart::bar(hour.job_count, it.peak_count, width);
            format!(
                "{}  {:>6}  {bar}{NOTICE}{mark}{NOTICE:#}",
                remote.clock.minute_at(hour.start.0),
                hour.job_count
            )
        })
        .collect();
    remote.lines(&lines)
}

/// How much of a plan to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detail {
    /// The first moves, and the number of jobs that stay for each reason.
    Summary,
    /// Every move and every job that stays.
    All,
}

/// Shows a rebalance plan and applies it with consent. The confirmation is read from `answer`, which is `None` without a
/// terminal.
pub(crate) fn rebalance(
    consent: Consent,
    detail: Detail,
    answer: Option<&mut dyn BufRead>,
    remote: &mut RemoteContext<'_>,
) -> CommandResult {
    let shown = remote.send(ApiRequest::post(&["scheduler", "rebalance", "preview"]))?;
    let plan: RebalancePreview = shown.read()?;
    if consent == Consent::Preview && remote.json {
        format::json(remote.out, &shown.read()?)?;
        return Ok(Exit::Ok);
    }
    if !remote.json {
        print_plan(&plan, detail, remote)?;
    }
    let is_wanted = match (consent, answer) {
        (Consent::Preview, _) => return Ok(Exit::Ok),
        (Consent::Given, _) => true,
        (Consent::Ask, _) if plan.would_move == 0 => return Ok(Exit::Ok),
        (Consent::Ask, None) => {
            return Err(CommandError::Usage(
                "nothing was changed: there is no terminal to ask for confirmation; add `--yes` to apply the plan, or \
                 `--preview` to only show it"
                    .to_owned(),
            ));
        }
        (Consent::Ask, Some(answer)) => {
            write!(remote.err, "Move {}? [y/N] ", counted(to_u64(plan.would_move), "job"))?;
            remote.err.flush()?;
            let mut line = String::new();
            answer.read_line(&mut line)?;
            ["y", "yes"].contains(&line.trim().to_lowercase().as_str())
        }
    };
    if !is_wanted {
        writeln!(remote.err, "nothing was changed")?;
        return Ok(Exit::Ok);
    }
    let request =
        ApiRequest::post(&["scheduler", "rebalance"]).json(&RebalanceRequest { plan_id: Some(plan.plan_id) });
    remote.send_and_print(request, |it: &RebalanceAnswer, remote| {
        writeln!(
            remote.out,
            "{} moved: evenness {:.2} → {BOLD}{:.2}{BOLD:#}",
            counted(to_u64(it.moved_count), "job"),
            it.old_distribution_score,
            it.new_distribution_score
        )?;
        Ok(())
    })?;
    Ok(Exit::Ok)
}

fn print_plan(
    plan: &RebalancePreview,
    detail: Detail,
    remote: &mut RemoteContext<'_>,
) -> Result<(), CommandError> {
    let n_jobs = plan.would_move + plan.unchanged + plan.would_skip;
    let are = |n: usize| if n == 1 { "is" } else { "are" };
    writeln!(
        remote.out,
        "{}: {} would move, {} {} well placed, {} cannot move now",
        counted(to_u64(n_jobs), "scheduled job"),
        plan.would_move,
        plan.unchanged,
        are(plan.unchanged),
        plan.would_skip
    )?;
    writeln!(
        remote.out,
        "evenness {:.2} → {BOLD}{:.2}{BOLD:#}, busiest slot {} → {}",
        plan.current_score, plan.projected_score, plan.current_peak, plan.projected_peak
    )?;
    if !plan.is_complete {
        writeln!(
            remote.out,
            "{NOTICE}this is the first part of a large rebalance: apply it, then run `evenbeat rebalance` again{NOTICE:#}"
        )?;
    }
    print_moves(plan, detail, remote)?;
    match detail {
        Detail::Summary => {
            for (reason, n) in &plan.skipped_by_reason {
                writeln!(remote.out, "{DIM}not moved: {n} {}{DIM:#}", reason_text(reason))?;
            }
        }
        Detail::All if plan.skipped.is_empty() => {}
        Detail::All => {
            let row = |it: &SkippedJob| vec![Cell::plain(&it.job_id), Cell::plain(reason_text(&it.reason))];
            let rows: Vec<Vec<Cell>> = plan.skipped.iter().map(row).collect();
            let columns = [("JOB", Fit::Shorten(16)), ("NOT MOVED BECAUSE IT IS", Fit::Shorten(30))];
            let lines = words(&columns, &rows, remote.table_width);
            remote.lines(&lines)?;
        }
    }
    Ok(())
}

fn print_moves(
    plan: &RebalancePreview,
    detail: Detail,
    remote: &mut RemoteContext<'_>,
) -> Result<(), CommandError> {
    if plan.preview.is_empty() {
        return Ok(());
    }
    let n_shown = if detail == Detail::All { plan.preview.len() } else { MOVES_MAX };
    let row = |it: &PreviewMove| {
        let at = |at: Instant| Cell::plain(remote.clock.minute_at(at.0));
        vec![Cell::plain(&it.job_id), at(it.current_time), at(it.proposed_time)]
    };
    let rows: Vec<Vec<Cell>> = plan.preview.iter().take(n_shown).map(row).collect();
    let zone = remote.clock.zone_name();
    let (next, then) = (format!("NEXT RUN ({zone})"), format!("WOULD BE ({zone})"));
    let columns = [("JOB", Fit::Shorten(16)), (&*next, Fit::Drop), (&*then, Fit::Whole)];
    let lines = words(&columns, &rows, remote.table_width);
    remote.lines(&lines)?;
    let n_more = plan.would_move.saturating_sub(n_shown);
    if 0 < n_more {
        let hint = if detail == Detail::All { "" } else { " (--all shows them)" };
        writeln!(remote.out, "{NOTICE}… and {n_more} more{hint}{NOTICE:#}")?;
    }
    Ok(())
}

/// Translates an API code into the reason why a job stays where it is.
fn reason_text(code: &str) -> String {
    match code {
        "job_running" => "running now",
        "protection_window" => "due soon, within a quarter of its interval or 30 minutes",
        "placement_cooldown" => "placed or moved less than an hour ago",
        "pinned_schedule" => "pinned to its time by its schedule",
        "paused" => "paused",
        "waiting" => "waiting for a retry or for the end of a blackout",
        other => return other.replace('_', " "),
    }
    .to_owned()
}
