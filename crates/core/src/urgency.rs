//! The instants that decide about a job: when it may start, when it must, when it is late (B2).
//!
//! Pure functions of terms, memory and time. Two of them move in different ways, and that is the
//! whole idea:
//!
//! - `can_start_by` is pushed back by failures (the retry floor) and by blackouts. Unless
//!   `retry.holds_schedule` is set, a failure does not push back the next regular occurrence.
//! - `should_start_by` and the deadline are pushed back by nothing but a good run. Occurrences that
//!   fail, are skipped or missed leave them where they are. So a job that was held up is the first
//!   in line as soon as it may start again.

use crate::estimate::Estimate;
use crate::ids::JobKey;
use crate::job::{JobState, Terms};
use crate::run::Trigger;
use crate::schedule::{ONCE_FINISH_WITHIN, Rhythm, Schedule};
use crate::time::{Duration, Timestamp};
use crate::unsatisfiable::NodeFit;

/// What a job cannot know from itself: the state of the world around it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outlook {
    /// The usual length of runs in its pool, for a job without any history.
    pub pool_median: Option<Duration>,
    /// When the queue will have room for it, if it must wait for that.
    pub room_at: Option<Timestamp>,
    /// Whether any node can take it.
    pub fit: NodeFit,
}

/// How long its next run will take, as far as anyone can tell (B1): what was set by hand, else
/// what was learned, else the longest that is expected, else what is usual in its pool, else 0.
pub fn expected_length(terms: &Terms, state: &JobState, outlook: &Outlook) -> Duration {
    terms
        .estimate
        .or(state.estimate.as_ref().map(Estimate::mean))
        .or(terms.limits.max_expected)
        .or(outlook.pool_median)
        .unwrap_or(Duration::ZERO)
}

/// The same as far as it was measured or set by hand. A guess is good enough for the order in which jobs
/// start, but not for a warning (B4).
pub fn measured_length(terms: &Terms, state: &JobState) -> Duration {
    terms.estimate.or(state.estimate.as_ref().map(Estimate::mean)).unwrap_or(Duration::ZERO)
}

/// The job's occurrences, if it is placed and has any.
pub fn rhythm<'a>(terms: &'a Terms, state: &JobState) -> Option<Rhythm<'a>> {
    let placement = state.placement.as_ref()?;
    Some(terms.schedule.rhythm(placement, terms.bounds, &terms.zone))
}

/// By when a good run must be complete; none for a job that owes nothing.
///
/// It counts from the first occurrence that no good run has covered. A job that never succeeded
/// counts from its first placed one, so that it is neither infinitely urgent nor never chosen.
pub fn deadline(terms: &Terms, state: &JobState) -> Option<Timestamp> {
    let placement = state.placement.as_ref()?;
    if state.is_exhausted(terms) {
        return None;
    }
    let covered_until = state.last_good_start_at.unwrap_or(Timestamp::MIN);
    let owed = || rhythm(terms, state)?.next_after(covered_until);
    match &terms.schedule {
        Schedule::Fresh { max_age, .. } => {
            // What ended is not owed; a promise about the age of data ends with its schedule.
            state.next_run_at?;
            Some(state.last_good_start_at.unwrap_or(placement.anchor_at) + *max_age)
        }
        Schedule::Every { interval, finish_within } => Some(owed()? + finish_within.unwrap_or(*interval)),
        Schedule::Cron(cron) => {
            let owed = owed()?;
            match cron.finish_within {
                Some(finish_within) => Some(owed + finish_within),
                None => rhythm(terms, state)?.without_end().next_after(owed),
            }
        }
        Schedule::Once { finish_within, .. } => Some(owed()? + finish_within.unwrap_or(ONCE_FINISH_WITHIN)),
        Schedule::Manual => None,
    }
}

/// The latest start that still meets the deadline: the order of dispatch.
pub fn should_start_by(terms: &Terms, state: &JobState, outlook: &Outlook) -> Option<Timestamp> {
    Some(deadline(terms, state)? - expected_length(terms, state, outlook))
}

