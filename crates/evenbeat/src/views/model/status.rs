//! How the fleet is, in one answer.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::words::{ConditionWord, StoreKindWord};
use super::{Instant, JobView, Text};

/// The state of the fleet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Status)]
pub struct StatusView {
    /// The worst condition of all jobs.
    #[schema(value_type = ConditionWord)]
    pub condition: Text,
    /// The time of the fleet.
    pub now: Instant,
    /// The version of the server.
    #[schema(value_type = String)]
    pub version: Text,
    /// The name of the server.
    pub node: String,
    /// The instance on that server.
    pub instance: String,
    /// When the process started.
    pub started_at: Instant,
    /// The kind of store.
    #[schema(value_type = StoreKindWord)]
    pub store: Text,
    /// False while stored jobs are still being read; until then, counts are too low.
    pub is_read: bool,
    /// Number of jobs. Changes show up after a moment.
    pub jobs: JobCounts,
    /// Number of open runs.
    pub open_runs: u64,
    /// Number of living nodes.
    pub nodes: usize,
    /// How even the next 24 hours are, from 0 to 1.
    pub distribution_score: f64,
    /// Starts in the busiest hour.
    pub peak_count: u32,
    /// When that hour begins.
    pub peak_at: Instant,
    /// The first jobs with errors, then the first with warnings.
    pub worst: Vec<JobView>,
}

/// Numbers of jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobCounts {
    /// All jobs.
    pub total: u32,
    /// By condition. Counts only jobs whose condition counts.
    pub by_condition: ConditionCounts,
    /// By status.
    pub by_status: StatusCounts,
}

/// Jobs by condition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ConditionCounts {
    /// Jobs that are fine.
    pub ok: u32,
    /// Jobs with something wrong that may make them miss their deadline.
    pub warning: u32,
    /// Jobs that missed their deadline, or that the system gave up on.
    pub error: u32,
}

/// Jobs by status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StatusCounts {
    /// Not placed yet.
    pub pending: u32,
    /// Waiting for the next occurrence.
    pub scheduled: u32,
    /// Running.
    pub running: u32,
    /// Paused until someone resumes them.
    pub paused: u32,
    /// Disabled.
    pub disabled: u32,
    /// Done: nothing will ever be due again.
    pub done: u32,
}

/// The process is running.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Health)]
pub struct HealthView {
    /// Always `ok`.
    #[schema(value_type = String)]
    pub status: Text,
}

/// Whether the process can do its work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Readiness)]
pub struct ReadyView {
    /// Whether it can do its work.
    pub ready: bool,
    /// Whether the store answers and can write.
    pub store: bool,
    /// Whether all stored jobs have been read.
    pub fleet: bool,
    /// Why it is not ready; absent if it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
