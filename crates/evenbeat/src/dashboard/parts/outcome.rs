//! How runs stand or ended: a shape and a word.

use maud::Markup;

use super::status::{ConditionMark, status_with};

/// The mark of a run, by its status in the API.
pub(crate) fn run_mark(status: &str) -> ConditionMark {
    match status {
        "succeeded" => ConditionMark::Ok,
        "failed" | "timed_out" | "lost" | "unknown" => ConditionMark::Error,
        "blackout" => ConditionMark::Warning,
        "running" => ConditionMark::Running,
        "starting" | "waiting" => ConditionMark::New,
        _ => ConditionMark::Paused,
    }
}

/// The word for it.
pub(crate) fn run_word(status: &str) -> &'static str {
    match status {
        "succeeded" => "Good",
        "failed" => "Failed",
        "timed_out" => "Timed out",
        "blackout" => "Stopped",
        "cancelled" => "Cancelled",
        "lost" => "Lost",
        "unknown" => "No answer",
        "superseded" => "Superseded",
        "running" => "Running",
        "starting" => "Starting",
        _ => "Waiting",
    }
}

/// Both.
pub(crate) fn run_status(status: &str) -> Markup {
    status_with(run_mark(status), run_word(status))
}

/// The address of a run's page.
pub(crate) fn run_path(id: &str) -> String {
    format!("/runs/{id}")
}