/// Whether its runs take longer than they may from when they come due: no run can be in time.
pub fn is_hopeless(terms: &Terms, state: &JobState, outlook: &Outlook) -> bool {
    let allowed = match &terms.schedule {
        Schedule::Every { interval, finish_within } => finish_within.unwrap_or(*interval),
        Schedule::Fresh { max_age, cooldown } => *max_age - *cooldown,
        Schedule::Cron(cron) => match cron.finish_within {
            Some(finish_within) => finish_within,
            None => return false,
        },
        Schedule::Once { .. } | Schedule::Manual => return false,
    };
    allowed < expected_length(terms, state, outlook)
}

/// The earliest start of anything that the job owes: the pending occurrence, not before the retry
/// floor, or an extra; not in a blackout. None if there is nothing, or if blackouts never end.
///
/// A requested run does not wait for the floor: the person may have fixed what failed.
pub fn can_start_by(key: &JobKey, terms: &Terms, state: &JobState, now: Timestamp) -> Option<Timestamp> {
    let extra = state.extras.iter().map(|extra| extra.not_before).min();
    let earliest = [pending_start(key, terms, state), extra].into_iter().flatten().min()?;
    after_blackouts(terms, earliest, now)
}

/// The pending occurrence, not before the retry floor.
fn pending_start(key: &JobKey, terms: &Terms, state: &JobState) -> Option<Timestamp> {
    let pending = state.next_run_at?;
    Some(retry_floor(key, terms, state).map_or(pending, |floor| pending.max(floor)))
}

fn after_blackouts(terms: &Terms, floored: Timestamp, now: Timestamp) -> Option<Timestamp> {
    // What could have started by now is judged by now: a window that has begun since then holds
    // it up, one that is over does not.
    let earliest = floored.max(now);
    let after_blackout = terms.blackouts.exit(&terms.zone, earliest)?;
    Some(if after_blackout == earliest { floored } else { after_blackout })
}

/// Before this instant the schedule does not try a failed job again (B7). The next regular occurrence of
/// `every` and `cron`, the first after the failed run, does not wait for it.
pub fn retry_floor(key: &JobKey, terms: &Terms, state: &JobState) -> Option<Timestamp> {
    let floor = delay_floor(key, terms, state)?;
    let has_regular = matches!(terms.schedule, Schedule::Every { .. } | Schedule::Cron(_));
    if terms.retry.holds_schedule || !has_regular {
        return Some(floor);
    }
    let regular =
        rhythm(terms, state).zip(state.last_end_at).and_then(|(rhythm, end)| rhythm.next_after(end));
    Some(regular.map_or(floor, |regular| regular.min(floor)))
}

/// The floor of a requested run: no schedule brings another, so the delay decides. What a
/// blackout ended is tried again when that is over (B8).
pub fn delay_floor(key: &JobKey, terms: &Terms, state: &JobState) -> Option<Timestamp> {
    let failures = state.failures().filter(|failures| terms.retry.retries(failures))?;
    if failures.is_last_by_blackout {
        return Some(terms.blackouts.exit(&terms.zone, failures.ended_at).unwrap_or(failures.ended_at));
    }
    Some(terms.retry.floor(key, &failures))
}

/// When the next run that can renew the job's data will start, if all goes as foreseen: when it may, from
/// now on, where it fits before the next blackout, and when there is room for it. A backfill renews
/// nothing.
pub fn planned_start(
    key: &JobKey,
    terms: &Terms,
    state: &JobState,
    now: Timestamp,
    outlook: &Outlook,
) -> Option<Timestamp> {
    let renewing = state.extras.iter().filter(|extra| extra.kind != Trigger::Backfill);
    let extra = renewing.map(|extra| extra.not_before).min();
    let earliest = [pending_start(key, terms, state), extra].into_iter().flatten().min()?;
    fit_from(earliest, terms, state, now, outlook)
}

