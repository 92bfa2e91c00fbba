//! Ends of runs that the store has not written yet.
//!
//! A database in a file has one writer, so the order of writes matters. When more jobs come due than can be written at
//! once, starts go before ends: a good end that nothing waits for, and that a shim has written down, may be stored a few
//! seconds later without delaying any start.

use std::collections::btree_map::{BTreeMap, Entry};
use std::collections::btree_set::BTreeSet;

use crate::ids::{Fence, JobKey, RunId, SessionId};
use crate::job::RunEnd;
use crate::occurrence::Due;
use crate::time::BootTime;

/// The end of a run that is still to be written.
#[derive(Clone, Debug)]
pub(crate) struct OpenEnd {
    pub(crate) key: JobKey,
    pub(crate) fence: Fence,
    pub(crate) due: Due,
    pub(crate) what: EndWhat,
    /// Starts may go first until then. None if something waits for this end.
    pub(crate) waits_until: Option<BootTime>,
}

/// How a run is to be ended in the store.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum EndWhat {
    Owner(RunEnd),
    Unstarted,
    Release { dead: SessionId, end: RunEnd },
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Ends {
    open: BTreeMap<RunId, OpenEnd>,
    /// Those that may wait.
    patient: BTreeSet<(BootTime, RunId)>,
}

impl Ends {
    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&RunId, &OpenEnd)> {
        self.open.iter()
    }

    pub(crate) fn get(&self, run: RunId) -> Option<&OpenEnd> {
        self.open.get(&run)
    }

    /// Replaces an earlier end of this run.
    pub(crate) fn insert(&mut self, run: RunId, end: OpenEnd) {
        self.remove(run);
        self.patient.extend(end.waits_until.map(|until| (until, run)));
        self.open.insert(run, end);
    }

    /// Unless this run has an end already.
    pub(crate) fn insert_new(&mut self, run: RunId, end: OpenEnd) {
        if let Entry::Vacant(place) = self.open.entry(run) {
            self.patient.extend(end.waits_until.map(|until| (until, run)));
            place.insert(end);
        }
    }

    pub(crate) fn remove(&mut self, run: RunId) {
        let removed = self.open.remove(&run);
        if let Some(until) = removed.and_then(|end| end.waits_until) {
            self.patient.remove(&(until, run));
        }
    }

    /// Whether all of them may wait.
    pub(crate) fn may_wait(&self, now: BootTime) -> bool {
        let is_over = |(until, _): &(BootTime, RunId)| *until <= now;
        self.patient.len() == self.open.len() && !self.patient.first().is_some_and(is_over)
    }
}
