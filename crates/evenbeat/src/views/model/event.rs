//! Events, as readers of the stream get them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::words::{ConditionWord, JobEventWord, OutcomeWord, RunEventWord, TriggerWord};
use super::{Instant, Length, Text};

/// Something that happened. An event says what changed, not all that is known of it: ask for the rest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Event)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum EventView {
    /// A job was added, edited, paused, resumed or removed, or another node ran it.
    Job {
        /// When it was noticed.
        at: Instant,
        /// Key of the job.
        job: String,
        /// `changed` or `removed`.
        #[schema(value_type = JobEventWord)]
        change: Text,
    },
    /// A run started or ended.
    Run {
        /// When it did.
        at: Instant,
        /// Key of the job.
        job: String,
        /// Id of the run.
        run: String,
        /// `started` or `ended`.
        #[schema(value_type = RunEventWord)]
        change: Text,
        /// When it was due; of a run that started.
        #[serde(skip_serializing_if = "Option::is_none")]
        scheduled_for: Option<Instant>,
        /// What made it start; of a run that started.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(value_type = Option<TriggerWord>)]
        trigger: Option<Text>,
        /// How it ended.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(value_type = Option<OutcomeWord>)]
        outcome: Option<Text>,
        /// What its process returned, if it ended by itself.
        #[serde(skip_serializing_if = "Option::is_none")]
        exit_code: Option<i32>,
        /// From its start to its end.
        #[serde(skip_serializing_if = "Option::is_none")]
        took: Option<Length>,
    },
    /// The condition of a job changed.
    Condition {
        /// When it did.
        at: Instant,
        /// Key of the job.
        job: String,
        /// `ok`, `warning` or `error`; absent if the job is no longer tracked.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(value_type = Option<ConditionWord>)]
        condition: Option<Text>,
        /// Why.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(value_type = Option<String>)]
        reason: Option<Text>,
        /// The reason before.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(value_type = Option<String>)]
        was: Option<Text>,
    },
    /// Something happened to the nodes, or to the store as this node sees it.
    Node {
        /// When it was noticed.
        at: Instant,
        /// `nodes_changed`, or the kind of the log line, such as `drain_changed` and `store_failing`.
        #[schema(value_type = String)]
        change: Text,
        /// The node that it is about, if it is about one.
        #[serde(skip_serializing_if = "Option::is_none")]
        node: Option<String>,
        /// For people.
        #[schema(value_type = String)]
        message: Text,
    },
    /// The distribution score was worked out.
    Score {
        /// When.
        at: Instant,
        /// From 0 to 1.
        score: f64,
    },
    /// A rebalance was applied.
    Rebalance {
        /// When.
        at: Instant,
        /// Jobs that moved.
        moved: usize,
        /// Jobs that were left alone.
        skipped: usize,
        /// The score before.
        old_score: f64,
        /// The score after.
        new_score: f64,
    },
    /// Many jobs changed within a moment; which ones is left out.
    Jobs {
        /// When.
        at: Instant,
        /// How many changed.
        changed: u64,
        /// How many were removed.
        removed: u64,
    },
    /// Many runs started or ended within a moment; which ones is left out.
    Runs {
        /// When.
        at: Instant,
        /// How many started.
        started: u64,
        /// How many ended, by outcome.
        ended: BTreeMap<String, u64>,
    },
    /// Many conditions changed within a moment; of which jobs is left out.
    Conditions {
        /// When.
        at: Instant,
        /// How many changed, by their condition now; `none` for jobs that are no longer tracked.
        changed: BTreeMap<String, u64>,
    },
    /// Events before this one are missing: read again what you show.
    Resync {
        /// Why.
        #[schema(value_type = String)]
        detail: Text,
    },
    /// This reader was too slow, and the stream ends here. Connect again.
    CutOff {
        /// Why.
        #[schema(value_type = String)]
        detail: Text,
    },
}

impl EventView {
    /// The name of the event on the wire: its `kind`.
    pub fn name(&self) -> &'static str {
        match self {
            EventView::Job { .. } => "job",
            EventView::Run { .. } => "run",
            EventView::Condition { .. } => "condition",
            EventView::Node { .. } => "node",
            EventView::Score { .. } => "score",
            EventView::Rebalance { .. } => "rebalance",
            EventView::Jobs { .. } => "jobs",
            EventView::Runs { .. } => "runs",
            EventView::Conditions { .. } => "conditions",
            EventView::Resync { .. } => "resync",
            EventView::CutOff { .. } => "cut_off",
        }
    }
}
