//! Who starts, in which order, and who is passed over (B3, B6, B11, B12).

use super::harness::{Harness, named};
use crate::engine::{Command, Event, PoolSettings, Settings, StartRate};
use crate::ids::{ExtraId, Pool, RunId};
use crate::job::sample::instant;
use crate::job::{Extra, Job};
use crate::run::Outcome;
use crate::store::{Changes, ClaimAnswer, Claims, CounterKey, CounterLimit, Cursor};
use crate::time::Duration;

fn node(capacity: u32) -> Settings {
    Settings::new("n1".parse().unwrap(), None, capacity)
}

/// Which of these jobs, due at 10:00, start then, in order.
#[track_caller]
fn check(settings: Settings, jobs: &[Job], expected: &str) {
    let mut harness = Harness::with(settings, jobs, "10:00");
    assert_eq!(harness.starts(), expected);
}

#[test]
fn the_nearest_latest_start_goes_first_whatever_the_schedule() {
    let jobs = [
        named("every", "every 1h", "10m"),
        named("fresh", "fresh 40m", "10m"),
        named("cron", "cron 0 10 * * * within 2h", "10m"),
        named("once", "once 10:00 within 20m", "1m"),
        named("long", "every 1h", "50m"),
    ];
    check(node(9), &jobs, "long once fresh every cron");
}

#[test]
fn a_node_takes_no_more_than_it_can_carry() {
    let mut jobs: Vec<Job> =
        (0..5).map(|n| named(&format!("j{n}"), "every 1h", &format!("{}m", 30 - n))).collect();
    check(node(2), &jobs, "j0 j1");
    jobs[0].place.cost = 3;
    jobs[1].place.cost = 2;
    check(node(4), &jobs, "j0 j2");
}

#[test]
fn the_first_run_of_a_request_is_claimed_under_its_id() {
    // The harness's store is in its first epoch.
    for (requested_in, expected) in [(Some(1), Some(RunId(7))), (Some(2), None), (None, None)] {
        let mut harness = Harness::with(node(1), &[named("a", "every 1h", "10m")], "10:30");
        let extra = Extra { requested_in, ..Extra::manual(ExtraId(7), instant("10:00")) };
        let row = harness.rows.get_mut("a").unwrap();
        row.state.extras.push(extra);
        row.version.0 += 1;
        let rows = vec![row.news()];
        let next = Cursor { epoch: harness.epoch, position: 2 };
        let commands = harness.tell_raw(Event::Changed(Ok(Changes::Rows { rows, next, is_last: true })));
        let claimed = commands.iter().find_map(|it| match it {
            Command::Claim { bids, .. } => Some(bids[0].run),
            _ => None,
        });
        assert_eq!(claimed, Some(expected), "{requested_in:?}");
    }
}

#[test]
fn a_run_for_the_past_does_not_wait_for_the_next_occurrence() {
    let job = named("a", "every 1h", "10m");
    let mut harness = Harness::with(node(1), std::slice::from_ref(&job), "10:30");
    assert_eq!(harness.starts(), "");
    let extra = Extra::backfill(ExtraId(7), instant("06:00"), instant("10:00"));
    harness.rows.get_mut("a").unwrap().state.extras.push(extra);
    harness.rows.get_mut("a").unwrap().version.0 += 1;
    harness.load();
    assert_eq!(harness.starts(), "a");
    harness.pass_to("10:10");
    harness.ends("a", Outcome::Succeeded);
    assert_eq!(harness.rows["a"].state.next_run_at, Some(instant("10:30")), "its own goes on as before");
}

#[test]
fn what_a_node_may_not_run_it_does_not_take() {
    let mut jobs: Vec<Job> = (0..4).map(|n| named(&format!("j{n}"), "every 1h", "5m")).collect();
    jobs[0].place.dont_run_on_nodes = vec!["n1".parse().unwrap()];
    jobs[1].place.run_on_nodes = vec!["n2".parse().unwrap()];
    jobs[2].place.pool = "gpu".parse().unwrap();
    check(node(9), &jobs, "j3");
}

