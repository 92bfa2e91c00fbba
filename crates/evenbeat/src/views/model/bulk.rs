//! One action on all jobs that match a filter (K5), and runs for past occurrences.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Instant, Text};

/// What to do with jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = BulkAction)]
pub enum BulkVerb {
    /// Start nothing more of them.
    Pause,
    /// Resume them.
    Resume,
    /// Run them now.
    Trigger,
    /// Delete them.
    Delete,
}

impl BulkVerb {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            BulkVerb::Pause => "pause",
            BulkVerb::Resume => "resume",
            BulkVerb::Trigger => "trigger",
            BulkVerb::Delete => "delete",
        }
    }
}

/// Which jobs: the parameters of `GET /jobs`. An empty filter means all jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BulkFilter {
    /// The key starts with this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// The key contains this, ignoring case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub q: Option<String>,
    /// Labels that the job has, as `team=news`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub label: Vec<String>,
    /// The pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// The site.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site: Option<String>,
    /// The tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Whether it is paused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
    /// Whether it is enabled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Whether it is running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running: Option<bool>,
    /// `ok`, `warning` or `error`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// `pending`, `scheduled`, `running`, `paused`, `disabled` or `done`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
}

/// One action on all jobs that match a filter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BulkRequest {
    /// What to do.
    pub action: BulkVerb,
    /// With which jobs.
    pub filter: BulkFilter,
    /// Only count them, and show some.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// How many jobs must match, as the dry run said. If another number matches now, nothing is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<u64>,
    /// Why jobs are paused, for people to read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When the jobs are resumed automatically; never if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Instant>,
    /// `next` of the answer before, to go on from there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

/// What an action on many jobs did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BulkAnswer {
    /// What was to be done.
    #[schema(value_type = BulkVerb)]
    pub action: Text,
    /// Whether nothing was done.
    pub dry_run: bool,
    /// How many jobs match; absent when this goes on from an earlier answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matched: Option<u64>,
    /// The keys of the first of them, in a dry run.
    pub sample: Vec<String>,
    /// How many jobs were changed or triggered.
    pub done: u64,
    /// How many were already as wanted.
    pub unchanged: u64,
    /// How many could not be changed.
    pub failed: u64,
    /// The first of those, and why.
    pub failures: Vec<BulkFailure>,
    /// Where to go on: to be sent back as `after` with the same request. Absent when all jobs were looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// A job that could not be changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BulkFailure {
    /// Which.
    pub job: String,
    /// The code of the problem.
    #[schema(value_type = String)]
    pub code: Text,
    /// What is wrong, and what to do.
    pub detail: String,
}

/// Runs for the occurrences of a time range in the past.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BackfillRequest {
    /// The first occurrence is at this instant or later.
    pub from: Instant,
    /// The last one is before this instant; now if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Instant>,
    /// At most this many, the oldest first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<u32>,
    /// Only show which occurrences they are.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
}

/// The runs of a backfill. They start one after the other, the oldest first, when no live work needs the room.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BackfillAnswer {
    /// Of which job.
    pub job: String,
    /// Whether nothing was queued.
    pub dry_run: bool,
    /// How many occurrences the range has.
    pub occurrences: u64,
    /// The runs, the oldest occurrence first.
    pub runs: Vec<BackfillRun>,
    /// How many occurrences were left out because a backfill of them waits already.
    pub already_waiting: u64,
    /// From where to go on, if `max` was smaller than the range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_from: Option<Instant>,
}

/// One run of a backfill.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BackfillRun {
    /// The occurrence that it is for.
    pub occurrence: Instant,
    /// The id of the request, and of its first run; absent in a dry run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}
