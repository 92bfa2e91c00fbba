use proptest::prelude::*;

use super::*;
use crate::blackout::{BlackoutPeriod, Blackouts};
use crate::estimate::Estimate;
use crate::ids::RunId;
use crate::job::sample::{instant, job, length, placed};
use crate::job::{Job, Owner, Pause, PausedBy};
use crate::run::Outcome;
use crate::unsatisfiable::NodeFit;
use crate::zone::Zone;

/// What a case remembers, in words: `good 10:00-10:20, failed 2 until 11:05, runs 11:10, takes 30m`.
fn remember(job: &Job, anchor: &str, memory: &str) -> JobState {
    let mut state = placed(job, anchor);
    for fact in memory.split(", ").filter(|fact| !fact.is_empty()) {
        let words: Vec<&str> = fact.split(' ').collect();
        match words.as_slice() {
            ["good", stretch] => {
                let (start, end) = stretch.split_once('-').unwrap();
                state.last_start_at = Some(instant(start));
                state.last_end_at = Some(instant(end));
                state.last_good_start_at = state.last_start_at;
                state.last_good_end_at = state.last_end_at;
                state.last_outcome = Some(Outcome::Succeeded);
            }
            ["failed", times, "until", end] => {
                state.failure_count = times.parse().unwrap();
                state.last_start_at = Some(instant(end) - length("1m"));
                state.last_end_at = Some(instant(end));
                state.last_outcome = Some(Outcome::Failed);
            }
            ["cancelled"] => state.last_outcome = Some(Outcome::Cancelled),
            ["counted", times] => state.failure_count = times.parse().unwrap(),
            ["paused", by] => {
                let by = match *by {
                    "operator" => PausedBy::Operator,
                    "quota" => PausedBy::Quota,
                    "failures" => PausedBy::Failures,
                    "invalid" => PausedBy::Invalid,
                    other => panic!("nobody pauses by {other}"),
                };
                state.pause = Some(Box::new(Pause { by, reason: None }));
            }
            ["runs", since] => {
                state.owner = Some(Box::new(Owner {
                    node: "n1".parse().unwrap(),
                    name: "n1-1".to_owned(),
                    tag: RunId(1),
                    started_at: instant(since),
                }));
            }
            ["takes", expected] => state.estimate = Some(Estimate::first(length(expected))),
            ["next", pending] => state.next_run_at = Some(instant(pending)),
            other => panic!("nobody remembers {other:?}"),
        }
    }
    state
}

#[track_caller]
fn check_of(job: &Job, memory: &str, now: &str, expected: &str) {
    let state = remember(job, "10:00", memory);
    let assessment = assess(&job.key, job, &state, instant(now), &Outlook::default());
    assert_eq!(format!("{} {}", assessment.condition(), assessment.reason()), expected, "{assessment:#?}");
}

#[track_caller]
fn check(schedule: &str, memory: &str, now: &str, expected: &str) {
    check_of(&job(schedule), memory, now, expected);
}

#[test]
fn a_job_is_late_when_its_deadline_has_passed_by_the_clock() {
    // Hourly from 10:00, one interval to finish: what is due at 10:00 must be complete by 11:00.
    check("every 1h", "", "09:00", "ok never_succeeded");
    check("every 1h", "", "10:59:59.999", "ok never_succeeded");
    check("every 1h", "", "11:00", "error deadline_passed");
    check("every 1h", "good 10:00-10:10, next 11:00", "11:59:59.999", "ok ok");
    check("every 1h", "good 10:00-10:10, next 11:00", "12:00", "error deadline_passed");
    check("fresh 2h cooldown 30m", "good 10:00-10:10, next 10:40", "11:59:59.999", "ok ok");
    check("fresh 2h cooldown 30m", "good 10:00-10:10, next 10:40", "12:00", "error deadline_passed");
    check("cron 0 * * * *", "good 10:00-10:10, next 11:00", "12:00", "error deadline_passed");
    check("cron 0 * * * * within 20m", "good 10:00-10:10, next 11:00", "11:20", "error deadline_passed");
    check("once 10:00 within 5m", "", "10:05", "error deadline_passed");
    check("once 10:00 within 5m", "good 10:00-10:01", "10:05", "ok ok");
    check("manual", "", "23:00", "ok never_succeeded");
}

