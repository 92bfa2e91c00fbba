//! What is counted, listed and told when jobs change.

use super::plain::{Plain, remember};
use crate::condition::{Condition, Reason};
use crate::ids::{JobKey, Pool};
use crate::job::sample::{instant, job};
use crate::job::{Job, Status};
use crate::roster::{AttentionCause, Roster, Which};
use crate::unsatisfiable::NodeFit;

const GOOD: &str = "good 10:00-10:10, next 11:00";

fn fleet() -> Plain {
    let mut jobs = Plain::default();
    let hourly = job("every 1h");
    let mut disabled = job("every 1h");
    disabled.enabled = false;
    let mut elsewhere = job("every 1h");
    elsewhere.place.pool = "browsers".parse().unwrap();
    let mut put = |key: &str, job: &Job, memory: &str| jobs.put(key, job, remember(job, memory));
    put("a-good", &hourly, GOOD);
    put("b-late", &hourly, "good 08:00-08:10, next 10:00");
    put("c-new", &job("every 6h"), "");
    put("d-failed", &hourly, "good 10:00-10:10, failed 1 until 10:20, next 11:00");
    put("e-paused", &hourly, "good 08:00-08:10, paused");
    put("f-disabled", &disabled, "");
    put("g-running", &elsewhere, "good 10:00-10:10, takes 90m, runs 11:00");
    put("h-late", &elsewhere, "good 08:00-08:10, next 10:00");
    jobs
}

fn roster_of(jobs: &Plain) -> Roster {
    let mut roster = Roster::new(instant("11:10"));
    roster.reassess(instant("11:10"), jobs);
    roster
}

#[track_caller]
fn check(which: Which, after: Option<&str>, most: usize, expected: &str) {
    let roster = roster_of(&fleet());
    let after: Option<JobKey> = after.map(|it| it.parse().unwrap());
    let page: Vec<&str> = roster.page(which, after.as_ref(), most).into_iter().map(JobKey::as_str).collect();
    assert_eq!(page.join(" "), expected);
}

#[test]
fn a_page_is_in_the_order_of_keys() {
    let warning = Which::Condition(Condition::Warning);
    check(Which::Condition(Condition::Ok), None, 9, "a-good c-new");
    check(warning, None, 9, "d-failed g-running");
    check(Which::Condition(Condition::Error), None, 9, "b-late h-late");
    check(Which::Reason(Reason::LastRunFailed), None, 9, "d-failed");
    check(Which::Reason(Reason::Overrunning), None, 9, "");
    check(Which::Untracked, None, 9, "e-paused f-disabled");
    check(Which::All, None, 3, "a-good b-late c-new");
    check(Which::All, Some("c-new"), 3, "d-failed e-paused f-disabled");
    // The last job of the page before may be gone.
    check(Which::All, Some("f"), 9, "f-disabled g-running h-late");
    check(warning, Some("d-failed"), 1, "g-running");
    check(warning, Some("g-running"), 1, "");
    check(warning, None, 0, "");
}

#[test]
fn jobs_are_counted_by_condition_reason_status_and_pool() {
    let roster = roster_of(&fleet());
    let counts = roster.counts();
    assert_eq!(
        [Condition::Ok, Condition::Warning, Condition::Error].map(|it| counts.in_condition(it)),
        [2; 3]
    );
    assert_eq!(counts.with_reason(Reason::WillMissRunning), 1);
    assert_eq!(counts.with_reason(Reason::NeverSucceeded), 1);
    assert_eq!((counts.n_tracked(), counts.n_jobs()), (6, 8));
    let statuses =
        [Status::Pending, Status::Scheduled, Status::Running, Status::Paused, Status::Disabled, Status::Done];
    assert_eq!(statuses.map(|it| counts.in_status(it)), [0, 5, 1, 1, 1, 0]);
    let pools: Vec<(&str, u32, u32)> = roster
        .counts_by_pool()
        .map(|(pool, counts)| (pool.as_str(), counts.n_jobs(), counts.in_condition(Condition::Error)))
        .collect();
    assert_eq!(pools, [("browsers", 2, 1), ("default", 6, 1)]);
}

