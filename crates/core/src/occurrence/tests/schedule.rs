//! The schedule's own occurrences, one at a time.

use super::{JobLife, as_is, check, check_of};
use crate::job::sample::instant;
use crate::job::{Job, Overlap};
use crate::missed::MissedRuns;
use crate::time::Duration;
use crate::urgency;

#[test]
fn one_occurrence_after_the_other() {
    check(
        as_is,
        "start 10:00, good 10:20, start 11:00, good 11:10",
        "run 10:00 #1 scheduler, 10:00 succeeded, run 11:00 #1 scheduler, 11:00 succeeded; next 12:00",
    );
    check(as_is, "start 09:59", "no run; next 10:00");
}

#[test]
fn downtime_is_made_up_for_by_policy() {
    check(as_is, "start 13:20", "10:00..12:00 x3 missed(late), run 13:00 #1 catchup; next 13:00");
    check(
        |it| it.missed.runs = MissedRuns::Skip,
        "start 13:20",
        "10:00..13:00 x4 missed(late), no run; next 14:00",
    );
    check(
        |it| it.missed.runs = MissedRuns::All,
        "start 12:20, good 12:25, start 12:25, good 12:30, start 12:30, good 12:35, start 12:36",
        "run 10:00 #1 catchup, 10:00 succeeded, run 11:00 #1 catchup, 11:00 succeeded, run 12:00 #1 catchup, 12:00 succeeded, no run; next 13:00",
    );
    check(
        |it| (it.missed.runs, it.missed.most) = (MissedRuns::All, 2),
        "start 13:20",
        "10:00..11:00 x2 missed(late), run 12:00 #1 catchup; next 12:00",
    );
}

#[test]
fn what_comes_due_during_a_run_goes_by_the_overlap() {
    check(
        as_is,
        "start 10:00, good 12:10, start 13:00",
        "run 10:00 #1 scheduler, 10:00 succeeded, 11:00..12:00 x2 skipped(overlap), run 13:00 #1 scheduler; next 13:00",
    );
    check(
        |it| it.overlap = Overlap::Queue,
        "start 10:00, good 13:10, start 13:10, good 13:20, start 14:00",
        "run 10:00 #1 scheduler, 10:00 succeeded, 12:00..13:00 x2 skipped(overlap), run 11:00 #1 catchup, 11:00 succeeded, run 14:00 #1 scheduler; next 14:00",
    );
    // The next is due while the queued one still waits: the next one runs.
    check(
        |it| it.overlap = Overlap::Queue,
        "start 10:00, good 11:10, start 12:05",
        "run 10:00 #1 scheduler, 10:00 succeeded, 11:00..11:00 x1 missed(late), run 12:00 #1 catchup; next 12:00",
    );
    check(
        |it| it.overlap = Overlap::Allow { max_parallel: 3 },
        "start 10:00, good 11:10",
        "run 10:00 #1 scheduler, 10:00 succeeded; next 11:00",
    );
}

#[test]
fn a_failure_is_tried_again_until_the_next_occurrence_comes() {
    check(
        as_is,
        "start 10:00, failed 10:01, start 10:06, good 10:10",
        "run 10:00 #1 scheduler, run 10:00 #2 retry, 10:00 succeeded; next 11:00",
    );
    // After the second failure the delay is an hour, but the next regular occurrence comes first.
    check(
        as_is,
        "start 10:00, failed 10:01, start 10:06, failed 10:07, start 10:59, start 11:00, failed 11:01, start 11:59, start 12:00, good 12:10",
        "run 10:00 #1 scheduler, run 10:00 #2 retry, no run, 10:00 failed, run 11:00 #1 scheduler, no run, \
         11:00 failed, run 12:00 #1 scheduler, 12:00 succeeded; next 13:00",
    );
    // Several came due meanwhile: the newest takes the place, the others had no run.
    check(
        as_is,
        "start 10:00, failed 10:01, wait 13:00",
        "run 10:00 #1 scheduler, 10:00 failed, 11:00..12:00 x2 missed(backoff); next 13:00",
    );
    // What came due during the failing run itself was skipped.
    check(
        as_is,
        "start 10:00, failed 11:30, start 11:35, good 11:40",
        "run 10:00 #1 scheduler, 11:00..11:00 x1 skipped(overlap), run 10:00 #2 retry, 10:00 succeeded; next 12:00",
    );
    check(
        |it| it.retry.not_on_exit_codes = vec![64],
        "start 10:00, failed=64 10:01",
        "run 10:00 #1 scheduler, 10:00 failed; next 11:00",
    );
    check(as_is, "start 10:00, cancelled 10:01", "run 10:00 #1 scheduler, 10:00 cancelled; next 11:00");
}

#[test]
fn a_delay_that_holds_the_schedule_is_waited_for() {
    // 11:00 takes the place of 10:00 when it comes due, and waits as long.
    check(
        |it| it.retry.holds_schedule = true,
        "start 10:00, failed 10:01, start 10:06, failed 10:07, wait 11:00, start 11:06, start 11:07, good 11:10",
        "run 10:00 #1 scheduler, run 10:00 #2 retry, 10:00 failed, no run, run 11:00 #1 catchup, 11:00 succeeded; next 12:00",
    );
}

