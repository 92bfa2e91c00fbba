//! What ends a run, and what is sent to the store (B5, B8, B9).

use super::harness::{Harness, named};
use crate::blackout::{BlackoutPeriod, Blackouts, Weekdays};
use crate::engine::{Event, RunTime, Settings};
use crate::estimate::Estimate;
use crate::ids::JobKey;
use crate::job::Job;
use crate::job::sample::{instant, length};
use crate::run::Outcome;
use crate::store::{EndAnswer, StoreDown, Version};

fn harness(job: Job) -> Harness {
    let mut harness = Harness::with(Settings::new("n1".parse().unwrap(), None, 4), &[job], "10:00");
    assert_eq!(harness.starts(), "a");
    assert_eq!(harness.started("a"), "mark");
    harness
}

#[test]
fn a_run_that_takes_too_long_is_told_of_then_ended() {
    let mut job = named("a", "every 1h", "1m");
    job.limits.max_expected = Some(length("2m"));
    job.limits.max_allowed = Some(length("5m"));
    let mut harness = harness(job);
    assert_eq!(harness.at("10:01:59").replace("beat; changes since", ""), "");
    let said = harness.at("10:02");
    assert!(said.contains("[run takes longer than expected]"), "{said}");
    let said = harness.at("10:05");
    assert!(said.contains("stop a timed_out"), "{said}");
    assert!(!harness.at("10:06").contains("stop"), "once is enough");
}

#[test]
fn a_run_that_takes_three_times_its_usual_length_is_told_of_once() {
    let start = |n_good: u64, job: Job| {
        let mut harness = Harness::with(Settings::new("n1".parse().unwrap(), None, 4), &[job], "10:01");
        let row = harness.rows.values_mut().next().unwrap();
        row.state.estimate = Some(Estimate::from_stored(600_000.0, 0.0, n_good));
        row.version = Version(row.version.0 + 1);
        harness.load();
        harness.pass_to("10:01");
        assert_eq!(harness.starts(), "a");
        harness.started("a");
        harness
    };
    let is_told =
        |harness: &mut Harness, at: &str| harness.at(at).contains("[run takes far longer than usual]");
    let mut known = start(5, named("a", "every 2h", "1m"));
    assert!(!is_told(&mut known, "10:30:59"));
    assert!(is_told(&mut known, "10:31"));
    assert!(!is_told(&mut known, "10:45"), "once is enough");
    assert!(!is_told(&mut start(4, named("a", "every 2h", "1m")), "11:30"), "too little is known");
    let mut own = named("a", "every 2h", "1m");
    own.limits.max_expected = Some(length("1h"));
    assert!(!is_told(&mut start(5, own), "11:30"), "a person said how long it should take");
}

#[test]
fn a_run_is_ended_when_a_quota_says_so_whatever_its_job_says() {
    let check = |own: Option<&str>, tenant: Option<&str>, expected: Option<&str>| {
        let mut settings = Settings::new("n1".parse().unwrap(), None, 4);
        settings.run_time = RunTime {
            any: Some(length("20m")),
            tenants: [("acme", Some(length("5m"))), ("big", None)]
                .map(|(it, most)| (it.parse().unwrap(), most))
                .into(),
            other_tenants: Some(length("10m")),
        };
        let mut job = named("a", "every 1h", "1m");
        job.limits.max_allowed = own.map(length);
        job.tenant = tenant.map(|it| it.parse().unwrap());
        let mut harness = Harness::with(settings, &[job], "10:00");
        assert_eq!(harness.starts(), "a");
        harness.started("a");
        let minutes = ["10:02", "10:05", "10:10", "10:20", "10:30"];
        let stopped = minutes.into_iter().find(|at| harness.at(at).contains("stop a timed_out"));
        assert_eq!(stopped, expected, "{own:?} {tenant:?}");
    };
    check(None, None, Some("10:20"));
    check(Some("2m"), None, Some("10:02"));
    check(None, Some("acme"), Some("10:05"));
    check(Some("2m"), Some("acme"), Some("10:02"));
    check(Some("30m"), Some("acme"), Some("10:05"));
    check(None, Some("stranger"), Some("10:10"));
    check(None, Some("big"), Some("10:20"));
}

