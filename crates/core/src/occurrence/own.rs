//! What time alone makes of the schedule's own occurrences. Looks and changes nothing, so that asking
//! what would happen costs no copy of a job's memory.

use super::TICK;
use crate::job::{Extra, JobState, Terms};
use crate::missed::{MissedRuns, RecordRange};
use crate::schedule::{Rhythm, Schedule};
use crate::time::{Duration, TimeWindow, Timestamp};

/// Where a job is in the row of its occurrences.
#[derive(Clone, Copy)]
pub(super) struct Position {
    pub(super) pending: Timestamp,
    settled_until: Option<Timestamp>,
    /// How many runs the pending one has had.
    pub(super) attempt: u32,
    /// Whether others went on record since the last run began, so that it is the turn of the next.
    has_waited: bool,
}

/// A newer occurrence has come due while the pending one waited for a retry.
pub(super) struct NewerOccurrence {
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
    /// Whether nothing is served because the next regular occurrence comes too soon.
    pub(super) gives_way: bool,
}

impl Position {
    pub(super) fn of(state: &JobState) -> Option<Position> {
        let JobState { next_run_at, settled_until, attempt, last_start_at, .. } = *state;
        let has_waited = settled_until.is_some_and(|until| last_start_at.is_none_or(|start| start < until));
        Some(Position { pending: next_run_at?, settled_until, attempt, has_waited })
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
    pub(super) fn overtaken(self, overtaken: &NewerOccurrence) -> Position {
        Position { pending: overtaken.by, attempt: 0, ..self }
    }

    /// Whether an occurrence has come due that takes the place of the pending one, which waits for a
    /// retry.
    pub(super) fn look_for_overtaker(
        &self,
        terms: &Terms,
        rhythm: &Rhythm<'_>,
        now: Timestamp,
    ) -> Option<NewerOccurrence> {
        if self.attempt == 0 {
            return None;
        }
        let newer = TimeWindow::new(self.unsettled_from(), now + TICK);
        let by = match terms.missed.runs {
            // All of them are owed, so it is the next one's turn.
            MissedRuns::All => rhythm.nth_in(newer, 0)?,
            MissedRuns::Once | MissedRuns::Skip => rhythm.last_in(newer)?,
        };
        Some(NewerOccurrence { by, between: range_of(rhythm, TimeWindow::new(newer.start(), by)) })
    }

    /// Decides which occurrence is served by a run of this length that starts now. The pending one must
    /// be due.
    pub(super) fn choose(
        &self,
        terms: &Terms,
        rhythm: &Rhythm<'_>,
        length: Duration,
        now: Timestamp,
    ) -> Choice {
        let pending_itself = Choice {
            passed_over: [None, None],
            due_at: Some(self.pending),
            next: Some(self.pending),
            gives_way: false,
        };
        // A retry, or the one occurrence of a `fresh` job.
        if 0 < self.attempt || matches!(terms.schedule, Schedule::Fresh { .. }) {
            return pending_itself;
        }
        let unsettled_from = self.unsettled_from();
        let has_newer = rhythm.next_after(unsettled_from - TICK).is_some_and(|next| next <= now);
        if let Some(next) = self.serves_instead(terms, rhythm, length, has_newer, now) {
            let passed_over = self.open_until(rhythm, now);
            return Choice { passed_over, due_at: None, next: Some(next), gives_way: true };
        }
        let (kept, oldest) = match (self.is_kept(), terms.missed.runs) {
            (true, MissedRuns::All) => return pending_itself,
            // Kept for its turn; or by far the most common case, of which all this must make little.
            (true, _) | (false, MissedRuns::Once) if !has_newer => return pending_itself,
            // Newer ones have come due while it waited: they take its place.
            (true, _) => (Some(single(self.pending)), unsettled_from),
            (false, _) => (None, self.pending),
        };
        let plan = terms.missed.plan(rhythm, oldest, now);
        let due_at = plan.run.first().copied();
        Choice { passed_over: [kept, plan.record], due_at, next: due_at.or(plan.next), gives_way: false }
    }

    /// The next regular occurrence, if a catch-up would run into it (B10): then that one serves what was
    /// missed. Only once between two runs, or a job that always starts late would never run; and not where
    /// runs take longer than the schedule leaves them, since then one runs into the next in any case.
    fn serves_instead(
        &self,
        terms: &Terms,
        rhythm: &Rhythm<'_>,
        length: Duration,
        has_newer: bool,
        now: Timestamp,
    ) -> Option<Timestamp> {
        let is_catch_up = has_newer || terms.missed.grace < now - self.pending;
        if terms.missed.runs != MissedRuns::Once || self.has_waited || !is_catch_up {
            return None;
        }
        let next = rhythm.next_after(now).filter(|next| *next < now + length)?;
        let is_short = rhythm.next_after(next).is_none_or(|later| length <= later - next);
        is_short.then_some(next)
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

/// The occurrences of a window as one record. None if it has none.
pub(super) fn range_of(rhythm: &Rhythm<'_>, window: TimeWindow) -> Option<RecordRange> {
    let count = rhythm.count_in(window);
    Some(RecordRange { first: rhythm.nth_in(window, 0)?, last: rhythm.last_in(window)?, count })
}
