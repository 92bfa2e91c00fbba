//! How the fleet is, in one answer.

use serde::{Deserialize, Serialize};

use super::{Instant, JobView, Text};

/// How the fleet is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StatusView {
    /// The worst condition of all jobs: `ok`, `warning` or `error`.
    pub condition: Text,
    /// What time it is for the fleet.
    pub now: Instant,
    /// Which version answers.
    pub version: Text,
    /// Which server answers.
    pub node: String,
    /// Which instance on it.
    pub instance: String,
    /// Since when it runs.
    pub started_at: Instant,
    /// `sqlite` or `postgres`.
    pub store: Text,
    /// Whether everything that is stored has been read once since then; before that, counts are too low.
    pub is_read: bool,
    /// How many jobs there are. A change is counted a moment after it was made.
    pub jobs: JobCounts,
    /// How many runs are open.
    pub open_runs: u64,
    /// How many nodes live.
    pub nodes: usize,
    /// How even the next day is, from 0 to 1.
    pub distribution_score: f64,
    /// The starts of its busiest hour.
    pub peak_count: u32,
    /// When that begins.
    pub peak_at: Instant,
    /// The first jobs that are in error, then those with a warning.
    pub worst: Vec<JobView>,
}

/// How many jobs there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobCounts {
    /// All of them.
    pub total: u32,
    /// By how they stand; only those whose condition counts.
    pub by_condition: ConditionCounts,
    /// By what they are doing.
    pub by_status: StatusCounts,
}

/// Jobs by condition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConditionCounts {
    /// All is well.
    pub ok: u32,
    /// Something is wrong that may break the promise.
    pub warning: u32,
    /// The promise is broken.
    pub error: u32,
}

/// Jobs by status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusCounts {
    /// Not yet placed.
    pub pending: u32,
    /// Their next occurrence is known.
    pub scheduled: u32,
    /// A run is going on.
    pub running: u32,
    /// Someone must resume them.
    pub paused: u32,
    /// Not to be run.
    pub disabled: u32,
    /// Nothing will ever be due again.
    pub done: u32,
}

/// The process is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HealthView {
    /// Always `ok`.
    pub status: Text,
}

/// Whether the process can do its work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadyView {
    /// Whether it can.
    pub ready: bool,
    /// Whether the store answers and can write.
    pub store: bool,
    /// Whether everything that is stored has been read once.
    pub fleet: bool,
    /// Why it cannot; null if it can.
    pub reason: Option<String>,
}
