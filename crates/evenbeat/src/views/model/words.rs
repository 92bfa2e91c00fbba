//! Words that answers are made of, for schemas: each list is that of the type which decides.

use std::borrow::Cow;

use evenbeat_core::condition::Condition;
use evenbeat_core::job::Status;
use evenbeat_core::occurrence::RecordKind;
use evenbeat_core::placement::KeptReason;
use evenbeat_core::rights::{Grant, Role};
use evenbeat_core::run::{EndReason, Outcome, Trigger};
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::openapi::{RefOr, schema::SchemaType};
use utoipa::{PartialSchema, ToSchema};

/// A string schema that allows these words.
fn one_of(about: &str, words: Vec<&'static str>) -> RefOr<Schema> {
    let schema = ObjectBuilder::new()
        .schema_type(SchemaType::Type(Type::String))
        .description(Some(about))
        .enum_values(Some(words))
        .build();
    RefOr::T(Schema::Object(schema))
}

macro_rules! words {
    ($($type:ident, $name:literal, $about:literal, $words:expr;)*) => {$(
        #[doc = $about]
        #[derive(Debug)]
        pub(super) enum $type {}

        impl PartialSchema for $type {
            fn schema() -> RefOr<Schema> {
                one_of($about, Vec::from($words))
            }
        }

        impl ToSchema for $type {
            fn name() -> Cow<'static, str> {
                Cow::Borrowed($name)
            }
        }
    )*};
}

words! {
    ConditionWord, "Condition", "How a job stands.", Condition::ALL.map(Condition::as_str);
    JobStatusWord, "JobStatus", "What a job is doing.", Status::ALL.map(Status::as_str);
    OutcomeWord, "Outcome", "How a run ended.", Outcome::ALL.map(Outcome::as_str);
    RunStatusWord, "RunStatus", "How a run goes: `waiting`, `starting`, `running`, or its outcome.", run_statuses();
    RunPhaseWord, "RunPhase", "How far a run is.", ["waiting", "claimed", "published", "running", "ended"];
    TriggerWord, "Trigger", "What caused a run.", Trigger::ALL.map(Trigger::as_str);
    EndReasonWord, "EndReason", "Why a run ended.", EndReason::ALL.map(EndReason::as_str);
    RecordWord, "RecordKind", "What happened to occurrences without a run.", ["skipped", "missed"];
    RecordReasonWord, "RecordReason", "Why occurrences got no run.", RecordKind::ALL.map(RecordKind::reason);
    KeptReasonWord, "KeptReason", "Why a rebalance does not move a job.", KeptReason::ALL.map(KeptReason::as_str);
    PausedByWord, "PausedBy", "Who paused a job.", ["operator", "system"];
    ScheduleKindWord, "ScheduleKind", "A kind of schedule.", ["every", "fresh", "cron", "once", "manual"];
    TargetKindWord, "TargetKind", "A kind of target.", ["command", "http", "queue"];
    JobChangeWord, "JobChange", "What an apply did to a job.", ["created", "changed", "unchanged", "removed"];
    SessionKindWord, "SessionKind", "A kind of process.", ["node", "worker"];
    JobEventWord, "JobEvent", "What happened to a job.", ["changed", "removed"];
    RunEventWord, "RunEvent", "What happened to a run.", ["started", "ended"];
    NodeStateWord, "NodeState", "Whether a node lives and takes new runs.", ["living", "draining", "dead"];
    RoleWord, "Role", "What a person may do.", Role::ALL.map(Role::as_str);
    GrantWord, "TokenRole", "What a token may do.", Grant::ALL.map(Grant::as_str);
    TokenStateWord, "TokenState", "Whether a token counts.", ["valid", "expired", "revoked"];
    AlertConditionWord, "AlertCondition", "How bad an incident is.", ["warning", "error"];
    IncidentEndWord, "IncidentEnd", "How an incident ended.", ["recovered", "untracked", "removed"];
    DeliveryStateWord, "DeliveryState", "Whether a message was accepted by its receiver.", ["pending", "sent", "failed"];
    MuteScopeWord, "MuteScope", "What is muted.", ["fleet", "jobs", "label", "site", "tenant"];
    StoreKindWord, "StoreKind", "A kind of store.", ["sqlite", "postgres"];
}

fn run_statuses() -> Vec<&'static str> {
    let mut words = vec!["waiting", "starting", "running"];
    words.extend(Outcome::ALL.map(Outcome::as_str));
    words
}
