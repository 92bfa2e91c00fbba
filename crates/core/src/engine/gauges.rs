//! How busy a node is, in numbers. Reading them costs the same with a thousand jobs as with a million.

use std::collections::BTreeMap;

use super::local_runs::Phase;
use super::view::Entry;
use super::{Engine, Now, PoolLine};
use crate::ids::{JobKey, Pool};
use crate::run::Outcome;
use crate::time::Timestamp;
use crate::urgency;

/// What a node has to do, and what it has to do it with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EngineGauges {
    /// By the pools of this node.
    pub pools: BTreeMap<Pool, PoolGauges>,
    /// Jobs that could start if the limit of a site, a tenant or a name had room.
    pub n_parked: usize,
    /// Runs of this node whose end the store has not written.
    pub n_open_runs: usize,
    /// Runs that have ended and whose end the store has not written.
    pub n_unwritten_ends: usize,
}

/// One pool of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolGauges {
    /// Jobs that wait for room.
    pub n_ready: usize,
    /// Since when the one that has waited longest could have started.
    pub oldest_ready: Option<Timestamp>,
    /// Runs that were told to start and are not over.
    pub n_running: usize,
    /// Units that runs hold.
    pub used: u32,
    /// Units that any run may take.
    pub free: u32,
    /// Free units that only manual and short runs may take.
    pub reserved: u32,
}

impl PoolGauges {
    fn of(line: &PoolLine) -> PoolGauges {
        let free = line.free();
        let reserved = line.settings.reserved.min(free);
        PoolGauges {
            n_ready: line.n_ready(),
            oldest_ready: line.oldest_ready(),
            n_running: 0,
            used: line.in_use(),
            free: free - reserved,
            reserved,
        }
    }
}

impl Engine {
    /// How busy this node is.
    pub fn gauges(&self) -> EngineGauges {
        let mut pools: BTreeMap<Pool, PoolGauges> =
            self.pools.iter().map(|(pool, line)| (pool.clone(), PoolGauges::of(line))).collect();
        let executing = |phase| matches!(phase, Phase::Starting | Phase::Running | Phase::Stopping);
        for held in self.held.by_id.values().filter(|held| executing(held.phase)) {
            let pool = held.terms.as_ref().and_then(|terms| pools.get_mut(&terms.place.pool));
            if let Some(pool) = pool {
                pool.n_running += 1;
            }
        }
        let n_ready: usize = pools.values().map(|pool| pool.n_ready).sum();
        EngineGauges {
            pools,
            n_parked: self.queued.len().saturating_sub(n_ready),
            n_open_runs: self.held.by_id.len(),
            n_unwritten_ends: self.ends.iter().count(),
        }
    }
}

/// The instants of one job that a monitoring system watches. For people: no decision reads them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobTimes {
    /// When its data is too old. Known from its creation on; none while nothing is promised.
    pub deadline: Option<Timestamp>,
    /// When its last good run ended.
    pub last_success: Option<Timestamp>,
    /// When its last run ended, if that failed.
    pub last_failure: Option<Timestamp>,
    /// When its next run may start; none while it is paused or disabled.
    pub next_start: Option<Timestamp>,
}

impl Engine {
    /// The instants of one job, if it is known.
    pub fn job_times(&self, now: Now, key: &JobKey) -> Option<JobTimes> {
        let Entry { key, terms, state, .. } = self.view.find(key)?;
        let is_active = terms.enabled && state.pause.is_none();
        let time = self.time(now);
        let next_start = || urgency::next_start(key, terms, state, time, &self.outlook(terms));
        Some(JobTimes {
            deadline: if is_active { urgency::deadline(terms, state) } else { None },
            last_success: state.last_good_end_at,
            last_failure: state
                .last_end_at
                .filter(|_| state.last_outcome.is_some_and(Outcome::counts_as_failure)),
            next_start: if is_active { next_start() } else { None },
        })
    }

    /// The keys of the first jobs, in their order.
    pub fn first_keys(&self, most: usize) -> Vec<JobKey> {
        self.view.entries().take(most).map(|entry| entry.key.clone()).collect()
    }
}
