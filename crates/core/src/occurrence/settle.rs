//! What time and pauses do to occurrences that wait.

use super::own::{Position, is_overtaken, range_of, single};
use super::{Due, RecordKind, Serves, TICK, Transition};
use crate::job::{Extra, JobState, Terms};
use crate::schedule::{Placement, Schedule};
use crate::time::{TimeWindow, Timestamp};
use crate::urgency;

/// Time has passed: an occurrence that waits for a retry is given up when a newer one has come due. It
/// ends with its last outcome; the newer one inherits the failures, and the floor only where that holds
/// the schedule. What came due in between never had a run and goes on record. What a run serves (`n_open` of them go on) is its own
/// affair.
pub fn settle(terms: &Terms, state: &JobState, n_open: u32, now: Timestamp) -> Transition {
    let mut step = Transition::unchanged(state);
    let Some(rhythm) = urgency::rhythm(terms, state).filter(|_| is_active(terms, state)) else { return step };
    for extra in state.extras.iter().filter(|extra| is_overtaken(extra, terms, &rhythm, now)) {
        step.state.extras.take(extra.id);
        give_up(&mut step, extra, RecordKind::MissedLate);
    }
    let Some(position) = Position::of(state).filter(|_| n_open == 0) else { return step };
    if let Some(overtaken) = position.look_for_overtaker(terms, &rhythm, now) {
        step.end_pending_as_last(position.pending);
        step.record(RecordKind::MissedBackoff, overtaken.between);
        step.turn_to((!step.state.is_exhausted(terms)).then_some(overtaken.by));
    }
    step
}

/// A paused job goes on: what came due meanwhile is one record, without catch-up, and the job gets
/// a new placement. What already waited for a retry ends with its last outcome, and what an open run
/// serves will end with it. Requested runs still come.
pub fn resume(
    terms: &Terms,
    state: &JobState,
    open: &[Due],
    placement: Placement,
    now: Timestamp,
) -> Transition {
    let mut step = leave_rhythm(terms, state, open, RecordKind::MissedPaused, now);
    step.state.pause = None;
    let placement = match (&terms.schedule, &state.placement) {
        // There is one occurrence of it, and it stays where it is.
        (Schedule::Once { .. }, Some(before)) => before.clone(),
        _ => placement,
    };
    set_down(&mut step, terms, Some(placement));
    look_ahead(&mut step, terms, now);
    step
}

/// What is stored as pending is impossible: the job gets a new placement, and nothing runs for it. What came due since
/// its last known run goes on record, without catch-up. Requested runs still come.
pub fn mend(terms: &Terms, state: &JobState, placement: Option<Placement>, now: Timestamp) -> Transition {
    let mut step = Transition::unchanged(state);
    if let Some(rhythm) = urgency::rhythm(terms, state).filter(|_| !is_minted(terms)) {
        let seen = [Some(state.created_at), state.last_start_at, state.settled_until].into_iter().flatten();
        let seen = seen.filter(|at| *at <= now).max().unwrap_or(now);
        step.record(RecordKind::MissedLate, range_of(&rhythm, TimeWindow::new(seen + TICK, now + TICK)));
    }
    set_down(&mut step, terms, placement);
    look_ahead(&mut step, terms, now);
    step
}

/// What is pinned to the clock may lie in the past again: that has run, or is on record by now.
fn look_ahead(step: &mut Transition, terms: &Terms, now: Timestamp) {
    if step.state.next_run_at.is_some_and(|at| at <= now) && !is_minted(terms) {
        let next = urgency::rhythm(terms, &step.state).and_then(|rhythm| rhythm.next_after(now));
        step.turn_to(next);
    }
}

/// Whether its occurrences come one by one, each from a run: no rhythm knows them.
fn is_minted(terms: &Terms) -> bool {
    matches!(terms.schedule, Schedule::Fresh { .. })
}

/// A job gets another schedule, and a new placement or none. What the old one still owed goes on
/// record; everything else is as in [`resume`].
pub fn replace(
    old: &Terms,
    new: &Terms,
    state: &JobState,
    open: &[Due],
    placement: Option<Placement>,
    now: Timestamp,
) -> Transition {
    let what = if is_active(old, state) { RecordKind::MissedReplaced } else { RecordKind::MissedPaused };
    let mut step = leave_rhythm(old, state, open, what, now);
    set_down(&mut step, new, placement);
    step
}

/// Everything that is due of a rhythm ends or goes on record, but for what an open run serves.
fn leave_rhythm(
    terms: &Terms,
    state: &JobState,
    open: &[Due],
    what: RecordKind,
    now: Timestamp,
) -> Transition {
    let mut step = Transition::unchanged(state);
    for extra in state.extras.iter().filter(|extra| !extra.is_asked_for()) {
        step.state.extras.take(extra.id);
        give_up(&mut step, extra, what);
    }
    let (Some(position), Some(rhythm)) = (Position::of(state), urgency::rhythm(terms, state)) else {
        return step;
    };
    let is_served = open.iter().any(|due| due.serves == Serves::Pending && due.due_at == position.pending);
    if !is_served && 0 < position.attempt {
        step.end_pending_as_last(position.pending);
    }
    let [first, second] = if 0 < position.attempt {
        [None, range_of(&rhythm, TimeWindow::new(position.unsettled_from(), now + TICK))]
    } else if is_minted(terms) {
        [(position.pending <= now).then(|| single(position.pending)), None]
    } else {
        position.open_until(&rhythm, now)
    };
    step.record(what, first);
    step.record(what, second);
    step
}

fn set_down(step: &mut Transition, terms: &Terms, placement: Option<Placement>) {
    match placement {
        Some(placement) if !step.state.is_exhausted(terms) => step.state.place(terms, placement),
        placement => {
            step.turn_to(None);
            step.state.settled_until = None;
            step.state.placement = placement;
        }
    }
}

/// Whether anything of a job may start at all.
pub(super) fn is_active(terms: &Terms, state: &JobState) -> bool {
    terms.enabled && state.pause.is_none()
}

/// An occurrence of the schedule gets no further run.
pub(super) fn give_up(step: &mut Transition, extra: &Extra, without_a_run: RecordKind) {
    match extra.last_outcome {
        Some(outcome) => step.end_own(extra.due_at, outcome),
        None => step.record(without_a_run, Some(single(extra.due_at))),
    }
}
