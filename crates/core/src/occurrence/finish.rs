//! The end of a run, and what is pending after it.

use super::clock::set_right;
use super::own::{Position, range_of, single};
use super::{Due, OccurrenceEnd, RecordKind, Serves, TICK, Transition};
use crate::estimate::WEIGHT_OF_LAST;
use crate::ids::JobKey;
use crate::job::{Extra, JobState, Overlap, Pause, PausedBy, RunEnd, Terms};
use crate::missed::MissedRuns;
use crate::run::{Outcome, Trigger};
use crate::schedule::{Rhythm, Schedule};
use crate::time::{Duration, TimeWindow, Timestamp};
use crate::urgency;

/// After this many losses in a row an occurrence is over: a run that takes its node down must not take
/// down one after the other.
pub const LOSSES_MAX: u32 = 3;

/// A run that ended this long before it was due, or before something else happened to its job, saw its clock set back
/// (T3). Smaller steps are left to the repair of stored times: here they would move a job off its rhythm for a clock that is
/// merely adjusted.
const SET_BACK_MIN: Duration = Duration::from_mins(15);

/// A run has ended. Too many failures in a row pause the job.
pub fn finish(key: &JobKey, terms: &Terms, state: &JobState, due: &Due, end: &RunEnd) -> Transition {
    let mut step = Transition::unchanged(state);
    if due.trigger == Trigger::Backfill {
        // A run for the past says nothing about how the job stands now.
        step.state.release(end.run);
    } else {
        step.state.record_end(end, WEIGHT_OF_LAST);
        pause_after_failures(&mut step.state, terms, end.outcome);
    }
    if due.serves == Serves::Pending && state.next_run_at == Some(due.due_at) {
        finish_pending(&mut step, terms, due.due_at, end);
    } else {
        finish_other(&mut step, key, terms, due, end);
        if !terms.moves_on_at_start() {
            pass_by(&mut step, terms, due, end);
        }
    }
    let past = [state.last_start_at, state.last_end_at, state.last_good_start_at, state.last_good_end_at];
    if end.ended_at + SET_BACK_MIN < past.into_iter().flatten().fold(due.due_at, Timestamp::max) {
        // What it ended as is known; what comes next was worked out from instants that are still to come.
        let right = set_right(terms, &step.state, end.ended_at);
        step.state = right.state;
        step.ended.extend(right.ended);
        step.records.extend(right.records);
    }
    step
}

fn pause_after_failures(state: &mut JobState, terms: &Terms, outcome: Outcome) {
    let is_its_own = outcome.counts_as_failure() && outcome != Outcome::Blackout;
    let failures = state.failures().filter(|failures| terms.retry.pauses(failures));
    let Some(failures) = failures.filter(|_| is_its_own && state.pause.is_none()) else {
        return;
    };
    let n_failures = failures.of_the_job();
    let times = if n_failures == 1 { "time" } else { "times in a row" };
    let reason = format!("It failed {n_failures} {times}.");
    state.pause = Some(Box::new(Pause { by: PausedBy::Failures, reason: Some(reason) }));
}

fn finish_pending(step: &mut Transition, terms: &Terms, due_at: Timestamp, end: &RunEnd) {
    step.state.losses = losses_after(step.state.losses, end.outcome);
    step.state.attempt_outcome = Some(end.outcome);
    let tries = Tries { due_at, attempt: step.state.attempt, losses: step.state.losses };
    let is_tried_again = tries.go_on(terms, &step.state, end);
    if !is_tried_again {
        step.end_own(due_at, end.outcome);
        step.state.n_served += 1;
    }
    let next = next_pending(terms, step, end, due_at, is_tried_again);
    if !is_tried_again {
        step.turn_to(next.filter(|_| !step.state.is_exhausted(terms)));
    }
}

/// The end of a run whose occurrence is not, or no longer, the pending one.
fn finish_other(step: &mut Transition, key: &JobKey, terms: &Terms, due: &Due, end: &RunEnd) {
    if due.serves == Serves::Pending {
        // It was, until the job got a new placement.
        step.state.n_served += 1;
    }
    match owed_again(&step.state, key, terms, due, end) {
        Some(extra) => step.state.extras.push(extra),
        None => {
            step.ended.push(OccurrenceEnd { due_at: due.due_at, outcome: end.outcome, asked: due.asked() });
        }
    }
}

/// The occurrence of such a run, if it gets another.
fn owed_again(state: &JobState, key: &JobKey, terms: &Terms, due: &Due, end: &RunEnd) -> Option<Extra> {
    let losses = losses_after(due.losses, end.outcome);
    let again = Extra { losses, last_outcome: Some(end.outcome), not_before: end.ended_at, ..due.to_extra() };
    match (due.asked(), end.outcome) {
        (Some(_), Outcome::Lost) => return (losses < LOSSES_MAX).then_some(again),
        // The past does not get more urgent; the person who requested it sees how it ended and can try again.
        (Some(_), _) if due.trigger == Trigger::Backfill || !end.outcome.counts_as_failure() => return None,
        (Some(_), _) => {
            let floor = urgency::delay_floor(key, terms, state)?;
            return Some(Extra { not_before: floor.max(end.ended_at), ..again });
        }
        (None, _) => {}
    }
    let tries = Tries { due_at: due.due_at, attempt: due.attempt, losses };
    let newer = TimeWindow::new(due.due_at + TICK, end.ended_at + TICK);
    let has_newer = || urgency::rhythm(terms, state).is_some_and(|rhythm| 0 < rhythm.count_in(newer));
    if !terms.moves_on_at_start() || !tries.go_on(terms, state, end) || has_newer() {
        return None;
    }
    let floor = urgency::retry_floor(key, terms, state);
    Some(Extra {
        kind: Trigger::Retry,
        not_before: floor.map_or(end.ended_at, |floor| floor.max(end.ended_at)),
        ..again
    })
}

