//! Impossible stored instants, and when they may be repaired automatically (Q4).
//!
//! The pending occurrence follows from the schedule, its placement and what has happened. If it is not on the schedule,
//! a person wrote into the store, or two backups were mixed. The job must not run for it: it gets a new placement. But if
//! many jobs are hit at once, the rows are not what is wrong, and nothing is done before a person has looked.
//!
//! A clock that ran ahead is another matter (T3). It leaves instants of the *past* that are later than now, usually in
//! the whole fleet, and what became of it is known. So all of these jobs go on automatically, however many they are. A
//! distant next run alone says nothing about a clock: schedules may be as slow as they like.

use std::fmt;

use crate::job::{JobState, Terms};
use crate::schedule::{Rhythm, Schedule};
use crate::time::{CLOCK_SLACK, Duration, Timestamp};
use crate::urgency;

const TICK: Duration = Duration::from_millis(1);

/// A pending occurrence that is this much later than the next one of its schedule was not put there by the schedule, nor
/// by a clock that has been corrected since.
const TOO_FAR: Duration = Duration::from_days(31);

/// How many jobs are repaired, however small the fleet.
const MENDED_MIN: usize = 10;

/// Of a larger fleet, one job in this many.
const MENDED_SHARE: usize = 20;

/// What is wrong with the stored times of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Something that has happened is stored at this instant, which is still to come.
    ClockWasAhead(Timestamp),
    /// The pending occurrence is not on the schedule.
    OffRhythm(Timestamp),
    /// Others of the schedule come long before it.
    TooFar(Timestamp),
    /// There is no pending occurrence, though the schedule goes on.
    Missing,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::ClockWasAhead(at) => {
                write!(f, "something that has happened is stored at {at}, which is still to come")
            }
            Fault::OffRhythm(at) => write!(f, "the stored next run, {at}, is not on its schedule"),
            Fault::TooFar(at) => {
                write!(f, "the stored next run, {at}, lies far behind others of its schedule")
            }
            Fault::Missing => f.write_str("no next run is stored, though its schedule goes on"),
        }
    }
}

impl Fault {
    /// Whether it is known what happened, so that any number of such jobs may be repaired without a person.
    pub fn is_of_clock(self) -> bool {
        matches!(self, Fault::ClockWasAhead(_))
    }
}

/// What is wrong with the stored times of a job, if anything. The pending occurrence of a job that is paused, disabled or
/// not placed does not matter, and while a run is open, what is stored may still change.
pub fn fault(terms: &Terms, state: &JobState, n_open: u32, now: Timestamp) -> Option<Fault> {
    if !terms.enabled || state.pause.is_some() || 0 < n_open {
        return None;
    }
    let latest = state.latest_past();
    if now + CLOCK_SLACK < latest {
        return Some(Fault::ClockWasAhead(latest));
    }
    let rhythm = urgency::rhythm(terms, state)?;
    // A clock that was a little ahead when the last run ended may have been set back since.
    let seen = state.last_end_at.map_or(now, |ended_at| ended_at.max(now));
    let next = match &terms.schedule {
        Schedule::Fresh { cooldown, .. } => rhythm.first().map(|first| first.max(seen + *cooldown)),
        Schedule::Every { .. } | Schedule::Cron(_) => rhythm.next_after(seen),
        // There is one of them, and it may be over.
        Schedule::Once { .. } | Schedule::Manual => None,
    };
    match (state.next_run_at, next) {
        (Some(pending), _) if !is_of_schedule(terms, &rhythm, pending) => Some(Fault::OffRhythm(pending)),
        (Some(pending), Some(next)) if next + TOO_FAR < pending => Some(Fault::TooFar(pending)),
        (None, Some(_)) if !state.is_exhausted(terms) => Some(Fault::Missing),
        _ => None,
    }
}

/// Whether occurrences that are still to come have had their fate already, so that what is pending lies behind the next two
/// of its rhythm. Alone that proves nothing; but if a clock is known to have been ahead, it was ahead for this job too, though
/// nothing of it ran meanwhile.
pub fn was_carried_along(terms: &Terms, state: &JobState, n_open: u32, now: Timestamp) -> bool {
    let is_active = terms.enabled && state.pause.is_none() && n_open == 0;
    let is_pinned = matches!(terms.schedule, Schedule::Every { .. } | Schedule::Cron(_));
    let Some(pending) = state.next_run_at.filter(|at| is_active && is_pinned && now + CLOCK_SLACK < *at)
    else {
        return false;
    };
    let Some(rhythm) = urgency::rhythm(terms, state) else { return false };
    let one_later = rhythm.next_after(now).and_then(|next| rhythm.next_after(next));
    one_later.is_some_and(|one_later| one_later < pending)
}

