//! What comes (D).

use evenbeat_core::agenda::Occurrence;
use serde::{Deserialize, Serialize};

use super::Instant;

/// An occurrence that lies ahead.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OccurrenceView {
    /// When.
    pub at: Instant,
    /// Of which job.
    pub job: String,
    /// Whether that is a guess: those of a `fresh` job depend on how its runs go.
    pub estimate: bool,
}

impl From<Occurrence<'_>> for OccurrenceView {
    fn from(it: Occurrence<'_>) -> OccurrenceView {
        OccurrenceView { at: it.at.into(), job: it.job.to_string(), estimate: it.is_estimate }
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
