//! What a job owes besides its pending occurrence.

use super::*;
use crate::job::{EXTRAS_MAX, Overlap, Status};
use crate::missed::MissedRuns;
use crate::urgency;

fn allow(job: &mut Job) {
    job.overlap = Overlap::Allow { max_parallel: 2 };
}

fn queue(job: &mut Job) {
    job.overlap = Overlap::Queue;
}

#[test]
fn a_person_comes_first_and_the_past_last() {
    check(
        queue,
        "backfill 09:00 06:00, trigger 10:01, trigger 10:02, start 10:02, good 10:03, start 10:03, good 10:04, start 10:04, good 10:05, start 10:05, good 10:06",
        "run 10:01 #1 manual, asked 10:01 succeeded, run 10:02 #1 manual, asked 10:02 succeeded, \
         run 10:00 #1 catchup, 10:00 succeeded, run 06:00 #1 backfill, asked 06:00 succeeded; next 11:00",
    );
    check(
        as_is,
        "backfill 09:00 06:00, backfill 09:00 05:00, start 09:00, good 09:10",
        "run 05:00 #1 backfill, asked 05:00 succeeded; next 10:00",
    );
}

#[test]
fn nothing_of_a_job_that_is_paused_or_disabled_starts() {
    check(as_is, "trigger 10:05, pause 10:05, start 10:06", "no run; next 10:00");
    check(|it| it.enabled = false, "trigger 10:05, start 10:06", "no run; next 10:00");
    check(as_is, "start 10:00, start 10:01", "run 10:00 #1 scheduler, no run; next 10:00");
}

#[test]
fn a_trigger_is_refused_where_it_would_have_to_wait() {
    check(as_is, "start 10:00, trigger 10:01", "run 10:00 #1 scheduler, running; next 10:00");
    check(
        queue,
        "start 10:00, trigger 10:01, good 10:05, start 10:05",
        "run 10:00 #1 scheduler, 10:00 succeeded, run 10:01 #1 manual; next 11:00",
    );
    let mut life = JobLife::new("manual", "10:00");
    for _ in 0..EXTRAS_MAX {
        life.tell("trigger 10:01");
    }
    assert_eq!(life.told, Vec::<String>::new());
    life.tell("trigger 10:02");
    assert_eq!(life.told, ["toomany"]);
}

#[test]
fn a_job_without_a_schedule_runs_when_asked() {
    check_of(
        "manual",
        as_is,
        "trigger 10:05, start 10:05, good 10:06, start 10:30",
        "run 10:05 #1 manual, asked 10:05 succeeded, no run; next none",
    );
}

#[test]
fn what_was_asked_for_and_failed_is_tried_again_after_its_delay() {
    check_of(
        "manual",
        as_is,
        "trigger 10:05, start 10:05, failed 10:06, start 10:10, start 10:11, failed 10:12, start 11:11, start 11:12, good 11:13",
        "run 10:05 #1 manual, no run, run 10:05 #2 manual, no run, run 10:05 #3 manual, asked 10:05 succeeded; next none",
    );
    check_of(
        "manual",
        |it| it.retry.not_on_exit_codes = vec![64],
        "trigger 10:05, start 10:05, failed=64 10:06, start 12:00",
        "run 10:05 #1 manual, asked 10:05 failed, no run; next none",
    );
    // The schedule does not wait for it, nor it for the schedule.
    check(
        as_is,
        "trigger 09:30, start 09:30, failed 09:31, start 09:36, failed 09:40, start 10:00, good 10:01, start 10:39, start 10:40, good 10:41",
        "run 09:30 #1 manual, run 09:30 #2 manual, run 10:00 #1 scheduler, 10:00 succeeded, no run, run 09:30 #3 manual, \
         asked 09:30 succeeded; next 11:00",
    );
    // A backfill is over with its run.
    check(
        as_is,
        "backfill 09:00 06:00, start 09:00, failed 09:10, start 09:20",
        "run 06:00 #1 backfill, asked 06:00 failed, no run; next 10:00",
    );
}

