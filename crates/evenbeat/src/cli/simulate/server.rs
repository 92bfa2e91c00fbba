//! Loads the fleet of a server for a simulation: its jobs with their times and measured run times, its nodes and its
//! limits.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::Arc;

use evenbeat_core::engine::RunTime;
use evenbeat_core::ids::{NodeName, Pool, Tenant};
use evenbeat_core::job::{Job, Pause, PausedBy};
use evenbeat_core::schedule::{Placement, Schedule};
use evenbeat_core::spec::JobSpec;
use evenbeat_core::store::CounterLimit;
use evenbeat_core::time::Duration;
use evenbeat_core::value::Table;
use evenbeat_core::zone::Zones;
use evenbeat_whatif::Setup;

use super::figures::{FleetOrigin, ServerFacts};
use crate::cli::client::{ApiRequest, CommandError};
use crate::cli::remote::RemoteContext;
use crate::value_json::from_json;
use crate::views::model::{FleetJob, LimitView, LimitsView, NodeView, Page};

/// Largest fleet to simulate.
const JOBS_MAX: usize = 200_000;

/// The fleet of a server.
#[derive(Debug)]
pub(super) struct ServerFleet {
    pub(super) origin: FleetOrigin,
    pub(super) jobs: Vec<Job>,
    /// The server's nodes and limits, and the places of its jobs.
    pub(super) setup: Setup,
    /// Why some jobs were skipped.
    pub(super) warnings: Vec<String>,
}

/// Loads the fleet from the server.
pub(super) fn load(remote: &RemoteContext<'_>) -> Result<ServerFleet, CommandError> {
    let fleet = remote.fetch_all::<FleetJob>(&ApiRequest::get(&["scheduler", "fleet"]), "after", JOBS_MAX)?;
    if fleet.next.is_some() {
        return Err(CommandError::Bad(format!(
            "the fleet has more than {JOBS_MAX} jobs, too many to simulate at once; write some of them to a file \
             with `evenbeat export` and simulate that"
        )));
    }
    let limits: LimitsView = remote.send(ApiRequest::get(&["scheduler", "limits"]))?.read()?;
    let run_time = RunTime::from(limits.run_time.clone());
    let nodes = remote.send(ApiRequest::get(&["nodes"]))?.read::<Page<NodeView>>()?.items;
    let (mut jobs, mut placements, mut n_measured) = (Vec::new(), BTreeMap::new(), 0);
    let mut zones = Zones::new();
    let mut warnings = Vec::new();
    // Jobs that are done never start again.
    for one in fleet.items.into_iter().filter(|it| it.status != "done") {
        n_measured += usize::from(one.measured.is_some());
        let placement = one.placement.clone().map(Placement::from);
        let next_run_at = one.next_run_at.map(|it| it.0);
        let mut job = match job_of(one, &mut zones) {
            Ok(job) => job,
            Err(why) => {
                warnings.push(format!("skipped: {why}"));
                continue;
            }
        };
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
    let are_alike = carriers(&nodes, &jobs, &mut setup);
    setup.sites = named(&limits.sites);
    setup.tenants = tenants_of(&limits, &jobs);
    setup.all_runs = limits.all_runs.into();
    let origin = FleetOrigin::Server(ServerFacts { n_measured, are_alike });
    Ok(ServerFleet { origin, jobs, setup, warnings })
}

/// The current job: whether it is paused and how long it takes come from its state, not from its definition.
fn job_of(one: FleetJob, zones: &mut Zones) -> Result<Job, String> {
    let FleetJob { definition, status, measured, .. } = one;
    let table: Table = definition.0.into_iter().map(|(name, value)| (name, from_json(value))).collect();
    let name = table.get("name").and_then(|it| it.as_text()).unwrap_or_default().to_owned();
    let mut job = JobSpec::read(&table).restore(zones).map_err(|faults| {
        let why = faults.first().map_or(String::new(), |fault| format!(": {}", fault.error));
        format!("cannot read the server's job `{name}`{why}")
    })?;
    job.paused = (status == "paused").then_some(Pause { by: PausedBy::Operator, reason: None });
    if let Some(measured) = measured {
        // A run takes at least a millisecond.
        job.estimate = Some(measured.mean.0.max(Duration::from_millis(1)));
    }
    Ok(job)
}

/// The nodes that take new runs, the capacity of each in the pools that jobs use, and whether all nodes have the same. If
/// they differ, each is assumed to have the average.
fn carriers(nodes: &[NodeView], jobs: &[Job], setup: &mut Setup) -> bool {
    let mut carried: BTreeMap<NodeName, BTreeMap<Pool, u32>> = BTreeMap::new();
    for node in nodes.iter().filter(|it| it.kind == "node" && it.state == "living") {
        let Ok(name) = node.node.parse() else { continue };
        let pools = carried.entry(name).or_default();
        for (pool, units) in node.pools.iter().filter_map(|(pool, units)| Some((pool.parse().ok()?, units))) {
            let all: &mut u32 = pools.entry(pool).or_default();
            *all = all.saturating_add(*units);
        }
    }
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
    setup.nodes = carried.into_keys().collect();
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
        assert_eq!(carriers(nodes, &[job("a", "crawl"), job("b", "gpu")], &mut setup), are_alike);
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
