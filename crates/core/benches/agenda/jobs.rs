//! Fleets whose occurrences are expanded already.

use evenbeat_core::agenda::Source;
use evenbeat_core::ids::JobKey;
use evenbeat_core::schedule::Rhythm;
use evenbeat_core::time::{Duration, TimeWindow, Timestamp};

use crate::measure::{random, random_below};

/// 2026-06-15T13:00:00Z.
pub(crate) const START: Timestamp = Timestamp::from_second(1_781_528_400);
const N_EACH_MAX: usize = 100;
const SEED: u64 = 20_261_115;

/// What the jobs have in common.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// A hundred occurrences each (fewer where that would be more than one a second), a whole number
    /// of seconds apart, in a phase of milliseconds.
    Regular,
    /// The same, each job's in no order.
    Unsorted,
    /// The same, some milliseconds more apart.
    Wandering,
    /// One each.
    Singles,
}

pub(crate) struct Expanded {
    keys: Vec<JobKey>,
    instants: Vec<Vec<Timestamp>>,
}

impl Expanded {
    pub(crate) fn new(n: usize, window: TimeWindow, shape: Shape) -> Expanded {
        let n_seconds = window.length().as_millis() / 1_000;
        let n_each = match shape {
            Shape::Singles => 1,
            _ => N_EACH_MAX.min(usize::try_from(n_seconds).expect("a month at most")).min(n),
        };
        let interval_s = n_seconds / i64::try_from(n_each).expect("a hundred at most");
        let odd_ms = if shape == Shape::Wandering { -7 } else { 0 };
        let interval = Duration::from_millis(interval_s * 1_000 + odd_ms);
        let mut seed = SEED;
        let mut keys = Vec::new();
        let mut instants: Vec<Vec<Timestamp>> = Vec::new();
        let mut n_left = n;
        while n_left > 0 {
            let n_here = n_each.min(n_left);
            let first = window.start() + Duration::from_millis(random_below(&mut seed, interval_s * 1_000));
            let mut of_job: Vec<Timestamp> =
                std::iter::successors(Some(first), |at| Some(*at + interval)).take(n_here).collect();
            if shape == Shape::Unsorted {
                shuffle(&mut of_job, &mut seed);
            }
            keys.push(key(keys.len()));
            instants.push(of_job);
            n_left -= n_here;
        }
        Expanded { keys, instants }
    }

    pub(crate) fn len(&self) -> usize {
        self.instants.iter().map(Vec::len).sum()
    }

    pub(crate) fn sources(&self) -> Vec<Source<'_>> {
        self.keys
            .iter()
            .zip(&self.instants)
            .map(|(key, of_job)| Source::from_occurrences(key, of_job))
            .collect()
    }

    /// The occurrences as integers that sort as they should: 42 bits of time, 22 of job.
    pub(crate) fn packed(&self) -> Vec<u64> {
        let mut packed = Vec::with_capacity(self.len());
        for (job_idx, of_job) in (0_u64..).zip(&self.instants) {
            packed.extend(of_job.iter().map(|at| at.as_millis().unsigned_abs() << 22 | job_idx));
        }
        packed
    }

    /// The occurrences as one would write them down.
    pub(crate) fn pairs(&self) -> Vec<(i64, String)> {
        let each = self.keys.iter().zip(&self.instants);
        each.flat_map(|(key, of_job)| of_job.iter().map(|at| (at.as_millis(), key.to_string()))).collect()
    }
}

pub(crate) fn key(n: usize) -> JobKey {
    format!("shop-{n:07}@prices").parse().expect("a good key")
}

/// Jobs of one interval, each in a phase of its own.
pub(crate) fn every(keys: &[JobKey], interval: Duration) -> Vec<Source<'_>> {
    let mut seed = SEED;
    let rhythm = |seed: &mut u64| {
        let phase = Duration::from_millis(random_below(seed, interval.as_millis()));
        Rhythm::grid(START + phase, interval)
    };
    keys.iter().map(|key| Source::from_rhythm(key, rhythm(&mut seed))).collect()
}

fn shuffle(instants: &mut [Timestamp], seed: &mut u64) {
    for last in (1..instants.len()).rev() {
        let other = random(seed) % u64::try_from(last + 1).expect("a hundred at most");
        instants.swap(last, usize::try_from(other).expect("a hundred at most"));
    }
}
