//! What goes over the wire: every request and every answer is one of these types.
//!
//! They are promises to strangers, so they are apart from the values that decide; the conversions stand beside the
//! types. Names are those of the glossary, instants are RFC 3339, lengths are texts such as `1h30m` with a number of
//! seconds beside them where people compute with them.

mod access;
mod alert;
mod apply;
mod event;
mod audit;
mod bulk;
mod attainment;
mod explanation;
mod fleet;
mod index;
mod instant;
mod job;
mod node;
mod page;
mod problem;
mod run;
mod scheduler;
mod sharing;
mod status;
mod upcoming;
mod words;

pub use access::{LoginLinkAnswer, LoginLinkRequest, TokenAnswer, TokenRequest, TokenView};
pub use alert::{AlertTestAnswer, AlertTestRequest, DeliveryView, IncidentView, MuteRequest, MuteView};
pub use apply::{AppliedJob, ApplyAnswer, ApplyCounts, ApplyRequest, DefinitionDoubt, field_changes};
pub use attainment::{
    AttainmentFigures, AttainmentGroup, AttainmentView, AttainmentWindow, JobAttainmentView, LateSpan,
    ScoreView,
};
pub use audit::{AuditChain, AuditView, ChainedEntry};
pub use bulk::{
    BackfillAnswer, BackfillRequest, BackfillRun, BulkAnswer, BulkFailure, BulkFilter, BulkRequest, BulkVerb,
};
pub use event::EventView;
pub use explanation::ExplanationView;
pub use fleet::{FleetJob, LimitView, LimitsView};
pub use index::ApiIndex;
pub use instant::{Instant, Length, seconds};
pub use job::{
    EstimateView, JobDefinition, JobPatch, JobPut, JobView, PauseRequest, TriggerAnswer, TriggerRequest,
};
pub use node::{DrainAnswer, DrainRequest, NodeView};
pub use page::{CountedJobs, Page};
pub use problem::{FieldError, LogPlace, ProblemBody};
pub use run::{CancelAnswer, RecordView, RunView, SessionNames};
pub use scheduler::{
    DistributionView, PreviewMove, PreviewRequest, RebalanceAnswer, RebalancePreview, RebalanceRequest,
    SkippedJob,
};
pub use sharing::{
    NodeDetails, PoolHere, PoolNode, PoolView, SharedLimitView, SharedList, SiteView, TenantView,
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
