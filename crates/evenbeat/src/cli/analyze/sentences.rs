//! The sentences of an analysis: the verdict, and the notes at the end.

use crate::cli::chart::{counted, thousands, to_u64};
use crate::cli::fleet_file::FleetFile;
use crate::cli::format::clock;
use crate::crontab::SkipReason;
use crate::views::analysis::{AnalysisFigures, Peak, Potential, ScoreWord};

/// Number of line numbers in a note.
const N_LINES: usize = 8;

/// A non-breaking blank, which keeps a word and its score together.
pub(super) const GLUE: char = '\u{a0}';

/// The verdict on the current schedule and on the proposal.
pub(super) fn verdict(figures: &AnalysisFigures) -> String {
    let (before, after) = (&figures.as_is, &figures.proposed);
    let jobs = counted(to_u64(figures.n_jobs), "job");
    if figures.n_jobs == 0 {
        return "No jobs, so nothing to spread.".to_owned();
    }
    if before.distribution.n_runs == 0 {
        return format!("{jobs}, no starts in {} h.", figures.hours);
    }
    let starts = counted(before.distribution.n_runs, "start");
    let (word, score) = (before.word(), before.shown_score());
    let now = format!("{jobs}, {starts} in {} h: {}{GLUE}({score})", figures.hours, word.as_str());
    let busiest = thousands(before.peak_minute.n_starts.into());
    if figures.changes.is_empty() {
        return match word {
            ScoreWord::Good => {
                format!("{now}, busiest minute {busiest}. Evenbeat would not change anything.")
            }
            _ if figures.with_h.is_some() => format!("{now}, busiest minute {busiest}. Its times are fixed."),
            _ => format!("{now}, busiest minute {busiest}. Moving jobs would not help."),
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

/// The notes below the figures.
pub(super) fn notes(input: &FleetFile, figures: &AnalysisFigures) -> Vec<String> {
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
            "It is still {} because of the hours: the one from {hour} has {} of {}. If a job does not need a fixed \
             hour, let Evenbeat choose that too: in a job file, `H H(1-5) * * *` means \"some time at night\".",
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
        &format!("first starts after these {hours} h."),
        &format!("first start after these {hours} h."),
    );
    note(
        figures.n_idle,
        "never starts on its own: manual, paused, disabled or ended.",
        "never start on their own: manual, paused, disabled or ended.",
    );
    for (why, what) in [
        (SkipReason::Reboot, "`@reboot` has no time"),
        (SkipReason::NoSuchDate, "the date does not exist, so it never runs"),
    ] {
        let lines: Vec<usize> = input.left_out.iter().filter(|it| it.why == why).map(|it| it.line).collect();
        if !lines.is_empty() {
            notes.push(format!("{} skipped: {what}.", numbered(&lines)));
        }
    }
    if let Some(bad_lines) = &input.bad_lines {
        let n = counted(to_u64(bad_lines.n_lines()), "line");
        notes.push(format!("{n} skipped that cron would not understand either (see the errors)."));
    }
    if input.assumes_utc && !input.jobs.is_empty() {
        notes.push(
            "Times are assumed to be UTC; to change that, add a line such as `CRON_TZ=Europe/Berlin` at the top.".to_owned(),
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
