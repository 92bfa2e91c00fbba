//! What time alone makes of the schedule's own occurrences. Looks and changes nothing, so that asking
//! what would happen costs no copy of a job's memory.

use super::TICK;
use crate::job::{Extra, JobState, Terms};
use crate::missed::{MissedRuns, RecordRange};
use crate::schedule::{Rhythm, Schedule};
use crate::time::{TimeWindow, Timestamp};

/// Where a job is in the row of its occurrences.
#[derive(Clone, Copy)]
pub(super) struct Position {
    pub(super) pending: Timestamp,
    settled_until: Option<Timestamp>,
    /// How many runs the pending one has had.
    pub(super) attempt: u32,
}

/// A newer occurrence has come due while the pending one waited for a retry.
pub(super) struct Overtaken {
    pub(super) by: Timestamp,
    /// What came due in between.
    pub(super) between: Option<RecordRange>,
}

/// Which occurrence is to be served, by the policy for missed ones.
pub(super) struct Choice {
    /// What is passed over for it.
    pub(super) passed_over: [Option<RecordRange>; 2],
    /// The one to serve; none if nothing that is due may still be run.
    pub(super) due_at: Option<Timestamp>,
    /// What is pending then instead.
    pub(super) next: Option<Timestamp>,
}

impl Position {
    pub(super) fn of(state: &JobState) -> Option<Position> {
        let JobState { next_run_at, settled_until, attempt, .. } = *state;
        Some(Position { pending: next_run_at?, settled_until, attempt })
    }

    /// The first instant at which an occurrence behind the pending one may still be open.
    pub(super) fn unsettled_from(&self) -> Timestamp {
        self.settled_until.map_or(self.pending, |until| until.max(self.pending)) + TICK
    }

    /// Whether what came after the pending one is on record already: it is kept for its turn.
    pub(super) fn is_kept(&self) -> bool {
        self.settled_until.is_some_and(|until| self.pending < until)
    }

    /// The same once the pending one has been overtaken.
    pub(super) fn overtaken(self, overtaken: &Overtaken) -> Position {
        Position { pending: overtaken.by, attempt: 0, ..self }
    }

    /// Whether an occurrence has come due that takes the place of the pending one, which waits for a
    /// retry.
    pub(super) fn look_for_overtaker(
        &self,
        terms: &Terms,
        rhythm: &Rhythm<'_>,
        now: Timestamp,
    ) -> Option<Overtaken> {
        if self.attempt == 0 {
            return None;
        }
        let newer = TimeWindow::new(self.unsettled_from(), now + TICK);
        let by = match terms.missed.runs {
            // All of them are owed, so it is the next one's turn.
            MissedRuns::All => rhythm.nth_in(newer, 0)?,
            MissedRuns::Once | MissedRuns::Skip => rhythm.last_in(newer)?,
        };
        Some(Overtaken { by, between: range_of(rhythm, TimeWindow::new(newer.start(), by)) })
    }

    /// Decides which occurrence is served by a run that starts now. The pending one must be due.
    pub(super) fn choose(&self, terms: &Terms, rhythm: &Rhythm<'_>, now: Timestamp) -> Choice {
        let pending_itself =
            Choice { passed_over: [None, None], due_at: Some(self.pending), next: Some(self.pending) };
        // A retry, or the one occurrence of a `fresh` job.
        if 0 < self.attempt || matches!(terms.schedule, Schedule::Fresh { .. }) {
            return pending_itself;
        }
        let unsettled_from = self.unsettled_from();
        let has_newer = rhythm.next_after(unsettled_from - TICK).is_some_and(|next| next <= now);
        let (kept, oldest) = match (self.is_kept(), terms.missed.runs) {
            (true, MissedRuns::All) => return pending_itself,
            // Kept for its turn; or by far the most common case, of which all this must make little.
            (true, _) | (false, MissedRuns::Once) if !has_newer => return pending_itself,
            // It waited so long that newer ones have come due: they take its place.
            (true, _) => (Some(single(self.pending)), unsettled_from),
            (false, _) => (None, self.pending),
        };
        let plan = terms.missed.plan(rhythm, oldest, now);
        let due_at = plan.run.first().copied();
        Choice { passed_over: [kept, plan.record], due_at, next: due_at.or(plan.next) }
    }

    /// Everything from the pending one on that is due by `until`, as what can be put on record.
    pub(super) fn open_until(&self, rhythm: &Rhythm<'_>, until: Timestamp) -> [Option<RecordRange>; 2] {
        if self.is_kept() {
            let after = TimeWindow::new(self.unsettled_from(), until + TICK);
            return [Some(single(self.pending)), range_of(rhythm, after)];
        }
        [range_of(rhythm, TimeWindow::new(self.pending, until + TICK)), None]
    }
}

/// Whether an occurrence of the schedule that waits among the extras has been overtaken by a newer one.
pub(super) fn is_overtaken(extra: &Extra, terms: &Terms, rhythm: &Rhythm<'_>, now: Timestamp) -> bool {
    let is_owed_anyway = extra.attempt == 0 && terms.missed.runs == MissedRuns::All;
    let has_newer = || rhythm.next_after(extra.due_at).is_some_and(|next| next <= now);
    !extra.is_asked_for() && !is_owed_anyway && has_newer()
}

/// One occurrence as a record.
pub(super) fn single(at: Timestamp) -> RecordRange {
    RecordRange { first: at, last: at, count: 1 }
}

/// The occurrences of a window as one record; none if there are none.
pub(super) fn range_of(rhythm: &Rhythm<'_>, window: TimeWindow) -> Option<RecordRange> {
    let count = rhythm.count_in(window);
    Some(RecordRange { first: rhythm.nth_in(window, 0)?, last: rhythm.last_in(window)?, count })
}
