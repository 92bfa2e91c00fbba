//! A node with a real store and runs that do nothing: what it does by itself, and what people can ask of it.

use std::collections::BTreeMap;
use std::future::pending;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration as Length;

use crate::support::folder::Folder;
use crate::support::wait;
use evenbeat::testing::app::housekeeping::HousekeepingRules;
use evenbeat::testing::app::{App, AppParts, AppTasks, StopResult};
use evenbeat::testing::clock::Clock;
use evenbeat::testing::config::{AgendaSettings, AlertSettings, MetricsSettings};
use evenbeat::testing::exec::Router;
use evenbeat::testing::intake::{
    Actor, ApplyOptions, Expect, IntakeError, JobChange, JobPolicy, PreviewLimits,
};
use evenbeat::testing::jobfile::{SourceText, load};
use evenbeat::testing::node::NodeIdentity;
use evenbeat::testing::store::any::AnyStore;
use evenbeat::testing::store::sqlite::{Options, SqliteStore};
use evenbeat::testing::target::news_channel;
use evenbeat::testing::target::noop::Noop;
use evenbeat_core::edit::Refusal;
use evenbeat_core::engine::Settings;
use evenbeat_core::explain::Binding;
use evenbeat_core::ids::{JobKey, NodeName, Pool};
use evenbeat_core::job::{CommandTarget, Job, PausedBy, Target};
use evenbeat_core::placement::Balance;
use evenbeat_core::run::{Outcome, Trigger};
use evenbeat_core::store::{Cancelled, Idempotency, RunFilter, RunPhase, RunRow};
use evenbeat_core::time::{Duration, Timestamp};
use evenbeat_core::zone::Zones;

/// How often somebody looks who waits for something.
const LOOK_EVERY: Length = Length::from_millis(5);

/// How long anything may take before a test says that it never comes.
const PATIENCE: Length = wait::PATIENCE;

/// How long it takes to stop what has nothing left to do.
const DRAIN: Length = Length::from_secs(20);

fn start(folder: &Path, takes: Length) -> (App, AppTasks) {
    start_at(folder, takes, Clock::system())
}

/// A node with a time of its own.
fn start_at(folder: &Path, takes: Length, clock: Clock) -> (App, AppTasks) {
    let of_store = clock.clone();
    let options = Options { clock: Arc::new(move || of_store.now()), ..Options::default() };
    let store = SqliteStore::open(folder.join("evenbeat.db"), options).expect("a new file");
    let node: NodeName = "one".parse().expect("a name");
    let (to_news, news) = news_channel();
    let noop = Noop::new(takes, clock.clone(), to_news.clone());
    let parts = AppParts {
        exec: Router::only(noop, clock.clone(), to_news),
        news,
        clock,
        store: AnyStore::Sqlite(store),
        identity: NodeIdentity {
            node: node.clone(),
            instance: "main".to_owned(),
            boot_id: 1,
            home: 1,
            pools: BTreeMap::from([(Pool::default_pool(), 8)]),
        },
        settings: Settings::new(node, None, 8),
        balance: Balance::default(),
        agenda: AgendaSettings::default(),
        allowed: JobPolicy::default(),
        preview_limits: PreviewLimits::default(),
        metrics: MetricsSettings::default(),
        traces: None,
        alerts: AlertSettings::default(),
        keep: HousekeepingRules::default(),
    };
    App::start(parts).expect("the node starts")
}

fn people() -> Actor {
    Actor("ann".to_owned())
}

fn key(name: &str) -> JobKey {
    name.parse().expect("a key")
}

/// A job that does nothing, with these further lines.
fn job(name: &str, lines: &str) -> Job {
    let text = format!("[[job]]\nname = \"{name}\"\ncommand = [\"true\"]\n{lines}\n");
    let file = SourceText { name: "jobs.toml".to_owned(), text };
    let loaded = load(&[file], Timestamp::UNIX_EPOCH, &mut Zones::new()).expect("a good file");
    loaded.files.into_iter().flat_map(|it| it.jobs).next().expect("a job").job
}

/// Looks again and again until there is something to see.
async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let seen = async {
        // Who looks all the time takes the processor, and the disk, away from the node.
        let mut looks = tokio::time::interval(LOOK_EVERY);
        loop {
            looks.tick().await;
            if let Some(seen) = look().await {
                return seen;
            }
        }
    };
    tokio::time::timeout(PATIENCE, seen).await.unwrap_or_else(|_| panic!("{what} never came"))
}