/// Which turns there are when a job comes, changes or goes.
#[track_caller]
fn check_news(from: Option<&str>, to: Option<&str>, expected: &str) {
    let (mut jobs, hourly) = (Plain::default(), job("every 1h"));
    let mut roster = Roster::new(instant("11:10"));
    let key: JobKey = "job".parse().unwrap();
    let mut turned = Vec::new();
    for memory in [from, to] {
        match memory {
            Some(memory) => drop(jobs.put("job", &hourly, remember(&hourly, memory))),
            None => drop(jobs.rows.remove(&key)),
        }
        turned = roster.apply(instant("11:10"), &jobs, [&key]);
    }
    let word = |reason: Option<Reason>| reason.map_or("none", Reason::as_str);
    let told: Vec<String> = turned
        .iter()
        .map(|it| format!("{} -> {}, {}", word(it.from), word(it.to), it.is_of_condition()))
        .collect();
    assert_eq!(told.join("; "), expected);
    assert_eq!(roster.of(&key).is_some(), to.is_some());
}

#[test]
fn a_change_of_reason_is_told_and_who_is_well_comes_and_goes_quietly() {
    let (late, failed) =
        ("good 08:00-08:10, next 10:00", "good 10:00-10:10, failed 1 until 10:20, next 11:00");
    let will_miss = "good 10:00-10:10, takes 55m, next 11:00";
    check_news(Some(GOOD), Some(GOOD), "");
    check_news(Some(GOOD), Some(failed), "ok -> last_run_failed, true");
    check_news(Some(failed), Some(will_miss), "last_run_failed -> will_miss_waiting, false");
    check_news(Some(late), Some(GOOD), "deadline_passed -> ok, true");
    check_news(None, Some(GOOD), "");
    check_news(None, Some(late), "none -> deadline_passed, true");
    check_news(Some(late), None, "deadline_passed -> none, true");
    check_news(Some(GOOD), None, "");
    check_news(Some(late), Some("good 08:00-08:10, paused"), "deadline_passed -> none, true");
    check_news(None, None, "");
}

#[test]
fn a_job_in_another_pool_is_counted_there_and_an_empty_pool_is_forgotten() {
    let mut jobs = fleet();
    let mut roster = roster_of(&jobs);
    for name in ["x1", "x2", "x3"] {
        for (key, (terms, _)) in jobs.rows.iter_mut().filter(|(_, (terms, _))| terms.place.cost == 1) {
            let is_moved = key.as_str() > "f-disabled";
            terms.place.pool = if is_moved { name.parse().unwrap() } else { Pool::default_pool() };
        }
        let keys: Vec<JobKey> = jobs.rows.keys().cloned().collect();
        roster.apply(instant("11:10"), &jobs, &keys);
        let pools: Vec<(&str, u32)> =
            roster.counts_by_pool().map(|(pool, counts)| (pool.as_str(), counts.n_jobs())).collect();
        assert_eq!(pools, [("default", 6), (name, 2)]);
    }
}

#[test]
fn a_fleet_that_was_read_again_tells_only_what_is_different() {
    let mut jobs = fleet();
    let mut roster = roster_of(&jobs);
    let hourly = job("every 1h");
    jobs.rows.remove(&"a-good".parse::<JobKey>().unwrap());
    jobs.rows.remove(&"b-late".parse::<JobKey>().unwrap());
    jobs.put("d-failed", &hourly, remember(&hourly, GOOD));
    jobs.put("z-new", &hourly, remember(&hourly, GOOD));
    let told: Vec<String> = roster
        .reassess(instant("11:10"), &jobs)
        .iter()
        .map(|it| format!("{} {}", it.key, it.to.map_or("none", Reason::as_str)))
        .collect();
    assert_eq!(told, ["d-failed ok", "b-late none"]);
    assert_eq!(roster.counts().n_jobs(), 7);
}

