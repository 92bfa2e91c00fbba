//! Fleets to measure with: mixed intervals, lengths and costs, placed by load.

use std::collections::BTreeMap;

use evenbeat_core::engine::{DispatchSettings, PoolSettings};
use evenbeat_core::ids::{Pool, stable_hash};
use evenbeat_core::job::{CommandTarget, Job, JobState, Target};
use evenbeat_core::placement::{Balance, place_fleet};
use evenbeat_core::schedule::{Placement, Schedule};
use evenbeat_core::store::CounterLimit;
use evenbeat_core::time::{Duration, TimeWindow, Timestamp};
use evenbeat_sim::whatif::{NodePlan, RunModel, Scenario};

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

/// The job, with its first occurrence somewhere in its first interval.
pub(crate) fn scattered(idx: usize) -> (Job, JobState) {
    let job = job(idx);
    let Schedule::Every { interval, .. } = &job.schedule else { unreachable!("all of them are") };
    let offset = stable_hash(&(idx + 2).to_le_bytes()) % interval.as_millis() as u64;
    let mut state = JobState::new(start());
    state.place(&job, Placement::at(start() + Duration::from_millis(offset as i64 + 1), start()));
    (job, state)
}

pub(crate) fn scenario(n_jobs: usize, n_nodes: usize, days: i64) -> Scenario {
    let jobs: Vec<Job> = (0..n_jobs).map(job).collect();
    let states = place_fleet(Balance::default(), start(), &jobs);
    // About three quarters of what is there is used.
    let work: f64 = jobs
        .iter()
        .map(|job| match &job.schedule {
            Schedule::Every { interval, .. } => {
                job.estimate.unwrap_or_default().as_millis_f64() / interval.as_millis_f64()
            }
            _ => 0.0,
        })
        .sum();
    let capacity = ((work / 0.75 / n_nodes as f64).ceil() as u32).max(2);
    let nodes = (1..=n_nodes)
        .map(|n| NodePlan {
            name: format!("n{n}").parse().expect("a name"),
            pools: BTreeMap::from([(Pool::default_pool(), PoolSettings { capacity, reserved: 0 })]),
        })
        .collect();
    Scenario {
        jobs: jobs.into_iter().zip(states).collect(),
        window: TimeWindow::new(start(), start() + Duration::from_days(days)),
        nodes,
        sites: BTreeMap::new(),
        tenants: BTreeMap::new(),
        all_runs: CounterLimit::default(),
        dispatch: DispatchSettings::default(),
        runs: RunModel::default(),
        outages: Vec::new(),
    }
}
