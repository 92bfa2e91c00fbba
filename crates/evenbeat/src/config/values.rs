//! The configuration as typed values, and their conversion for the core.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use evenbeat_core::engine::{DispatchSettings, PoolSettings, RunTime, Settings};
use evenbeat_core::ids::{NodeName, Pool, Site, Tenant};
use evenbeat_core::lease::Timings;
use evenbeat_core::placement::Balance;
use evenbeat_core::rules::Rules;
use evenbeat_core::store::{CounterLimit, Retention};
use evenbeat_core::time::Duration;

use super::alerts::AlertSettings;
use super::http_endpoint::HttpEndpoint;
use super::network::Network;
use super::store_address::StoreAddress;

/// Rows to delete at once when history is trimmed. Small enough that other requests do not have to wait.
pub const TRIM_MOST: usize = 1_000;

/// The configuration of a node. docs/reference/configuration.md describes the values.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Where jobs and runs are stored.
    pub store: StoreAddress,
    /// Directory for the node's own files.
    pub data_dir: PathBuf,
    /// Address of the API and the web pages, if they are served over TCP at all.
    pub listen: Option<SocketAddr>,
    /// Names of this server besides its address and `localhost`.
    pub hosts: Vec<String>,
    /// Who may come in.
    pub auth: AuthSettings,
    /// The certificate and the key, if TCP is encrypted.
    pub tls: Option<TlsSettings>,
    /// The Unix socket that the command line uses.
    pub socket: PathBuf,
    /// Name of this node.
    pub node: NodeName,
    /// Tells several nodes of the same name apart.
    pub instance: NodeName,
    /// The pools of this node and their capacity.
    pub pools: BTreeMap<Pool, PoolSettings>,
    /// How often to check the store for changes.
    pub scheduler_interval: Duration,
    /// How the fleet is balanced.
    pub balance: Balance,
    /// Latest start of a new job's first run, unless the job sets its own.
    pub first_run_within: Option<Duration>,
    /// How the node chooses the next run.
    pub dispatch: DispatchSettings,
    /// The agenda of coming occurrences.
    pub agenda: AgendaSettings,
    /// Lease timings, for stores that need leases.
    pub lease: Timings,
    /// How long a published run waits for a worker.
    pub start_within: Duration,
    /// Limits of sites.
    pub sites: BTreeMap<Site, CounterLimit>,
    /// Limits by plan; `free` and `unlimited` always exist.
    pub plans: BTreeMap<String, QuotaLimits>,
    /// The plans of tenants; each of them exists.
    pub tenants: BTreeMap<Tenant, String>,
    /// The plan of all other tenants.
    pub default_plan: String,
    /// Limits of all tenants together.
    pub quota: QuotaLimits,
    /// Settings for commands.
    pub commands: RunSettings,
    /// How long history is kept.
    pub retention: RetentionSettings,
    /// Channels, routes and everything else about alerts.
    pub alerts: AlertSettings,
    /// Topic for start messages.
    pub topic: String,
    /// What metrics show, and where.
    pub metrics: MetricsSettings,
    /// Where traces of runs go.
    pub traces: Option<HttpEndpoint>,
    /// Logging.
    pub log: LogSettings,
    /// Job files and directories that `serve` applies when it starts.
    pub jobs: Vec<PathBuf>,
}

/// Who may come in (G5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthSettings {
    /// Whether every user of this machine is trusted.
    pub trusts_loopback: bool,
    /// Reverse proxies.
    pub trusted_proxies: Vec<Network>,
    /// Requests a second and token.
    pub request_rate: Option<u32>,
}

/// Files for TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsSettings {
    /// The certificate chain.
    pub cert: PathBuf,
    /// The private key.
    pub key: PathBuf,
}

/// The agenda of coming occurrences (D1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgendaSettings {
    /// How far ahead occurrences are computed.
    pub lookahead: Duration,
    /// How often they are recomputed.
    pub rebuild_every: Duration,
}

impl Default for AgendaSettings {
    fn default() -> AgendaSettings {
        AgendaSettings { lookahead: Duration::from_hours(1), rebuild_every: Duration::from_secs(30) }
    }
}

