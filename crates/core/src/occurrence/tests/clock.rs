//! Jobs whose clock was ahead, and was set right.

use crate::ids::{ExtraId, RunId};
use crate::job::sample::{instant, job, placed};
use crate::job::{Extra, Job, JobState, RunEnd};
use crate::occurrence::{Due, Serves, finish, set_right};
use crate::run::{Outcome, Trigger};
use crate::schedule::{OnceAt, Placement, Schedule};
use crate::time::{Duration, Timestamp};

const NOW: &str = "12:30";

/// A job that was placed at 10:00, ran well while the clock was ahead, and has this pending.
fn ahead(schedule: &str, ran_at: &str, pending: &str) -> (Job, JobState) {
    let job = job(schedule);
    let mut state = placed(&job, "10:00");
    let at = Some(instant(ran_at));
    (state.last_start_at, state.last_end_at) = (at, at);
    (state.last_good_start_at, state.last_good_end_at) = (at, at);
    state.next_run_at = Some(instant(pending));
    (job, state)
}

#[track_caller]
fn check(schedule: &str, ran_at: &str, pending: &str, expected: &str) {
    let (job, state) = ahead(schedule, ran_at, pending);
    let now = instant(NOW);
    let step = set_right(&job, &state, now);
    assert_eq!(step.state.next_run_at, Some(instant(expected)), "{schedule}, pending {pending}");
    assert_eq!((step.records, step.ended), (Vec::new(), Vec::new()));
    for at in [step.state.last_start_at, step.state.last_end_at, step.state.last_good_start_at] {
        assert_eq!(at, Some(now), "what happened did so by now");
    }
    assert_eq!(crate::repair::fault(&job, &step.state, 0, now), None, "{schedule} is sound again");
    let again = set_right(&job, &step.state, now);
    assert_eq!(again.state.next_run_at, step.state.next_run_at, "{schedule}, once more");
}

#[test]
fn a_job_goes_on_within_an_interval_of_its_rhythm() {
    let month = "2026-03-06T12:30:00Z";
    // Beside the old rhythm, by a millisecond: what was served there is not served again.
    check("every 1h", "2026-02-06T12:00:00Z", "2026-02-06T13:00:00Z", "13:00:00.001");
    check("every 1h", month, "2026-03-06T13:00:00Z", "13:00:00.001");
    check("every 20m", "14:20", "14:40", "12:40:00.001");
    check("every 1s", "12:31:30", "12:31:31", "12:30:01.001");
    check("cron 0 * * * *", month, "2026-03-06T13:00:00Z", "13:00");
    check("cron */5 * * * *", "14:30", "14:35", "12:35");
    // What a `fresh` job is owed next keeps its distance from the others.
    check("fresh 24h cooldown 6h", "2026-02-06T12:00:00Z", "2026-02-06T18:10:00Z", "18:10");
    check("fresh 2h cooldown 1h", month, "2026-03-06T13:10:00Z", "13:10");
}

#[test]
fn an_occurrence_that_was_served_is_not_served_again_if_the_next_is_near() {
    // Two hours ahead, the one of 13:00 was served at 13:00; tomorrow is near enough.
    check("every 1d", "2026-02-05T10:00:00Z", "2026-02-06T10:00:00Z", "2026-02-06T10:00:00Z");
    check("cron 0 14 * * *", "14:00", "2026-02-05T14:00:00Z", "2026-02-05T14:00:00Z");
    check("cron * * * * *", "12:31", "12:32", "12:32");
    check("every 1h", "13:00", "14:00", "14:00");
    // One more would be a gap.
    check("cron 0 14 * * *", "2026-02-05T14:00:00Z", "2026-02-06T14:00:00Z", "14:00");
    check("every 1h", "14:00", "15:00", "13:00:00.001");
}

#[test]
fn what_is_due_already_stays_due() {
    check("every 1h", "14:00", "12:00", "12:00");
    check("cron 0 * * * *", "14:00", "11:00", "11:00");
}

#[test]
fn the_deadline_counts_from_the_repair() {
    for (schedule, pending, deadline) in [
        ("every 1h", "2026-02-06T13:00:00Z", "14:00:00.001"),
        ("cron 0 * * * *", "2026-02-06T13:00:00Z", "14:00"),
        ("fresh 6h", "2026-02-06T15:00:00Z", "18:30"),
        // The one that was served is not owed.
        ("cron 0 * * * *", "14:00", "15:00"),
    ] {
        let (job, state) = ahead(schedule, "2026-02-06T12:00:00Z", pending);
        let state = set_right(&job, &state, instant(NOW)).state;
        assert_eq!(crate::urgency::deadline(&job, &state), Some(instant(deadline)), "{schedule}");
    }
}

#[test]
fn an_occurrence_that_had_its_run_ends_with_it() {
    let (job, mut state) = ahead("every 1h", "2026-02-06T12:00:00Z", "2026-02-06T12:00:00Z");
    (state.attempt, state.attempt_outcome, state.failure_count) = (1, Some(Outcome::Failed), 1);
    let step = set_right(&job, &state, instant(NOW));
    assert_eq!(step.state.next_run_at, Some(instant("13:00:00.001")));
    assert_eq!((step.state.attempt, step.state.n_served, step.state.failure_count), (0, 1, 1));
    let ended: Vec<_> = step.ended.iter().map(|it| (it.due_at, it.outcome)).collect();
    assert_eq!(ended, [(instant("2026-02-06T12:00:00Z"), Outcome::Failed)]);
}