#[test]
fn a_running_job_is_expected_to_end_after_its_estimate_and_never_in_the_past() {
    // Data of 10:00 must be renewed by 12:00.
    let fresh = "fresh 2h cooldown 30m";
    check(fresh, "good 10:00-10:10, takes 40m, runs 11:20", "11:21", "ok ok");
    check(fresh, "good 10:00-10:10, takes 40m, runs 11:21", "11:21", "warning will_miss_running");
    // It has outlasted its estimate: it ends now at the earliest, which is still in time.
    check(fresh, "good 10:00-10:10, takes 10m, runs 11:00", "11:59:59.999", "ok ok");
    check(fresh, "good 10:00-10:10, takes 10m, runs 11:00", "12:00", "error deadline_passed");
    let job = job(fresh);
    let state = remember(&job, "10:00", "good 10:00-10:10, takes 10m, runs 11:00");
    let expected_end = |now| assess(&job.key, &job, &state, instant(now), &Outlook::default()).expected_end;
    assert_eq!(expected_end("11:05"), Some(instant("11:10")));
    assert_eq!(expected_end("11:40"), Some(instant("11:40")));
}

#[test]
fn a_waiting_job_is_at_risk_after_its_latest_start() {
    check("every 1h", "good 10:00-10:40, takes 40m, next 11:00", "11:20", "ok ok");
    check("every 1h", "good 10:00-10:40, takes 40m, next 11:00", "11:20:00.001", "warning will_miss_waiting");
    // 11:00 was skipped: 12:00 comes after the latest start for it, and we know that at once.
    check("every 1h", "good 10:00-10:40, takes 40m, next 12:00", "11:05", "warning will_miss_waiting");
}

#[test]
fn before_the_first_measurement_no_length_of_a_run_is_a_risk() {
    let outlook = Outlook { pool_median: Some(length("50m")), ..Outlook::default() };
    let judged = |set: fn(&mut Job), memory: &str, now: &str| {
        let mut job = job("every 1h");
        set(&mut job);
        let state = remember(&job, "10:00", memory);
        assess(&job.key, &job, &state, instant(now), &outlook).reason()
    };
    // Others of its pool take 50 minutes; this one has no estimate.
    assert_eq!(judged(|_| {}, "", "10:30"), Reason::NeverSucceeded);
    assert_eq!(judged(|_| {}, "runs 10:30", "10:31"), Reason::NeverSucceeded);
    let expected = |job: &mut Job| job.limits.max_expected = Some(length("50m"));
    assert_eq!(judged(expected, "", "10:30"), Reason::NeverSucceeded);
    assert_eq!(judged(expected, "runs 10:30", "10:31"), Reason::NeverSucceeded);
    // What was set by hand or measured counts.
    assert_eq!(judged(|job| job.estimate = Some(length("50m")), "", "10:30"), Reason::WillMissWaiting);
    assert_eq!(judged(|_| {}, "takes 50m", "10:30"), Reason::WillMissWaiting);
    assert_eq!(judged(|_| {}, "takes 50m, runs 10:30", "10:31"), Reason::WillMissRunning);
    // And so does a start that comes after the deadline, however short the run.
    assert_eq!(judged(|_| {}, "next 12:00", "10:30"), Reason::WillMissWaiting);
}

#[test]
fn a_back_off_beyond_the_latest_start_is_a_risk_of_its_own() {
    // 4 h after the third failure is 15:00; the data must be renewed by 14:00.
    check(
        "fresh 4h",
        "good 10:00-10:10, failed 3 until 11:00, next 10:40",
        "11:01",
        "warning will_miss_waiting",
    );
    // The next regular occurrence comes at 12:00, which is when 11:00 must be complete.
    check(
        "every 1h",
        "good 10:00-10:10, takes 10m, failed 3 until 11:30, next 11:00",
        "11:31",
        "warning will_miss_waiting",
    );
    // 5 min after the first is in time, but a failure is worth a warning.
    check(
        "every 1h",
        "good 10:00-10:10, failed 1 until 11:05, next 11:00",
        "11:06",
        "warning last_run_failed",
    );
}

