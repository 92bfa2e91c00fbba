//! Queries besides [`Views`](evenbeat_core::store::Views): paginated lists for people, the same on both databases.
//!
//! A page starts after the last key or id of the previous one, so rows that are added or removed in between don't shift
//! the others.
//!
//! No page takes long, however much is stored. If no index matches the filter (a part of a key; two conditions that
//! each match many jobs), about ten thousand jobs are examined and the page ends there, possibly empty: `next` says
//! how far it got. Callers that want a full page continue from there. A list has ended when `next` is `None`, not
//! when a page is short.

use std::sync::Arc;

use evenbeat_core::ids::{ExtraId, JobKey, Pool, RunId, Site, Tenant};
use evenbeat_core::job::{JobState, Terms};
use evenbeat_core::placement::WishedHours;
use evenbeat_core::run::Outcome;
use evenbeat_core::store::{AuditEntry, JobNews, JobRow, Revision, RunRow};
use evenbeat_core::time::{Duration, Timestamp};

use super::audit_chain::ChainLink;
use super::definition;
use super::keyword::Keyword;

/// Most rows of a page.
pub const PAGE_MAX: usize = 1_000;

/// Counting stops here.
pub const COUNT_MAX: u64 = 100_000;

/// Which jobs to list. Fields without a value match all jobs. Removed jobs are never listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobFilter {
    /// The key starts with this.
    pub key_prefix: Option<String>,
    /// The key contains this, ignoring case.
    pub key_text: Option<String>,
    /// The job has all of these labels, with these values.
    pub labels: Vec<(String, String)>,
    /// The job uses this pool.
    pub pool: Option<Pool>,
    /// The job counts against this site.
    pub site: Option<Site>,
    /// The job counts against the quota of this tenant.
    pub tenant: Option<Tenant>,
    /// Whether the job is paused.
    pub is_paused: Option<bool>,
    /// Whether the job is enabled.
    pub is_enabled: Option<bool>,
    /// Whether the job has an open run.
    pub is_running: Option<bool>,
}

/// A page of jobs, by key.
#[derive(Clone, Debug, PartialEq)]
pub struct JobPage {
    /// The matching jobs up to `next`.
    pub rows: Vec<JobRow>,
    /// The next page starts after this key. `None` for the last page.
    pub next: Option<JobKey>,
}

/// The result of counting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// At most `COUNT_MAX`.
    pub n: u64,
    /// Whether there may be more than `n`, because counting stopped early.
    pub is_more: bool,
}

/// Which ended runs to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunQuery {
    /// Runs of this job.
    pub key: Option<JobKey>,
    /// Runs with this outcome.
    pub outcome: Option<Outcome>,
    /// Runs that ended then or later.
    pub since: Option<Timestamp>,
    /// Runs that ended before.
    pub until: Option<Timestamp>,
}

/// A page of ended runs. Runs of one job are sorted by id, which is the order of claims; runs of all jobs by when they
/// ended. The latest comes first.
#[derive(Clone, Debug, PartialEq)]
pub struct RunPage {
    /// The matching runs down to `next`.
    pub rows: Vec<RunRow>,
    /// The next page starts before this run. `None` for the last page.
    pub next: Option<RunId>,
}

/// How many runs of an outcome ended in a part of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EndedCount {
    /// The number of the part, from 0.
    pub part: u64,
    /// Those that ended like this; none for all of them.
    pub outcome: Option<Outcome>,
    /// The number of runs.
    pub n: u64,
}

/// A window in parts of equal length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndedWindow {
    /// Where it begins.
    pub since: Timestamp,
    /// Where it ends.
    pub until: Timestamp,
    /// The length of a part.
    pub part: Duration,
}

/// Outcomes that are found by an index, as literals: the planner must see that the partial index has all of them.
pub(super) fn not_good() -> String {
    let words = Outcome::ALL.into_iter().filter(|it| *it != Outcome::Succeeded);
    words.map(|it| format!("'{}'", it.keyword())).collect::<Vec<_>>().join(", ")
}

/// A request for a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestRow {
    /// Its id.
    pub id: ExtraId,
    /// The job to run.
    pub key: JobKey,
    /// When it was made, by the store's clock.
    pub requested_at: Timestamp,
}

/// A run or a request for one, by its id.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunName {
    /// Its id.
    pub id: RunId,
    /// Its job.
    pub key: JobKey,
}

/// How far the clocks of machines that create ids may be apart.
const CLOCKS_APART_MAX_MS: u128 = 86_400_000;