#[test]
fn a_run_that_a_blackout_ended_is_tried_again_after_it() {
    use crate::blackout::{BlackoutPeriod, Blackouts, Weekdays};
    let dark = |job: &mut Job| {
        let period = BlackoutPeriod::new("10:20".parse().unwrap(), "10:22".parse().unwrap(), Weekdays::ALL);
        job.blackouts = Blackouts::new(vec![period.unwrap()]).unwrap();
        job.retry.pause_after_failures = Some(1);
    };
    check(
        dark,
        "start 10:00, blackout 10:20, start 10:21, start 10:22, good 10:30",
        "run 10:00 #1 scheduler, no run, run 10:00 #2 retry, 10:00 succeeded; next 11:00",
    );
}

#[test]
fn a_catch_up_gives_way_to_the_next_regular_occurrence_that_it_would_run_into() {
    let takes = |minutes| move |job: &mut Job| job.estimate = Some(Duration::from_mins(minutes));
    check(takes(39), "start 13:20", "10:00..12:00 x3 missed(late), run 13:00 #1 catchup; next 13:00");
    check(takes(40), "start 13:20", "10:00..12:00 x3 missed(late), run 13:00 #1 catchup; next 13:00");
    check(takes(41), "start 13:20", "10:00..13:00 x4 missed(late), no run; next 14:00");
    // What is hardly late is not a catch-up, unless others were missed before it.
    check(takes(60), "start 10:01", "run 10:00 #1 scheduler; next 10:00");
    check(takes(60), "start 11:01", "10:00..11:00 x2 missed(late), no run; next 12:00");
    check(takes(61), "start 11:01", "10:00..10:00 x1 missed(late), run 11:00 #1 scheduler; next 11:00");
    // One alone gives way: else a job that always starts late would never run.
    check(
        takes(50),
        "start 13:20, start 14:20, good 14:50, start 15:20",
        "10:00..13:00 x4 missed(late), no run, run 14:00 #1 catchup, 14:00 succeeded, 15:00..15:00 x1 missed(late), no run; next 16:00",
    );
    // There is nothing to give way to, or everything is owed.
    check_of("once 10:00", takes(500), "start 13:20", "run 10:00 #1 catchup; next 10:00");
    check_of("fresh 4h cooldown 1h", takes(500), "start 13:20", "run 10:00 #1 scheduler; next 10:00");
    let all = |job: &mut Job| {
        takes(41)(job);
        job.missed.runs = MissedRuns::All;
    };
    check(all, "start 10:20", "run 10:00 #1 catchup; next 10:00");
}

#[test]
fn a_good_run_that_only_began_late_leaves_the_next_occurrence_its_turn() {
    // The job is not to blame that it ran into 11:00, and skipping that would break the promise.
    check(
        as_is,
        "start 10:50, good 11:05, start 11:05, good 11:20, start 12:00",
        "run 10:00 #1 catchup, 10:00 succeeded, run 11:00 #1 catchup, 11:00 succeeded, run 12:00 #1 scheduler; next 12:00",
    );
    check(
        as_is,
        "start 10:00, failed 10:44, start 10:49, good 11:05, start 11:05",
        "run 10:00 #1 scheduler, run 10:00 #2 retry, 10:00 succeeded, run 11:00 #1 catchup; next 11:00",
    );
    // One that takes longer than its interval overlaps whenever it begins.
    check(
        as_is,
        "start 10:50, good 12:10",
        "run 10:00 #1 catchup, 10:00 succeeded, 11:00..12:00 x2 skipped(overlap); next 13:00",
    );
    // And what failed is tried again instead.
    check(
        as_is,
        "start 10:50, failed 11:05",
        "run 10:00 #1 catchup, 11:00..11:00 x1 skipped(overlap); next 10:00",
    );
}

#[test]
fn where_all_are_owed_the_next_one_takes_the_place_of_a_failed_one() {
    check(
        |it| it.missed.runs = MissedRuns::All,
        "start 12:20, failed 12:21, wait 12:22, start 12:26",
        "run 10:00 #1 catchup, 10:00 failed, run 11:00 #1 catchup; next 11:00",
    );
}

#[test]
fn the_newer_occurrence_inherits_failures_and_the_floor_only_if_that_holds_the_schedule() {
    #[track_caller]
    fn check(holds_schedule: bool, expected: &str) {
        let mut life = JobLife::new("every 1h", "10:00");
        life.job.retry.holds_schedule = holds_schedule;
        life.tell("start 10:00, failed 10:01, start 10:06, failed 10:50, wait 11:00");
        assert_eq!((life.state.failure_count, life.state.attempt), (2, 0));
        let can_start = urgency::can_start_by(&life.job.key, &life.job, &life.state, instant("11:00"));
        assert_eq!(can_start, Some(instant(expected)));
    }
    check(false, "11:00");
    check(true, "11:50");
}