#[test]
fn a_blackout_beyond_the_latest_start_is_a_risk_of_its_own() {
    let mut job = job("every 1h");
    job.blackouts = blackout("11:10", "11:50");
    check_of(&job, "good 10:00-10:10, takes 10m, next 11:00", "11:15", "ok ok");
    check_of(&job, "good 10:00-10:10, takes 11m, next 11:00", "11:15", "warning will_miss_waiting");
    // It would not be over before the window, so it waits for the window's end.
    check_of(&job, "good 10:00-10:10, takes 10m, next 11:00", "11:00:00.001", "ok ok");
    check_of(&job, "good 10:00-10:10, takes 11m, next 11:00", "11:00", "warning will_miss_waiting");
}

#[test]
fn a_run_may_take_longer_than_expected() {
    let mut job = job("every 6h");
    job.limits.max_expected = Some(length("30m"));
    check_of(&job, "good 10:00-10:10, takes 10m, runs 16:00", "16:30", "ok ok");
    check_of(&job, "good 10:00-10:10, takes 10m, runs 16:00", "16:30:00.001", "warning overrunning");
}

#[test]
fn a_promise_that_cannot_be_kept_is_a_standing_warning() {
    // A run, the rest and the next run: 16m + 90m + 16m are more than 2 h, 15m + 90m + 15m are not.
    check(
        "fresh 2h cooldown 90m",
        "good 10:00-10:10, takes 16m, runs 11:00",
        "11:01",
        "warning unsatisfiable",
    );
    check("fresh 2h cooldown 90m", "good 10:00-10:10, takes 15m, runs 11:00", "11:01", "ok ok");
    let mut all_week = job("manual");
    all_week.blackouts = blackout("00:00", "24:00");
    check_of(&all_week, "good 10:00-10:10", "11:00", "warning unsatisfiable");
    let assessment =
        assess(&all_week.key, &all_week, &placed(&all_week, "10:00"), instant("11:00"), &Outlook::default());
    assert_eq!(assessment.sentence(), "The job cannot be satisfied: its blackouts cover the whole week.");
    let nowhere = Outlook { fit: NodeFit::NoPool, ..Outlook::default() };
    let assessment = assess(
        &job("every 1h").key,
        &job("every 1h"),
        &placed(&job("every 1h"), "10:00"),
        instant("10:00"),
        &nowhere,
    );
    assert_eq!(assessment.reason(), Reason::Unsatisfiable);
    assert_eq!(assessment.sentence(), "The job cannot be satisfied: no living node has pool `default`.");
}

#[test]
fn what_the_system_paused_is_an_error_until_a_person_acts() {
    check("every 1h", "good 10:00-10:10, next 11:00, paused failures", "10:30", "error paused_failures");
    check("every 1h", "good 10:00-10:10, next 11:00, paused quota", "10:30", "error paused_quota");
    check("every 1h", "good 10:00-10:10, next 11:00, paused invalid", "10:30", "error disabled_invalid");
    // It never turns into anything milder.
    check("every 1h", "good 10:00-10:10, next 11:00, paused failures", "15:00", "error paused_failures");
    let mut hourly = job("every 1h");
    let is_tracked = |job: &Job, by: &str| {
        remember(job, "10:00", &format!("good 10:00-10:10, next 11:00, paused {by}")).is_tracked(job)
    };
    assert_eq!(
        ["operator", "quota", "failures", "invalid"].map(|by| is_tracked(&hourly, by)),
        [false, true, true, true]
    );
    hourly.enabled = false;
    assert_eq!(
        ["operator", "quota", "failures", "invalid"].map(|by| is_tracked(&hourly, by)),
        [false, false, false, true],
        "whoever disabled it has acted; what cannot be read counts as disabled, and nobody acted"
    );
}

#[test]
fn a_failed_run_is_told_by_its_outcome_and_not_by_the_count() {
    let failed = "good 10:00-10:10, failed 1 until 10:20, next 11:00";
    check("every 1h", failed, "10:30", "warning last_run_failed");
    check("every 1h", &format!("{failed}, counted 0"), "10:30", "warning last_run_failed");
    check("every 1h", &format!("{failed}, cancelled"), "10:30", "ok ok");
}

