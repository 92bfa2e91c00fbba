//! How late runs start that are due once a minute, placed by load or all at second 0, when each is over at once.

use std::collections::{BTreeMap, BTreeSet};
use std::future::pending;
use std::time::{Duration as Length, Instant};

use evenbeat::testing::app::housekeeping::HousekeepingRules;
use evenbeat::testing::app::{App, AppParts, AppTasks};
use evenbeat::testing::clock::Clock;
use evenbeat::testing::config::{AgendaSettings, AlertSettings, MetricsSettings};
use evenbeat::testing::exec::Router;
use evenbeat::testing::intake::{Actor, ApplyOptions, JobPolicy, PreviewLimits};
use evenbeat::testing::jobfile::{SourceText, load};
use evenbeat::testing::node::NodeIdentity;
use evenbeat::testing::target::news_channel;
use evenbeat::testing::target::noop::Noop;
use evenbeat_core::engine::Settings;
use evenbeat_core::ids::{NodeName, Pool};
use evenbeat_core::job::Job;
use evenbeat_core::lease::{Timings, TimingsSpec};
use evenbeat_core::placement::Balance;
use evenbeat_core::zone::Zones;

use crate::home::{Backend, Home, Over};
use crate::{Figures, fleet, process};

const MINUTE_MS: i64 = 60_000;

/// What is still under way a moment after a window may end.
const SETTLE_FOR: Length = Length::from_secs(8);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    /// `every = "1m"`: where each runs is chosen by load.
    Placed,
    /// `cron = "* * * * *"`: all at once.
    AtSecondZero,
}

impl Plan {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Plan::Placed => "placed",
            Plan::AtSecondZero => "pinned",
        }
    }

    fn line(self) -> &'static str {
        match self {
            Plan::Placed => r#"every = "1m""#,
            Plan::AtSecondZero => r#"cron = "* * * * *""#,
        }
    }

    /// P2: the most that p50, p99 and the latest may be late, in ms.
    fn targets_ms(self, n_jobs: usize) -> [Option<f64>; 3] {
        match self {
            Plan::Placed => [Some(10.0), Some(100.0), Some(1_000.0)],
            Plan::AtSecondZero => [None, None, Some(if n_jobs <= 10_000 { 1_000.0 } else { 5_000.0 })],
        }
    }
}

pub(crate) fn run(home: &Home, plan: Plan, n_jobs: usize, n_minutes: i64, figures: &mut Figures) {
    let inside = home.runtime.enter();
    let (app, running) = start(home, n_jobs);
    drop(inside);
    let began = Instant::now();
    home.runtime.block_on(async {
        app.fleet.read().await;
        let actor = Actor("bench".to_owned());
        app.intake.apply(&actor, jobs(plan, n_jobs), ApplyOptions::default()).await.expect("jobs are taken");
    });
    let applied_s = began.elapsed().as_secs_f64();
    // From a whole minute on, when all of them are known and have run once.
    let from = (fleet::now().as_millis() / MINUTE_MS + 2) * MINUTE_MS;
    let to = from + n_minutes * MINUTE_MS;
    sleep_until(home, if n_minutes == 0 { 0 } else { from });
    let (me, began) = (std::process::id(), Instant::now());
    let cpu_before = process::cpu_ms(me);
    sleep_until(home, if n_minutes == 0 { 0 } else { to });
    let cores = (process::cpu_ms(me) - cpu_before) / (began.elapsed().as_secs_f64() * 1_000.0).max(1.0);
    let (rss_mb, _) = process::resident_mb(me);
    home.runtime.block_on(async {
        if n_minutes != 0 {
            tokio::time::sleep(SETTLE_FOR).await;
        }
        running.stop(Length::from_secs(30), pending()).await.expect("the node stops");
    });
    let over = home.over(from, to);
    let n_expected = n_jobs * n_minutes as usize;
    let said = told(plan, n_jobs, &over, n_expected);
    println!(
        "\n{} on {}, {n_jobs} jobs, {n_minutes} min: {} of {n_expected} ran, {} twice; {cores:.2} cores, {rss_mb:.0} MB \
         resident; applied in {applied_s:.1} s\n  {}",
        plan.line(),
        home.backend.name(),
        said.n_ran,
        said.n_twice,
        said.lateness,
    );
    let name = format!("{}_{}_{n_jobs}", home.backend.name(), plan.name());
    figures.extend([
        (format!("{name}_ran"), said.n_ran as f64 / n_expected.max(1) as f64),
        (format!("{name}_twice"), said.n_twice as f64),
        (format!("{name}_cores"), cores),
    ]);
    for (share, ms) in ["p50", "p99", "max"].into_iter().zip(said.late_ms) {
        figures.push((format!("{name}_{share}_ms"), ms));
    }
}