/// Limits of a plan, or of all tenants together (Q1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_field_names, reason = "named like the keys")]
pub struct QuotaLimits {
    /// Concurrent jobs.
    pub max_concurrent_jobs: Option<u32>,
    /// Length of a run.
    pub max_run_time: Option<Duration>,
    /// Pages per run.
    pub max_pages_per_run: Option<u32>,
    /// Snapshots in total.
    pub max_snapshots: Option<u32>,
    /// Size of the data.
    pub max_db_bytes: Option<u64>,
}

/// Settings for commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunSettings {
    /// Whether jobs may use a shell.
    pub allow_shell: bool,
    /// How long a run may take to stop after SIGTERM.
    pub grace: Duration,
    /// How many bytes of output are kept.
    pub output_max: u64,
    /// Variables that every run inherits.
    pub env_pass: Vec<String>,
    /// How long a run may continue without its node.
    pub max_orphan: Duration,
    /// How long a run may stay frozen.
    pub max_frozen: Duration,
    /// Maximum number of open files of a run.
    pub nofile: Option<u32>,
}

/// How long history is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetentionSettings {
    /// Ended runs.
    pub runs: Duration,
    /// Records of occurrences without a run.
    pub records: Duration,
    /// Output of runs.
    pub logs: Duration,
    /// History of the score.
    pub scores: Duration,
    /// Audit entries.
    pub audit: Duration,
}

/// What metrics show, and where.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MetricsSettings {
    /// An address of their own, without tokens.
    pub listen: Option<SocketAddr>,
    /// The jobs that have gauges of their own.
    pub jobs: MetricsJobs,
    /// Maximum number of them.
    pub jobs_max: usize,
}

/// Jobs that have gauges of their own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum MetricsJobs {
    /// None of them.
    #[default]
    None,
    /// All, up to the maximum.
    All,
    /// Those with this label and value.
    Label(String, String),
}

impl FromStr for MetricsJobs {
    type Err = ();

    fn from_str(text: &str) -> Result<MetricsJobs, ()> {
        match text.split_once('=') {
            _ if text == "*" => Ok(MetricsJobs::All),
            Some((name, value)) if !name.is_empty() => {
                Ok(MetricsJobs::Label(name.to_owned(), value.to_owned()))
            }
            _ => Err(()),
        }
    }
}

/// Logging.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogSettings {
    /// Lowest level to log.
    pub level: LogLevel,
    pub format: LogFormat,
}

/// The level of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

/// The format of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// Human-readable on a terminal, JSON elsewhere.
    Auto,
    /// Human-readable.
    Human,
    /// One JSON object per line.
    Json,
}

impl Config {
    /// The settings of this node's engine.
    pub fn settings(&self) -> Settings {
        let open_of = |limits: QuotaLimits| CounterLimit {
            max_open: limits.max_concurrent_jobs,
            ..CounterLimit::default()
        };
        // Include tenants without limits, so that the default plan does not apply to them.
        let tenants = || self.tenants.keys().map(|tenant| (tenant.clone(), self.limits_of(tenant)));
        let others = self.limits_of_plan(&self.default_plan);
        Settings {
            node: self.node.clone(),
            // A single process owns the file, so its lock is the lease.
            lease: match self.store {
                StoreAddress::Sqlite(_) => None,
                StoreAddress::Postgres(_) => Some(self.lease),
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

    /// How the fleet is balanced.
    pub fn balance(&self) -> Balance {
        self.balance
    }

    /// How long the store keeps history.
    pub fn retention(&self) -> Retention {
        let RetentionSettings { runs, records, audit, .. } = self.retention;
        Retention::new(runs, records, audit, TRIM_MOST)
    }

    /// The limits of a tenant's plan.
    pub fn limits_of(&self, tenant: &Tenant) -> QuotaLimits {
        self.limits_of_plan(self.plan_of(tenant))
    }

    /// The plan of a tenant.
    pub fn plan_of(&self, tenant: &Tenant) -> &str {
        self.tenants.get(tenant).unwrap_or(&self.default_plan)
    }

    pub(crate) fn limits_of_plan(&self, plan: &str) -> QuotaLimits {
        self.plans.get(plan).copied().unwrap_or_default()
    }
}