#[test]
fn a_full_queue_is_a_risk_when_room_comes_too_late() {
    let job = job("every 1h");
    let state = remember(&job, "10:00", "good 10:00-10:10, takes 10m, next 11:00");
    let reason_with_room_at = |room_at: &str| {
        let outlook = Outlook { room_at: Some(instant(room_at)), ..Outlook::default() };
        assess(&job.key, &job, &state, instant("11:05"), &outlook).reason()
    };
    assert_eq!(reason_with_room_at("11:50"), Reason::Ok);
    assert_eq!(reason_with_room_at("11:50:00.001"), Reason::WillMissWaiting);
}

#[test]
fn all_reasons_are_told_the_weightiest_first() {
    let mut job = job("fresh 2h cooldown 3h");
    job.limits.max_expected = Some(length("5m"));
    let state = remember(&job, "10:00", "failed 2 until 11:00, runs 11:50");
    let assessment = assess(&job.key, &job, &state, instant("11:58"), &Outlook::default());
    assert_eq!(
        assessment.reasons,
        [Reason::LastRunFailed, Reason::Overrunning, Reason::Unsatisfiable, Reason::NeverSucceeded]
    );
    assert_eq!(assessment.sentence(), "The last 2 runs failed.");
}

#[test]
fn every_reason_is_a_sentence_with_its_figures() {
    #[track_caller]
    fn check(schedule: &str, memory: &str, now: &str, expected: &str) {
        let job = job(schedule);
        let assessment =
            assess(&job.key, &job, &remember(&job, "10:00", memory), instant(now), &Outlook::default());
        assert_eq!(assessment.sentence(), expected);
    }
    check("every 1h", "good 10:00-10:10, next 11:00", "12:25", "The deadline passed 25m ago.");
    check(
        "every 1h",
        "good 10:00-10:10, takes 40m, runs 11:30",
        "11:31",
        "The run is expected to end 10m after the deadline.",
    );
    check(
        "every 1h",
        "good 10:00-10:10, takes 40m, next 11:00",
        "11:30",
        "The next run would end 10m after the deadline.",
    );
    check("every 1h", "failed 1 until 10:01, next 10:00", "10:02", "The last run failed.");
    check("every 1h", "", "09:00", "It has not succeeded yet.");
    check("every 1h", "good 10:00-10:10, next 11:00", "10:30", "Fresh, and expected to stay fresh.");
}

#[test]
fn what_a_job_waits_for_is_told_with_what_ends_last_first() {
    #[track_caller]
    fn check(job: &Job, memory: &str, now: &str, expected: &str) {
        let state = remember(job, "10:00", memory);
        let waits: Vec<String> = waits(&job.key, job, &state, instant(now), &Outlook::default())
            .iter()
            .map(|wait| match wait.until {
                Some(until) => format!("{} until {}", wait.reason, &until.to_string()[11..16]),
                None => wait.reason.to_string(),
            })
            .collect();
        assert_eq!(waits.join(", "), expected);
    }
    let hourly = job("every 1h");
    check(&hourly, "", "09:00", "never_run until 10:00");
    check(&hourly, "good 10:00-10:10, next 11:00", "10:30", "not_due until 11:00");
    check(&hourly, "good 10:00-10:10, next 11:00", "11:00", "");
    check(&hourly, "failed 1 until 10:01, next 10:00", "10:02", "backoff until 10:06");
    check(&hourly, "failed 2 until 10:01, next 10:00", "10:02", "backoff until 11:00");
    check(&hourly, "failed 2 until 10:01, next 11:00", "10:02", "not_due until 11:00");
    let mut held = job("every 1h");
    held.retry.holds_schedule = true;
    check(&held, "failed 2 until 10:01, next 11:00", "10:02", "backoff until 11:01, not_due until 11:00");
    check(&hourly, "runs 10:00", "10:02", "running");
    check(&job("fresh 2h cooldown 1h"), "good 10:00-10:10, next 11:10", "10:30", "cooldown until 11:10");
    check(&job("manual"), "", "10:30", "manual");
    let mut dark = job("every 1h");
    dark.blackouts = blackout("11:00", "11:30");
    check(&dark, "good 10:00-10:10, next 11:00", "10:30", "blackout until 11:30, not_due until 11:00");
    check(&dark, "good 10:00-10:10, next 11:00", "11:10", "blackout until 11:30");
    // A run that would not be over before the window waits for its end.
    check(&dark, "good 10:00-10:10, takes 20m, next 10:30", "10:40", "");
    check(&dark, "good 10:00-10:10, takes 20m, next 10:30", "10:41", "blackout_ahead until 11:30");
    check(
        &dark,
        "good 10:00-10:10, takes 20m, next 10:50",
        "10:41",
        "blackout_ahead until 11:30, not_due until 10:50",
    );
    let mut over = remember(&job("once 10:00"), "10:00", "good 10:00-10:10");
    over.next_run_at = None;
    let once = job("once 10:00");
    let waits_of_once = waits(&once.key, &once, &over, instant("10:30"), &Outlook::default());
    assert_eq!(waits_of_once, [Wait { reason: Reason::Done, until: None }]);
    let mut disabled = job("every 1h");
    disabled.enabled = false;
    check(&disabled, "", "10:30", "disabled");

    let mut paused = remember(&hourly, "10:00", "");
    for (by, expected) in [
        (PausedBy::Operator, Reason::PausedOperator),
        (PausedBy::Quota, Reason::PausedQuota),
        (PausedBy::Failures, Reason::PausedFailures),
        (PausedBy::Invalid, Reason::DisabledInvalid),
    ] {
        paused.pause = Some(Box::new(Pause { by, reason: None }));
        assert_eq!(
            waits(&hourly.key, &hourly, &paused, instant("10:30"), &Outlook::default()),
            [Wait { reason: expected, until: None }]
        );
    }
}

