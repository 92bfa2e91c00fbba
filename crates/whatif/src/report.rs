//! What came of it, in figures.

use std::collections::BTreeMap;

use evenbeat_core::ids::{JobKey, Pool, Site};
use evenbeat_core::time::{Duration, Timestamp};

/// How long one point of the time line is.
pub const POINT: Duration = Duration::from_mins(15);

/// How many of the latest jobs are named.
pub(super) const WORST_MAX: usize = 10;

/// What a scenario came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The whole fleet.
    pub all: Group,
    /// By pool.
    pub pools: BTreeMap<Pool, Group>,
    /// By site, for jobs that have one.
    pub sites: BTreeMap<Site, Group>,
    /// By schedule, as people write it; all cron expressions are one.
    pub schedules: BTreeMap<String, Group>,
    /// The jobs that were late the longest, the worst first.
    pub worst: Vec<LateJob>,
    /// How many jobs were late at all.
    pub n_late_jobs: usize,
    /// What happened when.
    pub points: Vec<Point>,
}

/// The figures of some jobs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Group {
    /// How many jobs.
    pub n_jobs: usize,
    /// Runs that started.
    pub n_runs: u64,
    /// Runs that were good.
    pub n_good: u64,
    /// Good runs that were complete only after the deadline, and jobs that are late at the end.
    pub n_late: u64,
    /// Good runs that were complete in time.
    pub n_in_time: u64,
    /// Occurrences that went on record as skipped: they came due during a run.
    pub n_skipped: u64,
    /// Occurrences that went on record as missed: no node was up, or none had room, in time.
    pub n_missed: u64,
    /// The share of all time of all jobs in which the data was as fresh as promised.
    pub freshness: f64,
    /// The share of capacity that was used. Sites and schedules have none.
    pub utilisation: Option<f64>,
    /// Units of capacity.
    pub capacity: u32,
    /// The most runs at once.
    pub peak_running: u32,
    /// The most starts in one minute.
    pub peak_starts: u32,
    /// How long runs waited for their start from when they were due.
    pub wait: Waits,
    /// When something waited or became late, earliest first. Of a calm group there is nothing.
    pub troubles: Vec<Trouble>,
}

impl Group {
    /// Occurrences that got no run of their own.
    pub fn n_recorded(&self) -> u64 {
        self.n_skipped + self.n_missed
    }

    /// The longest queue of any [`POINT`].
    pub fn queue_max(&self) -> f64 {
        self.troubles.iter().map(|it| it.queue).fold(0.0, f64::max)
    }
}

/// How long runs waited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// Half of them waited no longer.
    pub median: Duration,
    /// 99 of 100 waited no longer.
    pub p99: Duration,
    /// None waited longer.
    pub longest: Duration,
}

/// A quarter of an hour in which a group was not calm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trouble {
    /// Its beginning.
    pub at: Timestamp,
    /// Runs that were due and had not started, on average.
    pub queue: f64,
    /// Jobs that became late in it.
    pub n_late: u32,
}

/// A job that was late.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LateJob {
    pub key: JobKey,
    /// How long, all in all.
    pub late_for: Duration,
    /// How often.
    pub n_late: u64,
}

/// A quarter of an hour.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Point {
    /// Runs that started in it.
    pub n_starts: u32,
    /// Units in use, on average.
    pub in_use: f64,
    /// Runs that were due and had not started, on average.
    pub queue: f64,
    /// Jobs that became late in it.
    pub n_late: u32,
}