#[test]
fn an_occurrence_is_told_to_be_skipped_unless_it_may_still_have_its_turn() {
    let said_at_11 = |started: &str| {
        let job = named("a", "every 1h", "1m");
        let mut harness = Harness::with(Settings::new("n1".parse().unwrap(), None, 4), &[job], "10:00");
        assert_eq!(harness.starts(), "a");
        harness.pass_to(started);
        harness.started("a");
        harness.at("11:00")
    };
    let said = said_at_11("10:00");
    assert!(said.contains("[occurrence skipped, the job is running]"), "{said}");
    // It only began late, and may well be over before the next one is late.
    let said = said_at_11("10:50");
    assert!(!said.contains("skipped"), "{said}");
}

#[test]
fn a_run_found_inside_a_blackout_is_ended() {
    let mut job = named("a", "every 1h", "1m");
    let period =
        BlackoutPeriod::new("10:20".parse().unwrap(), "10:40".parse().unwrap(), Weekdays::ALL).unwrap();
    job.blackouts = Blackouts::new(vec![period]).unwrap();
    let mut harness = harness(job);
    assert!(!harness.at("10:19:59").contains("stop"));
    let said = harness.at("10:20");
    assert!(said.contains("stop a blackout"), "{said}");
}

#[test]
fn occurrences_that_come_due_during_a_run_are_told_of_one_by_one() {
    let mut harness = harness(named("a", "every 10m", "1m"));
    for (minute, n) in [("10:09:59", 0), ("10:10", 1), ("10:15", 0), ("10:20", 1)] {
        let said = harness.at(minute);
        assert_eq!(said.matches("occurrence skipped, the job is running").count(), n, "{minute}: {said}");
    }
    harness.pass_to("10:25");
    harness.ends("a", Outcome::Succeeded);
    assert_eq!(harness.rows["a"].state.next_run_at, Some(instant("10:30")));
}

#[test]
fn a_cancel_is_heard_at_the_next_beat() {
    let mut harness = harness(named("a", "every 1h", "1m"));
    let run = harness.run_of("a");
    harness.runs.get_mut(&run).unwrap().is_cancel_asked = true;
    assert_eq!(harness.beat(), "stop a cancelled");
    assert_eq!(harness.beat(), "");
}

#[test]
fn an_end_that_was_not_heard_is_sent_again_once_the_store_answers() {
    let mut harness = harness(named("a", "every 1h", "1m"));
    let run = harness.run_of("a");
    harness.pass_to("10:01");
    assert_eq!(
        harness.tell(Event::Ended { run, over: harness.over(Outcome::Succeeded) }),
        "end a succeeded; beat; changes since"
    );
    let down = || Err(StoreDown("gone".to_owned()));
    assert_eq!(harness.tell(Event::EndAnswered { runs: vec![run], answer: down() }), "");
    assert_eq!(harness.tell(Event::Woke), "", "not before the store has answered a beat");
    assert_eq!(harness.beat(), "end a succeeded");
}

#[test]
fn an_end_that_met_another_row_is_worked_out_again() {
    let mut harness = harness(named("a", "every 1h", "1m"));
    let run = harness.run_of("a");
    harness.pass_to("10:01");
    harness.tell(Event::Ended { run, over: harness.over(Outcome::Succeeded) });
    // The job has been edited meanwhile: it is due every two hours now.
    let key: JobKey = "a".parse().unwrap();
    let mut row = harness.rows[&key].clone();
    let mut edited = (*row.job).clone();
    edited.schedule = named("a", "every 2h", "1m").schedule.clone();
    row.job = std::sync::Arc::new(edited);
    row.version = Version(row.version.0 + 1);
    harness.rows.insert(key.clone(), row.clone());
    let stale = Event::EndAnswered { runs: vec![run], answer: Ok(vec![EndAnswer::Stale(row)]) };
    let commands = harness.tell_raw(stale);
    harness.write_ends(commands);
    assert_eq!(harness.rows[&key].state.next_run_at, Some(instant("12:00")));
}

#[test]
fn a_late_result_is_forgotten() {
    let mut harness = harness(named("a", "every 1h", "1m"));
    let run = harness.run_of("a");
    harness.pass_to("10:01");
    harness.tell(Event::Ended { run, over: harness.over(Outcome::Succeeded) });
    harness.tell(Event::EndAnswered { runs: vec![run], answer: Ok(vec![EndAnswer::Late]) });
    assert!(!harness.beat().contains("end"));
}