#[test]
fn a_job_that_was_made_in_that_future_begins_now() {
    let far = "2026-02-06T10:00:00Z";
    let job_of = |schedule: &str| {
        let job = job(schedule);
        let state = placed(&job, far);
        (set_right(&job, &state, instant(NOW)).state, job)
    };
    let (state, job) = job_of("every 1h");
    assert_eq!((state.created_at, state.next_run_at), (instant(NOW), Some(instant("13:00:00.001"))));
    assert_eq!(state.placement.as_ref().map(|it| it.placed_at), Some(instant(NOW)));
    assert_eq!(crate::repair::fault(&job, &state, 0, instant(NOW)), None);
    let (state, _) = job_of("cron 0 * * * *");
    assert_eq!(state.next_run_at, Some(instant("13:00")));
    let (state, _) = job_of("fresh 4h");
    assert_eq!(state.next_run_at, Some(instant("14:00")));
}

#[test]
fn a_schedule_that_seemed_to_be_over_goes_on() {
    let (mut job, mut state) = ahead("every 1h", "2026-03-06T12:00:00Z", "13:00");
    job.terms.bounds.ends_at = Some(instant("2026-02-10T00:00:00Z"));
    state.next_run_at = None;
    let state = set_right(&job, &state, instant(NOW)).state;
    assert_eq!(state.next_run_at, Some(instant("13:00:00.001")));
    job.terms.bounds.max_runs = Some(3);
    let done = JobState { n_served: 3, next_run_at: None, ..state };
    assert_eq!(set_right(&job, &done, instant(NOW)).state.next_run_at, None);
}

#[test]
fn what_is_to_run_once_runs_once() {
    let (job, mut state) = ahead("once 14:00", "14:00", "14:00");
    state.next_run_at = None;
    assert_eq!(set_right(&job, &state, instant(NOW)).state.next_run_at, None, "it was served");
    state.next_run_at = Some(instant("14:00"));
    assert_eq!(set_right(&job, &state, instant(NOW)).state.next_run_at, Some(instant("14:00")));
    let mut job = job;
    job.terms.schedule = Schedule::Once { at: OnceAt::Now, finish_within: None };
    let at: Timestamp = instant("14:00");
    let mut state = JobState::new(at);
    state.place(&job, Placement::at(at, at));
    let state = set_right(&job, &state, instant(NOW)).state;
    assert_eq!(state.next_run_at, Some(instant(NOW)));
    assert!(!crate::repair::is_off_rhythm(&job, &state));
}

#[test]
fn what_someone_asked_for_comes_now() {
    for schedule in ["manual", "every 1h"] {
        let job = job(schedule);
        let mut state = placed(&job, "10:00");
        state.next_run_at = None;
        state.extras.push(Extra::manual(ExtraId(7), instant("2026-02-06T12:00:00Z")));
        state.extras.push(Extra::backfill(ExtraId(8), instant("09:00"), instant("2026-02-06T12:00:00Z")));
        let state = set_right(&job, &state, instant(NOW)).state;
        let waits: Vec<_> = state.extras.iter().map(|it| (it.id.0, it.due_at, it.not_before)).collect();
        let now = instant(NOW);
        assert_eq!(waits, [(7, now, now), (8, instant("09:00"), now)]);
        assert_eq!(crate::repair::fault(&job, &state, 0, now), None);
    }
}

/// The clock is set back while a run goes on: what it leaves has right times only, and must not wait for the wrong ones.
#[test]
fn a_run_that_sees_its_clock_set_back_leaves_a_job_that_goes_on() {
    for (schedule, expected) in [
        ("every 20m", "12:40:00.001"),
        ("cron */20 * * * *", "12:40"),
        ("fresh 2h cooldown 1h", "13:00:00.001"),
    ] {
        let job = job(schedule);
        let due_at = instant("2026-02-06T12:00:00Z");
        let mut state = placed(&job, "10:00");
        (state.next_run_at, state.attempt) = (Some(due_at), 1);
        let due = Due {
            due_at,
            attempt: 1,
            trigger: Trigger::Scheduler,
            serves: Serves::Pending,
            losses: 0,
            last_outcome: None,
            params: None,
        };
        let (started_at, ended_at) = (instant("12:29"), instant(NOW));
        let outcome = Outcome::Succeeded;
        let end = RunEnd {
            run: RunId(1),
            started_at,
            ended_at,
            outcome,
            exit_code: Some(0),
            frozen_for: Duration::ZERO,
        };
        let step = finish(&job.key, &job, &state, &due, &end);
        assert_eq!(step.state.next_run_at, Some(instant(expected)), "{schedule}");
        assert_eq!(step.ended.len(), 1, "it was served once");
        assert_eq!(step.state.last_good_end_at, Some(ended_at));
    }
}
