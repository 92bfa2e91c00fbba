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

use super::{DefinitionDoubt, Instant, Length, Text, join_last_run, seconds};
use crate::value_json::to_json;

/// A job as it is written: the fields of a `[[job]]` in a job file, as a JSON object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JobDefinition(pub Map<String, Json>);

impl JobDefinition {
    /// The definition of a job that is there; what stands at its default is left out.
    pub fn of(job: &evenbeat_core::job::Job) -> JobDefinition {
        JobDefinition(written(job).iter().map(|(name, value)| (name.clone(), to_json(value))).collect())
    }
}

/// A job: what it is, what is remembered of it, and how it stands now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobView {
    /// `name` or `name@configuration`.
    pub key: String,
    /// The part that several configurations share.
    pub name: String,
    /// The part after the `@`.
    pub configuration: Option<String>,
    /// Grows with every change that people make; also the `ETag`.
    pub revision: u64,
    /// What people wrote.
    pub definition: JobDefinition,
    /// The schedule in a few words: `every 6h`.
    pub schedule: String,
    /// `every`, `fresh`, `cron`, `once` or `manual`.
    pub schedule_kind: Text,
    /// `command`, `http` or `queue`.
    pub target_kind: Text,
    /// Whether it is to be run at all.
    pub enabled: bool,
    /// The pool that it draws on.
    pub pool: String,
    /// The shared limit that it counts against.
    pub site: Option<String>,
    /// Whose quota it counts against.
    pub tenant: Option<String>,
    /// What it is for, in words for people.
    pub description: Option<String>,
    /// Whom to ask about it.
    pub contact: Option<String>,
    /// For people and filters.
    pub labels: BTreeMap<String, String>,

    /// `pending`, `scheduled`, `running`, `paused`, `disabled` or `done`.
    pub status: Text,
    /// `ok`, `warning` or `error`.
    pub condition: Text,
    /// Whether the condition counts: not while the job is disabled, done or paused by a person. A job that the system
    /// paused counts as an error until a person acts.
    pub tracked: bool,
    /// Why the condition is what it is: a code of docs/reference/reasons.md.
    pub reason: Text,
    /// All reasons that hold, the weightiest first.
    pub reasons: Vec<Text>,
    /// The reason as a sentence for people.
    pub sentence: String,
    /// When it may start.
    pub can_start_by: Option<Instant>,
    /// When it will start, if it is not running.
    pub planned_start: Option<Instant>,
    /// When it must start to be in time.
    pub should_start_by: Option<Instant>,
    /// When the run that goes on will end, or the next one would.
    pub expected_end: Option<Instant>,
    /// By when a good run must be complete.
    pub deadline: Option<Instant>,

    /// When the job was first known.
    pub created_at: Instant,
    /// When its place on the time line was chosen.
    pub placed_at: Option<Instant>,
    /// The occurrence that the next run will serve.
    pub next_run_at: Option<Instant>,
    /// When the last run started.
    pub last_start_at: Option<Instant>,
    /// When the last run ended.
    pub last_end_at: Option<Instant>,
    /// When the last good run started.
    pub last_good_start_at: Option<Instant>,
    /// When the last good run ended.
    pub last_good_end_at: Option<Instant>,
    /// How the last run ended: an outcome.
    pub last_outcome: Option<Text>,
    /// Why the last run did not succeed, in a sentence for people; null if it did, and in lists of jobs.
    pub last_run_sentence: Option<String>,
    /// The exit code of the last run, where there was one.
    pub last_exit_code: Option<i32>,
    /// Failures in a row.
    pub failure_count: u32,
    /// How long a run takes, learned from good runs; null before the first.
    pub estimate: Option<EstimateView>,
    /// The mean of that.
    pub average_good_duration: Option<Length>,
    /// The same in seconds.
    pub average_good_duration_seconds: Option<f64>,
    /// `operator` or `system`; null unless paused.
    pub paused_by: Option<Text>,
    /// Why, for people.
    pub pause_reason: Option<String>,
    /// How many of its runs are open.
    pub open_runs: u32,
    /// Number of waiting runs: triggered ones and catch-ups.
    pub waiting_runs: usize,

    /// The server that runs it; null unless running, like the five below.
    pub owner_node: Option<String>,
    /// The instance on that server.
    pub owner_name: Option<String>,
    /// The run.
    pub owner_tag: Option<String>,
    /// When the run started.
    pub owner_started_at: Option<Instant>,
    /// The last sign of life of the owner. On PostgreSQL: the last accepted beat of its session, by the server's clock.
    /// On SQLite: when the process beside the run last answered; it is asked every 5 seconds.
    pub owner_last_ping_at: Option<Instant>,
    /// When another node first doubted the owner; null while its beats come. Always null on SQLite, where no other node
    /// watches.
    pub steal_start_at: Option<Instant>,
}

/// How long a run takes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct EstimateView {
    /// On average, the last runs weighing most.
    pub mean: Length,
    /// The same in seconds.
    pub mean_seconds: f64,
    /// How far runs stray from it.
    pub deviation: Length,
    /// The same in seconds.
    pub deviation_seconds: f64,
    /// How many good runs it was learned from.
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
            tracked: state.is_tracked(job),
            reason: it.reason().as_str().into(),
            reasons: it.reasons.iter().map(|reason| reason.as_str().into()).collect(),
            sentence: it.sentence(),
            can_start_by: instant(it.can_start_by),
            planned_start: instant(it.planned_start),
            should_start_by: instant(it.should_start_by),
            expected_end: instant(it.expected_end),
            deadline: instant(it.deadline),
            created_at: state.created_at.into(),
            placed_at: state.placement.as_ref().map(|it| it.placed_at.into()),
            next_run_at: instant(state.next_run_at),
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

    /// The same with the last sign of life of the owner.
    #[must_use]
    pub fn with_ping(self, ping: Option<&OwnerPing>) -> JobView {
        let Some(ping) = ping else { return self };
        let last_ping_at = self.owner_last_ping_at.map(|start| start.0.max(ping.last_ping_at).into());
        JobView { owner_last_ping_at: last_ping_at, steal_start_at: ping.doubted_at.map(Instant), ..self }
    }
}

/// A job that was put.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobPut {
    /// The job as it is now.
    #[serde(flatten)]
    pub job: JobView,
    /// What is doubtful about its definition.
    pub warnings: Vec<DefinitionDoubt>,
}

/// Why a job is to be paused.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PauseRequest {
    /// For people to read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A run that is wanted now.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TriggerRequest {
    /// Handed to the run, over the job's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<Map<String, Json>>,
}

/// A run that was requested. It begins when there is room for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TriggerAnswer {
    /// The id of the request, and of its first run: `GET /runs/{id}` shows how it stands.
    pub id: String,
    /// Of which job.
    pub job: String,
}
