//! How the whole fleet is: counts, what is late and why, what comes. All of it is kept in memory.

use std::sync::Arc;

use evenbeat_core::condition::{Condition, Reason, assess};
use evenbeat_core::distribution::Distribution;
use evenbeat_core::engine::{Engine, Now};
use evenbeat_core::ids::{JobKey, Pool};
use evenbeat_core::job::Status;
use evenbeat_core::roster::{AttentionCause, Counts, Jobs as _, Roster};
use evenbeat_core::time::Timestamp;

use super::ViewError;
use super::job_list::{JobTab, n_in_tab};
use crate::app::App;
use crate::fleet::DAY_HOURS;

/// Most pools whose waiting jobs are shown apart.
const POOLS_MAX: usize = 4;

/// Most pools that can be chosen from.
const LISTED_POOLS_MAX: usize = 100;

/// Jobs of each cause that are looked at for what happens next.
const SAMPLE_MAX: usize = 20;

/// How the fleet is.
#[derive(Clone, Debug)]
pub(crate) struct FleetOverview {
    /// Whether all jobs have been read and judged.
    pub(crate) is_read: bool,
    pub(crate) jobs: JobNumbers,
    /// The job at risk that comes to its deadline first, and when.
    pub(crate) next_miss: Option<(JobKey, Timestamp)>,
    /// What all nodes together can carry, in units of cost.
    pub(crate) capacity: u32,
    pub(crate) n_nodes: usize,
    /// Nodes that have fallen silent.
    pub(crate) n_silent: usize,
    /// What is late or at risk, by cause; causes without jobs are left out.
    pub(crate) causes: Vec<CauseLine>,
    /// The first pools that have jobs, in the order of their names.
    pub(crate) pools: Vec<String>,
    /// The starts of the next day.
    pub(crate) day: Arc<Distribution>,
}

/// Jobs, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct JobNumbers {
    pub(crate) all: u64,
    /// Their data is older than promised.
    pub(crate) stale: u64,
    /// In error; those that are stale, and those that the system gave up.
    pub(crate) error: u64,
    pub(crate) warning: u64,
    /// Without new ones.
    pub(crate) ok: u64,
    /// They have not succeeded yet, and nothing is wrong.
    pub(crate) new: u64,
    /// Paused by a person, disabled or done.
    pub(crate) untracked: u64,
    pub(crate) paused: u64,
    pub(crate) running: u64,
    pub(crate) queued: u64,
}

/// Jobs that are late or at risk for one cause, and in one pool where that matters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CauseLine {
    pub(crate) cause: AttentionCause,
    pub(crate) pool: Option<BusyPool>,
    pub(crate) n_late: u32,
    pub(crate) n_at_risk: u32,
    /// When the first of them starts, or ends if they run; or when the pool has room.
    pub(crate) next_at: Option<Timestamp>,
    /// Whether there are more jobs than were looked at for that: the most urgent ones.
    pub(crate) is_sample: bool,
}

/// A pool in which jobs wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BusyPool {
    pub(crate) name: String,
    /// Units in use and capacity, if this node has the pool.
    pub(crate) units: Option<(u32, u32)>,
}

/// The fleet as it is now.
pub(crate) async fn overview(app: &App) -> Result<FleetOverview, ViewError> {
    let now = app.intake.now();
    let day = app.fleet.distribution(now, DAY_HOURS).await;
    let day = day.map_err(|error| ViewError::Bug(error.to_string()))?;
    let is_read = app.is_read().await;
    let asked = app.node.ask_both(move |engine, roster, at| {
        let capacity = engine.nodes().iter().flat_map(|(_, pools)| pools.values()).sum();
        let (n_nodes, n_silent) = engine.n_nodes(at);
        FleetOverview {
            is_read: is_read && engine.jobs().is_some(),
            jobs: numbers(engine, roster),
            next_miss: next_miss(roster),
            capacity,
            n_nodes,
            n_silent,
            causes: causes(engine, roster, at),
            pools: roster.counts_by_pool().take(LISTED_POOLS_MAX).map(|(pool, _)| pool.to_string()).collect(),
            day,
        }
    });
    asked.await.ok_or(ViewError::NodeGone)
}

