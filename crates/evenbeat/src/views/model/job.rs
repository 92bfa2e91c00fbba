//! Jobs: their definition, their memory (J4), how they stand (B2, B4), who runs them (L2).

use std::collections::BTreeMap;

use evenbeat_core::condition::assess;
use evenbeat_core::estimate::Estimate;
use evenbeat_core::spec::written;
use evenbeat_core::store::{JobRow, OwnerPing};
use evenbeat_core::time::Timestamp;
use evenbeat_core::urgency::Outlook;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;
use utoipa::{PartialSchema, ToSchema};

use super::words::{
    ConditionWord, JobStatusWord, OutcomeWord, PausedByWord, ScheduleKindWord, TargetKindWord,
};
use super::{DefinitionDoubt, Instant, Length, Text, join_last_run, seconds};
use crate::jobfile::schema::{self, SchemaHome};
use crate::value_json::to_json;

/// The definition of a job, as a JSON object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JobDefinition(pub Map<String, Json>);

/// Some fields of a definition, as a JSON merge patch (RFC 7396): null removes a field.
#[derive(Debug, ToSchema)]
#[schema(value_type = Object)]
#[expect(dead_code, reason = "only its shape matters: the patch is merged as JSON")]
pub struct JobPatch(pub Map<String, Json>);

impl PartialSchema for JobDefinition {
    fn schema() -> RefOr<Schema> {
        RefOr::T(Schema::Object(schema::definition(SchemaHome::ApiDocument)))
    }
}

impl ToSchema for JobDefinition {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        let inner = schema::inner_tables(SchemaHome::ApiDocument);
        schemas.extend(inner.into_iter().map(|(name, schema)| (name, RefOr::T(schema))));
    }
}

impl JobDefinition {
    /// The definition of a job that is there; what stands at its default is left out.
    pub fn of(job: &evenbeat_core::job::Job) -> JobDefinition {
        JobDefinition(written(job).iter().map(|(name, value)| (name.clone(), to_json(value))).collect())
    }
}

/// A job: its definition, its state and its condition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Job)]
pub struct JobView {
    /// `name` or `name@configuration`.
    pub key: String,
    /// The part of the key that configurations of one job share.
    pub name: String,
    /// The part of the key after the `@`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub configuration: Option<String>,
    /// Grows with every change of the definition or the pause; also the `ETag`.
    pub revision: u64,
    /// The definition of the job.
    pub definition: JobDefinition,
    /// The schedule in a few words, such as `every 6h`.
    pub schedule: String,
    /// The kind of schedule.
    #[schema(value_type = ScheduleKindWord)]
    pub schedule_kind: Text,
    /// The kind of target.
    #[schema(value_type = TargetKindWord)]
    pub target_kind: Text,
    /// False if the job is stored but never runs.
    pub enabled: bool,
    /// The pool whose capacity its runs use.
    pub pool: String,
    /// The site whose limits its runs count against.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub site: Option<String>,
    /// The tenant whose quota its runs count against.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// What the job is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Who to ask about the job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contact: Option<String>,
    /// Labels, for people and filters.
    pub labels: BTreeMap<String, String>,

    /// What the job is doing.
    #[schema(value_type = JobStatusWord)]
    pub status: Text,
    /// How the job stands.
    #[schema(value_type = ConditionWord)]
    pub condition: Text,
    /// Whether the condition counts. It does not while the job is disabled, done, or paused by a person. A job
    /// that the system paused counts as an error until a person acts.
    pub tracked: bool,
    /// Why the condition is what it is: a code of docs/reference/reasons.md.
    #[schema(value_type = String)]
    pub reason: Text,
    /// All reasons that hold, most serious first.
    #[schema(value_type = Vec<String>)]
    pub reasons: Vec<Text>,
    /// The reason as a sentence.
    pub sentence: String,
    /// The earliest start; absent while the job is paused or disabled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub can_start_by: Option<Instant>,
    /// When it will start, unless it is running.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planned_start: Option<Instant>,
    /// The latest start that still meets the deadline.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub should_start_by: Option<Instant>,
    /// When the current run is expected to end, or when the next one would.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_end: Option<Instant>,
    /// When the next good run must be complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Instant>,

