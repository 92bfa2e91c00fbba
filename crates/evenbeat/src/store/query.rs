//! Queries besides [`Views`](evenbeat_core::store::Views): paginated lists for people, the same on both databases.
//!
//! A page starts after the last key or id of the previous one, so rows that are added or removed in between don't shift
//! the others.
//!
//! No page takes long, however much is stored. If no index matches the filter (a part of a key; two conditions that
//! each match many jobs), about ten thousand jobs are examined and the page ends there, possibly empty: `next` says
//! how far it got. Callers that want a full page continue from there. A list has ended when `next` is `None`, not
//! when a page is short.

use evenbeat_core::ids::{ExtraId, JobKey, Pool, RunId, Site, Tenant};
use evenbeat_core::run::Outcome;
use evenbeat_core::store::{JobRow, RunRow};
use evenbeat_core::time::Timestamp;

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