/// Whether the pending occurrence is not on the schedule: nothing may run for it.
pub fn is_off_rhythm(terms: &Terms, state: &JobState) -> bool {
    match (state.next_run_at, urgency::rhythm(terms, state)) {
        (Some(pending), Some(rhythm)) => !is_of_schedule(terms, &rhythm, pending),
        _ => false,
    }
}

/// The occurrences of a `fresh` job are minted one by one: no rhythm knows them, but none comes before the first.
fn is_of_schedule(terms: &Terms, rhythm: &Rhythm<'_>, pending: Timestamp) -> bool {
    match &terms.schedule {
        Schedule::Fresh { .. } => rhythm.first().is_none_or(|first| first <= pending),
        _ => rhythm.next_after(pending - TICK) == Some(pending),
    }
}

/// Whether this many faults may be repaired without a person.
pub fn may_mend(n_faults: usize, n_jobs: usize) -> bool {
    n_faults <= MENDED_MIN.max(n_jobs / MENDED_SHARE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::ExtraId;
    use crate::job::sample::{instant, job, placed};
    use crate::job::{Extra, Job, Pause, PausedBy};
    use crate::time::Timestamp;

    const NOW: &str = "12:30";

    /// What is wrong with a job that was placed at 10:00 and is seen at 12:30, after a change to it.
    fn check(schedule: &str, change: impl FnOnce(&mut Job, &mut JobState), expected: Option<Fault>) {
        let mut job = job(schedule);
        let mut state = placed(&job, "10:00");
        change(&mut job, &mut state);
        let found = fault(&job, &state, 0, instant(NOW));
        assert_eq!(found, expected, "{schedule}, pending {:?}", state.next_run_at);
        let is_off = matches!(expected, Some(Fault::OffRhythm(_)));
        let may_be_off = job.enabled && state.pause.is_none();
        assert_eq!(is_off_rhythm(&job, &state) && may_be_off, is_off, "{schedule}");
    }

    fn pending(text: &str) -> impl FnOnce(&mut Job, &mut JobState) {
        let at = instant(text);
        move |_, state| state.next_run_at = Some(at)
    }

    fn nothing_pending(_: &mut Job, state: &mut JobState) {
        state.next_run_at = None;
    }

    #[test]
    fn what_a_schedule_says_is_no_fault() {
        for (schedule, at) in [
            ("every 1h", "10:00"),
            ("every 1h", "13:00"),
            // A clock may have been ahead, and was set back.
            ("every 1h", "2026-02-06T13:00:00Z"),
            ("cron 0 * * * *", "11:00"),
            ("cron 0 0 1 1 *", "2027-01-01T00:00:00Z"),
            ("fresh 6h", "10:00"),
            ("fresh 6h", "11:23:45.678"),
            ("fresh 6h", "15:30"),
            ("once 11:00", "11:00"),
        ] {
            check(schedule, pending(at), None);
        }
        check("once 11:00", nothing_pending, None);
        check("manual", nothing_pending, None);
    }

    #[test]
    fn what_no_schedule_says_is_one() {
        for (schedule, at) in [
            ("every 1h", "11:00:00.001"),
            ("every 1h", "09:00"),
            ("every 1h", "1970-01-01T00:00:00Z"),
            ("cron 0 * * * *", "12:01"),
            ("cron 0 * * * *", "09:00"),
            ("fresh 6h", "09:59"),
            ("once 11:00", "11:01"),
            ("manual", "11:00"),
        ] {
            check(schedule, pending(at), Some(Fault::OffRhythm(instant(at))));
        }
        let far = "2026-03-20T13:00:00Z";
        for schedule in ["every 1h", "cron 0 * * * *", "fresh 6h"] {
            check(schedule, pending(far), Some(Fault::TooFar(instant(far))));
            check(schedule, nothing_pending, Some(Fault::Missing));
        }
    }

    #[test]
    fn a_schedule_that_is_over_owes_nothing() {
        let ended = |job: &mut Job, state: &mut JobState| {
            job.terms.bounds.ends_at = Some(instant("12:00"));
            state.next_run_at = None;
        };
        check("every 1h", ended, None);
        let used_up = |job: &mut Job, state: &mut JobState| {
            job.terms.bounds.max_runs = Some(3);
            (state.n_served, state.next_run_at) = (3, None);
        };
        check("every 1h", used_up, None);
        check("fresh 6h", used_up, None);
    }

    #[test]
    fn nobody_minds_while_nothing_can_run_or_something_does() {
        let paused = |_: &mut Job, state: &mut JobState| {
            state.next_run_at = Some(instant("11:11"));
            state.pause = Some(Box::new(Pause { by: PausedBy::Operator, reason: None }));
        };
        check("every 1h", paused, None);
        let disabled = |job: &mut Job, state: &mut JobState| {
            state.next_run_at = Some(instant("11:11"));
            job.terms.enabled = false;
        };
        check("every 1h", disabled, None);
        let job = job("every 1h");
        let mut state = placed(&job, "10:00");
        state.next_run_at = None;
        assert_eq!(fault(&job, &state, 1, instant(NOW)), None);
        assert_eq!(fault(&job, &JobState::new(Timestamp::UNIX_EPOCH), 0, instant(NOW)), None);
    }

    #[test]
    fn any_past_instant_that_is_still_to_come_says_that_the_clock_was_ahead() {
        type Stamp = fn(&mut JobState, Timestamp);
        let stamps: [Stamp; 7] = [
            |state, at| state.created_at = at,
            |state, at| state.last_start_at = Some(at),
            |state, at| state.last_end_at = Some(at),
            |state, at| state.last_good_start_at = Some(at),
            |state, at| state.last_good_end_at = Some(at),
            |state, at| state.extras.push(Extra::manual(ExtraId(1), at)),
            |state, at| {
                if let Some(placement) = &mut state.placement {
                    placement.placed_at = at;
                }
            },
        ];
        for stamp in stamps {
            for (at, is_ahead) in [
                ("12:30:30", false),
                ("12:30:30.001", true),
                ("14:30", true),
                ("2026-02-06T12:30:00Z", true),
                ("2026-03-06T12:30:00Z", true),
            ] {
                let at = instant(at);
                let stamped = |_: &mut Job, state: &mut JobState| stamp(state, at);
                check("every 1h", stamped, is_ahead.then_some(Fault::ClockWasAhead(at)));
            }
        }
        let ran = |_: &mut Job, state: &mut JobState| state.last_end_at = Some(instant("14:00"));
        for schedule in ["manual", "once 11:00", "fresh 6h", "cron 0 * * * *"] {
            check(schedule, ran, Some(Fault::ClockWasAhead(instant("14:00"))));
        }
    }

    #[test]
    fn a_job_of_which_nothing_ran_may_have_been_carried_along() {
        for (schedule, at, expected) in [
            ("every 1h", "13:00", false),
            ("every 1h", "14:00", false),
            ("every 1h", "15:00", true),
            ("cron 0 * * * *", "14:00", false),
            ("cron 0 * * * *", "2026-02-06T13:00:00Z", true),
            ("cron 0 0 1 1 *", "2027-01-01T00:00:00Z", false),
            ("fresh 6h", "2026-02-06T13:00:00Z", false),
        ] {
            let job = job(schedule);
            let mut state = placed(&job, "10:00");
            state.next_run_at = Some(instant(at));
            assert_eq!(was_carried_along(&job, &state, 0, instant(NOW)), expected, "{schedule} at {at}");
            assert!(!was_carried_along(&job, &state, 1, instant(NOW)));
            assert_eq!(fault(&job, &state, 0, instant(NOW)), None, "that alone is no fault");
        }
    }

    #[test]
    fn a_few_are_mended_and_many_are_not() {
        for (n_faults, n_jobs, expected) in
            [(1, 1, true), (10, 10, true), (11, 20, false), (50, 1_000, true), (51, 1_000, false)]
        {
            assert_eq!(may_mend(n_faults, n_jobs), expected, "{n_faults} of {n_jobs}");
        }
    }
}
