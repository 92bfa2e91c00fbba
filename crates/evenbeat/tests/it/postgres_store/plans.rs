//! Rebalance plans of one node, applied by another.

use std::collections::BTreeMap;
use std::time::Duration as Length;

use evenbeat::testing::app::housekeeping::HousekeepingRules;
use evenbeat::testing::app::{App, AppParts, AppTasks};
use evenbeat::testing::clock::Clock;
use evenbeat::testing::config::{AgendaSettings, AlertSettings, MetricsSettings};
use evenbeat::testing::exec::Router;
use evenbeat::testing::intake::{Actor, IntakeError, JobPolicy, PreviewLimits};
use evenbeat::testing::node::NodeIdentity;
use evenbeat::testing::store::any::AnyStore;
use evenbeat::testing::target::news_channel;
use evenbeat::testing::target::noop::Noop;
use evenbeat_core::engine::Settings;
use evenbeat_core::ids::{NodeName, Pool};
use evenbeat_core::lease::{Timings, TimingsSpec};
use evenbeat_core::placement::Balance;
use evenbeat_core::schedule::Placement;
use evenbeat_core::store::{JobRow, NewPlan, PlanId, PutJob, Store, Views};
use evenbeat_core::time::Duration;

use crate::postgres_store::fleet::{Fleet, again, create, new_job};
use crate::postgres_store::history::set_clock;
use crate::support::postgres::{Database, Way, runtime};

fn node(database: &Database, name: &str, no: u128) -> (App, AppTasks) {
    let node: NodeName = name.parse().unwrap();
    let clock = Clock::system();
    let (to_news, news) = news_channel();
    let noop = Noop::new(Length::ZERO, clock.clone(), to_news.clone());
    let parts = AppParts {
        exec: Router::only(noop, clock.clone(), to_news),
        news,
        clock,
        store: AnyStore::Postgres(database.store(Way::Direct).store),
        identity: NodeIdentity {
            node: node.clone(),
            instance: "main".to_owned(),
            boot_id: no,
            home: no,
            pools: BTreeMap::from([(Pool::default_pool(), 8)]),
        },
        settings: Settings::new(node, Some(Timings::new(TimingsSpec::DEFAULT).unwrap()), 8),
        balance: Balance::default(),
        agenda: AgendaSettings::default(),
        allowed: JobPolicy::default(),
        preview_limits: PreviewLimits::default(),
        metrics: MetricsSettings::default(),
        traces: None,
        alerts: AlertSettings::default(),
        keep: HousekeepingRules::default(),
    };
    let app = App::start(parts).unwrap();
    let read = async { tokio::time::timeout(Length::from_mins(1), app.0.fleet.read()).await };
    runtime().block_on(read).unwrap();
    app
}

/// Jobs every 6 hours that all come due at one time, three hours from now.
fn crowded(fleet: &mut Fleet) -> Vec<JobRow> {
    let placed_at = fleet.now - Duration::from_days(2);
    let puts: Vec<PutJob> = (0..12)
        .map(|no| {
            let mut put = new_job(&format!("job-{no:02}"), fleet.now);
            let mut job = evenbeat_core::job::Job::clone(&put.job);
            let interval = Duration::from_hours(6);
            job.terms.schedule = evenbeat_core::schedule::Schedule::Every { interval, finish_within: None };
            put.state.place(&job, Placement::at(fleet.now + Duration::from_hours(3), placed_at));
            PutJob { job: job.into(), ..put }
        })
        .collect();
    create(&mut fleet.store, &puts)
}

#[test]
fn a_plan_of_one_node_is_applied_by_another() {
    let mut fleet = Fleet::new();
    let before = crowded(&mut fleet);
    let runtime = runtime();
    let _entered = runtime.enter();
    let (one, _one) = node(&fleet.database, "one", 11);
    let (other, _other) = node(&fleet.database, "other", 12);
    let ann = Actor("ann".to_owned());
    let plan = runtime.block_on(one.intake.plan_rebalance(&ann)).unwrap();
    assert!(5 < plan.plan.moves.len(), "{:?}", plan.plan);
    let done = runtime.block_on(other.intake.rebalance(&ann, plan.id)).unwrap();
    let keys = |moves: &[evenbeat_core::placement::Move]| -> Vec<String> {
        moves.iter().map(|it| it.key.to_string()).collect()
    };
    assert_eq!(keys(&done.moved), keys(&plan.plan.moves));
    for it in &done.moved {
        let row = fleet.store.job(&it.key).unwrap().unwrap();
        assert_eq!(row.state.next_run_at, Some(it.new_time));
        let was = before.iter().find(|row| row.job.key == it.key).unwrap();
        assert_eq!(row.revision.0, was.revision.0 + 1);
    }
    let again = runtime.block_on(one.intake.rebalance(&ann, plan.id)).unwrap_err();
    assert!(matches!(again, IntakeError::NoSuchPlan { .. }), "{again}");
}

#[test]
fn a_plan_meets_an_edit_of_another_node() {
    let mut fleet = Fleet::new();
    let rows = crowded(&mut fleet);
    let runtime = runtime();
    let _entered = runtime.enter();
    let (one, _one) = node(&fleet.database, "one", 11);
    let ann = Actor("ann".to_owned());
    let plan = runtime.block_on(one.intake.plan_rebalance(&ann)).unwrap();
    let edited = PutJob { is_revision: true, ..again(&rows[3]) };
    fleet.store.put_jobs(&[edited]).unwrap();
    let refused = runtime.block_on(one.intake.rebalance(&ann, plan.id)).unwrap_err();
    assert!(matches!(refused, IntakeError::PlanIsOld { .. }), "{refused}");
    for row in rows {
        let now = fleet.store.job(&row.job.key).unwrap().unwrap();
        assert_eq!(now.state.next_run_at, row.state.next_run_at, "{} has moved", row.job.key);
    }
}

#[test]
fn a_plan_is_kept_for_an_hour_by_the_servers_clock() {
    let mut fleet = Fleet::new();
    let now = fleet.now;
    set_clock(&fleet, now);
    let plan = NewPlan { id: PlanId(7), caller: "ann".to_owned(), text: "x".into() };
    fleet.store.put_plan(&plan).unwrap();
    set_clock(&fleet, now + Duration::from_mins(59));
    assert!(fleet.store.plan(PlanId(7)).unwrap().is_some());
    set_clock(&fleet, now + Duration::from_mins(60));
    assert_eq!(fleet.store.plan(PlanId(7)).unwrap(), None);
    fleet.store.put_plan(&NewPlan { id: PlanId(8), ..plan }).unwrap();
    let sql = "SELECT count(*) FROM rebalance_plan";
    let n_left: i64 = runtime().block_on(fleet.database.connect().query_one(sql, &[])).unwrap().get(0);
    assert_eq!(n_left, 1);
}
