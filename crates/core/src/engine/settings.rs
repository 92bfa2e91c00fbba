//! The settings of an engine.

use std::collections::BTreeMap;

use crate::ids::{NodeName, Pool, Site, Tenant};
use crate::job::Terms;
use crate::lease::Timings;
use crate::rules::Rules;
use crate::slot::SlotWidth;
use crate::store::CounterLimit;
use crate::time::Duration;

/// The settings of one node's engine.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The node.
    pub node: NodeName,
    /// How leases are kept. None if the store has one process only: its lock is the lease.
    pub lease: Option<Timings>,
    /// What the node can carry, by pool.
    pub pools: BTreeMap<Pool, PoolSettings>,
    /// Limits of sites, across nodes.
    pub sites: BTreeMap<Site, CounterLimit>,
    /// Limits of tenants, across nodes.
    pub tenants: BTreeMap<Tenant, CounterLimit>,
    /// Limits of every other tenant, each for itself, across nodes.
    pub other_tenants: CounterLimit,
    /// Limits of all runs together, across nodes.
    pub all_runs: CounterLimit,
    /// How long runs may take, whatever their jobs say.
    pub run_time: RunTime,
    /// How the node chooses.
    pub dispatch: DispatchSettings,
    /// How often it looks for changes, nudged or not.
    pub poll_every: Duration,
    /// How long a run that was handed to a broker waits for a worker before it is given up.
    pub start_within: Duration,
    /// The width of the slots that notices name.
    pub slot_width: SlotWidth,
    /// The rules that hold.
    pub rules: Rules,
}

/// How long runs may take at most, besides what their jobs say of themselves (Q1).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunTime {
    /// The limit of all runs.
    pub any: Option<Duration>,
    /// The limit of each tenant's runs; None means unlimited.
    pub tenants: BTreeMap<Tenant, Option<Duration>>,
    /// Those of every other tenant.
    pub other_tenants: Option<Duration>,
}

impl RunTime {
    /// How long a run under these terms may take.
    pub fn longest(&self, terms: &Terms) -> Option<Duration> {
        self.limit(terms).map(|(length, _)| length)
    }

    /// The same, and the name of the field or key that says so.
    pub fn limit(&self, terms: &Terms) -> Option<(Duration, &'static str)> {
        let of_tenant = self.of_tenant(terms.tenant.as_ref());
        [
            (terms.limits.max_allowed, "max_allowed_duration"),
            (self.any, "quota.max_run_time"),
            (of_tenant, "max_run_time of its tenant's plan"),
        ]
        .into_iter()
        .filter_map(|(length, name)| Some((length?, name)))
        .min_by_key(|(length, _)| *length)
    }

    /// How long runs of a tenant may take. Runs without a tenant have no such limit.
    fn of_tenant(&self, tenant: Option<&Tenant>) -> Option<Duration> {
        self.tenants.get(tenant?).copied().unwrap_or(self.other_tenants)
    }
}

/// What one node can carry of one pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolSettings {
    /// Units of cost.
    pub capacity: u32,
    /// How many of them only manual and short runs may use.
    pub reserved: u32,
}

/// How a node chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DispatchSettings {
    /// By what jobs are put in order.
    pub order: Order,
    /// Whether room is kept for what will soon need it more (B12).
    pub lookahead: bool,
    /// The share of capacity, in percent, that late work may use while savable work waits (B6).
    pub late_share: u32,
    /// Runs that are expected to take no longer than this may use what is reserved.
    pub short: Duration,
    /// How many runs may start in a second, and how many of them at once.
    pub start_rate: Option<StartRate>,
    /// How long a job that another node should take is left to it.
    pub prefer_for: Duration,
    /// How many bids go into one claim at most.
    pub batch: usize,
    /// How long good ends that nothing waits for may wait behind starts, when many jobs come due at once.
    pub ends_wait: Duration,
}

/// By what jobs that may start are put in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// By the latest start that meets the deadline: the job that is nearest to missing it goes first (B3).
    #[default]
    LatestStart,
    /// By due time, as most schedulers do. For comparison.
    FirstCome,
    /// Minute by minute, and within a minute by name, as a crontab does. For comparison.
    ByMinute,
}

/// How many runs may start in a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StartRate {
    /// In the long run.
    pub per_second: u32,
    /// At once.
    pub burst: u32,
}

impl Default for DispatchSettings {
    fn default() -> DispatchSettings {
        DispatchSettings {
            order: Order::default(),
            lookahead: true,
            late_share: 50,
            short: Duration::from_secs(10),
            start_rate: None,
            prefer_for: Duration::from_secs(2),
            batch: 1_000,
            ends_wait: Duration::from_secs(10),
        }
    }
}

impl Settings {
    /// A node with one default pool of this capacity and everything else at its default.
    pub fn new(node: NodeName, lease: Option<Timings>, capacity: u32) -> Settings {
        Settings {
            node,
            lease,
            pools: BTreeMap::from([(Pool::default_pool(), PoolSettings { capacity, reserved: 0 })]),
            sites: BTreeMap::new(),
            tenants: BTreeMap::new(),
            other_tenants: CounterLimit::default(),
            all_runs: CounterLimit::default(),
            run_time: RunTime::default(),
            dispatch: DispatchSettings::default(),
            poll_every: Duration::from_secs(5),
            start_within: Duration::from_mins(5),
            slot_width: SlotWidth::DEFAULT,
            rules: Rules::ALL,
        }
    }
}
