//! What became of the occurrences of one job, by the rows of a store.

use std::collections::BTreeMap;

use evenbeat_core::run::{Outcome, Trigger};
use evenbeat_core::store::{RunPhase, RunRow};
use evenbeat_core::time::Timestamp;

use crate::checkers::segments::Segment;

/// What became of the occurrences of one job.
#[derive(Debug, Default)]
pub(super) struct Account {
    /// Runs of occurrences of the schedule.
    pub(super) runs: BTreeMap<Timestamp, ServedOccurrence>,
    /// How many records each lies in.
    pub(super) on_record: BTreeMap<Timestamp, u32>,
    /// Requested runs.
    pub(super) asked: BTreeMap<Timestamp, ServedOccurrence>,
    /// What waits besides the pending one: of the schedule, and requested.
    pub(super) waiting: Vec<Timestamp>,
    /// The latter with the number of runs that they have had.
    pub(super) waiting_asked: Vec<(Timestamp, u32)>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ServedOccurrence {
    /// First attempts, however they ended.
    pub(super) first: usize,
    pub(super) open: usize,
    pub(super) over: usize,
    pub(super) good: usize,
    /// Lost with their node, also if a result came too late.
    pub(super) lost: usize,
}

impl Account {
    /// Takes a run into account.
    pub(super) fn serve(&mut self, run: &RunRow) {
        let fake_store = if is_asked(run.due.trigger) { &mut self.asked } else { &mut self.runs };
        let served = fake_store.entry(run.due.due_at).or_default();
        served.first += usize::from(run.due.attempt == 1);
        match run.phase {
            RunPhase::Ended(Outcome::Lost | Outcome::Superseded) => served.lost += 1,
            RunPhase::Ended(Outcome::Succeeded) => {
                served.over += 1;
                served.good += 1;
            }
            RunPhase::Ended(_) => served.over += 1,
            RunPhase::Claimed | RunPhase::Published | RunPhase::Running => served.open += 1,
        }
    }

    pub(super) fn has(&self, at: Timestamp) -> bool {
        self.on_record.contains_key(&at) || self.runs.contains_key(&at) || self.waiting.contains(&at)
    }

    /// The last occurrence of a segment that is accounted for.
    pub(super) fn last_in(&self, segment: &Segment) -> Timestamp {
        let all = self.on_record.keys().chain(self.runs.keys());
        all.copied().filter(|at| segment.owns(*at)).max().unwrap_or(Timestamp::MIN)
    }
}

/// Whether a person requested the run, beyond the schedule.
pub(super) fn is_asked(trigger: Trigger) -> bool {
    matches!(trigger, Trigger::Manual | Trigger::Backfill)
}
