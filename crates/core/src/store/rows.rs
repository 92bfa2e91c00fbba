//! What is stored.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::ids::{ExtraId, Fence, JobKey, NodeName, Pool, RunId, SessionId, Site, Tenant};
use crate::job::{Job, JobState, Terms};
use crate::lease::Epoch;
use crate::occurrence::{Due, Record};
use crate::run::{Outcome, RunReport};
use crate::time::{Duration, Timestamp};

/// Grows with every change of a row; guards what was worked out from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u64);

impl Version {
    /// The next one. Like a fence it never lies below the number of the epoch, shifted up: what a failover has lost
    /// must not come back under the same version with another content.
    #[must_use]
    pub fn next(self, epoch: Epoch) -> Version {
        Version((self.0 + 1).max(epoch.0 << 32))
    }

    /// The epoch in which the row was last written.
    pub fn epoch(self) -> Epoch {
        Epoch(self.0 >> 32)
    }
}

/// Grows with every change that people make to a job; guards what people were shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Revision(pub u64);

/// A job as it is stored.
#[derive(Clone, Debug, PartialEq)]
pub struct JobRow {
    /// What people defined.
    pub job: Arc<Job>,
    /// What is remembered of it. Its owner is written by the store: who opened the last run that is open.
    pub state: JobState,
    /// Changes with the definition, a pause, a phase.
    pub revision: Revision,
    /// Changes with everything.
    pub version: Version,
    /// The number of its last lease.
    pub fence: Fence,
    /// How many of its runs are open.
    pub n_open: u32,
    /// Whether it was removed; the row stays for its fence.
    pub is_deleted: bool,
}

impl JobRow {
    /// What nodes hear of it.
    pub fn news(&self) -> JobNews {
        JobNews {
            key: self.job.key.clone(),
            terms: Arc::new(self.job.terms.clone()),
            is_published: self.job.target.is_published(),
            state: self.state.clone(),
            version: self.version,
            n_open: self.n_open,
            is_deleted: self.is_deleted,
        }
    }
}

/// What nodes hear of a job: all that decisions need, and nothing of what only its runs do. A million of
/// them are read at every start.
#[derive(Clone, Debug, PartialEq)]
pub struct JobNews {
    /// Which job.
    pub key: JobKey,
    /// When, where and within which limits; one value for all jobs that share them, where the store can.
    pub terms: Arc<Terms>,
    /// Whether its start message goes through the outbox.
    pub is_published: bool,
    /// What is remembered of it.
    pub state: JobState,
    /// Changes with everything.
    pub version: Version,
    /// How many of its runs are open.
    pub n_open: u32,
    /// Whether it was removed.
    pub is_deleted: bool,
}

/// How far a run has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunPhase {
    /// A session owns it; nothing has been started yet.
    Claimed,
    /// Its start message is with the broker.
    Published,
    /// It executes.
    Running,
    /// It is over.
    Ended(Outcome),
}

impl RunPhase {
    /// Whether it is not over.
    pub fn is_open(self) -> bool {
        !matches!(self, RunPhase::Ended(_))
    }
}

/// A run as it is stored.
#[derive(Clone, Debug, PartialEq)]
pub struct RunRow {
    pub run: RunId,
    pub key: JobKey,
    /// What it serves.
    pub due: Due,
    /// Whose it is.
    pub session: SessionId,
    /// Its lease.
    pub fence: Fence,
    /// How far it has come.
    pub phase: RunPhase,
    /// When it was claimed, by the store's clock.
    pub claimed_at: Timestamp,
    /// When it began to execute, as far as is known.
    pub started_at: Option<Timestamp>,
    /// What is known of its end.
    pub ended: Option<RunEnded>,
    /// What it told of itself.
    pub report: Option<Arc<RunReport>>,
    /// A result that came after the run had been given up.
    pub late: Option<LateResult>,
    /// Whether someone wants it to end.
    pub is_cancel_asked: bool,
    /// The counters that it holds while it is open.
    pub takes: Vec<CounterKey>,
}

/// What is stored about the end of a run, beside its outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunEnded {
    /// When it ended.
    pub ended_at: Timestamp,
    /// With which code, where there is one.
    pub exit_code: Option<i32>,
    /// How long it stood frozen.
    pub frozen_for: Duration,
}

/// A result that came after the run had been given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LateResult {
    /// What it says of itself.
    pub outcome: Outcome,
    /// When it ended.
    pub ended_at: Timestamp,
}

/// What kind of process a session is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionKind {
    /// It decides and runs.
    Node,
    /// It runs what was published to it.
    Worker,
}

