//! What can be asked of the reading side besides [`Views`](evenbeat_core::store::Views): lists for people, page by
//! page, alike on both databases.
//!
//! A page goes on after the last row of the one before, by its key or id: rows that come or go in between move
//! nothing else.
//!
//! No page takes long, however much is stored. Where no index knows what was asked for (a part of a key; two
//! conditions of which each holds for many jobs), some ten thousand jobs are looked at, and the page ends there with
//! what was found, possibly nothing: `next` says how far it came, and that there may be more. Whoever wants a full page
//! goes on from there; a list is at its end when `next` is none, not when a page is short.

use evenbeat_core::ids::{ExtraId, JobKey, Pool, RunId, Site, Tenant};
use evenbeat_core::run::Outcome;
use evenbeat_core::store::{JobRow, RunRow};
use evenbeat_core::time::Timestamp;

/// So many rows a page has at most, whatever was asked for.
pub const PAGE_MAX: usize = 1_000;

/// So far is counted.
pub const COUNT_MAX: u64 = 100_000;

/// Which jobs. What is not said does not matter; removed jobs are never listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobFilter {
    /// Their key begins like this.
    pub key_prefix: Option<String>,
    /// Their key contains this, in whatever case.
    pub key_text: Option<String>,
    /// They have all of these labels, with these values.
    pub labels: Vec<(String, String)>,
    /// They draw on this pool.
    pub pool: Option<Pool>,
    /// They count against this site.
    pub site: Option<Site>,
    /// They count against the quota of this tenant.
    pub tenant: Option<Tenant>,
    /// Whether they are paused.
    pub is_paused: Option<bool>,
    /// Whether they are enabled.
    pub is_enabled: Option<bool>,
    /// Whether a run of theirs is open.
    pub is_running: Option<bool>,
}

/// Some jobs, by key.
#[derive(Clone, Debug, PartialEq)]
pub struct JobPage {
    /// The jobs: those that were asked for among all up to `next`.
    pub rows: Vec<JobRow>,
    /// After which the next page begins; none if this was the last.
    pub next: Option<JobKey>,
}

/// How many there are, as far as it was counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// So many were found; at most [`COUNT_MAX`].
    pub n: u64,
    /// Whether there may be more: then it was not counted to the end, and `n` is the least there are.
    pub is_more: bool,
}

/// Which runs that are over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunQuery {
    /// Of this job.
    pub key: Option<JobKey>,
    /// With this outcome.
    pub outcome: Option<Outcome>,
    /// They ended then or later.
    pub since: Option<Timestamp>,
    /// They ended before.
    pub until: Option<Timestamp>,
}

/// Some runs that are over. Those of one job: the latest id first, which is as they were claimed. Those of all jobs:
/// the one that ended last first.
#[derive(Clone, Debug, PartialEq)]
pub struct RunPage {
    /// The runs: those that were asked for among all down to `next`.
    pub rows: Vec<RunRow>,
    /// Before which the next page begins; none if this was the last.
    pub next: Option<RunId>,
}

/// A request for a run, as it is found by its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestRow {
    /// Its id.
    pub id: ExtraId,
    /// The job that is to run.
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

/// How far the clocks of the machines that mint ids may be apart.
const CLOCKS_APART_MAX_MS: u128 = 86_400_000;

/// The smallest id that a run of this request can have. Ids begin with the millisecond in which they were minted, and
/// later runs of a request are minted on other machines.
pub(super) fn earliest_attempt(id: ExtraId) -> RunId {
    RunId(id.0.saturating_sub(CLOCKS_APART_MAX_MS << 80))
}

/// How evenly the fleet was spread at some instant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScorePoint {
    /// When.
    pub at: Timestamp,
    /// From 0 to 1.
    pub score: f64,
    /// The starts of the busiest slot.
    pub peak: u64,
    /// How many jobs there were.
    pub n_jobs: u64,
}
