//! What is explained is what is decided (B15).

use proptest::prelude::*;

use super::harness::{Harness, named};
use crate::blackout::{BlackoutPeriod, Blackouts, Weekdays};
use crate::condition::Reason;
use crate::engine::{Command, Engine, Event, Now, PoolSettings, Settings, StartRate};
use crate::explain::{Binding, Explanation};
use crate::ids::{JobKey, Pool};
use crate::job::Job;
use crate::job::sample::instant;
use crate::run::Outcome;
use crate::store::CounterLimit;

fn explained(engine: &Engine, now: Now, key: &str) -> String {
    let binding = engine.explain(now, &key.parse().unwrap()).unwrap().binding;
    format!("{binding} ({})", binding.reason())
}

#[test]
fn the_binding_constraint_is_named() {
    let site: crate::ids::Site = "shop".parse().unwrap();
    let mut settings = Settings::new("n1".parse().unwrap(), None, 4);
    settings.sites.insert(site.clone(), CounterLimit { max_open: Some(1), ..CounterLimit::default() });
    let mut jobs = vec![
        named("first", "every 1h", "50m"),
        named("shop1", "every 1h", "40m"),
        named("shop2", "every 1h", "39m"),
        named("short", "every 1h", "30m"),
        named("costly", "every 1h", "20m"),
        named("later", "cron 30 10 * * *", "1m"),
    ];
    jobs[1].site = Some(site.clone());
    jobs[2].site = Some(site);
    jobs.push(named("elsewhere", "every 1h", "1m"));
    jobs[4].place.cost = 2;
    jobs[6].place.run_on_nodes = vec!["n2".parse().unwrap()];
    let mut harness = Harness::with(settings, &jobs, "10:00");
    let now = harness.now();
    // The claim is on its way.
    assert_eq!(explained(&harness.engine, now, "first"), "It is being claimed, and starts in a moment. (ok)");
    harness.starts();
    insta::assert_snapshot!(
        ["first", "shop2", "costly", "later", "elsewhere"]
            .map(|key| format!("{key}: {}", explained(&harness.engine, now, key)))
            .join("\n")
    );
}

/// A node with one default pool.
fn node(capacity: u32, reserved: u32) -> Settings {
    let mut settings = Settings::new("n1".parse().unwrap(), None, capacity);
    settings.pools.insert(Pool::default_pool(), PoolSettings { capacity, reserved });
    settings
}

/// One job, due at 10:00 on such a node, and how it is explained once what can start has started.
#[track_caller]
fn check(settings: Settings, schedule: &str, change: impl Fn(&mut Job), expected: &str) {
    let mut it = named("it", schedule, "30m");
    change(&mut it);
    let mut harness = Harness::with(settings, &[it], "10:00");
    harness.starts();
    assert_eq!(explained(&harness.engine, harness.now(), "it"), expected);
}

fn blackout(job: &mut Job, start: &str, end: &str) {
    let period = BlackoutPeriod::new(start.parse().unwrap(), end.parse().unwrap(), Weekdays::ALL).unwrap();
    job.blackouts = Blackouts::new(vec![period]).unwrap();
}

#[test]
fn a_run_that_does_not_fit_before_a_blackout_says_so() {
    check(
        node(4, 0),
        "every 1h",
        |job| blackout(job, "10:20", "10:40"),
        "A run would not end before the next blackout begins. (blackout_ahead)",
    );
    check(
        node(4, 0),
        "every 1h",
        |job| blackout(job, "09:50", "10:40"),
        "It is in a blackout period. (blackout)",
    );
}

#[test]
fn units_that_are_reserved_are_told_apart_from_none_at_all() {
    check(
        node(1, 1),
        "every 1h",
        |_| {},
        "The only free units of pool `default` are reserved for manual and short runs. (reserved)",
    );
    check(
        node(3, 2),
        "every 1h",
        |job| job.place.cost = 2,
        "Pool `default` has 1 unit free outside the reserve for manual and short runs, but the job needs 2. (reserved)",
    );
}

#[test]
fn a_job_that_no_node_can_take_names_the_cause() {
    check(
        node(4, 0),
        "every 1h",
        |job| job.place.pool = "nosuchpool".parse().unwrap(),
        "No node can take it: no living node has pool `nosuchpool`. (no_node)",
    );
    check(
        node(4, 0),
        "every 1h",
        |job| job.place.cost = 5,
        "No node can take it: it needs 5 units, but no living node has more than 4 units in pool `default`. (no_node)",
    );
    check(
        node(4, 0),
        "every 1h",
        |job| job.place.dont_run_on_nodes = vec!["n1".parse().unwrap()],
        "No node can take it: `dont_run_on_nodes` excludes every living node. (no_node)",
    );
    check(
        node(4, 0),
        "every 1h",
        |job| {
            job.place.run_on_nodes = vec!["n1".parse().unwrap()];
            job.place.dont_run_on_nodes = vec!["n1".parse().unwrap()];
        },
        "No node can take it: every node in `run_on_nodes` is also in `dont_run_on_nodes`. (no_node)",
    );
}

