//! What an analysis says in sentences: the verdict, and the notes at the end.

use super::figures::{Figures, Peak, Potential, ScoreWord};
use crate::cli::chart::{counted, thousands, to_u64};
use crate::cli::input::Input;
use crate::cli::show::clock;
use crate::crontab::LeftOutReason;

/// How many line numbers a note names.
const N_LINES: usize = 8;

/// A blank at which no line ends: a word stays with its score.
pub(super) const GLUE: char = '\u{a0}';

/// How it stands and what could be, in one breath.
pub(super) fn verdict(figures: &Figures) -> String {
    let (before, after) = (&figures.as_is, &figures.proposed);
    let jobs = counted(to_u64(figures.n_jobs), "job");
    if figures.n_jobs == 0 {
        return "No jobs, so nothing to spread.".to_owned();
    }
    if before.distribution.n_runs == 0 {
        return format!("{jobs}, no start in {} h.", figures.hours);
    }
    let starts = counted(before.distribution.n_runs, "start");
    let (word, score) = (before.word(), before.shown_score());
    let now = format!("{jobs}, {starts} in {} h: {}{GLUE}({score})", figures.hours, word.as_str());
    let busiest = thousands(before.peak_minute.n_starts.into());
    if figures.changes.is_empty() {
        return match word {
            ScoreWord::Good => format!("{now}, busiest minute {busiest}. Evenbeat would leave it as it is."),
            _ if figures.with_h.is_some() => format!("{now}, busiest minute {busiest}. Its times are fixed."),
            _ => format!("{now}, busiest minute {busiest}. Other times would not help."),
        };
    }
    let still = if after.word() == word && word != ScoreWord::Good { "still " } else { "" };
    format!(
        "{now}. Evenbeat would spread them: {still}{}{GLUE}({}), busiest minute {busiest} → {}.",
        after.word().as_str(),
        after.shown_score(),
        thousands(after.peak_minute.n_starts.into()),
    )
}

/// What else is worth knowing.
pub(super) fn notes(input: &Input, figures: &Figures) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(Potential { n_jobs, example: (old, new), side }) = &figures.with_h {
        let (jobs, have) = (counted(to_u64(*n_jobs), "job"), if *n_jobs == 1 { "has" } else { "have" });
        notes.push(format!(
            "{jobs} {have} a fixed minute and cannot move. With `H` (`{old}` → `{new}`) or `every` instead, Evenbeat \
             would spread them: {}{GLUE}({}), busiest minute {} → {}.",
            side.word().as_str(),
            side.shown_score(),
            thousands(figures.as_is.peak_minute.n_starts.into()),
            thousands(side.peak_minute.n_starts.into()),
        ));
    }
    if figures.proposed.is_held_back_by_hours() {
        let Peak { at, n_starts } = figures.proposed.peak_hour;
        let total = figures.proposed.distribution.n_runs;
        let hour = clock(&figures.zone, at);
        notes.push(format!(
            "What keeps it {} now are the hours: the one from {hour} has {} of {}. Let jobs that need no \
             hour of their own choose it too: `H H(1-5) * * *` in a job file is \"some time at night\".",
            figures.proposed.word().as_str(),
            thousands(n_starts.into()),
            counted(total, "start"),
        ));
    }
    let (before, hours) = (&figures.as_is.distribution, figures.hours);
    let mut note = |n: usize, one: &str, many: &str| {
        if 0 < n {
            notes.push(format!("{} {}", counted(to_u64(n), "job"), if n == 1 { one } else { many }));
        }
    };
    note(before.n_overdue, "should have started by now.", "should have started by now.");
    note(
        before.n_beyond,
        &format!("starts only after these {hours} h."),
        &format!("start only after these {hours} h."),
    );
    note(
        figures.n_idle,
        "never starts by itself: manual, paused, not enabled or over.",
        "never start by themselves: manual, paused, not enabled or over.",
    );
    for (why, what) in [
        (LeftOutReason::Reboot, "`@reboot` names no time"),
        (LeftOutReason::NoSuchDate, "the date does not exist, so it never runs"),
    ] {
        let lines: Vec<usize> = input.left_out.iter().filter(|it| it.why == why).map(|it| it.line).collect();
        if !lines.is_empty() {
            notes.push(format!("{} left out: {what}.", numbered(&lines)));
        }
    }
    if let Some(bad_lines) = &input.bad_lines {
        let n = counted(to_u64(bad_lines.n_lines()), "line");
        notes.push(format!("{n} left out that cron would not understand either (see the errors)."));
    }
    if input.assumes_utc && !input.jobs.is_empty() {
        notes.push(
            "Times are taken for UTC; a line `CRON_TZ=Europe/Berlin` at the top says otherwise.".to_owned(),
        );
    }
    notes
}

/// `line 3`, `lines 3, 5, …`.
fn numbered(lines: &[usize]) -> String {
    let shown: Vec<String> = lines.iter().take(N_LINES).map(ToString::to_string).collect();
    let more = if shown.len() < lines.len() { ", …" } else { "" };
    format!("Line{} {}{more}", if lines.len() == 1 { "" } else { "s" }, shown.join(", "))
}
