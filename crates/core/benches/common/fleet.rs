//! Jobs of mixed intervals and lengths, for the benchmarks of the engine and of simulated weeks.

use evenbeat_core::ids::stable_hash;
use evenbeat_core::job::{CommandTarget, Job, Target};
use evenbeat_core::schedule::Schedule;
use evenbeat_core::time::{Duration, Timestamp};

pub(crate) fn start() -> Timestamp {
    Timestamp::from_second(1_780_000_000)
}

/// A job of its number: most each hour, some each quarter, some each day.
pub(crate) fn job(idx: usize) -> Job {
    let minutes = match stable_hash(&idx.to_le_bytes()) % 10 {
        0 => 15,
        1..=5 => 60,
        6 | 7 => 360,
        _ => 1_440,
    };
    let target = Target::Command(CommandTarget { argv: vec!["true".to_owned()], ..CommandTarget::default() });
    let schedule = Schedule::Every { interval: Duration::from_mins(minutes), finish_within: None };
    let mut job = Job::new(format!("crawl-{idx:07}").parse().expect("a name"), target, schedule);
    job.estimate = Some(Duration::from_secs(5 + (stable_hash(&(idx + 1).to_le_bytes()) % 12) as i64 * 10));
    job
}
