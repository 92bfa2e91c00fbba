//! What checkers must know of a world before it begins.

use std::collections::BTreeMap;

use evenbeat_core::ids::{NodeName, Pool, Site, Tenant};
use evenbeat_core::job::Job;
use evenbeat_core::lease::Timings;
use evenbeat_core::store::CounterLimit;
use evenbeat_core::time::Duration;

/// What a world is made of, as far as properties depend on it.
#[derive(Clone, Debug, PartialEq)]
pub struct Premises {
    /// The lengths of time that all nodes go by.
    pub timings: Timings,
    /// The nodes, and what each can carry.
    pub nodes: Vec<(NodeName, BTreeMap<Pool, u32>)>,
    /// What sites allow.
    pub site_limits: BTreeMap<Site, CounterLimit>,
    /// What tenants may.
    pub tenant_limits: BTreeMap<Tenant, CounterLimit>,
    /// Whether there is, on purpose, more work than room: in a pool, a site, a tenant or a name.
    pub is_overloaded: bool,
    /// No run executes longer than this.
    pub longest_run: Duration,
    /// How long nodes wait for a worker to start what they have published.
    pub start_within: Duration,
}

impl Premises {
    /// What a node can carry of a pool.
    pub(super) fn capacity(&self, node: &NodeName, pool: &Pool) -> u32 {
        let pools = self.nodes.iter().find(|(name, _)| name == node).map(|(_, pools)| pools);
        pools.and_then(|pools| pools.get(pool)).copied().unwrap_or(0)
    }

    /// How long it may take until everything is quiet again after the last fault: a session that died with
    /// it is fenced off, a new epoch is opened, what was frozen goes on or is gone, and whatever ran at
    /// that moment has ended.
    pub fn settling(&self) -> Duration {
        let spec = self.timings.spec();
        spec.window * 3 + spec.quarantine + spec.stop_bound * 2 + self.longest_run + Duration::from_secs(45)
    }

    /// How long after [`crate::fact::What::Healed`] a world must go on so that every promise can be checked.
    pub fn quiet_time(&self) -> Duration {
        self.settling() + Duration::from_secs(1)
    }
}

/// How many runs of a job may execute at once. A `fresh` job has no second occurrence before its run is
/// over.
pub(super) fn most_at_once(job: &Job) -> usize {
    use evenbeat_core::job::Overlap;
    use evenbeat_core::schedule::Schedule;
    match (&job.schedule, job.overlap) {
        (Schedule::Fresh { .. }, _) | (_, Overlap::Skip | Overlap::Queue) => 1,
        (_, Overlap::Allow { max_parallel }) => usize::try_from(max_parallel).unwrap_or(usize::MAX),
    }
}

/// Whether a job may run on a node, by the names of nodes alone.
pub(super) fn may_run_on(job: &Job, node: &NodeName) -> bool {
    let place = &job.place;
    let is_wanted = place.run_on_nodes.is_empty() || place.run_on_nodes.iter().any(|it| it == node);
    is_wanted && place.dont_run_on_nodes.iter().all(|it| it != node)
}
