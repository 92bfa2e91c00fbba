//! Whether a world has more work than room: then not everything can be in time.

use std::collections::BTreeMap;

use evenbeat_core::job::Job;
use evenbeat_core::schedule::Schedule;
use evenbeat_core::store::{CounterKey, CounterLimit};

use crate::setup::{JobSetup, Setup};

/// From this share of capacity on, what has to wait can have to wait long.
const BUSY: f64 = 0.4;

/// Whether any pool, site, tenant or name has more work than it can easily carry.
pub(super) fn is_overloaded(setup: &Setup) -> bool {
    pools_are(setup) || counters_are(setup)
}

fn pools_are(setup: &Setup) -> bool {
    // Jobs that only some nodes may run make a pool of their own out of those nodes.
    let mut work: BTreeMap<(String, Vec<&str>), f64> = BTreeMap::new();
    for it in setup.all_jobs() {
        let place = &it.job.place;
        let nodes: Vec<&str> = setup
            .nodes
            .iter()
            .filter(|node| place.allows(&node.name))
            .map(|node| node.name.as_str())
            .collect();
        *work.entry((place.pool.to_string(), nodes)).or_default() += runs_at_once(it) * f64::from(place.cost);
    }
    let room = |pool: &str, nodes: &[&str]| -> f64 {
        let nodes = setup.nodes.iter().filter(|node| nodes.contains(&node.name.as_str()));
        let units = nodes.filter_map(|node| node.pools.iter().find(|(name, _)| name.as_str() == pool));
        units.map(|(_, settings)| f64::from(settings.capacity - settings.reserved)).sum()
    };
    let mut by_pool: BTreeMap<&str, f64> = BTreeMap::new();
    for ((pool, nodes), work) in &work {
        if room(pool, nodes) * BUSY < *work {
            return true;
        }
        *by_pool.entry(pool).or_default() += work;
    }
    let all: Vec<&str> = setup.nodes.iter().map(|node| node.name.as_str()).collect();
    by_pool.into_iter().any(|(pool, work)| room(pool, &all) * BUSY < work)
}

fn counters_are(setup: &Setup) -> bool {
    let mut work: BTreeMap<CounterKey, (f64, f64, CounterLimit)> = BTreeMap::new();
    for it in setup.all_jobs() {
        for (counter, limit) in counters_of(setup, &it.job) {
            let entry = work.entry(counter).or_insert((0.0, 0.0, limit));
            entry.0 += runs_at_once(it);
            entry.1 += runs_per_second(it);
        }
    }
    work.into_values().any(|(at_once, per_second, limit)| {
        let is_full = limit.max_open.is_some_and(|most| f64::from(most) * BUSY < at_once);
        let is_fast = limit.min_gap.is_some_and(|gap| BUSY < per_second * gap.as_millis_f64() / 1_000.0);
        let is_many = limit.max_per_hour.is_some_and(|most| f64::from(most) * BUSY < per_second * 3_600.0);
        is_full || is_fast || is_many
    })
}

fn counters_of(setup: &Setup, job: &Job) -> Vec<(CounterKey, CounterLimit)> {
    let name = job.max_parallel_of_name.map(|most| {
        let limit = CounterLimit { max_open: Some(most), ..CounterLimit::default() };
        (CounterKey::Name(job.key.name().into()), limit)
    });
    let site = job.site.clone().and_then(|site| Some((setup.sites.get(&site).copied()?, site)));
    let tenant = job.tenant.clone().and_then(|it| Some((setup.tenants.get(&it).copied()?, it)));
    let site = site.map(|(limit, site)| (CounterKey::Site(site), limit));
    let tenant = tenant.map(|(limit, tenant)| (CounterKey::Tenant(tenant), limit));
    [name, site, tenant].into_iter().flatten().collect()
}

/// How many runs of a job go on at a time, on average.
fn runs_at_once(it: &JobSetup) -> f64 {
    runs_per_second(it) * it.habit.length_max.as_millis_f64() / 1_000.0
}

fn runs_per_second(it: &JobSetup) -> f64 {
    let every = match &it.job.schedule {
        Schedule::Every { interval, .. } => *interval,
        Schedule::Fresh { cooldown, .. } => *cooldown,
        Schedule::Cron(_) => evenbeat_core::time::Duration::from_mins(1),
        Schedule::Once { .. } | Schedule::Manual => return 0.0,
    };
    1_000.0 / every.as_millis_f64().max(1.0)
}
