//! One process of Evenbeat, put together: a store, a node, the fleet as it sees it, the door for people, and the
//! housekeeping. What listens for people is put in front of it.

mod attainment;
pub mod housekeeping;
mod pause_ends;
mod repairs;
mod scrape;

use std::collections::BTreeMap;
use std::future::ready;
use std::sync::Arc;
use std::time::Duration as Length;

use arc_swap::ArcSwap;
use evenbeat_core::engine::Settings;
use evenbeat_core::ids::RunId;
use evenbeat_core::placement::Balance;
use evenbeat_core::store::{OwnerPing, StoreDown};
use evenbeat_core::time::Timestamp;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use self::attainment::AttainmentCache;
use self::housekeeping::HousekeepingRules;
use self::scrape::Scraper;
use crate::alerts::{AlertParts, Alerts};
use crate::clock::Clock;
use crate::config::{AgendaSettings, AlertSettings, HttpEndpoint, MetricsSettings};
use crate::exec::Router;
use crate::fleet::{Fleet, follow};
use crate::intake::{Intake, IntakeParts, JobPolicy, PreviewLimits};
use crate::node::telemetry::Telemetry;
use crate::node::write_probe::WriteProbe;
use crate::node::{Node, NodeError, NodeHandle, NodeIdentity, NodeParts};
use crate::outbound::{Outbound, Pings};
use crate::point::point;
use crate::store::any::AnyStore;
use crate::target::RunNews;

/// What a process is made of.
#[derive(Debug)]
pub struct AppParts {
    /// Where the fleet is kept.
    pub store: AnyStore,
    /// Who the node is.
    pub identity: NodeIdentity,
    /// What its engine goes by.
    pub settings: Settings,
    /// How the fleet is levelled.
    pub balance: Balance,
    /// How the agenda is kept.
    pub agenda: AgendaSettings,
    /// What jobs may ask for.
    pub allowed: JobPolicy,
    /// How much a rebalance plan may take.
    pub preview_limits: PreviewLimits,
    /// Channels and routes.
    pub alerts: AlertSettings,
    /// What is kept for how long.
    pub keep: HousekeepingRules,
    /// What metrics show.
    pub metrics: MetricsSettings,
    /// Where traces of runs go.
    pub traces: Option<HttpEndpoint>,
    /// What time it is.
    pub clock: Clock,
    /// Where runs execute.
    pub exec: Router,
    /// What is reported about them.
    pub news: mpsc::Receiver<RunNews>,
}

/// What everybody in the process may use. Copies share everything.
#[derive(Clone, Debug)]
pub struct App {
    /// Where the fleet is kept; to be read.
    pub store: AnyStore,
    /// The door for writing.
    pub intake: Intake,
    /// The fleet as this process sees it.
    pub fleet: Fleet,
    /// The node, to be asked.
    pub node: NodeHandle,
    /// Who it is.
    pub identity: NodeIdentity,
    /// What happened.
    pub telemetry: Telemetry,
    /// Where its runs execute.
    pub exec: Router,
    /// Whether the store can write.
    pub write_probe: WriteProbe,
    /// Alerts.
    pub alerts: Alerts,
    scraper: Scraper,
    /// Since when it runs.
    pub started_at: Timestamp,
    /// What time it is.
    pub clock: Clock,
    /// How fresh groups of jobs were.
    pub attainment: AttainmentCache,
    /// What is kept for how long.
    pub keep: Arc<ArcSwap<HousekeepingRules>>,
}

/// The tasks of a process.
#[derive(Debug)]
pub struct AppTasks {
    node: JoinHandle<Result<(), NodeError>>,
    others: Vec<JoinHandle<()>>,
    handle: NodeHandle,
    exec: Router,
    store: AnyStore,
    telemetry: Telemetry,
}

/// How long the last traces may take to be sent when a process ends.
const FLUSH_WITHIN: Length = Length::from_secs(2);

/// How a process came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopResult {
    /// Everything has ended.
    Clean,
    /// Runs go on without it; the next process takes them over.
    LetGo,
}

