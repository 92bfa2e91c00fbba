//! How fresh jobs were, and how even the fleet was (K7).

use evenbeat_core::attainment::Attainment;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Instant;
use crate::store::query::ScorePoint;

/// The share of time in which jobs were within their deadlines, by group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Attainment)]
pub struct AttainmentView {
    /// How far back: `24h`, `7d` or `30d`.
    pub window: String,
    /// Start of the window.
    pub from: Instant,
    /// End of the window: as of when these figures are. They are kept for half a minute.
    pub to: Instant,
    /// How jobs are grouped: `fleet`, `tenant`, or `label:` and the name of a label.
    pub by: String,
    /// The groups with the lowest attainment, at most 1,000.
    pub groups: Vec<AttainmentGroup>,
    /// How many groups there are.
    pub total_groups: usize,
}

/// A group of jobs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AttainmentGroup {
    /// The tenant or the value of the label; absent for the fleet, and for jobs without a tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The jobs of the group now.
    pub jobs: u64,
    #[serde(flatten)]
    pub figures: AttainmentFigures,
}

/// How long jobs were late.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AttainmentFigures {
    /// From 0 to 1; absent if no time counts. It is 1 only if no job was late.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attainment: Option<f64>,
    /// Seconds in which the condition of a job was `error`, summed over jobs.
    pub late_seconds: i64,
    /// Seconds in which jobs existed and were not paused by a person, summed over jobs.
    pub counted_seconds: i64,
}

impl From<Attainment> for AttainmentFigures {
    fn from(it: Attainment) -> AttainmentFigures {
        AttainmentFigures {
            // Rounded down: a job that was late for a second is not perfect.
            attainment: it.share().map(|share| (share * 1e6).floor() / 1e6),
            late_seconds: it.late.as_millis() / 1_000,
            counted_seconds: it.counted.as_millis() / 1_000,
        }
    }
}

/// How fresh one job was.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = JobAttainment)]
pub struct JobAttainmentView {
    /// The job.
    pub job: String,
    /// As of when.
    pub at: Instant,
    /// The figures of the last 24 hours, 7 days and 30 days.
    pub windows: Vec<AttainmentWindow>,
    /// When it was late in the last 30 days, the latest first, at most 100 times.
    pub late: Vec<LateSpan>,
}

/// The figures of a window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AttainmentWindow {
    /// How far back: `24h`, `7d` or `30d`.
    pub window: String,
    #[serde(flatten)]
    pub figures: AttainmentFigures,
}

/// A time in which a job was late.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LateSpan {
    /// When its deadline passed, or the system paused it.
    pub from: Instant,
    /// When it was well again; absent while it is late.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Instant>,
}

/// A sample of how even the fleet was.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = ScoreSample)]
pub struct ScoreView {
    /// When it was taken.
    pub at: Instant,
    /// How even the starts of the next day were, from 0 to 1.
    pub distribution_score: f64,
    /// Starts in the busiest slot of that day.
    pub peak_slot_count: u64,
    /// Jobs that were scheduled.
    pub jobs: u64,
}

impl From<ScorePoint> for ScoreView {
    fn from(it: ScorePoint) -> ScoreView {
        let distribution_score = super::rounded(it.score);
        ScoreView { at: it.at.into(), distribution_score, peak_slot_count: it.peak, jobs: it.n_jobs }
    }
}