/// How many jobs there are, and whether all of them have been read.
pub(crate) fn numbers(engine: &Engine, roster: &Roster) -> JobNumbers {
    let counts = roster.counts();
    let new: u64 = counts.with_reason(Reason::NeverSucceeded).into();
    let in_tab = |tab: JobTab| n_in_tab(tab, engine, roster, None).unwrap_or(0);
    JobNumbers {
        all: counts.n_jobs().into(),
        stale: counts.with_reason(Reason::DeadlinePassed).into(),
        error: counts.in_condition(Condition::Error).into(),
        warning: counts.in_condition(Condition::Warning).into(),
        ok: u64::from(counts.in_condition(Condition::Ok)).saturating_sub(new),
        new,
        untracked: (counts.n_jobs() - counts.n_tracked()).into(),
        paused: counts.in_status(Status::Paused).into(),
        running: in_tab(JobTab::Running),
        queued: in_tab(JobTab::Waiting),
    }
}

fn next_miss(roster: &Roster) -> Option<(JobKey, Timestamp)> {
    let first = roster.most_urgent(None, Some(Condition::Warning)).next()?;
    Some((first.key.clone(), first.deadline?))
}

fn causes(engine: &Engine, roster: &Roster, now: Now) -> Vec<CauseLine> {
    let mut lines = Vec::new();
    for cause in AttentionCause::ALL {
        if cause == AttentionCause::Waiting {
            lines.extend(waiting_by_pool(engine, roster, now));
        } else {
            lines.extend(line_of(cause, roster.counts(), || next_of(cause, engine, roster, now)));
        }
    }
    lines.sort_by_key(|it| std::cmp::Reverse((it.n_late, it.n_at_risk)));
    lines
}

/// A line, unless it has no jobs.
fn line_of(
    cause: AttentionCause,
    counts: &Counts,
    next: impl FnOnce() -> Option<Timestamp>,
) -> Option<CauseLine> {
    let (n_late, n_at_risk) = (counts.late(cause), counts.at_risk(cause));
    let is_sample = SAMPLE_MAX < (n_late + n_at_risk) as usize;
    let is_any = 0 < n_late + n_at_risk;
    is_any.then(|| CauseLine { cause, pool: None, n_late, n_at_risk, next_at: next(), is_sample })
}

/// The pools with most waiting jobs apart, and the others together.
fn waiting_by_pool(engine: &Engine, roster: &Roster, now: Now) -> Vec<CauseLine> {
    let loads = engine.pool_loads();
    let mut lines: Vec<CauseLine> = Vec::new();
    let mut pools: Vec<(&Pool, &Counts)> = roster.counts_by_pool().collect();
    let weight =
        |counts: &Counts| (counts.late(AttentionCause::Waiting), counts.at_risk(AttentionCause::Waiting));
    pools.retain(|(_, counts)| weight(counts) != (0, 0));
    pools.sort_by_key(|(_, counts)| std::cmp::Reverse(weight(counts)));
    for (idx, (pool, counts)) in pools.into_iter().enumerate() {
        let Some(line) = line_of(AttentionCause::Waiting, counts, || engine.next_room_at(now, pool)) else {
            continue;
        };
        if idx < POOLS_MAX {
            let load = loads.iter().find(|it| it.pool == *pool);
            let units = load.map(|it| (it.in_use, it.capacity));
            let pool = BusyPool { name: pool.to_string(), units };
            lines.push(CauseLine { pool: Some(pool), is_sample: false, ..line });
        } else if let Some(rest) = lines.get_mut(POOLS_MAX) {
            rest.n_late += line.n_late;
            rest.n_at_risk += line.n_at_risk;
        } else {
            lines.push(CauseLine { next_at: None, is_sample: false, ..line });
        }
    }
    lines
}

/// When the first of the most urgent jobs of a cause starts, or ends if it runs.
fn next_of(cause: AttentionCause, engine: &Engine, roster: &Roster, now: Now) -> Option<Timestamp> {
    let jobs = engine.jobs()?;
    let time = engine.time(now);
    let sample = roster.most_urgent(Some(cause), None).take(SAMPLE_MAX);
    let instants = sample.filter_map(|line| {
        let job = jobs.job(line.key)?;
        let it = assess(job.key, job.terms, job.state, time, &jobs.outlook(job.terms));
        match cause {
            AttentionCause::Running => it.expected_end,
            AttentionCause::Failed | AttentionCause::Blackout | AttentionCause::StartsLate => {
                it.planned_start
            }
            AttentionCause::Waiting
            | AttentionCause::NoNode
            | AttentionCause::Unsatisfiable
            | AttentionCause::GivenUp => None,
        }
    });
    instants.min()
}