impl App {
    /// Starts everything. Must be called within the runtime.
    pub fn start(parts: AppParts) -> Result<(App, AppTasks), NodeError> {
        let AppParts {
            store,
            identity,
            settings,
            balance,
            agenda,
            allowed,
            preview_limits,
            alerts,
            keep,
            metrics,
            traces,
            clock,
            exec,
            news,
        } = parts;
        let started_at = clock.now();
        let telemetry = Telemetry::since(started_at).with_traces(traces, identity.node.to_string());
        let outbound = Outbound::new(alerts.http.clone());
        let (node, handle, fleet_news) = Node::new(NodeParts {
            identity: identity.clone(),
            settings,
            store: store.clone(),
            exec: exec.clone(),
            news,
            telemetry: telemetry.clone(),
            pings: Pings::new(outbound.clone()),
            clock: clock.clone(),
        })?;
        let fleet = Fleet::new(balance, agenda, clock.clone());
        let intake = Intake::new(IntakeParts {
            store: store.clone(),
            fleet: fleet.clone(),
            node: handle.clone(),
            telemetry: telemetry.clone(),
            clock: clock.clone(),
            allowed,
            preview_limits,
        });
        let write_probe = WriteProbe::of(store.clone(), clock.clone());
        let alerts = Alerts::new(AlertParts {
            outbound,
            settings: ArcSwap::from_pointee(alerts),
            store: store.clone(),
            node: handle.clone(),
            fleet: fleet.clone(),
            intake: intake.clone(),
            telemetry: telemetry.clone(),
            write_probe: write_probe.clone(),
            clock: clock.clone(),
            node_name: identity.node.to_string(),
            home: identity.home,
        });
        let app = App {
            store: store.clone(),
            intake,
            fleet,
            node: handle.clone(),
            identity,
            telemetry,
            exec: exec.clone(),
            write_probe,
            alerts: alerts.clone(),
            scraper: Scraper::new(&metrics),
            started_at,
            clock,
            attainment: AttainmentCache::default(),
            keep: Arc::new(ArcSwap::from_pointee(keep)),
        };
        let node = tokio::spawn(node.run());
        let mut others = vec![
            tokio::spawn(follow(app.fleet.clone(), fleet_news, app.telemetry.clone())),
            tokio::spawn(housekeeping::keep_house(app.clone())),
            tokio::spawn(repairs::repair(app.clone())),
            tokio::spawn(scrape::select_jobs(app.clone(), metrics)),
            tokio::spawn(app.telemetry.events().clone().collect(app.clock.clone())),
            tokio::spawn(pause_ends::end_pauses(app.clone())),
            tokio::spawn(attainment::record(app.clone())),
        ];
        others.extend(alerts.start());
        let telemetry = app.telemetry.clone();
        Ok((app, AppTasks { node, others, handle, exec, store, telemetry }))
    }
}

impl App {
    /// Whether everything that is stored has been read once.
    pub async fn is_read(&self) -> bool {
        tokio::select! {
            biased;
            () = self.fleet.read() => true,
            () = ready(()) => false,
        }
    }

    /// The last signs of life of the owners of runs (L2), as far as they are known. A server has them from the beats of
    /// sessions. Where one process has the store to itself there are no beats, and its shims are asked instead.
    pub async fn owner_pings(&self, runs: Vec<RunId>) -> BTreeMap<RunId, OwnerPing> {
        if runs.is_empty() {
            return BTreeMap::new();
        }
        let pings = match &self.store {
            AnyStore::Postgres(_) => self.store.owner_pings(runs).await.unwrap_or_default(),
            AnyStore::Sqlite(_) => {
                let now = self.clock.both();
                let ping = |run: RunId| {
                    let last_ping_at = now.wall - (now.boot - self.exec.heard_at(run)?);
                    Some(OwnerPing { run, last_ping_at, doubted_at: None })
                };
                runs.into_iter().filter_map(ping).collect()
            }
        };
        pings.into_iter().map(|it| (it.run, it)).collect()
    }
}

impl AppTasks {
    /// Waits until the node ends by itself: it was drained, or something is wrong.
    pub async fn ended(&mut self) -> Result<(), NodeError> {
        (&mut self.node).await.unwrap_or_else(|fault| std::panic::resume_unwind(fault.into_panic()))
    }

    /// Takes nothing new, finishes what runs, and leaves; the beat stops last. What takes longer goes on by itself, for
    /// another process to take over. `hurry` ends the wait early.
    pub async fn stop(
        mut self,
        drain_for: Length,
        hurry: impl Future<Output = ()>,
    ) -> Result<StopResult, NodeError> {
        point("stop.asked");
        self.handle.drain(true).await;
        point("stop.draining");
        let stopped = tokio::select! {
            left = timeout(drain_for, self.ended()) => left.ok(),
            () = hurry => None,
        };
        let stopped = match stopped {
            Some(ended) => ended.map(|()| StopResult::Clean),
            None => {
                self.node.abort();
                Ok(StopResult::LetGo)
            }
        };
        point("stop.left");
        self.exec.let_go().await;
        point("stop.let_go");
        let _ = timeout(FLUSH_WITHIN, self.telemetry.flush_traces()).await;
        for task in &self.others {
            task.abort();
        }
        close(&self.store);
        point("stop.closed");
        stopped
    }
}

/// What was asked before is answered before a file is closed.
fn close(store: &AnyStore) {
    if let AnyStore::Sqlite(file) = store {
        let closed = tokio::task::block_in_place(|| file.close());
        if let Err(StoreDown(why)) = closed {
            tracing::warn!(
                why,
                "the store was not closed cleanly; it will be looked through at the next start"
            );
        }
    }
}