#[test]
fn the_condition_of_a_job_that_no_node_can_take_is_a_warning_with_the_same_cause() {
    let mut it = named("it", "every 1h", "1m");
    it.place.pool = "chrome".parse().unwrap();
    let harness = Harness::with(node(4, 0), &[it], "10:00");
    let explanation = harness.engine.explain(harness.now(), &"it".parse().unwrap()).unwrap();
    assert_eq!(explanation.assessment.reason(), Reason::Unsatisfiable);
    let cause = "no living node has pool `chrome`";
    assert!(explanation.assessment.sentence().contains(cause), "{}", explanation.assessment.sentence());
    assert!(explanation.binding.to_string().contains(cause), "{}", explanation.binding);
}

#[test]
fn no_start_is_foreseen_for_a_job_that_no_node_can_take() {
    let mut job = named("browser", "cron 30 10 * * *", "1m");
    job.place.pool = "chrome".parse().unwrap();
    let harness = Harness::with(node(4, 0), &[job.clone()], "10:00");
    let found = harness.engine.explain(harness.now(), &job.key).unwrap();
    assert_eq!((found.binding.reason(), found.starts_at), (Reason::NeverRun, None));
    let later = harness.engine.explain_at(&job.key, instant("10:10")).unwrap();
    assert_eq!((later.binding.reason(), later.starts_at), (Reason::NeverRun, None));
}

#[test]
fn a_job_that_is_done_says_so() {
    let mut harness = Harness::with(node(4, 0), &[named("it", "once 10:00", "30m")], "10:00");
    assert_eq!(harness.starts(), "it");
    assert_eq!(explained(&harness.engine, harness.now(), "it"), "It is running. (running)");
    harness.pass_to("10:30");
    harness.ends("it", Outcome::Succeeded);
    let expected = "It is done; its schedule has no more runs. (done)";
    assert_eq!(explained(&harness.engine, harness.now(), "it"), expected);
}

#[test]
fn a_drained_node_is_named() {
    let mut harness = Harness::with(node(4, 0), &[named("it", "every 1h", "30m")], "10:01");
    harness.is_draining = true;
    harness.beat();
    harness.pass_to("10:02");
    let expected = "Node `n1` is draining and takes no new runs. (draining)";
    assert_eq!(explained(&harness.engine, harness.now(), "it"), expected);
}

#[test]
fn each_limit_has_a_code_of_its_own() {
    let one = CounterLimit { max_open: Some(1), ..CounterLimit::default() };
    let explained_second = |settings: Settings, change: fn(&mut Job)| {
        let mut jobs = vec![named("it@a", "every 1h", "30m"), named("it@b", "every 1h", "20m")];
        jobs.iter_mut().for_each(change);
        let mut harness = Harness::with(settings, &jobs, "10:00");
        assert_eq!(harness.starts(), "it@a");
        explained(&harness.engine, harness.now(), "it@b")
    };
    let mut settings = node(4, 0);
    settings.sites.insert("shop".parse().unwrap(), one);
    let by_site = explained_second(settings, |job| job.site = Some("shop".parse().unwrap()));
    assert_eq!(by_site, "Site `shop` is at its limit. (site)");
    let mut settings = node(4, 0);
    settings.tenants.insert("acme".parse().unwrap(), one);
    let by_tenant = explained_second(settings, |job| job.tenant = Some("acme".parse().unwrap()));
    assert_eq!(by_tenant, "Tenant `acme` has used up its quota of concurrent jobs. (quota_concurrency)");
    let mut settings = node(4, 0);
    settings.all_runs = one;
    let by_all = explained_second(settings, |_| {});
    assert_eq!(by_all, "The quota of concurrent jobs is used up. (quota_concurrency)");
    let by_name = explained_second(node(4, 0), |job| job.max_parallel_of_name = Some(1));
    assert_eq!(by_name, "Jobs named `it` have reached `max_parallel_of_name`. (parallel_of_name)");
    assert_eq!(
        explained_second(node(1, 0), |_| {}),
        "Pool `default` is full, and the job needs 1 unit. (no_slot)"
    );
}