    /// When the job was created.
    pub created_at: Instant,
    /// When its place on the time line was chosen; null before that.
    #[schema(required = true)]
    pub placed_at: Option<Instant>,
    /// The occurrence that the next run serves; null if there is none, and while the job is paused or disabled.
    #[schema(required = true)]
    pub next_run_at: Option<Instant>,
    /// The occurrence that is pending. Unlike `next_run_at`, it is also given while the job is paused or disabled and
    /// nothing starts; a resumed job may be placed elsewhere.
    #[serde(default)]
    #[schema(required = true)]
    pub pending_at: Option<Instant>,
    /// When the last run started; null before the first run.
    #[schema(required = true)]
    pub last_start_at: Option<Instant>,
    /// When the last run ended; null before that.
    #[schema(required = true)]
    pub last_end_at: Option<Instant>,
    /// When the last good run started; null before the first one.
    #[schema(required = true)]
    pub last_good_start_at: Option<Instant>,
    /// When the last good run ended; null before the first one.
    #[schema(required = true)]
    pub last_good_end_at: Option<Instant>,
    /// How the last run ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<OutcomeWord>)]
    pub last_outcome: Option<Text>,
    /// Why the last run did not succeed, as a sentence. Absent if it did, and in lists of jobs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_run_sentence: Option<String>,
    /// The exit code of the last run, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_exit_code: Option<i32>,
    /// Failures in a row.
    pub failure_count: u32,
    /// How long a run takes, learned from good runs; null before the first one.
    #[schema(required = true)]
    pub estimate: Option<EstimateView>,
    /// The mean of `estimate`; null before the first good run.
    #[schema(required = true)]
    pub average_good_duration: Option<Length>,
    /// The same in seconds.
    #[schema(required = true)]
    pub average_good_duration_seconds: Option<f64>,
    /// Who paused the job; null unless it is paused.
    #[schema(required = true, value_type = Option<PausedByWord>)]
    pub paused_by: Option<Text>,
    /// Why the job is paused; null if no reason was given.
    #[schema(required = true)]
    pub pause_reason: Option<String>,
    /// When the job is resumed automatically; null if a person has to do it.
    #[serde(default)]
    #[schema(required = true)]
    pub pause_until: Option<Instant>,
    /// Number of open runs.
    pub open_runs: u32,
    /// Number of waiting runs: triggered ones and catch-ups.
    pub waiting_runs: usize,

    /// The server that runs the job; null unless it is running, like the other owner fields.
    #[schema(required = true)]
    pub owner_node: Option<String>,
    /// The instance on that server.
    #[schema(required = true)]
    pub owner_name: Option<String>,
    /// The id of the run.
    #[schema(required = true)]
    pub owner_tag: Option<String>,
    /// When the run started.
    #[schema(required = true)]
    pub owner_started_at: Option<Instant>,
    /// The owner's last sign of life. On PostgreSQL: the last heartbeat of its session, by the server's clock.
    /// On SQLite: the last answer of the process next to the run, which is asked every 5 seconds.
    #[schema(required = true)]
    pub owner_last_ping_at: Option<Instant>,
    /// When another node first doubted the owner; null while heartbeats arrive. Always null on SQLite, where no
    /// other node watches.
    #[schema(required = true)]
    pub steal_start_at: Option<Instant>,
}

/// How long a run takes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Estimate)]
pub struct EstimateView {
    /// The mean length. Recent runs weigh most.
    pub mean: Length,
    /// The same in seconds.
    pub mean_seconds: f64,
    /// How much runs deviate from the mean.
    pub deviation: Length,
    /// The same in seconds.
    pub deviation_seconds: f64,
    /// Number of good runs it was learned from.
    pub samples: u64,
}

impl From<&Estimate> for EstimateView {
    fn from(it: &Estimate) -> EstimateView {
        EstimateView {
            mean: it.mean().into(),
            mean_seconds: seconds(it.mean()),
            deviation: it.deviation().into(),
            deviation_seconds: seconds(it.deviation()),
            samples: it.n_samples(),
        }
    }
}

impl JobView {
    /// Says how the last run ended.
    pub fn say_last_run(&mut self, last_run: Option<String>) {
        join_last_run(&mut self.sentence, &self.condition, last_run.as_deref());
        self.last_run_sentence = last_run;
    }