#[test]
fn a_blackout_asks_for_a_look_when_it_can_matter_and_not_all_the_time() {
    #[track_caller]
    fn check(memory: &str, now: &str, expected: &str) {
        let mut job = job("every 1h");
        job.blackouts = blackout("11:10", "11:50");
        let state = remember(&job, "10:00", memory);
        let change_at = next_change_at(&job, &state, instant(now), &Outlook::default());
        assert_eq!(change_at, Some(instant(expected)), "after {now}");
    }
    // A run that takes no time fits until the window begins; inside, nothing changes before its end.
    let at_once = "good 10:00-10:10, next 11:00";
    check(at_once, "11:05", "11:10");
    check(at_once, "11:10", "11:50");
    check(at_once, "11:20", "11:50");
    check(at_once, "11:50", "12:00");
    // A longer one fits until it would reach into the window.
    let long = "good 10:00-10:10, takes 8m, next 11:00";
    check(long, "11:01", "11:02:00.001");
    check(long, "11:02:00.001", "11:10");
    check(long, "11:10", "11:50");
    check(long, "11:50", "11:52:00.001");
    // Once it cannot be in time, no blackout makes that worse.
    check("good 10:00-10:10, takes 55m, next 11:00", "11:05:00.001", "12:00");
    let mut job = job("every 1h");
    job.blackouts = blackout("11:10", "11:50");
    let state = remember(&job, "10:00", at_once);
    assert_eq!(next_change_at(&job, &state, instant("12:00"), &Outlook::default()), None);
}

fn blackout(start: &str, end: &str) -> Blackouts {
    use crate::blackout::Weekdays;
    let period = BlackoutPeriod::new(start.parse().unwrap(), end.parse().unwrap(), Weekdays::ALL).unwrap();
    Blackouts::new(vec![period]).unwrap()
}