#[test]
fn a_refresh_goes_round_the_fleet_a_few_jobs_at_a_time() {
    let mut jobs = fleet();
    let mut roster = roster_of(&jobs);
    // No job has heard that the last node has gone.
    jobs.outlook.fit = NodeFit::NoPool;
    jobs.looks();
    let mut refresh = |expected: &str, n_looks: usize| {
        let turned = roster.refresh(instant("11:10"), &jobs, 3);
        let keys: Vec<&str> = turned.iter().map(|it| it.key.as_str()).collect();
        assert_eq!((keys.join(" ").as_str(), jobs.looks()), (expected, n_looks));
    };
    refresh("a-good c-new", 3);
    // Those that failed, are paused or disabled have weightier reasons, or none.
    refresh("", 3);
    refresh("", 2);
    refresh("", 3);
    assert_eq!(roster.counts().with_reason(Reason::Unsatisfiable), 2);
}

#[test]
fn what_the_system_paused_is_counted_and_listed_as_an_error() {
    let mut jobs = fleet();
    let hourly = job("every 1h");
    let state = remember(&hourly, "good 10:00-10:10, failed 3 until 10:20, next 11:00, paused by system");
    jobs.rows.insert("z-gave-up".parse().unwrap(), (hourly.terms.clone(), state));
    let roster = roster_of(&jobs);
    assert_eq!(roster.counts().in_condition(Condition::Error), 3);
    assert_eq!(roster.counts().with_reason(Reason::PausedFailures), 1);
    assert_eq!(roster.counts().in_status(Status::Paused), 2);
    let errors = roster.page(Which::Condition(Condition::Error), None, 9);
    assert_eq!(errors.into_iter().map(JobKey::as_str).collect::<Vec<_>>(), ["b-late", "h-late", "z-gave-up"]);
    assert_eq!(roster.page(Which::Untracked, None, 9).len(), 2);
}

#[test]
fn what_needs_attention_comes_by_urgency_and_with_its_cause() {
    let mut jobs = fleet();
    let hourly = job("every 1h");
    let mut dark = job("every 1h");
    dark.blackouts = super::plain::blackout("11:00", "11:30");
    let mut put = |key: &str, job: &Job, memory: &str| jobs.put(key, job, remember(job, memory));
    put("i-sooner", &job("every 30m"), "good 08:00-08:10, next 10:00");
    put("j-dark", &dark, "good 08:30-08:40, next 10:00");
    put("k-gave-up", &hourly, "good 10:00-10:10, failed 3 until 10:20, next 11:00, paused by system");
    let roster = roster_of(&jobs);
    let told = |cause: Option<AttentionCause>, condition: Option<Condition>| -> String {
        let lines = roster.most_urgent(cause, condition);
        let told = lines.map(|it| format!("{} {}", it.key, it.cause.map_or("none", AttentionCause::as_str)));
        told.collect::<Vec<_>>().join(", ")
    };
    assert_eq!(
        told(None, None),
        "i-sooner waiting, b-late waiting, h-late waiting, j-dark blackout, k-gave-up given_up, d-failed failed, \
         g-running running"
    );
    assert_eq!(told(Some(AttentionCause::Waiting), None), "i-sooner waiting, b-late waiting, h-late waiting");
    assert_eq!(told(None, Some(Condition::Warning)), "d-failed failed, g-running running");
    let counts = roster.counts();
    assert_eq!((counts.late(AttentionCause::Waiting), counts.at_risk(AttentionCause::Waiting)), (3, 0));
    assert_eq!((counts.late(AttentionCause::Failed), counts.at_risk(AttentionCause::Failed)), (0, 1));
    let browsers: Pool = "browsers".parse().unwrap();
    assert_eq!(roster.counts_of(&browsers).unwrap().late(AttentionCause::Waiting), 1);
    let here = roster.most_urgent(None, None).filter(|it| it.is_in(roster.pool(&browsers)));
    assert_eq!(here.map(|it| it.key.as_str()).collect::<Vec<_>>(), ["h-late", "g-running"]);
    assert_eq!(roster.running().map(|it| it.key.as_str()).collect::<Vec<_>>(), ["g-running"]);
}
