//! The end of a run, and what is pending after it.

use super::settle::{range_of, unsettled_from};
use super::{Ended, RecordKind, Step};
use crate::estimate::WEIGHT_OF_LAST;
use crate::job::{JobState, Overlap, RunEnd, Terms};
use crate::missed::MissedRuns;
use crate::run::Outcome;
use crate::schedule::Schedule;
use crate::time::{Duration, TimeWindow, Timestamp};
use crate::urgency;

const TICK: Duration = Duration::from_millis(1);

/// A run that takes its node down with it must not take all of them: after so many losses in a row
/// its occurrence is over.
pub const LOSSES_MAX: u32 = 3;

/// A run of the pending occurrence has ended.
pub fn finish(terms: &Terms, state: &JobState, end: &RunEnd) -> Step {
    let mut step = Step::unchanged(state);
    step.state.record_end(end, WEIGHT_OF_LAST);
    let Some(due_at) = state.next_run_at else { return step };
    step.state.losses = if end.outcome == Outcome::Lost { state.losses + 1 } else { 0 };
    let is_tried_again = is_tried_again(terms, &step.state, end.outcome, due_at);
    if !is_tried_again {
        step.ended.push(Ended { due_at, outcome: end.outcome });
        step.state.n_served += 1;
    }
    let next = next_pending(terms, &mut step, end, due_at, is_tried_again);
    if !is_tried_again {
        step.turn_to(next.filter(|_| !step.state.is_exhausted(terms)));
    }
    step
}

/// Whether the same occurrence gets another run.
fn is_tried_again(terms: &Terms, state: &JobState, outcome: Outcome, due_at: Timestamp) -> bool {
    match outcome {
        Outcome::Succeeded | Outcome::Cancelled | Outcome::Superseded => false,
        Outcome::Lost => state.losses < LOSSES_MAX,
        Outcome::Failed | Outcome::TimedOut | Outcome::Blackout | Outcome::Unknown => {
            let is_worth_it = state.failures().is_some_and(|failures| terms.retry.retries(&failures));
            // What is only made up for is not worth more than one retry.
            let started_at = state.last_start_at.unwrap_or(due_at);
            let is_catch_up =
                terms.missed.runs == MissedRuns::All && terms.missed.grace < started_at - due_at;
            is_worth_it && !(is_catch_up && 2 <= state.attempt)
        }
    }
}

/// Puts on record what came due during the run and will not get one of its own, and returns the
/// occurrence that comes after this one.
fn next_pending(
    terms: &Terms,
    step: &mut Step,
    end: &RunEnd,
    due_at: Timestamp,
    is_tried_again: bool,
) -> Option<Timestamp> {
    if matches!(terms.schedule, Schedule::Fresh { .. }) {
        // It rests also after a run that was not good and is not tried again.
        let minted = terms.schedule.next_after_good_run(end.ended_at);
        return minted.filter(|at| terms.bounds.ends_at.is_none_or(|ends_at| *at < ends_at));
    }
    let rhythm = urgency::rhythm(terms, &step.state)?;
    let next = rhythm.next_after(unsettled_from(&step.state, due_at) - TICK)?;
    if end.ended_at < next {
        return Some(next);
    }
    let mut skip_from = |from: Timestamp| {
        let skipped = range_of(&rhythm, TimeWindow::new(from, end.ended_at + TICK));
        step.record(RecordKind::SkippedOverlap, skipped);
        step.state.settled_until = Some(end.ended_at);
    };
    match (terms.missed.runs, terms.overlap) {
        // All of them are owed, or run beside this one.
        (MissedRuns::All, _) | (_, Overlap::Allow { .. }) => Some(next),
        (_, Overlap::Skip) => {
            skip_from(next);
            rhythm.next_after(end.ended_at)
        }
        // While this one waits for a retry, the first of them takes its place as soon as anyone looks.
        (_, Overlap::Queue) if is_tried_again => Some(next),
        (_, Overlap::Queue) => {
            skip_from(next + TICK);
            Some(next)
        }
    }
}