/// The same for the next run of any kind, also for one that only makes up for the past.
pub fn next_start(
    key: &JobKey,
    terms: &Terms,
    state: &JobState,
    now: Timestamp,
    outlook: &Outlook,
) -> Option<Timestamp> {
    let extra = state.extras.iter().map(|extra| extra.not_before).min();
    let earliest = [pending_start(key, terms, state), extra].into_iter().flatten().min()?;
    fit_from(earliest, terms, state, now, outlook)
}

/// Since when a job that may start now could have started: from its occurrence, its retry delay or its request on, and
/// not during a blackout. For people: no decision reads it.
pub fn startable_since(key: &JobKey, terms: &Terms, state: &JobState, now: Timestamp) -> Option<Timestamp> {
    let extra = state.extras.iter().map(|extra| extra.not_before).min();
    let earliest = [pending_start(key, terms, state), extra].into_iter().flatten().min()?;
    Some(after_blackouts(terms, earliest, now)?.min(now))
}

fn fit_from(
    earliest: Timestamp,
    terms: &Terms,
    state: &JobState,
    now: Timestamp,
    outlook: &Outlook,
) -> Option<Timestamp> {
    let earliest = after_blackouts(terms, earliest, now)?.max(now);
    let room_at = outlook.room_at.map_or(earliest, |room_at| room_at.max(earliest));
    terms.blackouts.earliest_fit(&terms.zone, room_at, expected_length(terms, state, outlook))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blackout::{BlackoutPeriod, Blackouts, Weekdays};
    use crate::job::Job;
    use crate::job::sample::{instant, job, length, placed};
    use crate::run::Outcome;
    use crate::schedule::Placement;

    fn shown(at: Option<Timestamp>) -> String {
        at.map_or("none".to_owned(), |at| at.to_string().replace("2026-02-04T", "").replace(":00Z", ""))
    }

    #[track_caller]
    fn check_deadline(schedule: &str, last_good_start: Option<&str>, expected: &str) {
        let job = job(schedule);
        let mut state = placed(&job, "00:00");
        state.last_good_start_at = last_good_start.map(instant);
        assert_eq!(shown(deadline(&job, &state)), expected);
    }

    #[test]
    fn the_deadline_stays_at_the_first_occurrence_without_a_good_run() {
        check_deadline("cron 0 */4 * * *", Some("03:00"), "08:00");
        check_deadline("cron 0 */4 * * * within 30m", Some("03:00"), "04:30");
        check_deadline("cron 0 */4 * * * within 30m", Some("04:00"), "08:30");
        check_deadline("cron 0 */4 * * * within 30m", Some("03:59:59"), "04:30");
        check_deadline("every 6h", Some("06:00:01"), "18:00");
        check_deadline("every 6h within 1h", Some("06:00:01"), "13:00");
        check_deadline("fresh 20h", Some("03:10"), "23:10");
        check_deadline("once 10:00 within 2h", Some("09:59"), "12:00");
        check_deadline("once 10:00 within 2h", Some("10:00"), "none");
        check_deadline("manual", Some("03:00"), "none");
    }

    #[test]
    fn a_job_that_never_succeeded_owes_its_first_placed_occurrence() {
        check_deadline("cron 30 */4 * * * within 30m", None, "01:00");
        check_deadline("cron 30 */4 * * *", None, "04:30");
        check_deadline("every 6h", None, "06:00");
        check_deadline("fresh 20h", None, "20:00");
        check_deadline("once 10:00", None, "11:00");
        let unplaced = JobState::new(instant("00:00"));
        assert_eq!(deadline(&job("every 6h"), &unplaced), None);
    }

    #[test]
    fn a_move_leaves_nothing_owed_on_the_old_grid() {
        let job = job("every 1h");
        let mut state = placed(&job, "10:00");
        state.last_good_start_at = Some(instant("10:00"));
        state.place(&job, Placement::at(instant("11:20"), instant("10:30")));
        // Counting back on the new grid would owe 10:20, and the job would be late the moment it
        // is due.
        assert_eq!(shown(deadline(&job, &state)), "12:20");
    }

    #[test]
    fn bounds_end_what_is_owed() {
        let mut job = job("cron 0 * * * *");
        job.bounds.ends_at = Some(instant("12:00"));
        let mut state = placed(&job, "10:00");
        state.last_good_start_at = Some(instant("10:00"));
        assert_eq!(shown(deadline(&job, &state)), "12:00");
        state.last_good_start_at = Some(instant("11:00"));
        assert_eq!(deadline(&job, &state), None);
        job.bounds.max_runs = Some(3);
        state.last_good_start_at = Some(instant("10:00"));
        state.n_served = 3;
        assert_eq!(deadline(&job, &state), None);
    }

    #[track_caller]
    fn check_expected(
        by_hand: Option<&str>,
        learned: Option<&str>,
        most: Option<&str>,
        pool: Option<&str>,
        expected: &str,
    ) {
        let mut job = job("every 1h");
        job.estimate = by_hand.map(length);
        job.limits.max_expected = most.map(length);
        let mut state = placed(&job, "10:00");
        state.estimate = learned.map(|it| Estimate::first(length(it)));
        let outlook = Outlook { pool_median: pool.map(length), ..Outlook::default() };
        assert_eq!(expected_length(&job, &state, &outlook).to_string(), expected);
    }

    #[test]
    fn the_length_of_a_run_is_what_is_known_best() {
        check_expected(Some("1m"), Some("2m"), Some("3m"), Some("4m"), "1m");
        check_expected(None, Some("2m"), Some("3m"), Some("4m"), "2m");
        check_expected(None, None, Some("3m"), Some("4m"), "3m");
        check_expected(None, None, None, Some("4m"), "4m");
        check_expected(None, None, None, None, "0s");
    }

    #[track_caller]
    fn check_can_start(failures: u32, blackout: Option<(&str, &str)>, now: &str, expected: &str) {
        let mut job = job("every 1h");
        if let Some((start, end)) = blackout {
            let period = BlackoutPeriod::new(start.parse().unwrap(), end.parse().unwrap(), Weekdays::ALL);
            job.blackouts = Blackouts::new(vec![period.unwrap()]).unwrap();
        }
        let mut state = placed(&job, "10:00");
        state.failure_count = failures;
        state.last_start_at = (0 < failures).then(|| instant("10:00"));
        state.last_end_at = (0 < failures).then(|| instant("10:10"));
        assert_eq!(shown(can_start_by(&job.key, &job, &state, instant(now))), expected);
    }

    #[test]
    fn the_earliest_start_is_the_occurrence_then_the_floor_then_the_blackout() {
        check_can_start(0, None, "09:00", "10:00");
        check_can_start(0, None, "10:30", "10:00");
        check_can_start(1, None, "10:12", "10:15");
        check_can_start(2, None, "10:12", "11:00");
        check_can_start(0, Some(("09:30", "10:20")), "09:00", "10:20");
        check_can_start(1, Some(("10:12", "10:40")), "10:11", "10:40");
        // A window that has begun since holds it up; one that is over does not.
        check_can_start(0, Some(("10:30", "11:00")), "10:45", "11:00");
        check_can_start(0, Some(("09:30", "10:20")), "10:45", "10:00");
        check_can_start(0, Some(("00:00", "24:00")), "10:45", "none");
    }

    /// The last of these failed runs ended at 10:10.
    #[track_caller]
    fn check_floor(schedule: &str, failures: u32, set: impl FnOnce(&mut Job, &mut JobState), expected: &str) {
        let mut job = job(schedule);
        let mut state = placed(&job, "10:00");
        state.failure_count = failures;
        state.last_start_at = Some(instant("10:00"));
        state.last_end_at = Some(instant("10:10"));
        state.last_outcome = Some(Outcome::Failed);
        set(&mut job, &mut state);
        assert_eq!(shown(retry_floor(&job.key, &job, &state)), expected);
    }

    #[test]
    fn the_retry_floor_is_never_later_than_the_next_regular_occurrence() {
        let as_is = |_: &mut Job, _: &mut JobState| {};
        check_floor("every 1h", 1, as_is, "10:15");
        check_floor("every 1h", 2, as_is, "11:00");
        check_floor("every 1h", 9, as_is, "11:00");
        check_floor("every 1m", 1, as_is, "10:11");
        check_floor("cron */15 * * * *", 2, as_is, "10:15");
        check_floor("every 5h", 2, as_is, "11:10");
        // Nothing comes after its end, so nothing ends the wait earlier.
        let ends = |job: &mut Job, _: &mut JobState| job.bounds.ends_at = Some(instant("10:30"));
        check_floor("every 1h", 2, ends, "11:10");
    }

    #[test]
    fn the_delay_decides_where_it_holds_the_schedule_or_nothing_regular_comes() {
        let holds = |job: &mut Job, _: &mut JobState| job.retry.holds_schedule = true;
        check_floor("every 1h", 2, holds, "11:10");
        check_floor("cron */15 * * * *", 3, holds, "14:10");
        let as_is = |_: &mut Job, _: &mut JobState| {};
        check_floor("fresh 20h", 2, as_is, "11:10");
        check_floor("once 10:00", 2, as_is, "11:10");
        check_floor("manual", 2, as_is, "11:10");
    }

    #[test]
    fn a_run_that_a_blackout_ended_is_tried_again_at_its_end() {
        let ended_by = |start: &'static str, end: &'static str| {
            move |job: &mut Job, state: &mut JobState| {
                let period = BlackoutPeriod::new(start.parse().unwrap(), end.parse().unwrap(), Weekdays::ALL);
                job.blackouts = Blackouts::new(vec![period.unwrap()]).unwrap();
                state.last_outcome = Some(Outcome::Blackout);
            }
        };
        check_floor("every 6h", 1, ended_by("10:09", "10:12"), "10:12");
        check_floor("every 6h", 5, ended_by("10:09", "10:12"), "10:12");
        check_floor("fresh 20h", 5, ended_by("10:09", "12:00"), "12:00");
        // By the time it had ended, the blackout was over.
        check_floor("every 6h", 1, ended_by("10:05", "10:09"), "10:10");
        let holds = |job: &mut Job, state: &mut JobState| {
            job.retry.holds_schedule = true;
            ended_by("10:09", "10:12")(job, state);
        };
        check_floor("every 1m", 3, holds, "10:12");
        // No week has a gap: when it can start says so, which is never.
        check_floor("every 6h", 1, ended_by("00:00", "24:00"), "10:10");
    }

    #[test]
    fn an_exit_code_not_worth_a_retry_has_no_floor() {
        let mut job = job("every 1h");
        job.retry.not_on_exit_codes = vec![64];
        let mut state = placed(&job, "11:00");
        state.failure_count = 3;
        state.last_end_at = Some(instant("10:10"));
        state.last_exit_code = Some(64);
        assert_eq!(shown(can_start_by(&job.key, &job, &state, instant("10:20"))), "11:00");
    }

    #[test]
    fn a_run_that_does_not_fit_before_a_blackout_waits_for_its_end() {
        let mut job = job("every 1h");
        let period = BlackoutPeriod::new("10:30".parse().unwrap(), "10:50".parse().unwrap(), Weekdays::ALL);
        job.blackouts = Blackouts::new(vec![period.unwrap()]).unwrap();
        job.estimate = Some(length("20m"));
        let state = placed(&job, "10:00");
        let planned = |now| shown(planned_start(&job.key, &job, &state, instant(now), &Outlook::default()));
        assert_eq!(planned("10:10"), "10:10");
        assert_eq!(planned("10:11"), "10:50");
        job.estimate = Some(length("3d"));
        let planned = |now| shown(planned_start(&job.key, &job, &state, instant(now), &Outlook::default()));
        assert_eq!(planned("10:11"), "10:11", "no gap of the week is that long, so it need not wait");
    }
}