#[test]
fn a_reserve_is_for_short_and_manual_runs() {
    let mut settings = node(2);
    let reserved = PoolSettings { capacity: 2, reserved: 1 };
    settings.pools.insert(Pool::default_pool(), reserved);
    let jobs = [
        named("long1", "every 1h", "50m"),
        named("long2", "every 1h", "40m"),
        named("short", "every 1h", "5s"),
    ];
    check(settings, &jobs, "long1 short");
}

#[test]
fn late_work_leaves_its_share_to_what_can_still_be_saved() {
    let late = |n: i32| named(&format!("late{n}"), "every 10m", "30m");
    let mut jobs: Vec<Job> = (0..6).map(late).collect();
    jobs.extend((0..4).map(|n| named(&format!("savable{n}"), "every 4h", "30m")));
    let mut harness = Harness::with(node(4), &jobs, "10:00");
    let started = harness.starts();
    let n_late = started.split(' ').filter(|it| it.starts_with("late")).count();
    assert_eq!((n_late, started.split(' ').count()), (2, 4), "{started}");
    // Nothing that can be saved waits: late work takes what there is.
    let mut harness = Harness::with(node(4), &jobs[..6], "10:00");
    assert_eq!(harness.starts().split(' ').count(), 4);
}

#[test]
fn a_pool_of_one_unit_is_shared_by_turns() {
    let jobs: Vec<Job> = [named("late1", "every 10m", "30m"), named("late2", "every 10m", "30m")]
        .into_iter()
        .chain([named("savable1", "every 4h", "30m"), named("savable2", "every 4h", "30m")])
        .collect();
    let mut harness = Harness::with(node(1), &jobs, "10:00");
    let mut order = vec![harness.starts()];
    for minute in ["10:01", "10:02", "10:03"] {
        harness.pass_to(minute);
        let last = order.last().unwrap().clone();
        order.push(harness.ends(&last, Outcome::Succeeded));
    }
    let kinds: Vec<&str> = order.iter().map(|it| it.trim_end_matches(char::is_numeric)).collect();
    assert_eq!(kinds, ["late", "savable", "late", "savable"]);
}

#[test]
fn the_last_room_is_kept_for_what_will_soon_need_it_more() {
    // The long one may start by 13:00; the short one becomes due at 10:10 and must start by 10:15.
    let jobs = [named("long", "every 4h", "1h"), named("short", "cron 10 10 * * * within 10m", "5m")];
    let mut harness = Harness::with(node(1), &jobs, "10:00");
    assert_eq!(harness.starts(), "");
    assert!(!harness.at("10:09").contains("claim"), "nothing has changed");
    harness.pass_to("10:10");
    assert_eq!(harness.starts(), "short");
    harness.pass_to("10:15");
    assert_eq!(harness.ends("short", Outcome::Succeeded), "long");

    let mut eager = node(1);
    eager.dispatch.lookahead = false;
    check(eager, &jobs, "long");
    check(node(2), &jobs, "long");
    // It must start first itself.
    let jobs = [named("long", "every 61m", "1h"), named("short", "cron 10 10 * * * within 10m", "5m")];
    check(node(1), &jobs, "long");
}

#[test]
fn room_is_kept_for_all_who_come_at_once() {
    // At 10:01 one of two units is free, the other will be at 10:12: in time for one short run that must start by
    // 10:15, but not for three.
    let short = |n: u32| named(&format!("short{n}"), "cron 10 10 * * * within 10m", "5m");
    let first_at = |n_short: u32| {
        let mut jobs = vec![named("first", "every 1h", "12m"), named("long", "cron 1 10 * * *", "1h")];
        jobs.extend((0..n_short).map(short));
        let mut harness = Harness::with(node(2), &jobs, "10:00");
        assert_eq!(harness.starts(), "first");
        harness.pass_to("10:01");
        harness.starts()
    };
    assert_eq!(first_at(1), "long");
    assert_eq!(first_at(3), "");
}

