//! What comes (D).

use evenbeat_core::agenda::Occurrence;
use evenbeat_core::ids::JobKey;
use evenbeat_core::upcoming::UpcomingRun;
use serde::{Deserialize, Serialize};

use super::Instant;

/// A run that lies ahead.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OccurrenceView {
    /// When it will start, if nothing in the queue stands in its way.
    pub at: Instant,
    /// Of which job.
    pub job: String,
    /// Whether that is a guess: those of a `fresh` job depend on how its runs go.
    pub estimate: bool,
    /// When it is due.
    pub due_at: Instant,
    /// Why it does not start when it is due: `backoff`, `blackout`, or `no_node` if no node can take the job at all.
    pub held_up_by: Option<String>,
}

impl OccurrenceView {
    /// An occurrence that starts when it is due.
    pub fn on_time(it: Occurrence<'_>) -> OccurrenceView {
        let at = it.at.into();
        let job = it.job.to_string();
        OccurrenceView { at, job, estimate: it.is_estimate, due_at: at, held_up_by: None }
    }

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

/// Occurrences of a window, in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpcomingPage {
    /// From then on.
    pub from: Instant,
    /// Up to, not including, then.
    pub to: Instant,
    /// How many there are in the whole window.
    pub total: usize,
    /// By instant, then by key.
    pub items: Vec<OccurrenceView>,
    /// Where the next page begins, to be handed back as `after`; null if this was the last.
    pub next: Option<String>,
}