/// A session, as it presents itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionSpec {
    /// Minted for this life.
    pub id: SessionId,
    /// The server.
    pub node: NodeName,
    /// The instance on it.
    pub name: String,
    /// Which boot of the machine: what ran before it is gone.
    pub boot_id: u128,
    /// What it is.
    pub kind: SessionKind,
    /// The data directory that it works in and holds the lock of. Only one process at a time has it, so a session with
    /// the same one on the same boot is an earlier life of the same node.
    pub home: u128,
    /// What it can carry, in cost units.
    pub pools: BTreeMap<Pool, u32>,
    /// The release of its zone data, such as `2026e`. For people; no decision reads it.
    pub zone_data: String,
}

/// A session as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRow {
    /// Who it is.
    pub spec: SessionSpec,
    /// How often it has beaten.
    pub beat: u64,
    /// Whether it was fenced off, or left.
    pub is_dead: bool,
    /// Whether it takes nothing new.
    pub is_draining: bool,
}

/// What is known of the life of a run's owner (L2). For people to see: no decision reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnerPing {
    /// The run.
    pub run: RunId,
    /// When the store last accepted a beat of the session that owns it, by the store's clock.
    pub last_ping_at: Timestamp,
    /// When a watcher first doubted that session; none while its beats come.
    pub doubted_at: Option<Timestamp>,
}

/// Occurrences that got no run of their own, as they are stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordRow {
    pub key: JobKey,
    /// Which, and what they became.
    pub record: Record,
    /// When they went on record.
    pub recorded_at: Timestamp,
}

/// A limit that spans nodes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CounterKey {
    /// Runs of all configurations of a name.
    Name(Arc<str>),
    /// Runs against a site.
    Site(Site),
    /// Runs of a tenant.
    Tenant(Tenant),
}

/// What stands where a name would, for all of them together: no job can be called so.
const ALL: &str = "*";

impl CounterKey {
    /// All runs together.
    pub fn all_runs() -> CounterKey {
        CounterKey::Name(ALL.into())
    }

    /// `name`, `site` or `tenant`.
    pub fn kind(&self) -> &'static str {
        match self {
            CounterKey::Name(_) => "name",
            CounterKey::Site(_) => "site",
            CounterKey::Tenant(_) => "tenant",
        }
    }

    /// Of which.
    pub fn key(&self) -> &str {
        match self {
            CounterKey::Name(name) => name,
            CounterKey::Site(site) => site.as_str(),
            CounterKey::Tenant(tenant) => tenant.as_str(),
        }
    }
}

impl fmt::Display for CounterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CounterKey::Name(name) if **name == *ALL => f.write_str("the quota of all jobs"),
            _ => write!(f, "{} {}", self.kind(), self.key()),
        }
    }
}

impl fmt::Debug for CounterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What a counter allows. All of it by the store's clock and count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CounterLimit {
    /// Largest number of open runs.
    pub max_open: Option<u32>,
    /// Shortest time between two claims.
    pub min_gap: Option<Duration>,
    /// Largest number of claims within any hour.
    pub max_per_hour: Option<u32>,
}

impl CounterLimit {
    /// Whether it limits nothing.
    pub fn is_none(&self) -> bool {
        *self == CounterLimit::default()
    }
}

/// A counter as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CounterRow {
    /// Of what.
    pub counter: CounterKey,
    /// Open runs that hold it.
    pub n_open: u32,
    /// When it was last claimed.
    pub last_claim_at: Option<Timestamp>,
}

/// A start message that must be published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboxRow {
    /// For which run.
    pub run: RunId,
    pub key: JobKey,
    /// Under which lease.
    pub fence: Fence,
}

/// A request for a run (K1), stored together with the job that owes the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunRequest {
    /// The id that was given to the caller. The first run of the request has it too.
    pub id: ExtraId,
    /// How a repetition of the request is recognised, if the caller wants that.
    pub idempotency: Option<Idempotency>,
}

/// How a repetition of a request is recognised for [`IDEMPOTENCY_KEPT_FOR`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Idempotency {
    /// A hash of the job and of the key that the caller chose.
    pub key: u128,
    /// A hash of everything else in the request. The same key with another body is a mistake of the caller.
    pub body: u128,
}

/// How long a repeated request is recognised, by the store's clock.
pub const IDEMPOTENCY_KEPT_FOR: Duration = Duration::from_hours(24);

/// Who changed what, and what it was before and after (S17).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditEntry {
    /// A token's name, a user of the machine, or the system.
    pub actor: String,
    /// What was done, in a word: `put`, `pause`, `trigger`.
    pub action: String,
    /// What it was done to: the key of a job, the name of a node.
    pub subject: String,
    /// How, for people.
    pub detail: String,
    /// What the changed fields were before, as a JSON object; none if there was nothing before.
    pub before: Option<String>,
    /// What they are now.
    pub after: Option<String>,
}
