//! How loaded this node is, for people to see.

use super::Engine;
use crate::ids::{JobKey, Pool};
use crate::store::CounterKey;
use crate::time::Timestamp;

/// How loaded a pool of this node is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolLoad {
    pub pool: Pool,
    /// Units of cost that it can carry.
    pub capacity: u32,
    /// How many of them only manual and short runs may use.
    pub reserved: u32,
    /// Units that runs hold.
    pub in_use: u32,
    /// Jobs that may start now and have no room.
    pub n_ready: usize,
}

/// What this node knows of a limit that spans nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CounterLoad {
    /// Jobs of this node that wait for it.
    pub n_waiting: usize,
    /// Until when the store said that there is no room.
    pub refused_until: Option<Timestamp>,
}

impl Engine {
    /// The pools of this node.
    pub fn pool_loads(&self) -> Vec<PoolLoad> {
        self.pools
            .iter()
            .map(|(pool, line)| PoolLoad {
                pool: pool.clone(),
                capacity: line.settings.capacity,
                reserved: line.settings.reserved,
                in_use: line.settings.capacity - line.free(),
                n_ready: line.ready.values().map(std::collections::BTreeSet::len).sum(),
            })
            .collect()
    }

    /// What is known of a limit.
    pub fn counter_load(&self, counter: &CounterKey) -> CounterLoad {
        CounterLoad {
            n_waiting: self.counters.n_parked(counter),
            refused_until: self.counters.refused_until(counter),
        }
    }

    /// The first jobs of this node that wait for a limit, the most urgent first.
    pub fn jobs_waiting_for(&self, counter: &CounterKey, most: usize) -> Vec<JobKey> {
        let waiting = self.counters.parked(counter).filter_map(|idx| self.view.get(idx));
        waiting.take(most).map(|entry| entry.key.clone()).collect()
    }
}