fn settings() -> impl Strategy<Value = Settings> {
    (1_u32..6, 0_u32..2, any::<bool>(), prop::option::of(1_u32..4), 0_u32..=100).prop_map(
        |(capacity, reserved, lookahead, burst, late_share)| {
            let mut settings = Settings::new("n1".parse().unwrap(), None, capacity);
            settings.pools.insert(Pool::default_pool(), PoolSettings { capacity, reserved });
            settings.dispatch.lookahead = lookahead;
            settings.dispatch.late_share = late_share;
            settings.dispatch.start_rate = burst.map(|burst| StartRate { per_second: 1, burst });
            let limit = CounterLimit { max_open: Some(1), ..CounterLimit::default() };
            settings.sites.insert("shop".parse().unwrap(), limit);
            settings
        },
    )
}

fn fleet() -> impl Strategy<Value = Vec<Job>> {
    let schedules = prop::sample::select(vec![
        "every 1h",
        "every 10m",
        "every 4h",
        "fresh 2h",
        "cron 5 10 * * * within 20m",
        "cron 30 10 * * *",
        "once 10:00 within 30m",
        "manual",
    ]);
    let one = (schedules, 1_i64..90, 1_u32..8, 0..8);
    prop::collection::vec(one, 1..14).prop_map(|all| {
        all.into_iter()
            .enumerate()
            .map(|(n, (schedule, minutes, cost, kind))| {
                let mut job = named(&format!("j{n:02}"), schedule, &format!("{minutes}m"));
                job.place.cost = cost;
                match kind {
                    0 => job.site = Some("shop".parse().unwrap()),
                    1 => job.max_parallel_of_name = Some(1),
                    2 if n % 3 == 0 => job.place.dont_run_on_nodes = vec!["n1".parse().unwrap()],
                    3 if n % 4 == 0 => job.enabled = false,
                    4 => blackout(&mut job, "10:20", "10:40"),
                    5 => blackout(&mut job, "09:30", "10:10"),
                    6 => job.place.pool = "nosuchpool".parse().unwrap(),
                    _ => {}
                }
                job
            })
            .collect()
    })
}

/// What the engine bids for when it is woken.
fn bids(engine: &mut Engine, now: Now) -> Vec<JobKey> {
    let commands = engine.handle(now, Event::Woke);
    let bids = commands.into_iter().filter_map(|command| match command {
        Command::Claim { bids, .. } => Some(bids),
        _ => None,
    });
    bids.flatten().map(|bid| bid.key).collect()
}

/// An explanation follows from the plan that dispatch carries out.
fn check_binding(engine: &Engine, now: Now, job: &Job) -> Result<(), TestCaseError> {
    let Some(Explanation { binding, assessment, .. }) = engine.explain(now, &job.key) else { return Ok(()) };
    let entry = engine.view.find(&job.key).unwrap();
    let from = engine.starts_from(entry, now.wall);
    let free = engine.pools.get(&job.place.pool).map_or(0, crate::engine::PoolLine::free);
    match &binding {
        // The one that ends last decides, and the engine looks at the job again just then.
        Binding::Own(wait) => prop_assert_eq!(wait.until, from, "{}", binding),
        Binding::NoNode(why) => {
            prop_assert!(!engine.may_take(job) && why.is_some(), "{}", binding);
            prop_assert!(assessment.reasons.contains(&Reason::Unsatisfiable));
        }
        Binding::NoRoom { free, needed, .. } => prop_assert!(free < needed, "{}", binding),
        Binding::Reserved { free: unreserved, needed, .. } => {
            prop_assert!(unreserved < needed && *needed <= free, "{}", binding);
        }
        _ => {}
    }
    let waits_for_others = !matches!(binding, Binding::Own(_) | Binding::Running | Binding::NoNode(_));
    prop_assert!(!waits_for_others || engine.may_take(job), "{}", binding);
    Ok(())
}

proptest! {
    /// Of every job: it is explained as starting now if and only if it starts now.
    #[test]
    fn explanation_and_decision_agree(settings in settings(), jobs in fleet(), minutes in 0_i64..120) {
        let mut harness = Harness::with(settings, &jobs, "10:00");
        harness.starts();
        let then = instant("10:00") + crate::time::Duration::from_mins(minutes);
        harness.pass_to(&then.to_string());
        // The beat and the feed come first; what they bring is decided at once, so ask right before.
        let now = harness.now();
        harness.engine.promote(now.wall);
        let explained: Vec<JobKey> = jobs
            .iter()
            .filter(|job| {
                let explanation = harness.engine.explain(now, &job.key);
                explanation.is_some_and(|it| it.binding == Binding::StartsNow)
            })
            .map(|job| job.key.clone())
            .collect();
        for job in &jobs {
            check_binding(&harness.engine, now, job)?;
        }
        let mut decided = bids(&mut harness.engine, now);
        decided.sort();
        prop_assert_eq!(explained, decided);
    }
}
