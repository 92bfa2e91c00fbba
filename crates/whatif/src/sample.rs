//! Small fleets for tests.

use std::collections::BTreeMap;

use evenbeat_core::engine::{DispatchSettings, PoolSettings};
use evenbeat_core::ids::Pool;
use evenbeat_core::job::{CommandTarget, Job, JobState, Target};
use evenbeat_core::schedule::{Placement, Schedule};
use evenbeat_core::store::CounterLimit;
use evenbeat_core::time::{Duration, TimeWindow, Timestamp};

use super::{NodePlan, RunModel, Scenario};

/// A job whose runs take this many seconds.
pub(super) fn job(key: &str, schedule: &str, seconds: i64) -> Job {
    let interval: Duration = schedule.strip_prefix("every ").unwrap().parse().unwrap();
    let target = Target::Command(CommandTarget { argv: vec!["true".to_owned()], ..CommandTarget::default() });
    let schedule = Schedule::Every { interval, finish_within: None };
    let mut job = Job::new(key.parse().unwrap(), target, schedule);
    job.estimate = Some(Duration::from_secs(seconds));
    job
}

/// A limit of one run at a time.
pub(super) fn one_at_once() -> CounterLimit {
    CounterLimit { max_open: Some(1), ..CounterLimit::default() }
}

/// The beginning of all samples.
pub(super) fn start() -> Timestamp {
    "2026-02-04T00:00:00Z".parse().unwrap()
}

/// The job with its first occurrence this many minutes after the beginning.
pub(super) fn placed(job: Job, minutes: i64) -> (Job, JobState) {
    let mut state = JobState::new(start());
    state.place(&job, Placement::at(start() + Duration::from_mins(minutes), start()));
    (job, state)
}

/// These jobs on one node, for this many hours.
pub(super) fn scenario(jobs: Vec<(Job, JobState)>, capacity: u32, hours: i64) -> Scenario {
    Scenario {
        jobs,
        window: TimeWindow::new(start(), start() + Duration::from_hours(hours)),
        nodes: vec![NodePlan {
            name: "n1".parse().unwrap(),
            pools: BTreeMap::from([(Pool::default_pool(), PoolSettings { capacity, reserved: 0 })]),
        }],
        sites: BTreeMap::new(),
        tenants: BTreeMap::new(),
        all_runs: CounterLimit::default(),
        dispatch: DispatchSettings::default(),
        runs: RunModel { spread: 0.0, ..RunModel::default() },
        outages: Vec::new(),
    }
}