prop_compose! {
    /// A job of any kind with a memory that could really come about, and an instant near it.
    fn any_situation()(
        schedule in prop::sample::select(vec![
            "every 1h", "every 7m", "every 1h within 20m", "fresh 2h cooldown 30m", "fresh 2h cooldown 3h",
            "cron 0 * * * *", "cron */20 * * * * within 10m", "cron 30 9-12 * * *", "once 10:00 within 30m", "manual",
        ]),
        zone in prop::sample::select(vec!["UTC", "Europe/Berlin", "Australia/Lord_Howe"]),
        dark_start in 0_u32..1_440,
        dark_length in 0_u32..300,
        expected_mins in prop::option::of(0_i64..90),
        max_expected_mins in prop::option::of(1_i64..60),
        good_at_s in prop::option::of(0_i64..7_200),
        n_failures in 0_u32..5,
        last_end_s in 0_i64..14_400,
        running_s in prop::option::of(0_i64..10_000),
        now_ms in -3_600_000_i64..40_000_000,
    ) -> (Job, JobState, Timestamp) {
        let mut job = job(schedule);
        job.zone = Zone::named(zone).unwrap();
        if 0 < dark_length {
            let clock = |minute: u32| format!("{:02}:{:02}", minute / 60 % 24, minute % 60);
            job.blackouts = blackout(&clock(dark_start), &clock(dark_start + dark_length));
        }
        job.estimate = expected_mins.map(Duration::from_mins);
        job.limits.max_expected = max_expected_mins.map(Duration::from_mins);
        let mut state = placed(&job, "10:00");
        let base = instant("10:00");
        if let Some(good_at_s) = good_at_s {
            let start = base + Duration::from_secs(good_at_s);
            state.last_good_start_at = Some(start);
            state.last_good_end_at = Some(start + Duration::from_mins(10));
            let placement = state.placement.clone().unwrap();
            let next = job.schedule.next_after_good_run(start + Duration::from_mins(10));
            let rhythm = job.schedule.rhythm(&placement, job.bounds, &job.zone);
            state.next_run_at = next.or_else(|| rhythm.next_after(start));
        }
        if 0 < n_failures {
            state.failure_count = n_failures;
            state.last_end_at = Some(base + Duration::from_secs(last_end_s));
            state.last_start_at = state.last_end_at;
        }
        if let Some(running_s) = running_s {
            let mut running = remember(&job, "10:00", "runs 10:00");
            if let Some(owner) = &mut running.owner {
                owner.started_at = base + Duration::from_secs(running_s);
            }
            state.owner = running.owner;
        }
        (job, state, base + Duration::from_millis(now_ms))
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn the_condition_changes_only_when_the_formulas_say((job, state, now) in any_situation(), part in 0.0..1.0_f64) {
        let outlook = Outlook::default();
        let reasons_at = |at| assess(&job.key, &job, &state, at, &outlook).reasons;
        let here = reasons_at(now);
        let change_at = next_change_at(&job, &state, now, &outlook);
        let last_same = change_at.map_or(now + Duration::from_days(40), |at| at - Duration::from_millis(1));
        prop_assert!(now <= last_same);
        let between = now + Duration::from_millis_f64((last_same - now).as_millis_f64() * part);
        prop_assert_eq!(&reasons_at(between), &here, "between {} and {:?}", now, change_at);
        prop_assert_eq!(&reasons_at(last_same), &here, "between {} and {:?}", now, change_at);
    }

    #[test]
    fn no_start_is_planned_inside_a_blackout((job, state, now) in any_situation()) {
        let outlook = Outlook::default();
        if let Some(start) = urgency::planned_start(&job.key, &job, &state, now, &outlook) {
            prop_assert!(now <= start);
            prop_assert!(!job.blackouts.contains(&job.zone, start));
        }
        if let Some(start) = urgency::can_start_by(&job.key, &job, &state, now) {
            prop_assert!(!job.blackouts.contains(&job.zone, start.max(now)));
        }
    }

    #[test]
    fn blackouts_and_failures_never_move_the_latest_start(
        (job, state, now) in any_situation(),
        n_failures in 1_u32..9,
        end_s in 0_i64..90_000,
    ) {
        let outlook = Outlook::default();
        let latest = urgency::should_start_by(&job, &state, &outlook);
        let mut bare = job.clone();
        bare.blackouts = Blackouts::default();
        prop_assert_eq!(urgency::should_start_by(&bare, &state, &outlook), latest);
        let mut failed = state.clone();
        failed.failure_count = n_failures;
        failed.last_end_at = Some(now + Duration::from_secs(end_s));
        failed.last_start_at = failed.last_end_at;
        prop_assert_eq!(urgency::should_start_by(&job, &failed, &outlook), latest);
        // Later occurrences do not move it either.
        failed.next_run_at = Some(now + Duration::from_days(3));
        prop_assert_eq!(urgency::should_start_by(&job, &failed, &outlook), latest);
    }

    #[test]
    fn the_retry_floor_holds_also_in_error((job, state, now) in any_situation()) {
        let outlook = Outlook::default();
        let in_error = now + Duration::from_days(2);
        for at in [now, in_error] {
            let start = urgency::planned_start(&job.key, &job, &state, at, &outlook);
            if let (Some(start), Some(floor)) = (start, urgency::retry_floor(&job.key, &job, &state)) {
                prop_assert!(floor <= start);
            }
        }
    }
}
