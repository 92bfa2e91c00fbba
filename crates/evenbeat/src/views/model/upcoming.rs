//! What comes (D).

use evenbeat_core::ids::JobKey;
use evenbeat_core::upcoming::UpcomingRun;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Instant;

/// A run that lies ahead.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = UpcomingRun)]
pub struct OccurrenceView {
    /// When it will start, if nothing in the queue delays it.
    pub at: Instant,
    /// The key of the job.
    pub job: String,
    /// True if the time is a guess: starts of a `fresh` job depend on how its runs go.
    pub estimate: bool,
    /// When it is due.
    pub due_at: Instant,
    /// Why it does not start when it is due: `backoff`, `blackout`, or `no_node` if no node can take the job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_up_by: Option<String>,
}

impl OccurrenceView {
    /// A start of a job.
    pub fn of(job: &JobKey, start: UpcomingRun, estimate: bool) -> OccurrenceView {
        OccurrenceView {
            at: start.at.into(),
            job: job.to_string(),
            estimate,
            due_at: start.due_at.into(),
            held_up_by: start.held_up_by.map(|it| it.as_str().to_owned()),
        }
    }
}

/// Runs that lie ahead within a window, in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UpcomingPage {
    /// Start of the window.
    pub from: Instant,
    /// End of the window, not included.
    pub to: Instant,
    /// Number of runs in the whole window.
    pub total: usize,
    /// The runs, ordered by time, then by key.
    pub items: Vec<OccurrenceView>,
    /// Where the next page begins: send it back as `after`. Absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}
