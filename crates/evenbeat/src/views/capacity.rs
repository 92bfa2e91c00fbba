//! What the fleet can carry and what it carries now: pools, nodes, and the runs on each.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use evenbeat_core::engine::{EngineGauges, PoolGauges};
use evenbeat_core::ids::SessionId;
use evenbeat_core::store::{JobRow, RunFilter, RunRow, SessionKind, SessionRow};
use evenbeat_core::time::{Duration, Timestamp};

use super::model::JobView;
use super::{ViewError, jobs};
use crate::app::App;

/// Most open runs that are looked at. With more of them, loads are not known in units.
const RUNS_MAX: usize = 500;

/// Most nodes of one picture.
const NODES_MAX: usize = 200;

/// Pools and nodes at one moment.
#[derive(Debug)]
pub(crate) struct CapacityOverview {
    pub(crate) nodes: Vec<NodeLoad>,
    /// Sessions that have ended, the latest first.
    pub(crate) dead: Vec<NodeLoad>,
    pub(crate) pools: Vec<PoolUsage>,
    /// Open runs of all nodes.
    pub(crate) n_running: u64,
    /// How long a node must be silent before others take over its runs; none if it has the store to itself.
    pub(crate) takeover_after: Option<Duration>,
    /// Whether there are more nodes than are listed.
    pub(crate) is_cut: bool,
}

/// How a node stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum NodeStanding {
    /// No sign of life for longer than its lease is good for.
    Silent,
    /// It takes nothing new.
    Draining,
    Up,
    Dead,
}

/// One node, or one instance on it.
#[derive(Debug)]
pub(crate) struct NodeLoad {
    pub(crate) node: String,
    pub(crate) instance: String,
    pub(crate) session: String,
    pub(crate) kind: SessionKind,
    pub(crate) standing: NodeStanding,
    /// What it can carry, in units of cost.
    pub(crate) pools: BTreeMap<String, u32>,
    /// Units that its runs hold; none if there are too many runs to look at.
    pub(crate) in_use: Option<u64>,
    /// The release of its zone data.
    pub(crate) zone_data: String,
    pub(crate) last_seen_at: Option<Timestamp>,
    pub(crate) is_this: bool,
    pub(crate) n_runs: u64,
    /// Its runs, the one with the nearest deadline first.
    pub(crate) runs: Vec<RunOnNode>,
}

impl NodeLoad {
    pub(crate) fn capacity(&self) -> u64 {
        self.pools.values().map(|it| u64::from(*it)).sum()
    }
}

/// A run that is going on.
#[derive(Debug)]
pub(crate) struct RunOnNode {
    pub(crate) run: String,
    pub(crate) job: JobView,
    pub(crate) since: Timestamp,
    /// How long good runs of its job take.
    pub(crate) usual: Option<Duration>,
    /// From then on it takes longer than expected.
    pub(crate) max_expected: Option<Duration>,
    pub(crate) max_allowed: Option<Duration>,
    /// The last sign of life of its owner.
    pub(crate) last_ping_at: Option<Timestamp>,
}

