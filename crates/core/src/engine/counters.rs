//! Limits that span nodes, as far as one node knows them (Q3).
//!
//! The store decides; what is kept here saves it questions whose answer is known. Jobs that a counter has no
//! room for are parked with it, out of the way, and come back a few at a time: the rest of a thousand jobs of one
//! site costs nothing while it waits.

use std::collections::{BTreeMap, BTreeSet};

use super::view::JobIdx;
use crate::rank::Rank;
use crate::store::{CounterKey, CounterLimit};
use crate::time::{CLOCK_SLACK, Duration, Timestamp};

/// How long to wait before asking again when only another node's run can make room.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// How many parked jobs come back at once.
const COME_BACK: usize = 4;

/// All counters that runs of this node use.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    by_key: BTreeMap<CounterKey, Counter>,
    retries: BTreeSet<(Timestamp, CounterKey)>,
    /// The latest instant at which the store said no.
    refused_at: Option<Timestamp>,
}

#[derive(Debug, Default)]
struct Counter {
    /// Runs of this node that hold it, including claims without an answer yet.
    n_here: u32,
    /// How many of these are claims without an answer yet.
    n_asked: u32,
    /// The store said no; ask again then.
    retry_at: Option<Timestamp>,
    parked: BTreeSet<(Rank, JobIdx)>,
}

impl Counters {
    /// Whether a counter is known to have no room, given the bids that are already planned.
    pub(crate) fn is_full(
        &self,
        key: &CounterKey,
        limit: &CounterLimit,
        n_planned: u32,
        now: Timestamp,
    ) -> bool {
        let Some(counter) = self.by_key.get(key) else {
            return limit.max_open.is_some_and(|most| most <= n_planned)
                || (is_paced(limit) && 0 < n_planned);
        };
        let is_refused = counter.retry_at.is_some_and(|retry_at| now < retry_at);
        let is_full_here = limit.max_open.is_some_and(|most| most <= counter.n_here + n_planned);
        let is_pace_asked = is_paced(limit) && 0 < counter.n_asked + n_planned;
        is_refused || is_full_here || is_pace_asked
    }

    /// Until when a counter is known to have no room; none if that is not known.
    pub(crate) fn refused_until(&self, key: &CounterKey) -> Option<Timestamp> {
        self.by_key.get(key)?.retry_at
    }

    /// How many jobs of this node wait for a counter.
    pub(crate) fn n_parked(&self, key: &CounterKey) -> usize {
        self.by_key.get(key).map_or(0, |counter| counter.parked.len())
    }

    /// The jobs of this node that wait for a counter, the most urgent first.
    pub(crate) fn parked(&self, key: &CounterKey) -> impl Iterator<Item = JobIdx> {
        let parked = self.by_key.get(key).map(|counter| &counter.parked);
        parked.into_iter().flatten().map(|(_, idx)| *idx)
    }

    pub(crate) fn asked(&mut self, keys: &[CounterKey]) {
        for key in keys {
            let counter = self.by_key.entry(key.clone()).or_default();
            counter.n_here += 1;
            counter.n_asked += 1;
        }
    }

    /// The store has answered: the run goes on here, or it does not.
    pub(crate) fn answered(&mut self, keys: &[CounterKey], is_granted: bool) {
        for key in keys {
            let Some(counter) = self.by_key.get_mut(key) else { continue };
            counter.n_asked = counter.n_asked.saturating_sub(1);
            if !is_granted {
                counter.n_here = counter.n_here.saturating_sub(1);
            }
        }
    }

    /// A run that another life of this node had begun is held here now.
    pub(crate) fn adopted(&mut self, keys: &[CounterKey]) {
        for key in keys {
            self.by_key.entry(key.clone()).or_default().n_here += 1;
        }
    }

    pub(crate) fn released(&mut self, keys: &[CounterKey]) {
        for key in keys {
            if let Some(counter) = self.by_key.get_mut(key) {
                counter.n_here = counter.n_here.saturating_sub(1);
            }
        }
    }

    /// The store said that a counter has no room.
    pub(crate) fn refused(&mut self, key: &CounterKey, until: Option<Timestamp>, now: Timestamp) {
        let retry_at = until.unwrap_or(now + ASK_AGAIN).max(now + Duration::from_millis(1));
        self.refused_at = self.refused_at.max(Some(now));
        let counter = self.by_key.entry(key.clone()).or_default();
        if let Some(before) = counter.retry_at.replace(retry_at) {
            self.retries.remove(&(before, key.clone()));
        }
        self.retries.insert((retry_at, key.clone()));
    }

    pub(crate) fn park(&mut self, key: &CounterKey, rank: Rank, idx: JobIdx) {
        self.by_key.entry(key.clone()).or_default().parked.insert((rank, idx));
    }

    pub(crate) fn unpark(&mut self, key: &CounterKey, rank: Rank, idx: JobIdx) {
        if let Some(counter) = self.by_key.get_mut(key) {
            counter.parked.remove(&(rank, idx));
        }
    }

    /// There may be room again: the parked jobs that come back first.
    pub(crate) fn come_back(&mut self, key: &CounterKey) -> Vec<JobIdx> {
        let Some(counter) = self.by_key.get_mut(key) else { return Vec::new() };
        if let Some(before) = counter.retry_at.take() {
            self.retries.remove(&(before, key.clone()));
        }
        counter.parked.iter().take(COME_BACK).map(|(_, idx)| *idx).collect()
    }

    /// Counters that may be asked again by now. If a clock was ahead when the store said no, all of them may (T3).
    pub(crate) fn due(&mut self, now: Timestamp) -> Vec<CounterKey> {
        let was_ahead = self.refused_at.is_some_and(|refused_at| now + CLOCK_SLACK < refused_at);
        if was_ahead {
            self.refused_at = None;
        }
        let due = self.retries.iter().take_while(|(at, _)| was_ahead || *at <= now);
        due.map(|(_, key)| key.clone()).collect()
    }

    pub(crate) fn next_at(&self) -> Option<Timestamp> {
        self.retries.first().map(|(at, _)| *at)
    }
}

/// Whether a limit depends on time: then one claim at a time is enough.
fn is_paced(limit: &CounterLimit) -> bool {
    limit.min_gap.is_some() || limit.max_per_hour.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::sample::instant;

    #[test]
    fn a_clock_that_was_ahead_keeps_no_counter_shut() {
        let key = CounterKey::Site("shop".parse().unwrap());
        let mut counters = Counters::default();
        counters.refused(&key, Some(instant("2026-02-06T13:00:00Z")), instant("2026-02-06T12:00:00Z"));
        assert_eq!(counters.due(instant("2026-02-06T12:59:59Z")), []);
        assert_eq!(counters.due(instant("2026-02-06T11:59:45Z")), [], "a small step changes nothing");
        assert_eq!(counters.due(instant("12:00")), [key]);
    }
}
