//! How loaded this node is, for people to see.

use super::view::JobIdx;
use super::{Engine, Now};
use crate::ids::{JobKey, Pool};
use crate::rank::Rank;
use crate::store::{CounterKey, SessionKind};
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

    /// When the next units of a pool of this node are expected to be free.
    pub fn next_room_at(&self, now: Now, pool: &Pool) -> Option<Timestamp> {
        self.pools.get(pool)?.units_freed_after(self.time(now)).next()
    }

    /// Jobs of this node that may start and wait: for room, for a limit, or for their turn.
    pub fn n_queued(&self) -> usize {
        self.queued.len()
    }

    /// Up to `most` of them, in the order in which they would start; those that wait for a limit last.
    pub fn queued_keys(&self, most: usize) -> Vec<JobKey> {
        let lanes = self.pools.values().flat_map(|line| line.ready.values());
        let mut ready: Vec<(Rank, JobIdx)> = lanes.flat_map(|lane| lane.iter().take(most)).copied().collect();
        ready.sort_unstable();
        let parked = self.queued.iter().take(most).filter(|(_, it)| it.parked_at.is_some());
        let mut parked: Vec<(Rank, JobIdx)> = parked.map(|(idx, it)| (it.rank, *idx)).collect();
        parked.sort_unstable();
        let all = ready.into_iter().chain(parked).take(most);
        all.filter_map(|(_, idx)| self.view.get(idx)).map(|entry| entry.key.clone()).collect()
    }

    /// The nodes of the cluster, and how many of them have fallen silent.
    pub fn n_nodes(&self, now: Now) -> (usize, usize) {
        let others = self.peers.iter().filter(|it| it.spec.kind == SessionKind::Node && !it.is_dead);
        let own = self.life.session();
        let n_silent =
            others.clone().filter(|it| own.is_some_and(|own| own.is_in_doubt(now.boot, it.spec.id)));
        let n_silent = n_silent.count();
        (others.count().max(1), n_silent)
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
