//! What a job owes besides its pending occurrence: rare, and never many.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;

use crate::ids::{ExtraId, RunId};
use crate::run::{Outcome, Trigger};
use crate::time::Timestamp;
use crate::value::Value;

/// How many runs can be requested at once. Those that come back because their run was lost or never
/// began are not refused, so there may be as many more as the job has open runs.
pub const EXTRAS_MAX: usize = 100;

/// An occurrence beyond the pending one that still is to get a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Extra {
    pub id: ExtraId,
    /// When it was due.
    pub due_at: Timestamp,
    /// What will make its run start: `Manual` and `Backfill` were requested; anything else is an
    /// occurrence of the schedule that moved on without it, because runs may overlap.
    pub kind: Trigger,
    /// How many runs it has had.
    pub attempt: u32,
    /// How many of them in a row were lost with their node.
    pub losses: u32,
    /// How the last of them ended.
    pub last_outcome: Option<Outcome>,
    /// It does not start before this.
    pub not_before: Timestamp,
    /// Handed to its run, over the job's own.
    pub params: Option<Arc<BTreeMap<String, Value>>>,
    /// The store's epoch in which it was requested. None once its id may have been used for a run.
    pub requested_in: Option<u64>,
}

impl Extra {
    /// A run that someone wants now.
    pub fn manual(id: ExtraId, now: Timestamp) -> Extra {
        Extra {
            id,
            due_at: now,
            kind: Trigger::Manual,
            attempt: 0,
            losses: 0,
            last_outcome: None,
            not_before: now,
            params: None,
            requested_in: None,
        }
    }

    /// A run that someone wants, as of now, for an instant of the past.
    pub fn backfill(id: ExtraId, due_at: Timestamp, now: Timestamp) -> Extra {
        Extra { due_at, kind: Trigger::Backfill, ..Extra::manual(id, now) }
    }

    /// Whether a person requested it. If not, it comes from the job's own schedule.
    pub fn is_asked_for(&self) -> bool {
        matches!(self.kind, Trigger::Manual | Trigger::Backfill)
    }

    /// The id that its next run must have (K1): the first run of a request has the request's own id, so that the
    /// caller can look it up. Later runs get new ids. So does a run in a later epoch: the failover may have lost a claim,
    /// and something of that run may still be around.
    pub fn first_run(&self, epoch_no: u64) -> Option<RunId> {
        let is_unused = self.attempt == 0 && self.requested_in == Some(epoch_no);
        (self.is_asked_for() && is_unused).then_some(RunId(self.id.0))
    }
}

/// The extras of a job; none for almost all jobs, and then no more than a pointer.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(clippy::box_collection, reason = "a million empty ones must be small; of the others there are few")]
pub struct Extras(Option<Box<Vec<Extra>>>);

impl Extras {
    /// One more.
    pub fn push(&mut self, extra: Extra) {
        self.0.get_or_insert_default().push(extra);
    }

    /// None of them waits any longer than until this.
    pub fn start_by(&mut self, at: Timestamp) {
        for extra in self.0.iter_mut().flat_map(|extras| extras.iter_mut()) {
            extra.not_before = extra.not_before.min(at);
        }
    }

    /// Takes one out. None if it is not there.
    pub fn take(&mut self, id: ExtraId) -> Option<Extra> {
        let extras = self.0.as_mut()?;
        let idx = extras.iter().position(|extra| extra.id == id)?;
        let taken = extras.remove(idx);
        if extras.is_empty() {
            self.0 = None;
        }
        Some(taken)
    }
}

impl From<Vec<Extra>> for Extras {
    fn from(extras: Vec<Extra>) -> Extras {
        Extras((!extras.is_empty()).then(|| Box::new(extras)))
    }
}

impl Deref for Extras {
    type Target = [Extra];

    fn deref(&self) -> &[Extra] {
        self.0.as_ref().map_or(&[], |extras| extras.as_slice())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn none_take_a_pointer_and_are_all_the_same() {
        assert_eq!(size_of::<Extras>(), 8);
        let mut extras = Extras::from(Vec::new());
        extras.push(Extra::manual(ExtraId(1), Timestamp::UNIX_EPOCH));
        assert_eq!(extras.len(), 1);
        assert_eq!(extras.take(ExtraId(2)), None);
        assert_eq!(extras.take(ExtraId(1)).map(|extra| extra.kind), Some(Trigger::Manual));
        assert_eq!(extras, Extras::default());
    }
}
