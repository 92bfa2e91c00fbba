//! What is asked: a fleet, what carries it, and how its runs go.

use std::collections::BTreeMap;

use evenbeat_core::engine::{DispatchSettings, PoolSettings};
use evenbeat_core::ids::{JobKey, NodeName, Pool, Site, Tenant, stable_hash};
use evenbeat_core::job::{Job, JobState};
use evenbeat_core::store::CounterLimit;
use evenbeat_core::time::{Duration, TimeWindow, Timestamp};

/// How long a run takes if the job does not say.
pub const LENGTH: Duration = Duration::from_secs(30);

/// A fleet and what carries it, over a stretch of time.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The jobs, placed.
    pub jobs: Vec<(Job, JobState)>,
    /// The stretch of time.
    pub window: TimeWindow,
    /// What carries them.
    pub nodes: Vec<NodePlan>,
    /// Limits of sites, across nodes.
    pub sites: BTreeMap<Site, CounterLimit>,
    /// Limits of tenants, across nodes.
    pub tenants: BTreeMap<Tenant, CounterLimit>,
    /// Limits of all runs together, across nodes.
    pub all_runs: CounterLimit,
    /// How nodes choose.
    pub dispatch: DispatchSettings,
    /// How runs go.
    pub runs: RunModel,
    /// When nothing runs at all.
    pub outages: Vec<TimeWindow>,
}

/// One node.
#[derive(Clone, Debug)]
pub struct NodePlan {
    /// Its name.
    pub name: NodeName,
    /// What it can carry.
    pub pools: BTreeMap<Pool, PoolSettings>,
}

/// How runs go: drawn from identity, so that two scenarios that differ in one thing differ by that thing only.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunModel {
    /// How far lengths spread around what is expected: 0.3 is about a third up or down.
    pub spread: f64,
    /// The share of runs that fail, from 0 to 1.
    pub failing: f64,
    /// Another draw of the same.
    pub seed: u64,
}

impl Default for RunModel {
    fn default() -> RunModel {
        RunModel { spread: 0.3, failing: 0.0, seed: 1 }
    }
}

/// How one run goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RunDraw {
    pub(super) length: Duration,
    pub(super) is_good: bool,
}

impl RunModel {
    /// How long a run of the job takes, more or less.
    pub fn usual_length(job: &Job) -> Duration {
        job.estimate.or(job.limits.max_expected).unwrap_or(LENGTH)
    }

    pub(super) fn draw(&self, job: &Job, due_at: Timestamp, attempt: u32) -> RunDraw {
        let usual = RunModel::usual_length(job);
        let dice = |which: u8| self.die(&job.key, due_at, attempt, which);
        // Four dice make a bell; lengths are never negative, and twice as long is as likely as half as long.
        let bell = (0..4).map(dice).sum::<f64>() - 2.0;
        let factor = (bell * self.spread * 3.0_f64.sqrt()).exp();
        let length = Duration::from_millis_f64((usual.as_millis_f64() * factor).max(1.0));
        RunDraw { length, is_good: self.failing <= dice(4) }
    }

    /// From 0 to 1.
    fn die(&self, key: &JobKey, due_at: Timestamp, attempt: u32, which: u8) -> f64 {
        let mut identity = key.as_str().as_bytes().to_vec();
        identity.extend(due_at.as_millis().to_le_bytes());
        identity.extend(attempt.to_le_bytes());
        identity.extend(self.seed.to_le_bytes());
        identity.push(which);
        #[expect(clippy::cast_precision_loss, reason = "53 bits are enough for a die")]
        let die = (stable_hash(&identity) >> 11) as f64 / (1_u64 << 53) as f64;
        die
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_run_goes_the_same_way_and_lengths_lie_around_the_usual() {
        let job = crate::sample::job("a", "every 1h", 60);
        let model = RunModel { spread: 0.3, failing: 0.2, seed: 7 };
        let at = |n: i64| Timestamp::from_second(n * 3_600);
        assert_eq!(model.draw(&job, at(3), 1), model.draw(&job, at(3), 1));
        let draws: Vec<RunDraw> = (0..2_000).map(|n| model.draw(&job, at(n), 1)).collect();
        let mut lengths: Vec<f64> = draws.iter().map(|it| it.length.as_millis_f64() / 60_000.0).collect();
        lengths.sort_by(f64::total_cmp);
        assert!((0.95..1.05).contains(&lengths[1_000]), "median {}", lengths[1_000]);
        assert!((1.25..1.45).contains(&lengths[1_680]), "one deviation up {}", lengths[1_680]);
        let n_failed = draws.iter().filter(|it| !it.is_good).count();
        assert!((340..460).contains(&n_failed), "{n_failed} of 2000 failed");
    }

    #[test]
    fn without_spread_every_run_takes_what_is_expected() {
        let job = crate::sample::job("a", "every 1h", 60);
        let model = RunModel { spread: 0.0, ..RunModel::default() };
        assert_eq!(model.draw(&job, Timestamp::from_second(5), 2).length, Duration::from_secs(60));
    }
}
