//! One pool of a node: its capacity, the jobs that wait, and those that are ready.

use std::collections::{BTreeMap, BTreeSet};

use super::PoolSettings;
use super::lengths::Lengths;
use super::view::JobIdx;
use crate::rank::Rank;
use crate::time::Timestamp;

/// Ready jobs of one cost wait in one line, short and manual ones apart: if there is room for this one, there is room
/// for the next, and finding the first that fits needs no search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Lane {
    pub(crate) cost: u32,
    /// Whether it may use what is reserved.
    pub(crate) is_small: bool,
}

/// A pool.
#[derive(Debug)]
pub(crate) struct PoolLine {
    pub(crate) settings: PoolSettings,
    /// Units that runs hold, including claims without an answer yet.
    in_use: u32,
    /// Units held by runs that were late when they started.
    late_in_use: u32,
    /// Whether the last run that started was late.
    was_late_last: bool,
    /// When the runs that hold units are expected to end, and how many each holds.
    ends: BTreeMap<(Timestamp, u64), u32>,
    n_holds: u64,
    /// When each waiting job may start.
    pub(crate) waiting: BTreeSet<(Timestamp, JobIdx)>,
    /// Jobs that may start now, the most urgent first.
    pub(crate) ready: BTreeMap<Lane, BTreeSet<(Rank, JobIdx)>>,
    /// The same jobs by when each could have started, the one that has waited longest first.
    ready_since: BTreeSet<(Timestamp, JobIdx)>,
    pub(crate) lengths: Lengths,
}

/// Units of a pool that one run holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hold {
    pub(crate) cost: u32,
    is_late: bool,
    ends_at: Timestamp,
    number: u64,
}

impl PoolLine {
    pub(crate) fn new(settings: PoolSettings) -> PoolLine {
        PoolLine {
            settings,
            in_use: 0,
            late_in_use: 0,
            was_late_last: false,
            ends: BTreeMap::new(),
            n_holds: 0,
            waiting: BTreeSet::new(),
            ready: BTreeMap::new(),
            ready_since: BTreeSet::new(),
            lengths: Lengths::default(),
        }
    }

    pub(crate) fn free(&self) -> u32 {
        self.settings.capacity.saturating_sub(self.in_use)
    }

    pub(crate) fn in_use(&self) -> u32 {
        self.in_use
    }

    pub(crate) fn n_ready(&self) -> usize {
        self.ready_since.len()
    }

    /// Since when the ready job that has waited longest could have started.
    pub(crate) fn oldest_ready(&self) -> Option<Timestamp> {
        self.ready_since.first().map(|(since, _)| *since)
    }

    pub(crate) fn late_in_use(&self) -> u32 {
        self.late_in_use
    }

    pub(crate) fn was_late_last(&self) -> bool {
        self.was_late_last
    }

    pub(crate) fn hold(&mut self, cost: u32, is_late: bool, ends_at: Timestamp) -> Hold {
        self.n_holds += 1;
        let hold = Hold { cost, is_late, ends_at, number: self.n_holds };
        self.in_use = self.in_use.saturating_add(cost);
        self.was_late_last = is_late;
        if is_late {
            self.late_in_use = self.late_in_use.saturating_add(cost);
        }
        self.ends.insert((ends_at, hold.number), cost);
        hold
    }

    pub(crate) fn let_go(&mut self, hold: Hold) {
        if self.ends.remove(&(hold.ends_at, hold.number)).is_none() {
            return;
        }
        self.in_use = self.in_use.saturating_sub(hold.cost);
        if hold.is_late {
            self.late_in_use = self.late_in_use.saturating_sub(hold.cost);
        }
    }

    /// When `needed` units will be free if `free` are free now, and how many more are free by then. None if that cannot be
    /// foreseen. A run that should long have ended may never end: it frees nothing.
    pub(crate) fn room_at(&self, needed: u32, free: u32, now: Timestamp) -> Option<(Timestamp, u32)> {
        let mut units = free;
        for ((ends_at, _), cost) in self.ends.range((now, 0)..) {
            units = units.saturating_add(*cost);
            if needed <= units {
                return Some((*ends_at, units - needed));
            }
        }
        None
    }

    /// When each unit that is held now will be free, as far as can be foreseen, the first first.
    pub(crate) fn units_freed_after(&self, now: Timestamp) -> impl Iterator<Item = Timestamp> {
        let ends = self.ends.range((now, 0)..);
        ends.flat_map(|((at, _), cost)| std::iter::repeat_n(*at, usize::try_from(*cost).unwrap_or(0)))
    }

    pub(crate) fn make_ready(&mut self, lane: Lane, rank: Rank, since: Timestamp, idx: JobIdx) {
        self.ready.entry(lane).or_default().insert((rank, idx));
        self.ready_since.insert((since, idx));
    }

    pub(crate) fn take_ready(&mut self, lane: Lane, rank: Rank, since: Timestamp, idx: JobIdx) {
        self.ready_since.remove(&(since, idx));
        if let Some(line) = self.ready.get_mut(&lane) {
            line.remove(&(rank, idx));
            if line.is_empty() {
                self.ready.remove(&lane);
            }
        }
    }
}
