//! A clock that ran ahead and was set right (T3).
//!
//! While it was ahead, runs were stamped with instants that have not come yet, and what is pending lies behind them.
//! The runs themselves happened, so nothing of them is taken back: the stamps become "no later than now", and the job
//! goes on from there. An occurrence that was served is not served again as long as the job keeps close to its rhythm
//! without it; a job that would stand still for longer begins a rhythm of its own beside the old one.

use super::settle::give_up;
use super::{RecordKind, TICK, Transition};
use crate::job::{JobState, Terms};
use crate::schedule::{OnceAt, Placement, Schedule};
use crate::time::{Duration, Timestamp};

/// Brings a job back that was stamped by a clock that was ahead: its past is not later than now, and its next occurrence
/// is one of the next two of its rhythm.
pub fn set_right(terms: &Terms, state: &JobState, now: Timestamp) -> Transition {
    let mut step = Transition::unchanged(state);
    limit_past(&mut step.state, now);
    bring_extras_back(&mut step, now);
    let is_due = state.next_run_at.is_some_and(|pending| pending <= now);
    let Some(placement) = step.state.placement.clone().filter(|_| !is_due) else { return step };
    match &terms.schedule {
        Schedule::Manual => {}
        Schedule::Once { at, .. } => {
            // One that was served is over; one that was to run at once still is.
            if let (Some(_), OnceAt::Now) = (state.next_run_at, at) {
                step.state.placement = Some(Placement { anchor_at: now, ..placement });
                step.state.next_run_at = Some(now);
            }
        }
        Schedule::Every { .. } | Schedule::Cron(_) | Schedule::Fresh { .. } => {
            go_on(&mut step, terms, placement, now);
        }
    }
    step
}

/// Nothing of a job's past is later than now.
fn limit_past(state: &mut JobState, now: Timestamp) {
    state.created_at = state.created_at.min(now);
    let past = [
        &mut state.last_start_at,
        &mut state.last_end_at,
        &mut state.last_good_start_at,
        &mut state.last_good_end_at,
        &mut state.settled_until,
    ];
    for at in past {
        *at = at.map(|at| at.min(now));
    }
    if let Some(placement) = &mut state.placement {
        placement.placed_at = placement.placed_at.min(now);
    }
}

/// Requested runs still come, and now. A retry of an occurrence that lies ahead again is given up.
fn bring_extras_back(step: &mut Transition, now: Timestamp) {
    let extras: Vec<_> = step.state.extras.iter().filter(|extra| now < extra.not_before).cloned().collect();
    for mut extra in extras {
        step.state.extras.take(extra.id);
        if extra.is_asked_for() || extra.due_at <= now {
            extra.due_at = extra.due_at.min(now);
            extra.not_before = now;
            step.state.extras.push(extra);
        } else {
            give_up(step, &extra, RecordKind::MissedLate);
        }
    }
}

/// Sets a recurring job down on its next occurrence.
fn go_on(step: &mut Transition, terms: &Terms, placement: Placement, now: Timestamp) {
    let pending = step.state.next_run_at;
    let is_begun = 0 < step.state.attempt;
    if let Some(pending) = pending.filter(|_| is_begun) {
        step.end_pending_as_last(pending);
    }
    let from = terms.bounds.starts_at.map_or(now + TICK, |starts_at| starts_at.max(now + TICK));
    let next = match &terms.schedule {
        Schedule::Every { interval, .. } => {
            let pending = pending.map(|at| if is_begun { at + *interval } else { at });
            let next = on_phase(placement.anchor_at, *interval, from);
            // Instants of the old rhythm may have been served: the new one has none of them.
            Some(keep_near(pending, next, Some(next + *interval)).unwrap_or(next + TICK))
        }
        Schedule::Fresh { cooldown, .. } if step.state.failure_count == 0 => {
            Some(on_phase(pending.unwrap_or(now), (*cooldown).max(TICK), from))
        }
        // The retry floor decides.
        Schedule::Fresh { .. } => Some(from),
        Schedule::Cron(_) => {
            let ahead = Placement { anchor_at: from, ..placement.clone() };
            let rhythm = terms.schedule.rhythm(&ahead, terms.bounds, &terms.zone);
            let next = rhythm.first();
            let pending = pending.and_then(|at| if is_begun { rhythm.next_after(at) } else { Some(at) });
            next.map(|next| keep_near(pending, next, rhythm.next_after(next)).unwrap_or(next))
        }
        Schedule::Once { .. } | Schedule::Manual => None,
    };
    let next = next.filter(|at| terms.bounds.ends_at.is_none_or(|ends_at| *at < ends_at));
    match next.filter(|_| !step.state.is_exhausted(terms)) {
        Some(anchor_at) => {
            step.state.place(terms, Placement { placed_at: now, anchor_at, ..placement });
        }
        None => {
            step.turn_to(None);
            step.state.settled_until = None;
        }
    }
}

/// What is pending, if it is one of the next two occurrences: then the one before it, which was served, is not served
/// again, and the job waits less than two intervals.
fn keep_near(pending: Option<Timestamp>, next: Timestamp, one_later: Option<Timestamp>) -> Option<Timestamp> {
    let last = one_later.unwrap_or(next);
    pending.filter(|at| next <= *at && *at <= last)
}

/// The first instant from there on that lies a whole number of intervals before or after another.
fn on_phase(anchor_at: Timestamp, interval: Duration, from: Timestamp) -> Timestamp {
    let into = (anchor_at - from).as_millis().rem_euclid(interval.as_millis());
    from + Duration::from_millis(into)
}