    /// A job as it stands at that instant, in the world around it.
    pub fn of(row: &JobRow, now: Timestamp, outlook: &Outlook) -> JobView {
        let (job, state) = (&*row.job, &row.state);
        let it = assess(&job.key, job, state, now, outlook);
        let (status, owner) = (state.status(job), state.owner.as_deref());
        let instant = |at: Option<Timestamp>| at.map(Instant);
        let is_tracked = state.is_tracked(job);
        // The place of a paused job is kept, but nothing starts there.
        let may_start = job.enabled && state.pause.is_none();
        let if_it_may = |at: Option<Timestamp>| instant(at.filter(|_| may_start));
        let if_tracked = |at: Option<Timestamp>| instant(at.filter(|_| is_tracked));
        let mean = state.estimate.as_ref().map(Estimate::mean);
        JobView {
            key: job.key.to_string(),
            name: job.key.name().to_owned(),
            configuration: job.key.configuration().map(str::to_owned),
            revision: row.revision.0,
            definition: JobDefinition::of(job),
            schedule: job.schedule.to_string(),
            schedule_kind: job.schedule.kind().into(),
            target_kind: job.target.kind().into(),
            enabled: job.enabled,
            pool: job.place.pool.to_string(),
            site: job.site.as_ref().map(ToString::to_string),
            tenant: job.tenant.as_ref().map(ToString::to_string),
            description: job.description.clone(),
            contact: job.contact.clone(),
            labels: job.labels.clone(),
            status: status.as_str().into(),
            condition: it.condition().as_str().into(),
            tracked: is_tracked,
            reason: it.reason().as_str().into(),
            reasons: it.reasons.iter().map(|reason| reason.as_str().into()).collect(),
            sentence: it.sentence(),
            can_start_by: if_it_may(it.can_start_by),
            planned_start: if_it_may(it.planned_start),
            should_start_by: if_tracked(it.should_start_by),
            expected_end: instant(it.expected_end.filter(|_| may_start || owner.is_some())),
            deadline: if_tracked(it.deadline),
            created_at: state.created_at.into(),
            placed_at: state.placement.as_ref().map(|it| it.placed_at.into()),
            next_run_at: if_it_may(state.next_run_at),
            pending_at: instant(state.next_run_at),
            last_start_at: instant(state.last_start_at),
            last_end_at: instant(state.last_end_at),
            last_good_start_at: instant(state.last_good_start_at),
            last_good_end_at: instant(state.last_good_end_at),
            last_outcome: state.last_outcome.map(|outcome| outcome.as_str().into()),
            last_run_sentence: None,
            last_exit_code: state.last_exit_code,
            failure_count: state.failure_count,
            estimate: state.estimate.as_ref().map(Into::into),
            average_good_duration: mean.map(Into::into),
            average_good_duration_seconds: mean.map(seconds),
            paused_by: state.pause.as_ref().map(|pause| pause.by.as_str().into()),
            pause_reason: state.pause.as_ref().and_then(|pause| pause.reason.clone()),
            pause_until: None,
            open_runs: row.n_open,
            waiting_runs: state.extras.len(),
            owner_node: owner.map(|owner| owner.node.to_string()),
            owner_name: owner.map(|owner| owner.name.clone()),
            owner_tag: owner.map(|owner| owner.tag.to_string()),
            owner_started_at: owner.map(|owner| owner.started_at.into()),
            // The start is the first sign of life.
            owner_last_ping_at: owner.map(|owner| owner.started_at.into()),
            steal_start_at: None,
        }
    }

    /// The same with when its pause ends.
    #[must_use]
    pub fn paused_until(self, at: Option<Timestamp>) -> JobView {
        JobView { pause_until: at.filter(|_| self.paused_by.is_some()).map(Instant), ..self }
    }

    /// The same with the last sign of life of the owner.
    #[must_use]
    pub fn with_ping(self, ping: Option<&OwnerPing>) -> JobView {
        let Some(ping) = ping else { return self };
        let last_ping_at = self.owner_last_ping_at.map(|start| start.0.max(ping.last_ping_at).into());
        JobView { owner_last_ping_at: last_ping_at, steal_start_at: ping.doubted_at.map(Instant), ..self }
    }
}

/// A job after it was created or changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct JobPut {
    /// The job as it is now.
    #[serde(flatten)]
    pub job: JobView,
    /// What is doubtful about its definition.
    pub warnings: Vec<DefinitionDoubt>,
}

/// How to pause a job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PauseRequest {
    /// Why, for people to read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When it is resumed automatically; never if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Instant>,
}

/// How to trigger a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TriggerRequest {
    /// Parameters of this run, on top of those of the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub params: Option<Map<String, Json>>,
}

/// A run that was requested. It starts when there is room for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = TriggeredRun)]
pub struct TriggerAnswer {
    /// The id of the request, which works like the id of its run: `GET /api/v1/runs/{id}` shows how it goes.
    pub id: String,
    /// The key of the job.
    pub job: String,
    /// What happens next, in a sentence for people.
    #[serde(default)]
    pub sentence: String,
}