struct Told {
    n_ran: usize,
    n_twice: usize,
    late_ms: [f64; 3],
    lateness: String,
}

fn told(plan: Plan, n_jobs: usize, over: &[Over], n_expected: usize) -> Told {
    let distinct: BTreeSet<(i64, i64)> = over.iter().map(|it| (it.job_id, it.due_at)).collect();
    let mut late: Vec<i64> = over.iter().map(|it| it.started_at - it.due_at).collect();
    late.sort_unstable();
    let at =
        |share: f64| late.get(((late.len() as f64 * share) as usize).min(late.len().max(1) - 1)).copied();
    let late_ms = [0.5, 0.99, 1.0].map(|share| at(share).unwrap_or_default() as f64);
    let named = ["p50", "p99", "max"].into_iter().zip(late_ms).zip(plan.targets_ms(n_jobs));
    let words: Vec<String> = named
        .map(|((name, ms), target)| match target {
            Some(target) if n_expected != 0 && target < ms => {
                format!("{name} {ms} ms (target {target} ms, over its target)")
            }
            Some(target) => format!("{name} {ms} ms (target {target} ms)"),
            None => format!("{name} {ms} ms"),
        })
        .collect();
    Told {
        n_ran: distinct.len(),
        n_twice: over.len() - distinct.len(),
        late_ms,
        lateness: format!("late by {}", words.join(", ")),
    }
}

fn jobs(plan: Plan, n_jobs: usize) -> Vec<Job> {
    let text = format!("[[job]]\nname = \"job\"\ncommand = [\"true\"]\n{}\n", plan.line());
    let file = SourceText { name: "jobs.toml".to_owned(), text };
    let loaded = load(&[file], fleet::now(), &mut Zones::new()).expect("a good file");
    let job = loaded.files.into_iter().flat_map(|it| it.jobs).next().expect("a job").job;
    let key = |idx: usize| format!("job-{idx:06}").parse().expect("a key");
    (0..n_jobs).map(|idx| Job { key: key(idx), ..job.clone() }).collect()
}

fn start(home: &Home, n_jobs: usize) -> (App, AppTasks) {
    let node: NodeName = "bench".parse().expect("a name");
    let capacity = u32::try_from(n_jobs).expect("not so many jobs");
    let lease = match home.backend {
        Backend::Sqlite => None,
        Backend::Postgres(_) => Some(Timings::new(TimingsSpec::DEFAULT).expect("timings")),
    };
    let clock = Clock::system();
    let (to_news, news) = news_channel();
    let noop = Noop::new(Length::ZERO, clock.clone(), to_news.clone());
    let parts = AppParts {
        exec: Router::only(noop, clock.clone(), to_news),
        news,
        clock,
        store: home.store(),
        identity: NodeIdentity {
            node: node.clone(),
            instance: "main".to_owned(),
            boot_id: 1,
            home: 1,
            pools: BTreeMap::from([(Pool::default_pool(), capacity)]),
        },
        settings: Settings::new(node, lease, capacity),
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

/// Waits until the wall clock says so.
fn sleep_until(home: &Home, at_ms: i64) {
    let for_ms = (at_ms - fleet::now().as_millis()).max(0).unsigned_abs();
    home.runtime.block_on(async { tokio::time::sleep(Length::from_millis(for_ms)).await });
}
