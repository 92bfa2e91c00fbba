//! Jobs for tests, from one line: `every 1h`, `fresh 24h cooldown 6h`, `cron 0 */4 * * *`.

use super::{CommandTarget, Job, JobState, Target};
use crate::schedule::cron::CronExpr;
use crate::schedule::{Cron, OnceAt, Placement, Schedule};
use crate::time::{Duration, Timestamp};

/// The job of a schedule, with every policy at its default.
pub(crate) fn job(schedule: &str) -> Job {
    let command = CommandTarget { argv: vec!["true".to_owned()], ..CommandTarget::default() };
    Job::new("sample".parse().unwrap(), Target::Command(command), self::schedule(schedule))
}

/// The memory of a job that was placed so that its first occurrence is this.
pub(crate) fn placed(job: &Job, anchor: &str) -> JobState {
    let anchor_at = instant(anchor);
    let mut state = JobState::new(anchor_at);
    state.place(job, Placement::at(anchor_at, anchor_at));
    state
}

/// `10:00`, `10:00:30`: a time of 2026-02-04 in UTC; anything longer is a whole instant.
pub(crate) fn instant(text: &str) -> Timestamp {
    let whole = match text.len() {
        5 => format!("2026-02-04T{text}:00Z"),
        8..=12 => format!("2026-02-04T{text}Z"),
        _ => text.to_owned(),
    };
    whole.parse().unwrap_or_else(|error| panic!("{error}"))
}

/// `90s`, `1h30m`.
pub(crate) fn length(text: &str) -> Duration {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

fn schedule(text: &str) -> Schedule {
    let (kind, rest) = text.split_once(' ').unwrap_or((text, ""));
    let (first, second) = match kind {
        "cron" => rest.split_once(" within ").unwrap_or((rest, "")),
        _ => rest
            .split_once([' '])
            .map_or((rest, ""), |(first, rest)| (first, rest.rsplit(' ').next().unwrap_or(""))),
    };
    let second = (!second.is_empty()).then(|| length(second));
    match kind {
        "every" => Schedule::Every { interval: length(first), finish_within: second },
        "fresh" => {
            let max_age = length(first);
            let half = Duration::from_millis(max_age.as_millis() / 2);
            Schedule::Fresh { max_age, cooldown: second.unwrap_or(half) }
        }
        "cron" => Schedule::Cron(Cron::new(CronExpr::parse(first).unwrap(), second)),
        "once" => Schedule::Once { at: OnceAt::Instant(instant(first)), finish_within: second },
        "manual" => Schedule::Manual,
        other => panic!("no schedule is called {other}"),
    }
}
