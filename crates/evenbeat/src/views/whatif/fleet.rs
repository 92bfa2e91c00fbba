//! A live fleet as a simulation begins with it: its jobs with their times and measured run times, its nodes and its limits.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::Arc;

use evenbeat_core::engine::RunTime;
use evenbeat_core::ids::{NodeName, Pool, Tenant};
use evenbeat_core::job::{Job, Pause, PausedBy, Status};
use evenbeat_core::schedule::{Placement, Schedule};
use evenbeat_core::spec::JobSpec;
use evenbeat_core::store::{CounterLimit, JobRow};
use evenbeat_core::time::{Duration, TimeWindow, Timestamp};
use evenbeat_core::value::Table;
use evenbeat_core::zone::Zones;
use evenbeat_whatif::{CannotCarry, Fleet, Setup};

use crate::value_json::from_json;
use crate::views::model::{FleetJob, LimitView, LimitsView, NodeView};

/// A live fleet.
#[derive(Clone, Debug)]
pub(crate) struct LiveFleet {
    pub(crate) facts: ServerFacts,
    pub(crate) jobs: Vec<Job>,
    /// The nodes and limits, and the places of the jobs. Nodes that differ are assumed to have the average.
    pub(crate) setup: Setup,
    /// What each node that takes new runs can carry.
    pub(crate) nodes: NodePools,
}

/// Units of each pool on each node.
pub(crate) type NodePools = BTreeMap<NodeName, BTreeMap<Pool, u32>>;

/// Facts about the fleet of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ServerFacts {
    /// Number of jobs whose run times were measured.
    pub(crate) n_measured: usize,
    /// Whether its nodes have equal capacity.
    pub(crate) are_alike: bool,
}

/// A job as it is now.
#[derive(Debug)]
pub(crate) struct LiveJob {
    job: Job,
    placement: Option<Placement>,
    next_run_at: Option<Timestamp>,
    is_measured: bool,
}

impl LiveJob {
    /// A job as the API tells it; none if it is done, because then it never starts again.
    pub(crate) fn of_api(one: FleetJob, zones: &mut Zones) -> Result<Option<LiveJob>, String> {
        let FleetJob { definition, status, placement, next_run_at, measured } = one;
        if status == "done" {
            return Ok(None);
        }
        let table: Table = definition.0.into_iter().map(|(name, value)| (name, from_json(value))).collect();
        let name = table.get("name").and_then(|it| it.as_text()).unwrap_or_default().to_owned();
        let job = JobSpec::read(&table).restore(zones).map_err(|faults| {
            let why = faults.first().map_or(String::new(), |fault| format!(": {}", fault.error));
            format!("cannot read the server's job `{name}`{why}")
        })?;
        let (placement, next_run_at) = (placement.map(Placement::from), next_run_at.map(|it| it.0));
        Ok(Some(LiveJob::of(job, status == "paused", measured.map(|it| it.mean.0), placement, next_run_at)))
    }

    /// A job as it is stored; none if it is done.
    pub(crate) fn of_row(row: &JobRow) -> Option<LiveJob> {
        let (job, state) = (&*row.job, &row.state);
        let status = state.status(job);
        let mean = state.estimate.as_ref().map(evenbeat_core::estimate::Estimate::mean);
        let is_paused = status == Status::Paused;
        (status != Status::Done)
            .then(|| LiveJob::of(job.clone(), is_paused, mean, state.placement.clone(), state.next_run_at))
    }

    /// Whether a job is paused and how long it takes come from its state, not from its definition.
    fn of(
        mut job: Job,
        is_paused: bool,
        measured: Option<Duration>,
        placement: Option<Placement>,
        next_run_at: Option<Timestamp>,
    ) -> LiveJob {
        job.paused = is_paused.then_some(Pause { by: PausedBy::Operator, reason: None });
        if let Some(mean) = measured {
            // A run takes at least a millisecond.
            job.estimate = Some(mean.max(Duration::from_millis(1)));
        }
        LiveJob { job, placement, next_run_at, is_measured: measured.is_some() }
    }
}

/// Puts a fleet together.
pub(crate) fn live_fleet(
    fleet: impl IntoIterator<Item = LiveJob>,
    limits: &LimitsView,
    nodes: &[NodeView],
) -> LiveFleet {
    let run_time = RunTime::from(limits.run_time.clone());
    let (mut jobs, mut placements, mut n_measured) = (Vec::new(), BTreeMap::new(), 0);
    for LiveJob { mut job, placement, next_run_at, is_measured } in fleet {
        n_measured += usize::from(is_measured);
        // Apply the server's limits on run time here too.
        job.limits.max_allowed = run_time.longest(&job.terms);
        if let Some(mut placement) = placement {
            // The times of a `fresh` job follow from its runs.
            if let (Schedule::Fresh { .. }, Some(at)) = (&job.schedule, next_run_at) {
                placement.anchor_at = at;
            }
            placements.insert(job.key.clone(), placement);
        }
        jobs.push(job);
    }
    let mut setup = Setup { placements: Arc::new(placements), ..Setup::new() };
    let nodes = node_pools(nodes);
    let are_alike = carriers(&nodes, &jobs, &mut setup);
    setup.sites = named(&limits.sites);
    setup.tenants = tenants_of(limits, &jobs);
    setup.all_runs = limits.all_runs.into();
    LiveFleet { facts: ServerFacts { n_measured, are_alike }, jobs, setup, nodes }
}

