//! The start of a run: which occurrence it serves.

use super::own::{Position, is_overtaken, single};
use super::settle::{is_active, settle};
use super::{Due, DueRun, RecordKind, Serves, TICK, Transition};
use crate::ids::JobKey;
use crate::job::{Extra, JobState, Terms};
use crate::missed::MissedRuns;
use crate::run::{Outcome, Trigger};
use crate::schedule::{Rhythm, Schedule};
use crate::time::{Duration, Timestamp};
use crate::urgency::{self, Outlook};

/// What [`start`] would serve now, with `n_open` runs open. None if nothing may start. Cheap, for the
/// order in which jobs start.
///
/// A person comes first, then what failed, then the schedule, then the past. Blackouts are not looked
/// at: they hold up everything alike, in [`urgency::can_start_by`].
pub fn next_up(key: &JobKey, terms: &Terms, state: &JobState, n_open: u32, now: Timestamp) -> Option<DueRun> {
    if !is_active(terms, state) || terms.max_open() <= n_open {
        return None;
    }
    let rhythm = urgency::rhythm(terms, state);
    if state.extras.is_empty() {
        return own_up(key, terms, state, n_open, &rhythm?, now);
    }
    let manual = first_extra(state, now, |extra| extra.kind == Trigger::Manual);
    let retry = || {
        let rhythm = rhythm.as_ref()?;
        let is_ours = |extra: &Extra| !extra.is_asked_for() && !is_overtaken(extra, terms, rhythm, now);
        let up = first_extra(state, now, is_ours)?;
        Some(DueRun { is_backlog: is_backlog(terms, rhythm, up.due_at, now), ..up })
    };
    let backfill = || first_extra(state, now, |extra| extra.kind == Trigger::Backfill);
    manual
        .or_else(retry)
        .or_else(|| own_up(key, terms, state, n_open, rhythm.as_ref()?, now))
        .or_else(backfill)
}

/// The oldest extra of a kind whose time has come.
fn first_extra(state: &JobState, now: Timestamp, is_of_kind: impl Fn(&Extra) -> bool) -> Option<DueRun> {
    let ready = state.extras.iter().filter(|extra| extra.not_before <= now && is_of_kind(extra));
    let extra = ready.min_by_key(|extra| (extra.due_at, extra.id))?;
    Some(DueRun {
        due_at: extra.due_at,
        trigger: extra.kind,
        serves: Serves::Extra(extra.id),
        is_backlog: extra.kind == Trigger::Backfill,
    })
}

/// The schedule's own occurrence that is to be served now.
fn own_up(
    key: &JobKey,
    terms: &Terms,
    state: &JobState,
    n_open: u32,
    rhythm: &Rhythm<'_>,
    now: Timestamp,
) -> Option<DueRun> {
    let position = Position::of(state).filter(|position| position.pending <= now)?;
    // Of one that has had a run, that may be the one that is open: before an edit of its terms nothing
    // was to run beside it.
    if 0 < position.attempt && 0 < n_open {
        return None;
    }
    if urgency::retry_floor(key, terms, state).is_some_and(|floor| now < floor) {
        return None;
    }
    let position = match position.look_for_overtaker(terms, rhythm, now) {
        Some(_) if is_last_run(terms, state) => return None,
        Some(overtaken) => position.overtaken(&overtaken),
        None => position,
    };
    let due_at = position.choose(terms, rhythm, own_length(terms, state), now).due_at?;
    let settled_until = due_at.max(position.unsettled_from() - TICK);
    Some(DueRun {
        due_at,
        trigger: own_trigger(terms, due_at, position.attempt, now),
        serves: if terms.moves_on_at_start() { Serves::Beside } else { Serves::Pending },
        is_backlog: is_backlog(terms, rhythm, settled_until, now),
    })
}

/// Whether all missed ones are made up for, and there are more than the one that is due then.
fn is_backlog(terms: &Terms, rhythm: &Rhythm<'_>, due_at: Timestamp, now: Timestamp) -> bool {
    terms.missed.runs == MissedRuns::All && rhythm.next_after(due_at).is_some_and(|next| next <= now)
}

/// Whether the end of the pending occurrence uses up `max_runs`.
fn is_last_run(terms: &Terms, state: &JobState) -> bool {
    terms.bounds.max_runs.is_some_and(|most| most <= state.n_served.saturating_add(1))
}

