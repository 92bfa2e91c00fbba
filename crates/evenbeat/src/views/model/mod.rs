//! What goes over the wire: every request and every answer is one of these types.
//!
//! They are promises to strangers, so they are apart from the values that decide; the conversions stand beside the
//! types. Names are those of the glossary, instants are RFC 3339, lengths are texts such as `1h30m` with a number of
//! seconds beside them where people compute with them.

mod apply;
mod explanation;
mod fleet;
mod instant;
mod job;
mod node;
mod page;
mod problem;
mod run;
mod scheduler;
mod status;
mod upcoming;

pub use apply::{AppliedJob, ApplyAnswer, ApplyCounts, ApplyRequest, DefinitionDoubt, field_changes};
pub use explanation::ExplanationView;
pub use fleet::{FleetJob, LimitView, LimitsView};
pub use instant::{Instant, Length, seconds};
pub use job::{EstimateView, JobDefinition, JobPut, JobView, PauseRequest, TriggerAnswer, TriggerRequest};
pub use node::{DrainAnswer, DrainRequest, NodeView};
pub use page::Page;
pub use problem::{FieldError, ProblemBody};
pub use run::{CancelAnswer, RecordView, RunView, SessionNames};
pub use scheduler::{
    DistributionView, PreviewMove, RebalanceAnswer, RebalancePreview, RebalanceRequest, SkippedJob,
};
pub use status::{ConditionCounts, HealthView, JobCounts, ReadyView, StatusCounts, StatusView};
pub use upcoming::{OccurrenceView, UpcomingPage};

use std::borrow::Cow;

/// One of a few words, each of which is listed where it is used.
pub type Text = Cow<'static, str>;

/// Adds how the last run ended to the sentence about a job that is not well.
fn join_last_run(sentence: &mut String, condition: &str, last_run: Option<&str>) {
    match last_run {
        Some(last_run) if condition != "ok" && sentence == "The last run failed." => {
            last_run.clone_into(sentence);
        }
        Some(last_run) if condition != "ok" => {
            sentence.push(' ');
            sentence.push_str(last_run);
        }
        _ => {}
    }
}

/// A score as it is shown: four digits are enough for anybody, and spare people `0.8500000000000001`.
pub(crate) fn rounded(score: f64) -> f64 {
    (score * 10_000.0).round() / 10_000.0
}
