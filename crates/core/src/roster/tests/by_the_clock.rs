//! What turns though nothing happens but time.

use super::plain::{Plain, blackout, remember};
use crate::condition::Reason;
use crate::ids::JobKey;
use crate::job::Job;
use crate::job::sample::{instant, job, length};
use crate::roster::{HELD_BACK_MAX, Roster, Turned, WALKED_MAX};
use crate::time::{Duration, Timestamp};

/// A roster of one job, as of an instant.
fn roster_of(job: &Job, memory: &str, now: &str) -> (Roster, Plain, JobKey) {
    let mut jobs = Plain::default();
    let key = jobs.put("job", job, remember(job, memory));
    let mut roster = Roster::new(instant(now));
    roster.reassess(instant(now), &jobs);
    (roster, jobs, key)
}

/// `12:00:00.000 ok -> deadline_passed`.
fn told(turned: &Turned) -> String {
    let word = |reason: Option<Reason>| reason.map_or("none", Reason::as_str);
    format!("{} {} -> {}", clock(turned.at), word(turned.from), word(turned.to))
}

fn clock(at: Timestamp) -> String {
    at.to_string()[11..].trim_end_matches('Z').to_owned()
}

/// What turns from 10:30 to 12:30, when the roster is asked only when it says.
#[track_caller]
fn check_of(job: &Job, memory: &str, expected: &[&str]) {
    let (mut roster, jobs, key) = roster_of(job, memory, "10:30");
    let mut found = Vec::new();
    while let Some(at) = roster.next_change_at().filter(|at| *at <= instant("12:30")) {
        found.extend(roster.advance(at, &jobs));
        assert!(roster.next_change_at().is_none_or(|next| at < next), "stood still at {at}");
    }
    assert_eq!(found.iter().map(told).collect::<Vec<_>>(), expected);
    // The last turn is also what the job stands in since then.
    if let Some(last) = found.last() {
        let standing = roster.of(&key).unwrap();
        assert_eq!((standing.reason, standing.since), (last.to, last.at));
    }
}

#[track_caller]
fn check(schedule: &str, memory: &str, expected: &[&str]) {
    check_of(&job(schedule), memory, expected);
}

#[test]
fn every_reason_turns_when_its_time_has_come() {
    // Nothing is expected to take any time, so the last moment to start is the deadline itself.
    check("every 1h", "", &["11:00:00 never_succeeded -> deadline_passed"]);
    check("every 1h", "good 10:00-10:10, next 11:00", &["12:00:00 ok -> deadline_passed"]);
    check("fresh 2h cooldown 30m", "good 10:00-10:10, next 10:40", &["12:00:00 ok -> deadline_passed"]);
    check("cron 0 * * * * within 20m", "good 10:00-10:10, next 11:00", &["11:20:00 ok -> deadline_passed"]);
    check(
        "every 1h",
        "good 10:00-10:40, takes 40m, next 11:00",
        &["11:20:00.001 ok -> will_miss_waiting", "12:00:00 will_miss_waiting -> deadline_passed"],
    );
    check(
        "every 1h",
        "good 10:00-10:40, takes 40m, runs 11:30",
        &["12:00:00 will_miss_running -> deadline_passed"],
    );
    check(
        "every 1h",
        "good 10:00-10:10, failed 1 until 10:25, next 11:00",
        &["12:00:00 last_run_failed -> deadline_passed"],
    );
    let mut long = job("every 2h");
    long.limits.max_expected = Some(length("30m"));
    check_of(&long, "good 10:00-10:10, takes 10m, runs 10:30", &["11:00:00.001 ok -> overrunning"]);
    let mut tight = job("fresh 2h cooldown 90m");
    tight.limits.max_expected = Some(length("30m"));
    check_of(
        &tight,
        "good 10:00-10:10, takes 16m, runs 11:00",
        &["11:30:00.001 unsatisfiable -> overrunning", "12:00:00 overrunning -> deadline_passed"],
    );
    let mut dark = job("every 1h");
    dark.blackouts = blackout("11:10", "11:50");
    check_of(
        &dark,
        "good 10:00-10:10, takes 11m, next 10:40",
        &["10:59:00.001 ok -> will_miss_waiting", "12:00:00 will_miss_waiting -> deadline_passed"],
    );
}

#[test]
fn what_is_not_tracked_never_turns() {
    check("every 1h", "good 10:00-10:10, next 11:00, paused", &[]);
    check("manual", "", &[]);
    let mut disabled = job("every 1h");
    disabled.enabled = false;
    check_of(&disabled, "", &[]);
    let (roster, ..) = roster_of(&disabled, "", "10:30");
    assert_eq!(roster.next_change_at(), None);
}

#[test]
fn it_does_not_matter_how_often_anybody_looks() {
    let (mut roster, jobs, key) =
        roster_of(&job("every 1h"), "good 10:00-10:40, takes 40m, next 11:00", "11:10");
    let turned = roster.advance(instant("12:05"), &jobs);
    let told: Vec<String> = turned.iter().map(told).collect();
    assert_eq!(
        told,
        ["11:20:00.001 ok -> will_miss_waiting", "12:00:00 will_miss_waiting -> deadline_passed"]
    );
    assert_eq!(roster.of(&key).unwrap().since, instant("12:00"));
}