fn own_trigger(terms: &Terms, due_at: Timestamp, n_runs: u32, now: Timestamp) -> Trigger {
    let is_late = terms.missed.grace < now - due_at && !matches!(terms.schedule, Schedule::Fresh { .. });
    match n_runs {
        0 if is_late => Trigger::Catchup,
        0 => Trigger::Scheduler,
        _ => Trigger::Retry,
    }
}

/// A run is about to start, beside `n_open` others: which occurrence it serves ([`next_up`]). None if
/// nothing may start; what was missed and is too late to run is then on record, and a later
/// occurrence is pending.
pub fn start(
    key: &JobKey,
    terms: &Terms,
    state: &JobState,
    n_open: u32,
    now: Timestamp,
) -> (Option<Due>, Transition) {
    let mut step = settle(terms, state, n_open, now);
    let Some(up) = next_up(key, terms, &step.state, n_open, now) else {
        let has_floor = urgency::retry_floor(key, terms, &step.state).is_some_and(|floor| now < floor);
        if is_active(terms, state) && n_open < terms.max_open() && !has_floor {
            choose_pending(&mut step, terms, now);
        }
        return (None, step);
    };
    if let Serves::Extra(id) = up.serves {
        if !terms.moves_on_at_start() {
            // What is due already waits its turn; which that is, is decided now. What comes due from
            // here on comes due during a run.
            choose_pending(&mut step, terms, now);
        }
        return (step.state.extras.take(id).map(Due::of_extra), step);
    }
    choose_pending(&mut step, terms, now);
    step.state.attempt = step.state.attempt.saturating_add(1);
    let due = Due {
        due_at: up.due_at,
        attempt: step.state.attempt,
        trigger: up.trigger,
        serves: up.serves,
        losses: step.state.losses,
        last_outcome: step.state.attempt_outcome,
        params: None,
    };
    if up.serves == Serves::Beside {
        move_on(&mut step, terms);
    }
    (Some(due), step)
}

/// The pending occurrence becomes the one that the policy for missed ones says, if any is due.
fn choose_pending(step: &mut Transition, terms: &Terms, now: Timestamp) {
    let Some(position) = Position::of(&step.state).filter(|position| position.pending <= now) else { return };
    let Some(rhythm) = urgency::rhythm(terms, &step.state) else { return };
    let choice = position.choose(terms, &rhythm, own_length(terms, &step.state), now);
    for range in choice.passed_over {
        step.record(RecordKind::MissedLate, range);
    }
    if choice.next != Some(position.pending) {
        step.turn_to(choice.next);
    }
    if choice.gives_way {
        step.state.settled_until = Some(now);
    }
}

/// How long a run takes by what is known of the job itself; nothing is made of what others take.
fn own_length(terms: &Terms, state: &JobState) -> Duration {
    urgency::expected_length(terms, state, &Outlook::default())
}

/// The next occurrence is pending, though this one has only begun.
fn move_on(step: &mut Transition, terms: &Terms) {
    let rhythm = urgency::rhythm(terms, &step.state);
    let after = Position::of(&step.state).map(|position| position.unsettled_from());
    let next = rhythm.zip(after).and_then(|(rhythm, after)| rhythm.next_after(after - TICK));
    step.state.n_served += 1;
    step.turn_to(next.filter(|_| !step.state.is_exhausted(terms)));
}

/// A run was claimed, and its process never began: its occurrence waits as before, and no attempt is
/// counted.
pub fn unstart(state: &JobState, due: &Due) -> Transition {
    let mut step = Transition::unchanged(state);
    let before = Due { attempt: due.attempt.saturating_sub(1), ..due.clone() };
    match due.serves {
        Serves::Pending if state.next_run_at == Some(due.due_at) => step.state.attempt = before.attempt,
        // The job has got a new placement meanwhile: nothing waits.
        Serves::Pending if before.attempt == 0 => {
            step.record(RecordKind::MissedLate, Some(single(due.due_at)));
        }
        Serves::Pending => {
            step.end_own(due.due_at, due.last_outcome.unwrap_or(Outcome::Failed));
            step.state.n_served += 1;
        }
        Serves::Beside | Serves::Extra(_) => step.state.extras.push(before.to_extra()),
    }
    step
}