#[test]
fn what_was_asked_for_ends_with_its_run_unless_the_node_was_lost() {
    check(
        as_is,
        "trigger 10:05, start 09:05, start 10:05, good 10:06, start 10:07",
        "no run, run 10:05 #1 manual, asked 10:05 succeeded, run 10:00 #1 catchup; next 10:00",
    );
    check_of(
        "manual",
        as_is,
        "trigger 10:05, start 10:05, lost 10:06, start 10:05, start 10:06, lost 10:07, start 10:07, lost 10:08, start 10:09",
        "run 10:05 #1 manual, no run, run 10:05 #2 manual, run 10:05 #3 manual, asked 10:05 lost, no run; next none",
    );
}

#[test]
fn what_comes_due_during_a_run_that_was_asked_for_goes_by_the_overlap() {
    check(
        as_is,
        "trigger 10:50, start 09:50, start 10:50, good 12:10, start 12:10",
        "no run, run 10:50 #1 manual, asked 10:50 succeeded, 11:00..12:00 x2 skipped(overlap), \
         run 10:00 #1 catchup; next 10:00",
    );
    check(
        as_is,
        "start 10:00, good 10:10, trigger 10:50, start 10:50, good 12:10, start 13:00",
        "run 10:00 #1 scheduler, 10:00 succeeded, run 10:50 #1 manual, asked 10:50 succeeded, \
         11:00..12:00 x2 skipped(overlap), run 13:00 #1 scheduler; next 13:00",
    );
    check(
        queue,
        "start 10:00, good 10:10, trigger 10:50, start 10:50, good 13:10, start 13:10",
        "run 10:00 #1 scheduler, 10:00 succeeded, run 10:50 #1 manual, asked 10:50 succeeded, \
         12:00..13:00 x2 skipped(overlap), run 11:00 #1 catchup; next 11:00",
    );
    check(
        |it| it.missed.runs = MissedRuns::All,
        "start 10:00, good 10:10, trigger 10:50, start 10:50, good 12:10, start 12:10",
        "run 10:00 #1 scheduler, 10:00 succeeded, run 10:50 #1 manual, asked 10:50 succeeded, \
         run 11:00 #1 catchup; next 11:00",
    );
    // What is due already is decided when the other run starts, and then keeps its turn.
    check(
        |it| it.missed.runs = MissedRuns::Skip,
        "trigger 11:00, start 11:00, good 11:30, start 11:30",
        "10:00..10:00 x1 missed(late), run 11:00 #1 manual, asked 11:00 succeeded, run 11:00 #1 catchup; next 11:00",
    );
    // A retry that waits goes on waiting; under `queue` the next one takes its place.
    check(
        as_is,
        "start 10:00, failed 10:50, trigger 10:51, start 10:51, good 11:10, start 11:10",
        "run 10:00 #1 scheduler, run 10:51 #1 manual, asked 10:51 succeeded, 11:00..11:00 x1 skipped(overlap), \
         run 10:00 #2 retry; next 10:00",
    );
    check(
        queue,
        "start 10:00, failed 10:50, trigger 10:51, start 10:51, good 11:10, start 11:10",
        "run 10:00 #1 scheduler, run 10:51 #1 manual, asked 10:51 succeeded, 10:00 failed, \
         run 11:00 #1 catchup; next 11:00",
    );
}

#[test]
fn a_good_run_that_was_asked_for_renews_a_fresh_job() {
    let fresh = "fresh 4h cooldown 1h";
    check_of(
        fresh,
        as_is,
        "trigger 09:00, start 09:00, good 09:10",
        "run 09:00 #1 manual, asked 09:00 succeeded; next 10:10",
    );
    check_of(
        fresh,
        as_is,
        "trigger 10:30, start 10:30, good 10:40",
        "run 10:30 #1 manual, asked 10:30 succeeded, 10:00 succeeded; next 11:40",
    );
    check_of(
        fresh,
        as_is,
        "trigger 09:50, start 09:50, good 10:10",
        "run 09:50 #1 manual, asked 09:50 succeeded, 10:00..10:00 x1 skipped(overlap); next 11:10",
    );
    check_of(fresh, as_is, "trigger 09:50, start 09:50, failed 10:10", "run 09:50 #1 manual; next 10:00");
    check_of(
        fresh,
        as_is,
        "backfill 09:50 05:00, start 09:50, good 10:10",
        "run 05:00 #1 backfill, asked 05:00 succeeded; next 10:00",
    );
    // Its next occurrence exists only when its run is over, so nothing runs beside it.
    check_of(
        fresh,
        allow,
        "start 10:00, trigger 10:01, start 10:01",
        "run 10:00 #1 scheduler, no run; next 10:00",
    );
}