#[test]
fn what_is_late_when_it_is_first_seen_is_late_since_its_deadline() {
    let (roster, _, key) = roster_of(&job("every 1h"), "good 10:00-10:10, next 11:00", "17:00");
    assert_eq!(roster.of(&key).unwrap().since, instant("12:00"));
    let mut long = job("every 6h");
    long.limits.max_expected = Some(length("30m"));
    let (roster, _, key) = roster_of(&long, "good 10:00-10:10, runs 10:30", "15:00");
    assert_eq!(roster.of(&key).unwrap().since, instant("11:00:00.001"));
    // Nothing says since when this was so.
    let (roster, _, key) =
        roster_of(&job("every 6h"), "good 10:00-10:10, failed 1 until 10:25, next 16:00", "15:00");
    assert_eq!(roster.of(&key).unwrap().since, instant("15:00"));
}

/// The reason and its beginning after the clock went from 12:10 to another time; and of when that is.
#[track_caller]
fn check_step(by: Duration, expected: &str, n_looks: usize) {
    let memory = "good 10:00-10:40, takes 40m, next 11:00";
    let (mut roster, jobs, key) = roster_of(&job("every 1h"), memory, "12:00:05");
    jobs.looks();
    roster.advance(instant("12:00:05") + by, &jobs);
    let standing = roster.of(&key).unwrap();
    let found =
        format!("{} {} since {}", clock(roster.now()), standing.reason.unwrap(), clock(standing.since));
    assert_eq!((found.as_str(), jobs.looks()), (expected, n_looks), "by {by}");
}

#[test]
fn a_clock_that_steps_back_a_little_is_waited_for_and_else_believed() {
    check_step(Duration::ZERO - HELD_BACK_MAX, "12:00:05 deadline_passed since 12:00:00", 0);
    let beyond = HELD_BACK_MAX + Duration::from_millis(1);
    check_step(Duration::ZERO - beyond, "11:59:54.999 will_miss_waiting since 11:59:54.999", 1);
    check_step(Duration::from_mins(-50), "11:10:05 ok since 11:10:05", 1);
}

#[test]
fn a_clock_that_steps_far_ahead_is_believed_at_once() {
    check_step(WALKED_MAX, "13:00:05 deadline_passed since 12:00:00", 0);
    check_step(WALKED_MAX + Duration::from_millis(1), "13:00:05.001 deadline_passed since 12:00:00", 1);
    // Since 1970 there were more blackouts than can be walked through.
    let mut dark = job("every 1h");
    dark.blackouts = blackout("11:10", "11:50");
    let (mut roster, jobs, key) = roster_of(&dark, "", "1970-01-01T00:00:00Z");
    jobs.looks();
    roster.advance(instant("11:30"), &jobs);
    assert_eq!(jobs.looks(), 1);
    assert_eq!(roster.of(&key).unwrap().since, instant("11:00"));
}

#[test]
fn only_those_are_looked_at_whose_time_has_come() {
    let mut jobs = Plain::default();
    let fresh = job("fresh 90m");
    for n in 0..1_000_i64 {
        let mut state = remember(&fresh, "");
        state.last_good_start_at = Some(instant("10:00") + Duration::from_secs(n));
        jobs.put(&format!("job-{n:04}"), &fresh, state);
    }
    let mut roster = Roster::new(instant("11:00"));
    roster.reassess(instant("11:00"), &jobs);
    assert_eq!(jobs.looks(), 1_000);
    // The first deadline is at 11:30, then there is one a second.
    assert_eq!((roster.advance(instant("11:29:59.999"), &jobs).len(), jobs.looks()), (0, 0));
    assert_eq!((roster.advance(instant("11:30"), &jobs).len(), jobs.looks()), (1, 1));
    assert_eq!((roster.advance(instant("11:30:59"), &jobs).len(), jobs.looks()), (59, 59));
    assert_eq!((roster.advance(instant("11:30:59.500"), &jobs).len(), jobs.looks()), (0, 0));
    let changed: Vec<JobKey> = jobs.rows.keys().take(10).cloned().collect();
    assert_eq!((roster.apply(instant("11:31"), &jobs, &changed).len(), jobs.looks()), (1, 11));
    assert_eq!((roster.advance(instant("12:30"), &jobs).len(), jobs.looks()), (939, 939));
    assert_eq!(roster.next_change_at(), None);
}

#[test]
fn a_good_run_takes_the_old_deadline_off_the_queue() {
    let hourly = job("every 1h");
    let (mut roster, mut jobs, key) = roster_of(&hourly, "good 10:00-10:10, next 11:00", "11:30");
    assert_eq!(roster.next_change_at(), Some(instant("12:00")));
    jobs.put("job", &hourly, remember(&hourly, "good 11:30-11:40, next 12:00"));
    roster.apply(instant("11:40"), &jobs, [&key]);
    assert_eq!(roster.next_change_at(), Some(instant("13:00")));
    jobs.looks();
    assert_eq!((roster.advance(instant("12:30"), &jobs).len(), jobs.looks()), (0, 0));
}
