//! The configuration as plain typed values, and what the core makes of them.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use evenbeat_core::engine::{DispatchSettings, PoolSettings, RunTime, Settings};
use evenbeat_core::ids::{NodeName, Pool, Site, Tenant};
use evenbeat_core::lease::Timings;
use evenbeat_core::placement::Balance;
use evenbeat_core::rules::Rules;
use evenbeat_core::store::{CounterLimit, Retention};
use evenbeat_core::time::Duration;

use super::store_address::StorePlace;

/// How many rows of each kind go at once when history is trimmed, so that nobody waits for it.
pub const TRIM_MOST: usize = 1_000;

/// How a node is set up. What each value means is said in docs/reference/configuration.md.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Where jobs and runs are kept.
    pub store: StorePlace,
    /// The node's own files.
    pub data_dir: PathBuf,
    /// Where the API and the pages are served.
    pub listen: SocketAddr,
    /// The Unix socket that the command line uses.
    pub socket: PathBuf,
    /// The server that this node is.
    pub node: NodeName,
    /// Which of several nodes on it.
    pub instance: NodeName,
    /// What the node can carry.
    pub pools: BTreeMap<Pool, PoolSettings>,
    /// How often the store is looked at.
    pub scheduler_interval: Duration,
    /// How the fleet is levelled.
    pub balance: Balance,
    /// How soon a new job runs at the latest, unless it says otherwise itself.
    pub first_run_within: Option<Duration>,
    /// How the node chooses.
    pub dispatch: DispatchSettings,
    /// What is worked out ahead.
    pub agenda: AgendaSettings,
    /// How leases are kept, where the store needs any.
    pub lease: Timings,
    /// How long a published run waits for a worker.
    pub start_within: Duration,
    /// Limits of sites.
    pub sites: BTreeMap<Site, CounterLimit>,
    /// Limits by the name of a plan; `free` and `unlimited` are always there.
    pub plans: BTreeMap<String, Limits>,
    /// The plans of tenants; each is there.
    pub tenants: BTreeMap<Tenant, String>,
    /// The plan of all other tenants.
    pub default_plan: String,
    /// Limits of all tenants together.
    pub quota: Limits,
    /// How commands are run.
    pub commands: RunSettings,
    /// How long things are kept.
    pub retention: KeepFor,
    /// The distribution score below which an alert is sent.
    pub score_below: f64,
    /// Where start messages go.
    pub topic: String,
    /// What is logged, and how.
    pub log: LogSettings,
    /// Job files and directories that `serve` applies when it starts.
    pub jobs: Vec<PathBuf>,
}

/// What is worked out ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgendaSettings {
    /// How far.
    pub lookahead: Duration,
    /// How often.
    pub rebuild_every: Duration,
}

/// Limits of a plan, or of everybody together (Q1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Jobs that run at a time.
    pub max_concurrent_jobs: Option<u32>,
    /// The length of a run.
    pub max_run_time: Option<Duration>,
    /// Pages that a run processes.
    pub max_pages_per_run: Option<u32>,
    /// Snapshots, in sum.
    pub max_snapshots: Option<u32>,
    /// What is kept.
    pub max_db_bytes: Option<u64>,
}

/// How commands are run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunSettings {
    /// Whether jobs may use a shell.
    pub allow_shell: bool,
    /// How long a run has to end when it is asked to.
    pub grace: Duration,
    /// How many bytes of output are kept.
    pub output_max: u64,
    /// Variables that every run inherits.
    pub env_pass: Vec<String>,
    /// How long a run goes on without a node.
    pub max_orphan: Duration,
    /// How long a run stays frozen.
    pub max_frozen: Duration,
    /// How many files a run may have open.
    pub nofile: Option<u32>,
}

/// How long things are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepFor {
    /// Ended runs.
    pub runs: Duration,
    /// Records of occurrences without a run.
    pub records: Duration,
    /// Output of runs.
    pub logs: Duration,
    /// History of the score.
    pub scores: Duration,
    /// Who changed what.
    pub audit: Duration,
}

/// What is logged, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogSettings {
    /// This and whatever is more important.
    pub level: LogLevel,
    /// In which form.
    pub format: LogFormat,
}

/// How important a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "they are called what they are called everywhere")]
pub enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

/// The form of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people on a terminal, JSON elsewhere.
    Auto,
    /// For people.
    Human,
    /// One JSON object a line.
    Json,
}

impl Config {
    /// What the engine of this node goes by.
    pub fn settings(&self) -> Settings {
        let open_of =
            |limits: Limits| CounterLimit { max_open: limits.max_concurrent_jobs, ..CounterLimit::default() };
        // Those without limits too: what holds for all others does not hold for them.
        let tenants = || self.tenants.keys().map(|tenant| (tenant.clone(), self.limits_of(tenant)));
        let others = self.limits_of_plan(&self.default_plan);
        Settings {
            node: self.node.clone(),
            // One process has the file for itself: its lock is the lease.
            lease: match self.store {
                StorePlace::Sqlite(_) => None,
                StorePlace::Postgres(_) => Some(self.lease),
            },
            pools: self.pools.clone(),
            sites: self.sites.clone(),
            tenants: tenants().map(|(tenant, limits)| (tenant, open_of(limits))).collect(),
            other_tenants: open_of(others),
            all_runs: open_of(self.quota),
            run_time: RunTime {
                any: self.quota.max_run_time,
                tenants: tenants().map(|(tenant, limits)| (tenant, limits.max_run_time)).collect(),
                other_tenants: others.max_run_time,
            },
            dispatch: self.dispatch,
            poll_every: self.scheduler_interval,
            start_within: self.start_within,
            slot_width: self.balance.width,
            rules: Rules::ALL,
        }
    }

    /// How the fleet is levelled.
    pub fn balance(&self) -> Balance {
        self.balance
    }

    /// How long the store keeps what is over.
    pub fn retention(&self) -> Retention {
        let KeepFor { runs, records, audit, .. } = self.retention;
        Retention::new(runs, records, audit, TRIM_MOST)
    }

    /// The limits of a tenant: those of its plan.
    pub fn limits_of(&self, tenant: &Tenant) -> Limits {
        self.limits_of_plan(self.plan_of(tenant))
    }

    /// The plan of a tenant.
    pub fn plan_of(&self, tenant: &Tenant) -> &str {
        self.tenants.get(tenant).unwrap_or(&self.default_plan)
    }

    pub(crate) fn limits_of_plan(&self, plan: &str) -> Limits {
        self.plans.get(plan).copied().unwrap_or_default()
    }
}