#[test]
fn a_run_that_was_asked_for_moves_the_deadline_and_a_backfill_does_not() {
    let mut life = JobLife::new("every 1h", "10:00");
    life.tell("trigger 10:30, start 10:30, good 10:40");
    assert_eq!(urgency::deadline(&life.job, &life.state), Some(instant("12:00")));
    let mut life = JobLife::new("every 1h", "10:00");
    let before = life.state.clone();
    life.tell("backfill 09:30 05:00, start 09:30, failed 09:40");
    assert_eq!(life.state, before, "a failure of the past would hold up the present");
}

#[test]
fn where_runs_overlap_the_schedule_moves_on_when_one_starts() {
    check(
        allow,
        "start 10:00, start 10:30, start 11:00, start 12:00, good 12:01, start 12:01, good#2 12:10, good 12:20",
        "run 10:00 #1 scheduler, no run, run 11:00 #1 scheduler, no run, 10:00 succeeded, \
         run 12:00 #1 scheduler, 12:00 succeeded, 11:00 succeeded; next 13:00",
    );
    check(
        allow,
        "start 13:20, start 13:21",
        "10:00..12:00 x3 missed(late), run 13:00 #1 catchup, no run; next 14:00",
    );
    check(
        |it| {
            allow(it);
            it.missed.runs = MissedRuns::All;
        },
        "start 12:20, start 12:20, good 12:30, start 12:30",
        "run 10:00 #1 catchup, run 11:00 #1 catchup, 10:00 succeeded, run 12:00 #1 catchup; next 13:00",
    );
    // A person runs it beside itself.
    check(
        allow,
        "start 10:00, trigger 10:01, start 10:01, good#2 11:30, start 11:30",
        "run 10:00 #1 scheduler, run 10:01 #1 manual, asked 10:01 succeeded, run 11:00 #1 catchup; next 12:00",
    );
    check(
        |it| {
            allow(it);
            it.bounds.max_runs = Some(2);
        },
        "start 10:00, start 11:00, good 11:01, start 12:00",
        "run 10:00 #1 scheduler, run 11:00 #1 scheduler, 10:00 succeeded, no run; next none",
    );
}

#[test]
fn where_runs_overlap_a_failure_is_tried_again_until_the_next_occurrence_comes() {
    check(
        allow,
        "start 10:00, failed 10:01, start 10:05, start 10:06, good 10:10",
        "run 10:00 #1 scheduler, no run, run 10:00 #2 retry, 10:00 succeeded; next 11:00",
    );
    check(
        allow,
        "start 10:00, lost 10:01, start 10:01, lost 10:02, start 10:02, lost 10:03",
        "run 10:00 #1 scheduler, run 10:00 #2 retry, run 10:00 #3 retry, 10:00 lost; next 11:00",
    );
    check(
        |it| {
            allow(it);
            it.retry.not_on_exit_codes = vec![64];
        },
        "start 10:00, failed=64 10:01",
        "run 10:00 #1 scheduler, 10:00 failed; next 11:00",
    );
    // The next one came during the failing run, or while its retry waited.
    check(allow, "start 10:00, failed 11:01", "run 10:00 #1 scheduler, 10:00 failed; next 11:00");
    check(
        allow,
        "start 10:00, failed 10:58, wait 10:59, wait 11:00, start 11:03",
        "run 10:00 #1 scheduler, 10:00 failed, run 11:00 #1 catchup; next 12:00",
    );
    check(
        allow,
        "start 10:00, failed 10:01, pause 10:02, resume 10:30 10:45",
        "run 10:00 #1 scheduler, 10:00 failed; next 10:45",
    );
    let mut once = JobLife::new("once 10:00", "10:00");
    allow(&mut once.job);
    once.tell("start 10:00, failed 10:01");
    assert_eq!(once.state.status(&once.job), Status::Scheduled, "it is not done before its retry");
}

