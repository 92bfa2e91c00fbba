//! The groups of a time line, the worst first.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use evenbeat_core::condition::Condition;
use evenbeat_core::ids::JobKey;

use super::density::{Density, Past};
use super::{PoolState, TimelineGroup, units};
use crate::app::App;
use crate::store::run_times::Member;
use crate::views::ViewError;

/// How the jobs of a pool stand.
#[derive(Clone, Copy, Debug, Default)]
struct PoolCounts {
    jobs: u32,
    errors: u32,
    warnings: u32,
}

/// One group a pool. First those in which jobs wait, then those with more jobs that stand badly, then the fuller ones.
pub(super) async fn of_pools(
    app: &App,
    pools: &[PoolState],
    mut densities: BTreeMap<Arc<str>, Density>,
) -> Result<Vec<TimelineGroup>, ViewError> {
    let counts = app.node.ask_roster(|roster| -> BTreeMap<String, PoolCounts> {
        let count = |it: &evenbeat_core::roster::Counts| PoolCounts {
            jobs: it.n_jobs(),
            errors: it.in_condition(Condition::Error),
            warnings: it.in_condition(Condition::Warning),
        };
        roster.counts_by_pool().map(|(pool, it)| (pool.to_string(), count(it))).collect()
    });
    let counts = counts.await.ok_or(ViewError::NodeGone)?;
    let n_parts = densities.values().next().map_or(0, |it| it.wanted.len());
    let mut groups: Vec<_> = pools
        .iter()
        .filter_map(|pool| {
            let known = counts.get(&*pool.name).copied().unwrap_or_default();
            let density = densities.remove(&pool.name).unwrap_or_else(|| Density::empty(n_parts));
            // A pool without jobs and without runs has nothing to show.
            if known.jobs == 0 && density.most() <= 0.0 {
                return None;
            }
            let fullness = density.most() / units(pool.capacity.max(1));
            let rank = (Reverse(0 < pool.n_waiting), Reverse(known.errors), Reverse(known.warnings));
            let group = TimelineGroup {
                name: pool.name.to_string(),
                n_jobs: known.jobs.into(),
                n_running: pool.n_running,
                n_bad: density.n_bad_in_all(),
                capacity: Some(pool.capacity),
                density,
                rows: None,
            };
            Some((rank, fullness, group))
        })
        .collect();
    groups.sort_by(|(rank, fullness, _), (other_rank, other, _)| {
        rank.cmp(other_rank).then(other.total_cmp(fullness))
    });
    Ok(groups.into_iter().map(|(_, _, group)| group).collect())
}

/// How many jobs each group has.
pub(super) fn counted(members: &[Member]) -> BTreeMap<Arc<str>, u64> {
    let mut counted: BTreeMap<Arc<str>, u64> = BTreeMap::new();
    for (_, group) in members {
        match counted.get_mut(group) {
            Some(n) => *n += 1,
            None => drop(counted.insert(Arc::clone(group), 1)),
        }
    }
    counted
}

/// One group a site or value of a label: first those with more bad runs, then the fuller ones.
pub(super) fn of_members(
    counted: BTreeMap<Arc<str>, u64>,
    mut densities: BTreeMap<Arc<str>, Density>,
    past: &Past,
    of_key: &BTreeMap<JobKey, Arc<str>>,
) -> Vec<TimelineGroup> {
    let mut running: BTreeMap<&Arc<str>, u64> = BTreeMap::new();
    for run in past.open() {
        if let Some(group) = of_key.get(&run.key) {
            *running.entry(group).or_default() += 1;
        }
    }
    let n_parts = densities.values().next().map_or(0, |it| it.wanted.len());
    let mut groups: Vec<TimelineGroup> = counted
        .into_iter()
        .map(|(name, n_jobs)| {
            let density = densities.remove(&name).unwrap_or_else(|| Density::empty(n_parts));
            TimelineGroup {
                n_running: running.get(&name).copied().unwrap_or(0),
                n_bad: density.n_bad_in_all(),
                name: name.to_string(),
                n_jobs,
                capacity: None,
                density,
                rows: None,
            }
        })
        .collect();
    groups.sort_by(|one, other| {
        (Reverse(one.n_bad).cmp(&Reverse(other.n_bad)))
            .then(other.density.most().total_cmp(&one.density.most()))
            .then_with(|| one.name.cmp(&other.name))
    });
    groups
}
