//! `evenbeat distribution` and `evenbeat rebalance`: how even the fleet of a server is.

use std::io::BufRead;

use super::chart::{self, counted, to_u64};
use super::client::{Ask, Trouble};
use super::live::{Desk, Done};
use super::show::{BOLD, DIM, NOTICE};
use super::table::{Cell, words};
use super::{Exit, show};
use crate::api::model::{
    DistributionView, Instant, PreviewMove, RebalanceAnswer, RebalancePreview, RebalanceRequest, SkippedJob,
};

/// So many moves are shown.
const MOVES_MAX: usize = 20;

pub(crate) fn distribution(hours: u32, desk: &mut Desk<'_>) -> Done {
    let ask = Ask::get(&["scheduler", "distribution"]).with("window_hours", Some(hours));
    desk.ask_and_show(ask, print_distribution)?;
    Ok(Exit::Ok)
}

fn print_distribution(it: &DistributionView, desk: &mut Desk<'_>) -> Result<(), Trouble> {
    let style = if it.distribution_score < 0.8 { NOTICE } else { DIM };
    writeln!(
        desk.out,
        "{}, {} in {} h: {BOLD}{:.2}{BOLD:#}  {style}{}{style:#}",
        counted(to_u64(it.total_jobs), "job"),
        counted(it.total_runs, "start"),
        it.window_hours,
        it.distribution_score,
        it.suggestion
    )?;
    writeln!(
        desk.out,
        "busiest hour {}, slot of {} min {}, minute {}{}",
        it.peak_count,
        it.slot_minutes,
        it.peak_slot_count,
        it.peak_minute_count,
        if it.overdue == 0 { String::new() } else { format!("; {} overdue", it.overdue) }
    )?;
    writeln!(desk.out)?;
    let width = desk.width.saturating_sub(28).clamp(8, 60);
    let lines: Vec<String> = it
        .hourly_distribution
        .iter()
        .map(|hour| {
            let mark = if hour.hour == it.peak_hour && 0 < it.peak_count { " peak" } else { "" };
            let bar = chart::bar(hour.job_count, it.peak_count, width);
            format!("{}  {:>6}  {bar}{NOTICE}{mark}{NOTICE:#}", minute_of(hour.start), hour.job_count)
        })
        .collect();
    desk.lines(&lines)
}

/// What is done with a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Consent {
    /// It is only shown.
    Preview,
    /// It is applied.
    Given,
    /// Someone is asked.
    Ask,
}

/// Shows what a rebalance would do, and does it if that is wanted. `answer` is where whoever is asked answers; none if
/// nobody can be.
pub(crate) fn rebalance(consent: Consent, answer: Option<&mut dyn BufRead>, desk: &mut Desk<'_>) -> Done {
    let shown = desk.ask(Ask::post(&["scheduler", "rebalance", "preview"]))?;
    let plan: RebalancePreview = shown.read()?;
    if consent == Consent::Preview && desk.json {
        show::json(desk.out, &shown.read()?)?;
        return Ok(Exit::Ok);
    }
    if !desk.json {
        print_plan(&plan, desk)?;
    }
    let is_wanted = match (consent, answer) {
        (Consent::Preview, _) => return Ok(Exit::Ok),
        (Consent::Given, _) => true,
        (Consent::Ask, _) if plan.would_move == 0 => return Ok(Exit::Ok),
        (Consent::Ask, None) => {
            return Err(Trouble::Usage(
                "nothing was changed: there is no terminal to ask at; add `--yes` to apply the plan, or `--preview` to \
                 only look"
                    .to_owned(),
            ));
        }
        (Consent::Ask, Some(answer)) => {
            write!(desk.err, "Move {}? [y/N] ", counted(to_u64(plan.would_move), "job"))?;
            desk.err.flush()?;
            let mut line = String::new();
            answer.read_line(&mut line)?;
            ["y", "yes"].contains(&line.trim().to_lowercase().as_str())
        }
    };
    if !is_wanted {
        writeln!(desk.err, "nothing was changed")?;
        return Ok(Exit::Ok);
    }
    let ask = Ask::post(&["scheduler", "rebalance"]).json(&RebalanceRequest { plan_id: Some(plan.plan_id) });
    desk.ask_and_show(ask, |it: &RebalanceAnswer, desk| {
        writeln!(
            desk.out,
            "{} moved, {} not: {:.2} → {BOLD}{:.2}{BOLD:#}",
            counted(to_u64(it.moved.len()), "job"),
            it.skipped.len(),
            it.old_distribution_score,
            it.new_distribution_score
        )?;
        Ok(())
    })?;
    Ok(Exit::Ok)
}

fn print_plan(plan: &RebalancePreview, desk: &mut Desk<'_>) -> Result<(), Trouble> {
    writeln!(
        desk.out,
        "{} would move, {} may not, {} are well where they are: {:.2} → {BOLD}{:.2}{BOLD:#}, busiest slot {} → {}",
        counted(to_u64(plan.would_move), "job"),
        plan.would_skip,
        plan.unchanged,
        plan.current_score,
        plan.projected_score,
        plan.current_peak,
        plan.projected_peak
    )?;
    let row = |it: &PreviewMove| {
        vec![
            Cell::plain(&it.job_id),
            Cell::plain(minute_of(it.current_time)),
            Cell::plain(minute_of(it.proposed_time)),
        ]
    };
    if !plan.preview.is_empty() {
        let rows: Vec<Vec<Cell>> = plan.preview.iter().take(MOVES_MAX).map(row).collect();
        let lines = words(&["JOB", "NEXT RUN", "WOULD BE"], &rows, desk.width);
        desk.lines(&lines)?;
        let n_more = plan.preview.len().saturating_sub(MOVES_MAX);
        if 0 < n_more {
            writeln!(desk.out, "{NOTICE}… and {n_more} more (see --json){NOTICE:#}")?;
        }
    }
    for (reason, n) in reasons(&plan.skipped) {
        writeln!(desk.out, "{DIM}not moved: {n} {reason}{DIM:#}")?;
    }
    Ok(())
}

fn reasons(skipped: &[SkippedJob]) -> std::collections::BTreeMap<&str, usize> {
    let mut reasons = std::collections::BTreeMap::new();
    for it in skipped {
        *reasons.entry(&*it.reason).or_default() += 1;
    }
    reasons
}

/// `2026-02-04 10:15`, in UTC.
fn minute_of(at: Instant) -> String {
    at.to_string().replace('T', " ").chars().take(16).collect()
}