#[test]
fn a_run_from_before_an_edit_that_lets_runs_overlap_is_not_doubled() {
    let mut life = JobLife::new("every 1h", "10:00");
    life.tell("start 10:00");
    allow(&mut life.job);
    life.tell("start 10:01, failed 10:02, start 10:07, start 11:00, good 11:01");
    let told = [
        "run 10:00 #1 scheduler",
        "no run",
        "run 10:00 #2 retry",
        "run 11:00 #1 scheduler",
        "10:00 succeeded",
    ];
    assert_eq!(life.told, told);
}

#[test]
fn a_claim_that_never_began_is_given_back() {
    check(
        as_is,
        "start 10:00, unstart 10:00, start 10:01",
        "run 10:00 #1 scheduler, run 10:00 #1 scheduler; next 10:00",
    );
    check(
        as_is,
        "start 10:00, failed 10:01, start 10:06, unstart 10:06, start 10:07",
        "run 10:00 #1 scheduler, run 10:00 #2 retry, run 10:00 #2 retry; next 10:00",
    );
    check(
        queue,
        "trigger 09:00, start 09:00, unstart 09:00, start 09:01",
        "run 09:00 #1 manual, run 09:00 #1 manual; next 10:00",
    );
    check(
        allow,
        "start 10:00, start 11:00, unstart 11:01, start 11:01",
        "run 10:00 #1 scheduler, run 11:00 #1 scheduler, 10:00..10:00 x1 missed(late), no run; next 12:00",
    );
    check(
        allow,
        "start 10:00, unstart 10:01, start 10:01, failed 10:02, start 10:07, unstart 10:08, start 10:08",
        "run 10:00 #1 scheduler, run 10:00 #1 scheduler, run 10:00 #2 retry, run 10:00 #2 retry; next 11:00",
    );
    // Where all are owed, one that never had a run is not given up for a newer one.
    check(
        |it| {
            allow(it);
            it.missed.runs = MissedRuns::All;
        },
        "start 10:00, unstart 10:01, start 11:01, start 11:01",
        "run 10:00 #1 scheduler, run 10:00 #1 scheduler, run 11:00 #1 scheduler; next 12:00",
    );
    // The job got a new placement in between.
    check(
        as_is,
        "start 10:00, resume 10:05 10:30, unstart 10:06",
        "run 10:00 #1 scheduler, 10:00..10:00 x1 missed(late); next 10:30",
    );
}

#[test]
fn a_run_that_outlasts_a_pause_ends_its_own_occurrence() {
    check(
        as_is,
        "start 10:00, pause 10:05, resume 11:05 11:30, good 11:40",
        "run 10:00 #1 scheduler, 11:00..11:00 x1 missed(paused), 10:00 succeeded, 11:30..11:30 x1 skipped(overlap); next 12:30",
    );
}

#[test]
fn too_many_failures_in_a_row_pause_the_job() {
    let mut life = JobLife::new("every 1h", "10:00");
    life.job.retry.pause_after_failures = Some(2);
    life.tell("start 10:00, failed 10:01");
    assert_eq!(life.state.pause, None);
    life.tell("start 10:06, failed 10:07, start 11:30");
    let pause = life.state.pause.as_deref().unwrap();
    assert_eq!(
        (pause.by, pause.reason.as_deref()),
        (PausedBy::Failures, Some("It failed 2 times in a row."))
    );
    assert_eq!(life.told.last().unwrap(), "no run");
    life.tell("resume 11:30 11:45");
    assert_eq!(life.told.last().unwrap(), "11:00..11:00 x1 missed(paused)");
}

#[test]
fn a_run_that_a_blackout_ended_counts_as_a_failure_and_not_towards_the_pause() {
    let mut life = JobLife::new("every 1h", "10:00");
    life.job.retry.pause_after_failures = Some(2);
    life.tell("start 10:00, failed 10:01, start 10:06, blackout 10:07, start 11:00, blackout 11:07");
    assert_eq!((life.state.failure_count, life.state.blackout_failures), (3, 2));
    assert_eq!(life.state.pause, None);
    life.tell("start 12:00, failed 12:01");
    let pause = life.state.pause.as_deref().unwrap();
    assert_eq!(pause.reason.as_deref(), Some("It failed 2 times in a row."));
    life.state.pause = None;
    life.tell("start 13:00, good 13:01");
    assert_eq!((life.state.failure_count, life.state.blackout_failures), (0, 0));
}