/// What the nodes that take new runs can carry.
fn node_pools(nodes: &[NodeView]) -> NodePools {
    let mut carried = NodePools::new();
    for node in nodes.iter().filter(|it| it.kind == "node" && it.state == "living") {
        let Ok(name) = node.node.parse() else { continue };
        let pools = carried.entry(name).or_default();
        for (pool, units) in node.pools.iter().filter_map(|(pool, units)| Some((pool.parse().ok()?, units))) {
            let all: &mut u32 = pools.entry(pool).or_default();
            *all = all.saturating_add(*units);
        }
    }
    carried
}

/// Sets the nodes, the capacity of each in the pools that jobs use, and tells whether all nodes have the same. If they
/// differ, each is assumed to have the average.
fn carriers(carried: &NodePools, jobs: &[Job], setup: &mut Setup) -> bool {
    // No node takes new runs at the moment, so assume what the fleet needs, as for a file.
    let Ok(n_nodes @ 1..) = u32::try_from(carried.len()) else { return true };
    let mut are_alike = true;
    for pool in jobs.iter().map(|job| &job.place.pool) {
        if setup.capacity.contains_key(pool) {
            continue;
        }
        let units = || carried.values().map(|pools| pools.get(pool).copied().unwrap_or(0));
        are_alike &= units().min() == units().max();
        let mean = units().fold(0, u32::saturating_add) / n_nodes;
        setup.capacity.insert(pool.clone(), mean);
    }
    setup.nodes = carried.keys().cloned().collect();
    are_alike
}

fn named<K: Ord + FromStr>(limits: &BTreeMap<String, LimitView>) -> BTreeMap<K, CounterLimit> {
    limits.iter().filter_map(|(name, it)| Some((name.parse().ok()?, (*it).into()))).collect()
}

/// The limits of every tenant that has jobs: those of its plan, or the default.
fn tenants_of(limits: &LimitsView, jobs: &[Job]) -> BTreeMap<Tenant, CounterLimit> {
    let mut tenants: BTreeMap<Tenant, CounterLimit> = named(&limits.tenants);
    for tenant in jobs.iter().filter_map(|job| job.tenant.as_ref()) {
        tenants.entry(tenant.clone()).or_insert_with(|| limits.other_tenants.into());
    }
    tenants
}

/// Skips jobs that can never run in a setup, and returns the reasons. The last one is an error if no job is left.
pub(crate) fn leave_out(
    fleet: &mut Fleet,
    setup: &Setup,
    window: TimeWindow,
) -> Result<Vec<CannotCarry>, CannotCarry> {
    let mut reasons = Vec::new();
    let setup = setup.with_capacity_for(&fleet.jobs, window).with_capacity_for(&fleet.added, window);
    while let Some(why) = setup.why_not(fleet.jobs.iter().filter(|job| !is_idle(job))) {
        fleet.jobs.retain(|job| is_idle(job) || !setup.is_why_not(&why, job));
        if fleet.jobs.iter().all(is_idle) && fleet.added.is_empty() {
            return Err(why);
        }
        reasons.push(why);
    }
    Ok(reasons)
}

/// Whether a job never starts on its own.
pub(crate) fn is_idle(job: &Job) -> bool {
    !job.enabled || job.paused.is_some() || matches!(job.schedule, Schedule::Manual)
}

/// The next quarter of an hour, where simulations begin.
pub(crate) fn next_quarter(now: Timestamp) -> Timestamp {
    const QUARTER_MS: i64 = 15 * 60 * 1_000;
    let into = now.as_millis().rem_euclid(QUARTER_MS);
    if into == 0 { now } else { now + Duration::from_millis(QUARTER_MS - into) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, state: &'static str, pools: &[(&str, u32)]) -> NodeView {
        NodeView {
            node: name.to_owned(),
            instance: "main".to_owned(),
            session: String::new(),
            kind: "node".into(),
            state: state.into(),
            beat: 0,
            pools: pools.iter().map(|(pool, units)| ((*pool).to_owned(), *units)).collect(),
            zone_data: String::new(),
            open_runs: 0,
            is_this: false,
            last_seen_at: None,
        }
    }

    fn job(key: &str, pool: &str) -> Job {
        let table = format!(r#"{{"name":"{key}","every":"1h","command":["true"],"pool":"{pool}"}}"#);
        let table = crate::value_json::from_text(&table).unwrap();
        JobSpec::read(&table).restore(&mut Zones::new()).unwrap()
    }

    #[track_caller]
    fn check(nodes: &[NodeView], are_alike: bool, expected: &str) {
        let mut setup = Setup::new();
        assert_eq!(
            carriers(&node_pools(nodes), &[job("a", "crawl"), job("b", "gpu")], &mut setup),
            are_alike
        );
        let nodes: Vec<String> = setup.nodes.iter().map(ToString::to_string).collect();
        let pools: Vec<String> =
            setup.capacity.iter().map(|(pool, units)| format!("{pool}={units}")).collect();
        assert_eq!(format!("{} {}", nodes.join(","), pools.join(",")).trim_end(), expected);
    }

    #[test]
    fn a_fleet_is_carried_by_the_nodes_that_take_new_runs() {
        let both: [(&str, u32); 3] = [("crawl", 6), ("gpu", 2), ("default", 8)];
        check(&[node("one", "living", &both)], true, "one crawl=6,gpu=2");
        let more =
            [node("one", "living", &both), node("one", "living", &both), node("two", "draining", &both)];
        check(&more, true, "one crawl=12,gpu=4");
        let uneven = [node("one", "living", &both), node("two", "living", &[("crawl", 3)])];
        check(&uneven, false, "one,two crawl=4,gpu=1");
        check(&[], true, "n1");
    }
}