#[test]
fn late_work_beyond_its_share_leaves_room_to_what_will_soon_be_due() {
    // Two that are late for ever, and one that is due at 10:10 and must start by 10:15.
    let jobs = [
        named("late1", "every 10m", "2h"),
        named("late2", "every 10m", "2h"),
        named("short", "cron 10 10 * * * within 10m", "5m"),
    ];
    let mut harness = Harness::with(node(2), &jobs, "10:00");
    assert_eq!(harness.starts().split(' ').count(), 1, "half of two units");
    harness.pass_to("10:10");
    assert_eq!(harness.starts(), "short");
}

#[test]
fn what_is_never_in_time_keeps_to_its_share_while_others_come_due_before_its_end() {
    let with = |others: &str, lookahead: bool| {
        let mut jobs: Vec<Job> = (0..4).map(|n| named(&format!("late{n}"), "every 10m", "2h")).collect();
        jobs.push(named("other", others, "30s"));
        let mut settings = node(4);
        settings.dispatch.lookahead = lookahead;
        let mut harness = Harness::with(settings, &jobs, "10:00");
        harness.starts().split(' ').filter(|it| it.starts_with("late")).count()
    };
    // It will be there again and again until they are over, whatever room they leave it the first time.
    assert_eq!(with("cron 10,40 * * * * within 30m", true), 2);
    assert_eq!(with("cron 10,40 * * * * within 30m", false), 2);
    // They are over by then.
    assert_eq!(with("cron 10 13 * * * within 30m", true), 4);
}

#[test]
fn a_large_job_that_is_more_urgent_is_not_passed_for_ever() {
    let mut jobs = vec![named("first", "every 1h", "30m"), named("large", "every 1h", "20m")];
    jobs.push(named("short", "every 2h", "10m"));
    jobs.push(named("long", "every 3h", "45m"));
    jobs[1].place.cost = 2;
    let mut harness = Harness::with(node(2), &jobs, "10:00");
    // `first` will be over at 10:30. `short` will be over by then, `long` would still be there.
    assert_eq!(harness.starts(), "first short");
    harness.pass_to("10:10");
    assert_eq!(harness.ends("short", Outcome::Succeeded), "");
    harness.pass_to("10:30");
    assert_eq!(harness.ends("first", Outcome::Succeeded), "large");
}

#[test]
fn runs_start_no_faster_than_they_may() {
    let mut settings = node(9);
    settings.dispatch.start_rate = Some(StartRate { per_second: 1, burst: 2 });
    let jobs: Vec<Job> =
        (0..5).map(|n| named(&format!("j{n}"), "every 1h", &format!("{}m", 30 - n))).collect();
    let mut harness = Harness::with(settings, &jobs, "10:00");
    assert_eq!(harness.starts(), "j0 j1");
    assert_eq!(harness.starts(), "");
    assert_eq!(harness.engine.wake_at(harness.now()), Some(harness.now().boot + Duration::from_secs(1)));
    harness.pass_to("10:00:01");
    assert_eq!(harness.starts(), "j2");
}

#[test]
fn tenants_without_a_plan_of_their_own_and_all_together_have_limits_too() {
    let most = |n: u32| CounterLimit { max_open: Some(n), ..CounterLimit::default() };
    let job = |n: u32, tenant: &str| {
        let mut job = named(&format!("{tenant}{n}"), "every 1h", &format!("{}m", 30 - n));
        job.tenant = Some(tenant.parse().unwrap());
        job
    };
    let jobs = [job(0, "a"), job(1, "a"), job(2, "b"), job(3, "b"), job(4, "big"), job(5, "big")];
    let mut settings = node(9);
    settings.other_tenants = most(1);
    settings.tenants.insert("big".parse().unwrap(), CounterLimit::default());
    check(settings.clone(), &jobs, "a0 b2 big4 big5");
    settings.all_runs = most(3);
    check(settings, &jobs, "a0 b2 big4");
    assert_eq!(CounterKey::all_runs().to_string(), "the quota of all jobs");
}