#[test]
fn only_what_is_made_up_for_in_a_row_is_backlog() {
    #[track_caller]
    fn check(set: impl FnOnce(&mut Job), story: &str, now: &str, expected: &str) {
        let mut life = JobLife::new("every 1h", "10:00");
        set(&mut life.job);
        life.tell(story);
        let up = next_up(&life.job.key, &life.job, &life.state, life.n_open(), instant(now)).unwrap();
        let backlog = if up.is_backlog { "backlog" } else { "live" };
        assert_eq!(format!("{} {} {backlog}", clock(up.due_at), up.trigger), expected);
    }
    let all = |it: &mut Job| it.missed.runs = MissedRuns::All;
    check(as_is, "wait 09:00", "10:30", "10:00 catchup live");
    check(as_is, "wait 09:00", "13:30", "13:00 catchup live");
    check(all, "wait 09:00", "13:30", "10:00 catchup backlog");
    check(all, "wait 09:00", "10:59", "10:00 catchup live");
    check(as_is, "backfill 09:00 05:00", "09:00", "05:00 backfill backlog");
    check(as_is, "trigger 09:00", "09:00", "09:00 manual live");
    let all_at_once = |it: &mut Job| {
        allow(it);
        it.missed.runs = MissedRuns::All;
    };
    check(all_at_once, "start 10:00, unstart 10:01", "10:59", "10:00 scheduler live");
    check(all_at_once, "start 10:00, unstart 10:01", "11:00", "10:00 scheduler backlog");
}

#[test]
fn the_floor_holds_up_the_schedule_and_nothing_that_was_asked_for() {
    #[track_caller]
    fn check(story: &str, now: &str, can_start: &str, up: &str) {
        let mut life = JobLife::new("every 1h", "10:00");
        queue(&mut life.job);
        life.tell(story);
        let can_start_by = urgency::can_start_by(&life.job.key, &life.job, &life.state, instant(now));
        assert_eq!(can_start_by.map(clock).as_deref(), Some(can_start));
        let next = next_up(&life.job.key, &life.job, &life.state, life.n_open(), instant(now));
        assert_eq!(next.map_or("none", |up| up.trigger.as_str()), up);
    }
    check("start 10:00, failed 10:01", "10:02", "10:06", "none");
    check("start 10:00, failed 10:01", "10:06", "10:06", "retry");
    check("start 10:00, failed 10:01, trigger 10:02", "10:02", "10:02", "manual");
    check("start 10:00, failed 10:01, backfill 10:02 05:00", "10:02", "10:02", "backfill");
    check("start 10:00, failed 10:01, backfill 10:02 05:00", "10:06", "10:02", "retry");
}

#[test]
fn what_was_asked_for_waits_for_blackouts() {
    use crate::blackout::{BlackoutPeriod, Blackouts, Weekdays};
    let mut life = JobLife::new("manual", "10:00");
    let period = BlackoutPeriod::new("10:00".parse().unwrap(), "10:30".parse().unwrap(), Weekdays::ALL);
    life.job.blackouts = Blackouts::new(vec![period.unwrap()]).unwrap();
    life.tell("trigger 10:05");
    let can_start = |now| urgency::can_start_by(&life.job.key, &life.job, &life.state, instant(now));
    assert_eq!(can_start("10:05"), Some(instant("10:30")));
    let waits = |now| {
        let outlook = urgency::Outlook::default();
        crate::condition::waits(&life.job.key, &life.job, &life.state, instant(now), &outlook)
    };
    assert_eq!(waits("10:05").iter().map(|it| it.reason.as_str()).collect::<Vec<_>>(), ["blackout"]);
    assert_eq!(waits("10:30"), []);
}

#[test]
fn a_backfill_is_no_start_that_keeps_a_promise() {
    let mut life = JobLife::new("every 1h", "10:00");
    life.tell("backfill 09:00 05:00");
    let outlook = urgency::Outlook::default();
    let planned = urgency::planned_start(&life.job.key, &life.job, &life.state, instant("09:00"), &outlook);
    assert_eq!(planned, Some(instant("10:00")));
    life.tell("trigger 09:00");
    let planned = urgency::planned_start(&life.job.key, &life.job, &life.state, instant("09:00"), &outlook);
    assert_eq!(planned, Some(instant("09:00")));
}