/// A pool over all nodes.
#[derive(Debug)]
pub(crate) struct PoolUsage {
    pub(crate) pool: String,
    /// Units on nodes that take new runs, on draining and on silent ones.
    pub(crate) usable: u64,
    pub(crate) closed: u64,
    pub(crate) n_runs: u64,
    /// Units that runs hold, on nodes that answer and on silent ones; none if there are too many runs to look at.
    pub(crate) in_use: Option<PoolInUse>,
    /// Jobs that could start if there were room, as this node sees it; none if it does not carry the pool.
    pub(crate) waiting: Option<PoolWaiting>,
    pub(crate) silent: Vec<String>,
    pub(crate) draining: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PoolInUse {
    /// On nodes that take new runs.
    pub(crate) usable: u64,
    /// On nodes that are draining.
    pub(crate) draining: u64,
    /// On nodes that are silent.
    pub(crate) silent: u64,
}

impl PoolInUse {
    pub(crate) fn all(self) -> u64 {
        self.usable + self.draining + self.silent
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PoolWaiting {
    pub(crate) n_jobs: u64,
    pub(crate) since: Option<Timestamp>,
}

impl PoolUsage {
    /// Units that a run may take now.
    pub(crate) fn free(&self) -> Option<u64> {
        self.in_use.map(|it| self.usable.saturating_sub(it.usable))
    }

    /// Whether jobs wait because there is no room.
    pub(crate) fn is_full(&self) -> bool {
        self.waiting.is_some_and(|it| 0 < it.n_jobs) && self.free().is_none_or(|free| free == 0)
    }
}

/// An open run and its job, as they are stored.
struct StoredRun<'a> {
    row: &'a RunRow,
    job: Option<&'a JobRow>,
}

/// Pools and nodes as they are now.
pub(crate) async fn overview(app: &App) -> Result<CapacityOverview, ViewError> {
    let now = app.intake.now();
    let sessions = app.store.sessions().await?;
    let seen = app.store.sessions_seen().await?;
    let n_open = app.store.open_runs_by_session().await?;
    let n_running: u64 = n_open.values().sum();
    let filter = RunFilter { key: None, is_open: true };
    let runs = app.store.runs(filter, None, RUNS_MAX).await?;
    let is_complete = n_running <= runs.len() as u64;
    let rows = jobs_of(app, &runs).await?;
    let asked = app.node.ask(|engine, _| (engine.gauges(), engine.settings().lease));
    let (gauges, lease) = asked.await.ok_or(ViewError::NodeGone)?;
    let pings = app.owner_pings(runs.iter().map(|it| it.run).collect()).await;

    let by_key: BTreeMap<&str, &JobRow> = rows.iter().map(|row| (row.job.key.as_str(), row)).collect();
    let mut by_session: BTreeMap<SessionId, Vec<StoredRun<'_>>> = BTreeMap::new();
    for row in &runs {
        let job = by_key.get(row.key.as_str()).copied();
        by_session.entry(row.session).or_default().push(StoredRun { row, job });
    }
    let views = jobs::views(app, &rows, now).await;
    let views: BTreeMap<&str, &JobView> = views.iter().map(|view| (view.key.as_str(), view)).collect();

    let me = &app.identity;
    let silent_after = lease.map(|it| it.self_fence());
    let load = |it: &SessionRow| {
        let is_this = !it.is_dead && it.spec.node == me.node && it.spec.home == me.home;
        // Where one process has the store to itself it does not beat: that it answers is the sign of life.
        let last_seen_at =
            if is_this && lease.is_none() { Some(now) } else { seen.get(&it.spec.id).copied() };
        let is_silent = silent_after.zip(last_seen_at).is_some_and(|(after, at)| at + after < now);
        let standing = match (it.is_dead, is_silent, it.is_draining) {
            (true, ..) => NodeStanding::Dead,
            (_, true, _) => NodeStanding::Silent,
            (_, _, true) => NodeStanding::Draining,
            _ => NodeStanding::Up,
        };
        let open = by_session.get(&it.spec.id).map_or(&[][..], Vec::as_slice);
        let mut runs: Vec<RunOnNode> = open
            .iter()
            .filter_map(|run| {
                let (row, job) = (run.row, run.job?);
                Some(RunOnNode {
                    run: row.run.to_string(),
                    job: (*views.get(row.key.as_str())?).clone(),
                    since: row.started_at.unwrap_or(row.claimed_at),
                    usual: job.state.estimate.as_ref().map(evenbeat_core::estimate::Estimate::mean),
                    max_expected: job.job.limits.max_expected,
                    max_allowed: job.job.limits.max_allowed,
                    last_ping_at: pings.get(&row.run).map(|it| it.last_ping_at),
                })
            })
            .collect();
        runs.sort_by_key(|run| (run.job.deadline.is_none(), run.job.deadline, run.since));
        NodeLoad {
            node: it.spec.node.to_string(),
            instance: it.spec.name.clone(),
            session: it.spec.id.to_string(),
            kind: it.spec.kind,
            standing,
            pools: it.spec.pools.iter().map(|(pool, units)| (pool.to_string(), *units)).collect(),
            in_use: is_complete.then(|| open.iter().map(units).sum()),
            zone_data: it.spec.zone_data.clone(),
            last_seen_at,
            is_this,
            n_runs: n_open.get(&it.spec.id).copied().unwrap_or(0),
            runs,
        }
    };
    let (dead, mut nodes): (Vec<NodeLoad>, Vec<NodeLoad>) =
        sessions.iter().map(load).partition(|it| it.standing == NodeStanding::Dead);
    let pools = pools(app, &sessions, &nodes, &by_session, &gauges, is_complete).await?;
    let is_in_full_pool =
        |node: &NodeLoad| pools.iter().any(|pool| pool.is_full() && node.pools.contains_key(&pool.pool));
    nodes.sort_by_cached_key(|it| {
        let rank = match it.standing {
            NodeStanding::Silent => 0,
            NodeStanding::Up if is_in_full_pool(it) => 1,
            NodeStanding::Draining => 2,
            _ => 3,
        };
        (rank, it.node.clone(), it.instance.clone(), it.session.clone())
    });
    let is_cut = NODES_MAX < nodes.len();
    nodes.truncate(NODES_MAX);
    Ok(CapacityOverview {
        nodes,
        dead: latest(dead),
        pools,
        n_running,
        takeover_after: lease.map(|it| it.window()),
        is_cut,
    })
}

fn latest(mut dead: Vec<NodeLoad>) -> Vec<NodeLoad> {
    dead.sort_by_key(|it| Reverse(it.last_seen_at));
    dead.truncate(NODES_MAX);
    dead
}

async fn jobs_of(app: &App, runs: &[RunRow]) -> Result<Vec<JobRow>, ViewError> {
    let keys: BTreeSet<_> = runs.iter().map(|run| run.key.clone()).collect();
    Ok(app.store.jobs_of(keys.into_iter().collect::<Vec<_>>().into()).await?)
}

/// Units that a run holds. A job that was removed meanwhile held at least one.
fn units(run: &StoredRun<'_>) -> u64 {
    run.job.map_or(1, |row| u64::from(row.job.place.cost))
}

async fn pools(
    app: &App,
    sessions: &[SessionRow],
    nodes: &[NodeLoad],
    by_session: &BTreeMap<SessionId, Vec<StoredRun<'_>>>,
    gauges: &EngineGauges,
    is_complete: bool,
) -> Result<Vec<PoolUsage>, ViewError> {
    let listed = super::sharing::pools(app).await?;
    let standings: BTreeMap<&str, NodeStanding> =
        nodes.iter().map(|node| (node.session.as_str(), node.standing)).collect();
    let usage = |name: String, n_runs: u64| {
        let mut pool = PoolUsage {
            usable: 0,
            closed: 0,
            n_runs,
            in_use: is_complete.then(PoolInUse::default),
            waiting: waiting(gauges, &name),
            silent: Vec::new(),
            draining: Vec::new(),
            pool: name,
        };
        for session in sessions {
            let Some(standing) = standings.get(session.spec.id.to_string().as_str()) else { continue };
            let capacity = session.spec.pools.iter().find(|(it, _)| it.as_str() == pool.pool);
            let open = by_session.get(&session.spec.id).map_or(&[][..], Vec::as_slice);
            let is_of_pool =
                |run: &&StoredRun<'_>| run.job.is_some_and(|row| row.job.place.pool.as_str() == pool.pool);
            let held: u64 = open.iter().filter(is_of_pool).map(units).sum();
            if let Some(in_use) = &mut pool.in_use {
                match standing {
                    NodeStanding::Up => in_use.usable += held,
                    NodeStanding::Draining => in_use.draining += held,
                    NodeStanding::Silent | NodeStanding::Dead => in_use.silent += held,
                }
            }
            let Some((_, capacity)) = capacity else { continue };
            let node = session.spec.node.to_string();
            match standing {
                NodeStanding::Up => pool.usable += u64::from(*capacity),
                NodeStanding::Draining => {
                    pool.closed += u64::from(*capacity);
                    pool.draining.push(node);
                }
                NodeStanding::Silent | NodeStanding::Dead => {
                    pool.closed += u64::from(*capacity);
                    pool.silent.push(node);
                }
            }
        }
        pool
    };
    Ok(listed.items.into_iter().map(|it| usage(it.pool, it.open_runs)).collect())
}

fn waiting(gauges: &EngineGauges, name: &str) -> Option<PoolWaiting> {
    let (_, PoolGauges { n_ready, oldest_ready, .. }) =
        gauges.pools.iter().find(|(pool, _)| pool.as_str() == name)?;
    Some(PoolWaiting { n_jobs: *n_ready as u64, since: *oldest_ready })
}