fn losses_after(losses: u32, outcome: Outcome) -> u32 {
    if outcome == Outcome::Lost { losses.saturating_add(1) } else { 0 }
}

/// What an occurrence has behind it, the run that just ended included.
struct Tries {
    due_at: Timestamp,
    attempt: u32,
    losses: u32,
}

impl Tries {
    /// Whether it gets another run.
    fn go_on(&self, terms: &Terms, state: &JobState, end: &RunEnd) -> bool {
        match end.outcome {
            Outcome::Succeeded | Outcome::Cancelled | Outcome::Superseded => false,
            Outcome::Lost => self.losses < LOSSES_MAX,
            Outcome::Failed | Outcome::TimedOut | Outcome::Blackout | Outcome::Unknown => {
                let is_worth_it = state.failures().is_some_and(|failures| terms.retry.retries(&failures));
                // What is only made up for is not worth more than one retry.
                let is_late = terms.missed.grace < end.started_at - self.due_at;
                let is_catch_up = terms.missed.runs == MissedRuns::All && is_late;
                is_worth_it && !(is_catch_up && 2 <= self.attempt)
            }
        }
    }
}

/// Puts on record what came due during a run of the pending occurrence and will not get one of its own,
/// and returns the occurrence that comes after it.
fn next_pending(
    terms: &Terms,
    step: &mut Transition,
    end: &RunEnd,
    due_at: Timestamp,
    is_tried_again: bool,
) -> Option<Timestamp> {
    if matches!(terms.schedule, Schedule::Fresh { .. }) {
        // It rests also after a run that was not good and is not tried again.
        return minted(terms, end.ended_at, due_at + TICK);
    }
    let rhythm = urgency::rhythm(terms, &step.state)?;
    let unsettled_from = Position::of(&step.state).map_or(due_at + TICK, |it| it.unsettled_from());
    let next = rhythm.next_after(unsettled_from - TICK)?;
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
        (MissedRuns::Once, Overlap::Skip) if has_its_turn(&rhythm, due_at, next, end) => Some(next),
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

/// Whether the one occurrence that came due during a good run still gets a run of its own, under
/// `overlap = "skip"`. It does if only a late start made the two meet: the run that ended takes less time
/// than lies between two occurrences. Skipping it would break a promise shortly after a success.
fn has_its_turn(rhythm: &Rhythm<'_>, due_at: Timestamp, next: Timestamp, end: &RunEnd) -> bool {
    let is_the_only_one = rhythm.next_after(next).is_none_or(|later| end.ended_at < later);
    let before = rhythm.last_in(TimeWindow::new(due_at, next));
    let is_short = before.is_some_and(|before| end.ended_at - end.started_at < next - before);
    end.outcome == Outcome::Succeeded && is_the_only_one && is_short
}

/// The occurrence of a `fresh` job after a run that ended then. None comes before one that was, also if the clock has
/// gone back since, or the run began under an earlier placement.
fn minted(terms: &Terms, ended_at: Timestamp, not_before: Timestamp) -> Option<Timestamp> {
    let minted = terms.schedule.next_after_good_run(ended_at).map(|at| at.max(not_before));
    minted.filter(|at| terms.bounds.ends_at.is_none_or(|ends_at| *at < ends_at))
}

/// What a run of something else means for the pending occurrence and those after it, where nothing may
/// run beside it. What was due before it started stays pending.
fn pass_by(step: &mut Transition, terms: &Terms, due: &Due, end: &RunEnd) {
    let Some(position) = Position::of(&step.state) else { return };
    let was_due = position.pending <= end.started_at;
    let is_due = position.pending <= end.ended_at;
    if matches!(terms.schedule, Schedule::Fresh { .. }) {
        if end.outcome == Outcome::Succeeded && due.trigger != Trigger::Backfill {
            renew(step, terms, &position, end);
        }
        return;
    }
    let Some(rhythm) = urgency::rhythm(terms, &step.state).filter(|_| is_due) else { return };
    let is_retry = 0 < position.attempt;
    match (terms.missed.runs, terms.overlap) {
        (MissedRuns::All, _) => {}
        // The next one takes its place as soon as anyone looks.
        (_, Overlap::Queue) if is_retry => {}
        (_, Overlap::Skip) if !was_due => {
            for range in position.open_until(&rhythm, end.ended_at) {
                step.record(RecordKind::SkippedOverlap, range);
            }
            let settled_until = step.state.settled_until.unwrap_or(end.ended_at);
            step.turn_to(rhythm.next_after(settled_until.max(end.ended_at)));
        }
        _ => {
            let later = TimeWindow::new(position.unsettled_from(), end.ended_at + TICK);
            step.record(RecordKind::SkippedOverlap, range_of(&rhythm, later));
            let until = step.state.settled_until.map_or(end.ended_at, |until| until.max(end.ended_at));
            step.state.settled_until = Some(until);
        }
    }
}

/// A good requested run has renewed the data of a `fresh` job: it rests from now on, and what
/// was due is served.
fn renew(step: &mut Transition, terms: &Terms, position: &Position, end: &RunEnd) {
    let mut not_before = position.pending + TICK;
    if position.pending <= end.started_at {
        step.end_own(position.pending, end.outcome);
        step.state.n_served += 1;
    } else if position.pending <= end.ended_at {
        step.record(RecordKind::SkippedOverlap, Some(single(position.pending)));
    } else {
        not_before = position.pending;
    }
    step.turn_to(minted(terms, end.ended_at, not_before).filter(|_| !step.state.is_exhausted(terms)));
}