/// The smallest id that a run of this request can have. Ids start with the millisecond of their creation, and the ids
/// of later attempts are created on other machines.
pub(super) fn earliest_attempt(id: ExtraId) -> RunId {
    RunId(id.0.saturating_sub(CLOCKS_APART_MAX_MS << 80))
}

/// What a rebalance needs of a job: its definition is not read.
#[derive(Clone, Debug, PartialEq)]
pub struct PlacedRow {
    pub key: JobKey,
    pub terms: Arc<Terms>,
    pub hours: WishedHours,
    pub state: JobState,
    pub revision: Revision,
}

impl PlacedRow {
    /// `definition` is that of a job that says something about hours, else none.
    pub(super) fn of(news: JobNews, revision: Revision, definition: Option<&str>) -> PlacedRow {
        let JobNews { key, terms, state, .. } = news;
        let job = definition.and_then(|text| definition::job(text).ok());
        let hours = job.as_ref().map(WishedHours::of).unwrap_or_default();
        PlacedRow { key, terms, hours, state, revision }
    }
}

/// A sample of the score: how evenly the fleet is spread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScorePoint {
    /// When it was taken.
    pub at: Timestamp,
    /// From 0 to 1.
    pub score: f64,
    /// The number of starts in the busiest slot.
    pub peak: u64,
    /// The number of jobs.
    pub n_jobs: u64,
}

/// Most audit entries examined for one page if no index matches the filter.
pub const AUDIT_ROWS_MAX: usize = 10_000;

/// Kinds of those who change something, by how they are called in the audit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActorKind {
    /// Someone at the machine of the server, or on the pages after a login link.
    Person,
    /// A caller with a token.
    Token,
    /// The program itself.
    System,
}

impl ActorKind {
    /// The word that the queries of the stores give.
    pub fn as_str(self) -> &'static str {
        match self {
            ActorKind::Person => "person",
            ActorKind::Token => "token",
            ActorKind::System => "system",
        }
    }

    /// The kind of an actor, as the queries of the stores tell it.
    pub fn of(actor: &str) -> ActorKind {
        if actor.starts_with("token ") {
            ActorKind::Token
        } else if actor.starts_with("uid ") || actor == "loopback" {
            ActorKind::Person
        } else {
            ActorKind::System
        }
    }
}

/// Which audit entries to list. Fields without a value match all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// Who did it.
    pub actor: Option<String>,
    /// What was done.
    pub action: Option<String>,
    /// To which job, node or other thing.
    pub subject: Option<String>,
    /// Who did it, by kind.
    pub actor_kind: Option<ActorKind>,
    /// A part of who, what, to what or how, in any case.
    pub text: Option<String>,
    /// Then or later.
    pub since: Option<Timestamp>,
    /// Before.
    pub until: Option<Timestamp>,
}

/// An audit entry as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditRow {
    /// Its number. Later entries have greater ones; there may be gaps.
    pub no: u64,
    /// When it was written, by the store's clock.
    pub at: Timestamp,
    /// What it says.
    pub entry: AuditEntry,
    /// Its place in the chain; none until it is chained.
    pub link: Option<ChainLink>,
}

/// A page of audit entries, the latest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditPage {
    /// The matching entries down to `next`.
    pub rows: Vec<AuditRow>,
    /// The next page starts before this number. `None` for the last page.
    pub next: Option<u64>,
}

impl AuditPage {
    /// A page from one entry more than fits, if there are so many. What lies before `horizon` was not looked at.
    pub(super) fn of(mut rows: Vec<AuditRow>, most: usize, horizon: Option<u64>) -> AuditPage {
        let is_more = most < rows.len();
        rows.truncate(most);
        let next = if is_more { rows.last().map(|row| row.no) } else { horizon };
        AuditPage { rows, next }
    }
}

/// A part of the chain of audit entries, in its order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditChainPage {
    /// The last link that was trimmed; the chain goes on from there.
    pub anchor: ChainLink,
    /// Entries with their links.
    pub rows: Vec<AuditRow>,
    /// How many entries are not chained yet.
    pub n_unchained: u64,
}

/// What jobs share with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedKind {
    /// Sites.
    Site,
    /// Tenants.
    Tenant,
    /// Pools.
    Pool,
}

impl SharedKind {
    /// `site`, `tenant` or `pool`: also the kind of a counter.
    pub fn as_str(self) -> &'static str {
        match self {
            SharedKind::Site => "site",
            SharedKind::Tenant => "tenant",
            SharedKind::Pool => "pool",
        }
    }
}

/// How much a counter was used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CounterUse {
    /// When a run last took it.
    pub last_start_at: Option<Timestamp>,
    /// How many runs took it in the last hour.
    pub starts_last_hour: u64,
}