async fn runs(app: &App, name: &str) -> Vec<RunRow> {
    let filter = RunFilter { key: Some(key(name)), is_open: false };
    app.store.runs(filter, None, 100).await.expect("the store answers")
}

async fn ended(app: &App, name: &str, n: usize) -> Vec<RunRow> {
    until(&format!("run {n} of {name}"), async || {
        let runs: Vec<RunRow> = runs(app, name).await.into_iter().filter(|it| !it.phase.is_open()).collect();
        (n <= runs.len()).then_some(runs)
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn two_nodes_in_one_process_live_each_by_its_own_time() {
    let folders = [Folder::new(), Folder::new()];
    let from: Timestamp = "2026-03-28T10:00:00Z".parse().unwrap();
    let clocks = [Clock::manual(from), Clock::manual(from)];
    let mut nodes = Vec::new();
    for (folder, clock) in folders.iter().zip(&clocks) {
        let (app, running) = start_at(folder.path(), Length::ZERO, clock.clone());
        app.fleet.read().await;
        app.intake.put(&people(), Arc::new(job("daily", "every = \"1d\"")), Expect::New).await.unwrap();
        nodes.push((app, running));
    }
    // Five days pass for the first node, one after the other, and none for the second.
    let [(first, _), (second, _)] = &nodes[..] else { panic!("two nodes") };
    for no in 1..=5 {
        clocks[0].advance(Duration::from_days(1));
        let of_day = ended(first, "daily", no).await;
        assert_eq!(of_day.len(), no, "one run a day: {of_day:?}");
    }
    assert_eq!(first.intake.now(), from + Duration::from_days(5));
    assert_eq!(second.intake.now(), from);
    assert_eq!(runs(second, "daily").await, []);
    for (_, running) in nodes {
        running.stop(DRAIN, pending()).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_is_added_runs_in_its_rhythm() {
    let folder = Folder::new();
    let (app, running) = start(folder.path(), Length::ZERO);
    let row = app.intake.put(&people(), Arc::new(job("tick", r#"every = "1s""#)), Expect::New).await.unwrap();
    let first = row.state.next_run_at.expect("it is placed");
    let runs = ended(&app, "tick", 3).await;
    let due: Vec<i64> = runs.iter().rev().map(|it| (it.due.due_at - first).as_millis()).collect();
    // A disk that stood still for a while has made it miss some, and those that ran are still where they belong.
    assert!(due.is_sorted_by(|one, next| one < next), "{due:?}");
    assert!(due.iter().all(|it| 0 <= *it && it % 1_000 == 0), "{due:?}");
    assert!(runs.iter().all(|it| it.phase == RunPhase::Ended(Outcome::Succeeded)), "{runs:?}");
    assert!(runs.iter().all(|it| it.due.due_at <= it.claimed_at), "{runs:?}");
    assert_eq!(running.stop(DRAIN, pending()).await.unwrap(), StopResult::Clean);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trigger_runs_now_and_leaves_the_rhythm_alone() {
    let folder = Folder::new();
    let (app, running) = start(folder.path(), Length::ZERO);
    let before =
        app.intake.put(&people(), Arc::new(job("daily", r#"every = "1d""#)), Expect::Any).await.unwrap();
    let idempotency = Some(Idempotency { key: 1, body: 2 });
    let id = app.intake.trigger(&people(), &key("daily"), idempotency, None).await.unwrap();
    let run = ended(&app, "daily", 1).await.remove(0);
    assert_eq!(run.run.0, id.0, "the first run has the id of the request");
    assert_eq!((run.due.trigger, run.phase), (Trigger::Manual, RunPhase::Ended(Outcome::Succeeded)));
    let after = app.store.job(&key("daily")).await.unwrap().unwrap();
    assert_eq!(after.state.next_run_at, before.state.next_run_at);
    assert_eq!(after.revision, before.revision);
    // The same request, heard late, is not another one.
    assert_eq!(app.intake.trigger(&people(), &key("daily"), idempotency, None).await.unwrap(), id);
    let other_body = Some(Idempotency { key: 1, body: 3 });
    let other = app.intake.trigger(&people(), &key("daily"), other_body, None).await;
    assert!(matches!(other, Err(IntakeError::KeyReused)), "{other:?}");
    running.stop(DRAIN, pending()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_cancelled_by_its_owner() {
    let folder = Folder::new();
    let (app, running) = start(folder.path(), Length::from_hours(1));
    app.intake.put(&people(), Arc::new(job("long", "manual = true")), Expect::Any).await.unwrap();
    app.intake.trigger(&people(), &key("long"), None, None).await.unwrap();
    let run = until("a running run", async || {
        runs(&app, "long").await.into_iter().find(|it| it.phase == RunPhase::Running)
    })
    .await;
    // A second trigger while it runs has nowhere to wait.
    let refused = app.intake.trigger(&people(), &key("long"), None, None).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "`long`: the job is running, and `overlap = \"skip\"` does not queue runs; try again when the run has ended"
    );
    assert_eq!(app.intake.cancel(&people(), run.run).await.unwrap(), Cancelled::Asked);
    let run = ended(&app, "long", 1).await.remove(0);
    assert_eq!(run.phase, RunPhase::Ended(Outcome::Cancelled));
    running.stop(DRAIN, pending()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_job_rests_and_is_placed_afresh() {
    let folder = Folder::new();
    let (app, running) = start(folder.path(), Length::ZERO);
    app.intake.put(&people(), Arc::new(job("tick", r#"every = "1s""#)), Expect::Any).await.unwrap();
    ended(&app, "tick", 1).await;
    let reason = Some("the site is down".to_owned());
    let paused = app.intake.pause(&people(), &key("tick"), reason, None).await.unwrap();
    let pause = paused.state.pause.clone().expect("it is paused");
    assert_eq!((pause.by, pause.reason.as_deref()), (PausedBy::Operator, Some("the site is down")));
    assert_eq!(app.fleet.ledger().n_jobs(), 0);
    let twice = app.intake.pause(&people(), &key("tick"), None, None).await.unwrap();
    assert_eq!(twice.state.pause, Some(pause));
    let n_before = runs(&app, "tick").await.len();
    let resumed = app.intake.resume(&people(), &key("tick")).await.unwrap();
    assert_eq!(resumed.state.pause, None);
    ended(&app, "tick", n_before + 1).await;
    app.intake.remove(&people(), &key("tick"), Expect::Any).await.unwrap();
    let gone = app.intake.resume(&people(), &key("tick")).await.unwrap_err();
    assert_eq!(gone.to_string(), "there is no job `tick`");
    let audit: Vec<String> = app.store.audit(10).await.unwrap().into_iter().map(|it| it.action).collect();
    assert_eq!(audit, ["create", "pause", "pause", "resume", "delete"]);
    running.stop(DRAIN, pending()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_declared_becomes_so_and_the_second_time_changes_nothing() {
    let folder = Folder::new();
    let (app, running) = start(folder.path(), Length::ZERO);
    let fleet =
        || vec![job("a", r#"every = "1h""#), job("b", r#"cron = "0 3 * * *""#), job("c", "manual = true")];
    let changes = async |jobs: Vec<Job>, options: ApplyOptions| -> Vec<(String, JobChange)> {
        let applied = app.intake.apply(&people(), jobs, options).await.unwrap();
        applied.into_iter().map(|it| (it.key.to_string(), it.change)).collect()
    };
    let said = |name: &str, change: JobChange| (name.to_owned(), change);
    let dry = ApplyOptions { dry_run: true, prune: true, ..ApplyOptions::default() };
    let all = |change| vec![said("a", change), said("b", change), said("c", change)];
    assert_eq!(changes(fleet(), dry).await, all(JobChange::Created));
    assert_eq!(changes(fleet(), ApplyOptions::default()).await, all(JobChange::Created));
    assert_eq!(changes(fleet(), ApplyOptions::default()).await, all(JobChange::Unchanged));
    let placed = app.store.job(&key("a")).await.unwrap().unwrap().state.placement;
    let mut next = vec![job("a", r#"every = "1h""#), job("b", r#"cron = "0 4 * * *""#)];
    next[0].labels.insert("team".to_owned(), "news".to_owned());
    let kept = changes(next.clone(), ApplyOptions::default()).await;
    assert_eq!(kept, [said("a", JobChange::Changed), said("b", JobChange::Changed)]);
    // Another label is no other rhythm.
    assert_eq!(app.store.job(&key("a")).await.unwrap().unwrap().state.placement, placed);
    let pruned = changes(next, ApplyOptions { prune: true, ..ApplyOptions::default() }).await;
    assert_eq!(
        pruned,
        [said("a", JobChange::Unchanged), said("b", JobChange::Unchanged), said("c", JobChange::Removed)]
    );
    running.stop(DRAIN, pending()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_is_applied_as_it_was_shown_and_only_once() {
    let folder = Folder::new();
    let (app, running) = start(folder.path(), Length::ZERO);
    // All of them where another scheduler had them: at the same instant, not too soon to be moved.
    let at = app.intake.now() + Duration::from_hours(2);
    let clustered: Vec<Job> = (0..40)
        .map(|n| Job { next_run_hint: Some(at), ..job(&format!("j{n:02}"), r#"every = "6h""#) })
        .collect();
    app.intake.apply(&people(), clustered, ApplyOptions::default()).await.unwrap();
    let shown = app.intake.plan_rebalance(&people()).await.unwrap();
    assert!(30 <= shown.plan.moves.len(), "{:?}", shown.plan.moves);
    let done = app.intake.rebalance(&people(), shown.id).await.unwrap();
    assert_eq!(done.moved, shown.plan.moves);
    assert!(done.old_score + 0.5 < done.new_score, "{} to {}", done.old_score, done.new_score);
    for it in &done.moved {
        let row = app.store.job(&it.key).await.unwrap().unwrap();
        assert_eq!(row.state.next_run_at, Some(it.new_time));
    }
    // What was moved a moment ago rests.
    let next = app.intake.plan_rebalance(&people()).await.unwrap();
    assert_eq!(next.plan.moves, []);
    let again = app.intake.rebalance(&people(), shown.id).await.unwrap_err();
    let expected = format!(
        "there is no rebalance plan `{}` (plans are kept for 1 h and applied once); make a new plan",
        shown.id
    );
    assert_eq!(again.to_string(), expected);
    running.stop(DRAIN, pending()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_process_goes_on_where_the_last_one_stopped() {
    let folder = Folder::new();
    let (app, running) = start(folder.path(), Length::ZERO);
    let row = app.intake.put(&people(), Arc::new(job("tick", r#"every = "1s""#)), Expect::Any).await.unwrap();
    let first = row.state.next_run_at.unwrap();
    ended(&app, "tick", 1).await;
    assert_eq!(running.stop(DRAIN, pending()).await.unwrap(), StopResult::Clean);
    drop(app);

    let (app, running) = start(folder.path(), Length::ZERO);
    let runs = ended(&app, "tick", 3).await;
    assert!(runs.iter().all(|it| (it.due.due_at - first).as_millis() % 1_000 == 0), "{runs:?}");
    let mut due: Vec<_> = runs.iter().map(|it| it.due.due_at).collect();
    due.dedup();
    assert_eq!(due.len(), runs.len(), "no occurrence ran twice");
    running.stop(DRAIN, pending()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_died_with_its_node_is_lost_and_runs_again() {
    let folder = Folder::new();
    let (app, running) = start(folder.path(), Length::from_hours(1));
    app.intake.put(&people(), Arc::new(job("long", "manual = true")), Expect::Any).await.unwrap();
    app.intake.trigger(&people(), &key("long"), None, None).await.unwrap();
    until("a running run", async || {
        runs(&app, "long").await.into_iter().find(|it| it.phase == RunPhase::Running)
    })
    .await;
    assert_eq!(running.stop(Length::ZERO, pending()).await.unwrap(), StopResult::LetGo);
    drop(app);

    let (app, running) = start(folder.path(), Length::ZERO);
    let runs = ended(&app, "long", 2).await;
    let phases: Vec<RunPhase> = runs.iter().rev().map(|it| it.phase).collect();
    assert_eq!(phases, [RunPhase::Ended(Outcome::Lost), RunPhase::Ended(Outcome::Succeeded)]);
    running.stop(DRAIN, pending()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_run_here_is_refused_at_the_door() {
    let folder = Folder::new();
    let (app, running) = start(folder.path(), Length::ZERO);
    let mut shell = job("shell", r#"every = "1h""#);
    shell.target = Target::Command(CommandTarget {
        argv: vec!["echo hello | wc".to_owned()],
        shell: true,
        ..CommandTarget::default()
    });
    let refused = app.intake.put(&people(), Arc::new(shell), Expect::Any).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "`shell`: `shell = true` is not allowed here; write the command as a list of arguments, or set \
         `commands.allow_shell = true` in the configuration"
    );
    assert!(app.store.job(&key("shell")).await.unwrap().is_none());
    running.stop(DRAIN, pending()).await.unwrap();
}

/// Writes into the file behind the back of whoever owns it: what is stored as the next run of jobs becomes this.
fn corrupt(folder: &Path, names_like: &str, next_run_at: Option<i64>) -> usize {
    let file = rusqlite::Connection::open(folder.join("evenbeat.db")).unwrap();
    let sql = "UPDATE memory SET next_run_at = ?1 WHERE job_id IN (SELECT id FROM job WHERE key LIKE ?2)";
    file.execute(sql, rusqlite::params![next_run_at, names_like]).unwrap()
}

/// A fleet of 15 daily jobs that was stopped again.
async fn stopped_fleet(folder: &Path) {
    let (app, running) = start(folder, Length::ZERO);
    let jobs = (0..15).map(|no| job(&format!("job-{no:02}"), r#"every = "1d""#)).collect();
    app.intake.apply(&people(), jobs, ApplyOptions::default()).await.unwrap();
    running.stop(DRAIN, pending()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stored_next_run_that_cannot_be_is_placed_afresh_and_not_fired() {
    let folder = Folder::new();
    stopped_fleet(folder.path()).await;
    assert_eq!(corrupt(folder.path(), "job-01", Some(1)), 1);
    assert_eq!(corrupt(folder.path(), "job-02", None), 1);
    assert_eq!(corrupt(folder.path(), "job-03", Some(9_000_000_000_000)), 1);
    let (app, running) = start(folder.path(), Length::ZERO);
    until("three mended jobs", async || {
        (app.telemetry.metrics().n_notices("job_repaired") == 3).then_some(())
    })
    .await;
    let day = Duration::from_days(1);
    for name in ["job-01", "job-02", "job-03"] {
        let row = app.store.job(&key(name)).await.unwrap().unwrap();
        let next = row.state.next_run_at.expect("it is placed");
        let now = app.intake.now();
        assert!(now < next && next <= now + day, "{name}: {next}");
        assert_eq!(runs(&app, name).await, [], "{name} was fired");
    }
    assert!(app.fleet.faults().others().is_empty());
    running.stop(DRAIN, pending()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_whole_fleet_that_a_clock_has_stamped_in_the_future_goes_on() {
    let folder = Folder::new();
    stopped_fleet(folder.path()).await;
    let month_ms: i64 = 30 * 86_400_000;
    let file = rusqlite::Connection::open(folder.path().join("evenbeat.db")).unwrap();
    let sql = "UPDATE memory SET last_start_at = next_run_at + ?1, last_end_at = next_run_at + ?1,
               last_good_start_at = next_run_at + ?1, last_good_end_at = next_run_at + ?1,
               next_run_at = next_run_at + ?1 + 86400000";
    assert_eq!(file.execute(sql, [month_ms]).unwrap(), 15);
    drop(file);
    let (app, running) = start(folder.path(), Length::ZERO);
    until("the repair", async || (0 < app.telemetry.metrics().n_notices("clock_was_ahead")).then_some(()))
        .await;
    let now = app.intake.now();
    for no in 0..15 {
        let row = app.store.job(&key(&format!("job-{no:02}"))).await.unwrap().unwrap();
        let next = row.state.next_run_at.expect("it is placed");
        assert!(now < next && next <= now + Duration::from_days(1), "job-{no:02}: {next}");
        assert!(row.state.last_good_start_at.is_some_and(|at| at <= now), "{:?}", row.state);
    }
    let audit = app.store.audit(100).await.unwrap();
    assert_eq!(audit.iter().filter(|it| it.action == "mend").count(), 15);
    running.stop(DRAIN, pending()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn many_stored_next_runs_that_cannot_be_wait_for_a_person() {
    let folder = Folder::new();
    stopped_fleet(folder.path()).await;
    assert_eq!(corrupt(folder.path(), "job-%", Some(1)), 15);
    let (app, running) = start(folder.path(), Length::ZERO);
    until("the alarm", async || (0 < app.telemetry.metrics().n_notices("too_many_faults")).then_some(()))
        .await;
    let explained = app.node.ask(|engine, now| engine.explain(now, &key("job-07"))).await.flatten().unwrap();
    assert_eq!(explained.binding, Binding::Misplaced);
    // One after the other by hand; those that are left then are few enough.
    for no in 0..5 {
        let row = app.intake.resume(&people(), &key(&format!("job-{no:02}"))).await.unwrap();
        assert!(row.state.next_run_at.is_some_and(|at| Timestamp::from_millis(1) < at));
    }
    let refused = app.intake.resume(&people(), &key("job-00")).await;
    assert!(matches!(refused, Err(IntakeError::Refused { refusal: Refusal::NotPaused, .. })), "{refused:?}");
    running.stop(DRAIN, pending()).await.unwrap();
    let (app, running) = start(folder.path(), Length::ZERO);
    until("the rest", async || (app.telemetry.metrics().n_notices("job_repaired") == 10).then_some(())).await;
    for no in 0..15 {
        assert_eq!(runs(&app, &format!("job-{no:02}")).await, [], "job {no} was fired");
    }
    running.stop(DRAIN, pending()).await.unwrap();
}
