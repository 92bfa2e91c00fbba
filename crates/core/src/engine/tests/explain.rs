//! What is explained is what is decided (B15).

use proptest::prelude::*;

use super::desk::{Desk, named};
use crate::engine::{Command, Engine, Event, Now, PoolSettings, Settings, StartRate};
use crate::explain::Binding;
use crate::ids::{JobKey, Pool};
use crate::job::Job;
use crate::job::sample::instant;
use crate::store::CounterLimit;

fn explained(engine: &Engine, now: Now, key: &str) -> String {
    engine.explain(now, &key.parse().unwrap()).unwrap().binding.to_string()
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
    let mut desk = Desk::with(settings, &jobs, "10:00");
    let now = desk.now();
    // The claim is on its way.
    assert_eq!(explained(&desk.engine, now, "first"), "the store is being asked for it");
    desk.starts();
    insta::assert_snapshot!(
        ["first", "shop2", "costly", "later", "elsewhere"]
            .map(|key| format!("{key}: {}", explained(&desk.engine, now, key)))
            .join("\n")
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
    let one = (schedules, 1_i64..90, 1_u32..4, 0..5);
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

proptest! {
    /// Of every job: it is explained as starting now if and only if it starts now.
    #[test]
    fn explanation_and_decision_agree(settings in settings(), jobs in fleet(), minutes in 0_i64..120) {
        let mut desk = Desk::with(settings, &jobs, "10:00");
        desk.starts();
        let then = instant("10:00") + crate::time::Duration::from_mins(minutes);
        desk.pass_to(&then.to_string());
        // The beat and the feed come first; what they bring is decided at once, so ask right before.
        let now = desk.now();
        desk.engine.promote(now.wall);
        let explained: Vec<JobKey> = jobs
            .iter()
            .filter(|job| {
                let explanation = desk.engine.explain(now, &job.key);
                explanation.is_some_and(|it| it.binding == Binding::StartsNow)
            })
            .map(|job| job.key.clone())
            .collect();
        let mut decided = bids(&mut desk.engine, now);
        decided.sort();
        prop_assert_eq!(explained, decided);
    }
}