#[test]
fn a_limit_that_spans_nodes_is_asked_for_and_not_asked_again_while_it_is_known_to_be_full() {
    let site: crate::ids::Site = "shop".parse().unwrap();
    let mut settings = node(9);
    settings.sites.insert(site.clone(), CounterLimit { max_open: Some(2), ..CounterLimit::default() });
    let mut jobs: Vec<Job> =
        (0..4).map(|n| named(&format!("j{n}"), "every 1h", &format!("{}m", 30 - n))).collect();
    for job in &mut jobs {
        job.site = Some(site.clone());
    }
    jobs.push(named("other", "every 1h", "1m"));
    let mut harness = Harness::with(settings.clone(), &jobs, "10:00");
    assert_eq!(harness.starts(), "j0 j1 other");
    harness.pass_to("10:05");
    assert_eq!(harness.ends("j0", Outcome::Succeeded), "j2", "one comes when one goes");

    // Another node has the site: the store says so, and is not asked again for a second.
    let mut harness = Harness::with(settings, &jobs, "10:00");
    let refused = || ClaimAnswer::Limited { by: CounterKey::Site(site.clone()), until: None };
    let claims = vec![
        ("j0".parse().unwrap(), RunId(1)),
        ("j1".parse().unwrap(), RunId(2)),
        ("other".parse().unwrap(), RunId(3)),
    ];
    let answers = vec![refused(), refused(), refused()];
    let said = harness.tell(Event::Claimed { claims, answer: Ok(Claims::Answered(answers)) });
    assert_eq!(said, "");
    assert_eq!(harness.at("10:00:00.900"), "");
    assert!(harness.at("10:00:01").starts_with("claim j0 j1"));
}

#[test]
fn too_early_by_the_stores_clock_means_later() {
    let jobs = [named("a", "every 1h", "1m")];
    let mut harness = Harness::with(node(1), &jobs, "10:00");
    let claims = vec![("a".parse().unwrap(), RunId(1))];
    let not_yet = ClaimAnswer::NotYet { until: instant("10:00:03"), now: instant("10:00") };
    let answer = Ok(Claims::Answered(vec![not_yet]));
    assert_eq!(harness.tell(Event::Claimed { claims, answer }), "");
    assert_eq!(harness.at("10:00:02"), "");
    assert_eq!(harness.at("10:00:03"), "claim a");
}

#[test]
fn who_loses_a_race_takes_the_row_as_it_is() {
    let jobs = [named("a", "every 1h", "1m")];
    let mut harness = Harness::with(node(1), &jobs, "10:00");
    let mut row = harness.rows["a"].clone();
    row.version.0 += 1;
    row.n_open = 1;
    let claims = vec![("a".parse().unwrap(), RunId(1))];
    let answer = Ok(Claims::Answered(vec![ClaimAnswer::Lost(row)]));
    assert_eq!(harness.tell(Event::Claimed { claims, answer }), "");
    assert_eq!(harness.at("10:30"), "beat; changes since", "it runs elsewhere");
}

#[test]
fn missed_occurrences_that_are_not_to_be_run_only_go_on_record() {
    let mut job = named("a", "every 10m", "1m");
    job.missed.runs = crate::missed::MissedRuns::Skip;
    let mut harness = Harness::with(node(1), &[job], "08:01");
    assert_eq!(harness.starts(), "");
    let row = &harness.rows["a"];
    assert_eq!(row.state.next_run_at, Some(instant("10:01")));
    harness.pass_to("10:01");
    assert_eq!(harness.starts(), "a");
}