#[test]
fn what_is_made_up_for_is_retried_at_most_once() {
    check(
        |it| it.missed.runs = MissedRuns::All,
        "start 10:30, failed 10:31, start 10:36, failed 10:37",
        "run 10:00 #1 catchup, run 10:00 #2 retry, 10:00 failed; next 11:00",
    );
}

#[test]
fn a_run_that_takes_its_node_down_is_stopped_after_three_losses() {
    check(
        as_is,
        "start 10:00, lost 10:01, start 10:02, lost 10:03, start 10:04, lost 10:05",
        "run 10:00 #1 scheduler, run 10:00 #2 retry, run 10:00 #3 retry, 10:00 lost; next 11:00",
    );
    let mut life = JobLife::new("every 1h", "10:00");
    life.tell("start 10:00, lost 10:01");
    assert_eq!((life.state.losses, life.state.failure_count), (1, 0), "a loss says nothing about the job");
}

#[test]
fn a_pause_is_one_record_and_a_fresh_place() {
    check(
        as_is,
        "start 10:00, good 10:10, pause 10:30, resume 14:30 14:45",
        "run 10:00 #1 scheduler, 10:00 succeeded, 11:00..14:00 x4 missed(paused); next 14:45",
    );
    check(
        as_is,
        "start 10:00, failed 10:01, pause 10:30, resume 11:30 11:45",
        "run 10:00 #1 scheduler, 10:00 failed, 11:00..11:00 x1 missed(paused); next 11:45",
    );
}

#[test]
fn what_is_pinned_to_the_clock_does_not_run_again_after_a_pause() {
    #[track_caller]
    fn check(schedule: &str, story: &str, expected: &str) {
        check_of(schedule, as_is, story, expected);
    }
    check(
        "once 10:00",
        "start 10:00, good 10:10, pause 10:30, resume 10:40 10:40",
        "run 10:00 #1 scheduler, 10:00 succeeded; next none",
    );
    check("once 10:00", "pause 09:30, resume 10:40 10:40", "10:00..10:00 x1 missed(paused); next none");
    check("once 10:00", "pause 09:30, resume 09:40 09:40", "; next 10:00");
    check(
        "cron 0 * * * *",
        "start 10:00, good 10:10, pause 10:30, resume 12:00 09:00",
        "run 10:00 #1 scheduler, 10:00 succeeded, 11:00..12:00 x2 missed(paused); next 13:00",
    );
}

#[test]
fn the_other_kinds_of_schedule() {
    #[track_caller]
    fn check(schedule: &str, story: &str, expected: &str) {
        check_of(schedule, as_is, story, expected);
    }
    // A good run mints the next occurrence of a `fresh` job; a failure does not.
    check(
        "fresh 4h cooldown 1h",
        "start 10:00, good 10:20",
        "run 10:00 #1 scheduler, 10:00 succeeded; next 11:20",
    );
    check(
        "fresh 4h cooldown 1h",
        "start 13:00, failed 13:20, start 18:00, good 18:10",
        "run 10:00 #1 scheduler, run 10:00 #2 retry, 10:00 succeeded; next 19:10",
    );
    check(
        "fresh 4h cooldown 1h",
        "start 10:00, cancelled 10:20",
        "run 10:00 #1 scheduler, 10:00 cancelled; next 11:20",
    );
    // Nothing is due before its placement, also after a run that began under an earlier one.
    check(
        "fresh 4h cooldown 1h",
        "start 10:00, pause 10:02, resume 10:05 14:00, good 10:10",
        "run 10:00 #1 scheduler, 10:00 succeeded; next 14:00",
    );
    check("once 10:00", "start 10:00, good 10:20", "run 10:00 #1 scheduler, 10:00 succeeded; next none");
    check(
        "once 10:00",
        "start 12:00, failed 12:20, start 13:00, good 13:01",
        "run 10:00 #1 catchup, run 10:00 #2 retry, 10:00 succeeded; next none",
    );
    check(
        "cron 0 */4 * * *",
        "start 21:00",
        "12:00..16:00 x2 missed(late), run 20:00 #1 catchup; next 20:00",
    );
    check("manual", "start 12:00", "no run; next none");
}

#[test]
fn when_the_clock_has_gone_back_no_occurrence_is_served_twice_and_the_job_goes_on() {
    let mut life = JobLife::new("fresh 4h cooldown 1h", "10:00");
    life.tell("start 10:00, good 08:10");
    assert_eq!(
        life.state.next_run_at,
        Some(instant("09:00:00.001")),
        "within a cooldown, not when it was due"
    );
}

#[test]
fn max_runs_counts_occurrences_not_attempts() {
    check(
        |it| it.bounds.max_runs = Some(2),
        "start 10:00, failed 10:01, start 10:06, good 10:10, start 11:00, good 11:10",
        "run 10:00 #1 scheduler, run 10:00 #2 retry, 10:00 succeeded, run 11:00 #1 scheduler, 11:00 succeeded; next none",
    );
}
