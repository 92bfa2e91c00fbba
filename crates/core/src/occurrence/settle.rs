//! What time and pauses do to a waiting occurrence, and the start of a run.

use super::{Due, Ended, RecordKind, Step};
use crate::job::{JobState, Terms};
use crate::missed::{MissedRuns, RecordRange};
use crate::run::{Outcome, Trigger};
use crate::schedule::{Placement, Rhythm, Schedule};
use crate::time::{Duration, TimeWindow, Timestamp};
use crate::urgency;

const TICK: Duration = Duration::from_millis(1);

/// Time has passed, and no run is going on: an occurrence that waits for a retry is given up when a
/// newer one has come due. It ends with its last outcome; the newer one inherits the failures and so
/// the floor. What came due in between never had a run and goes on record.
pub fn settle(terms: &Terms, state: &JobState, now: Timestamp) -> Step {
    let mut step = Step::unchanged(state);
    let (Some(pending), Some(rhythm)) = (state.next_run_at, urgency::rhythm(terms, state)) else {
        return step;
    };
    let newer = TimeWindow::new(unsettled_from(state, pending), now + TICK);
    let Some(newest) = rhythm.last_in(newer).filter(|_| 0 < state.attempt && state.owner.is_none()) else {
        return step;
    };
    end_with_last_outcome(&mut step, pending);
    step.record(RecordKind::MissedBackoff, range_of(&rhythm, TimeWindow::new(newer.start(), newest)));
    step.turn_to((!step.state.is_exhausted(terms)).then_some(newest));
    step
}

/// A run is about to start: which occurrence it serves, by the policy for missed ones. None if
/// nothing is due, or nothing that is due may still be run; then what was missed is on record and a
/// later occurrence is pending.
pub fn start(terms: &Terms, state: &JobState, now: Timestamp) -> (Option<Due>, Step) {
    let mut step = settle(terms, state, now);
    let Some(pending) = step.state.next_run_at.filter(|pending| *pending <= now && state.owner.is_none())
    else {
        return (None, step);
    };
    let Some(rhythm) = urgency::rhythm(terms, state) else { return (None, step) };
    let newer = TimeWindow::new(unsettled_from(&step.state, pending), now + TICK);
    let was_kept = step.state.settled_until.is_some_and(|until| pending < until);
    let is_alone = matches!(terms.schedule, Schedule::Fresh { .. }) || 0 < step.state.attempt;
    let due_at =
        if is_alone || (was_kept && (terms.missed.runs == MissedRuns::All || rhythm.count_in(newer) == 0)) {
            // A retry, the one occurrence of a `fresh` job, or one that was kept for its turn.
            pending
        } else {
            let oldest = if was_kept {
                // It waited so long that newer ones have come due: they take its place.
                step.record(
                    RecordKind::MissedLate,
                    Some(RecordRange { first: pending, last: pending, count: 1 }),
                );
                newer.start()
            } else {
                pending
            };
            let plan = terms.missed.plan(&rhythm, oldest, now);
            step.record(RecordKind::MissedLate, plan.record);
            let Some(due_at) = plan.run.first().copied() else {
                step.turn_to(plan.next);
                return (None, step);
            };
            step.turn_to(Some(due_at));
            due_at
        };
    step.state.attempt += 1;
    let is_late = terms.missed.grace < now - due_at && !matches!(terms.schedule, Schedule::Fresh { .. });
    let trigger = match step.state.attempt {
        1 if is_late => Trigger::Catchup,
        1 => Trigger::Scheduler,
        _ => Trigger::Retry,
    };
    (Some(Due { due_at, attempt: step.state.attempt, trigger }), step)
}

/// A paused job goes on: what came due meanwhile is one record, without catch-up, and the job is
/// placed afresh. What already waited for a retry ends with its last outcome.
pub fn resume(terms: &Terms, state: &JobState, placement: Placement, now: Timestamp) -> Step {
    let mut step = Step::unchanged(state);
    if let (Some(pending), Some(rhythm)) = (state.next_run_at, urgency::rhythm(terms, state)) {
        if 0 < state.attempt {
            end_with_last_outcome(&mut step, pending);
        } else if state.settled_until.is_some_and(|until| pending < until) {
            let kept = RecordRange { first: pending, last: pending, count: 1 };
            step.record(RecordKind::MissedPaused, Some(kept));
        }
        let is_on_record = 0 < state.attempt || state.settled_until.is_some_and(|until| pending < until);
        let from = if is_on_record { unsettled_from(state, pending) } else { pending };
        step.record(RecordKind::MissedPaused, range_of(&rhythm, TimeWindow::new(from, now + TICK)));
    }
    step.state.pause = None;
    step.state.place(terms, placement);
    if step.state.is_exhausted(terms) {
        step.turn_to(None);
    }
    step
}

fn end_with_last_outcome(step: &mut Step, due_at: Timestamp) {
    let outcome = step.state.last_outcome.unwrap_or(Outcome::Failed);
    step.ended.push(Ended { due_at, outcome });
    step.state.n_served += 1;
}

/// The first instant at which an occurrence behind the pending one may still be open.
pub(super) fn unsettled_from(state: &JobState, pending: Timestamp) -> Timestamp {
    state.settled_until.map_or(pending, |until| until.max(pending)) + TICK
}

/// The occurrences of a window as one record; none if there are none.
pub(super) fn range_of(rhythm: &Rhythm<'_>, window: TimeWindow) -> Option<RecordRange> {
    let count = rhythm.count_in(window);
    Some(RecordRange { first: rhythm.nth_in(window, 0)?, last: rhythm.last_in(window)?, count })
}
