//! Runs (X6), and the records of what got none.

use std::collections::BTreeMap;

use evenbeat_core::ids::{JobKey, SessionId};
use evenbeat_core::job::Extra;
use evenbeat_core::run::{Outcome, Trigger};
use evenbeat_core::store::{RecordRow, RunPhase, RunRow, SessionRow};
use evenbeat_core::time::{CLOCK_SLACK, Duration, Timestamp};
use evenbeat_core::value::Table;
use evenbeat_core::why;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};
use utoipa::ToSchema;

use super::words::{
    EndReasonWord, OutcomeWord, RecordReasonWord, RecordWord, RunPhaseWord, RunStatusWord, TriggerWord,
};
use super::{Instant, Length, Text, seconds};
use crate::value_json::to_json;

/// One attempt at an occurrence, or a request for a run that has not started yet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Run)]
pub struct RunView {
    /// The id of the run, or of the request while it waits.
    pub id: String,
    /// The key of the job.
    pub job: String,
    /// How the run goes: its outcome once it is over.
    #[schema(value_type = RunStatusWord)]
    pub status: Text,
    /// How far the run is.
    #[schema(value_type = RunPhaseWord)]
    pub phase: Text,
    /// How the run ended; absent while it is open.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<OutcomeWord>)]
    pub outcome: Option<Text>,
    /// When the occurrence that it serves was due. Absent for a request that was cancelled before it got a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduled_for: Option<Instant>,
    /// What caused the run.
    #[schema(value_type = TriggerWord)]
    pub trigger: Text,
    /// The id of the request that it serves, for triggered runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked: Option<String>,
    /// The number of this attempt at its occurrence, from 1.
    pub attempt: u32,
    /// The server; absent while the run waits, and if its session is no longer known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The instance on that server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// The session that owns or owned the run; absent while it waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The number of its lease.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fence: Option<u64>,
    /// When a node claimed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claimed_at: Option<Instant>,
    /// When it started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Instant>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Instant>,
    /// The time from start to end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub took: Option<Length>,
    /// The same in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub took_seconds: Option<f64>,
    /// How much of that time it was frozen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frozen_for: Option<Length>,
    /// The exit code, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The signal that ended its first process, if one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// Why it ended; absent for a good run, and if the reason is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<EndReasonWord>)]
    pub reason: Option<Text>,
    /// The limit that it exceeded, with its value, such as `max_allowed_duration 6s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
    /// True if it ignored the request to end and was killed.
    pub ignored_term: bool,
    /// Names of processes that were still there after its first process had ended.
    pub left_behind: Vec<String>,
    /// Bytes of output that were not kept.
    pub output_cut: u64,
    /// The last line it wrote to standard error; only for runs that did not succeed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error_line: Option<String>,
    /// What went wrong: the text of `error` in its result file, or that of the system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Why it ended as it did, as a sentence; absent for a good run with nothing to remark on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sentence: Option<String>,
    /// Pages that the run counted.
    pub pages_processed: i64,
    /// Changes that the run counted.
    pub changes_detected: i64,
    /// Price changes that the run counted.
    pub price_changes: i64,
    /// Snapshots that the run counted.
    pub snapshots: i64,
    /// Everything the run reported, by name.
    #[schema(value_type = Object)]
    pub result: Map<String, Json>,
    /// True if someone asked to cancel it.
    pub cancel_asked: bool,
    /// Parameters of this run, on top of those of the job.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub params: Option<Map<String, Json>>,
    /// A result that arrived after the run had been given up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late: Option<LateView>,
    /// The earliest start of the request's next run; absent if it gets none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<Instant>,
    /// True if its times are in the future because the clock that stored them was ahead.
    pub clock_was_ahead: bool,
}

/// A result that came after the run had been given up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = LateResult)]
pub struct LateView {
    /// The outcome that it reported.
    #[schema(value_type = OutcomeWord)]
    pub outcome: Text,
    /// When it ended.
    pub ended_at: Instant,
}

/// Which node each session is.
#[derive(Clone, Debug, Default)]
pub struct SessionNames(BTreeMap<SessionId, (String, String)>);

impl SessionNames {
    /// Of these.
    pub fn of(sessions: &[SessionRow]) -> SessionNames {
        let name = |it: &SessionRow| (it.spec.id, (it.spec.node.to_string(), it.spec.name.clone()));
        SessionNames(sessions.iter().map(name).collect())
    }
}

impl RunView {
    /// The same, as seen at this time.
    #[must_use]
    pub fn seen_at(self, now: Timestamp) -> RunView {
        let times = [self.claimed_at, self.started_at, self.ended_at];
        let latest = times.into_iter().flatten().map(|at| at.0).max();
        RunView { clock_was_ahead: latest.is_some_and(|latest| now + CLOCK_SLACK < latest), ..self }
    }

    /// A run as it is.
    pub fn of(row: &RunRow, names: &SessionNames) -> RunView {
        let (phase, outcome) = match row.phase {
            RunPhase::Claimed => ("claimed", None),
            RunPhase::Published => ("published", None),
            RunPhase::Running => ("running", None),
            RunPhase::Ended(outcome) => ("ended", Some(outcome.as_str())),
        };
        let is_lost = matches!(row.phase, RunPhase::Ended(Outcome::Lost | Outcome::Superseded));
        let status = outcome.unwrap_or(if row.phase == RunPhase::Running { "running" } else { "starting" });
        let took =
            row.started_at.zip(row.ended).map(|(from, ended)| (ended.ended_at - from).max(Duration::ZERO));
        let owner = names.0.get(&row.session);
        let report = row.report.as_deref();
        let counter = |name: &str| report.map_or(0, |report| report.counter(name));
        let end = report.map(|report| report.end.clone()).unwrap_or_default();
        let exit_code = row.ended.and_then(|it| it.exit_code);
        let sentence = match row.phase {
            RunPhase::Ended(outcome) => why::sentence("The run", outcome, exit_code, report),
            _ => None,
        };
        RunView {
            id: row.run.to_string(),
            job: row.key.to_string(),
            status: status.into(),
            phase: phase.into(),
            outcome: outcome.map(Into::into),
            scheduled_for: Some(row.due.due_at.into()),
            trigger: row.due.trigger.as_str().into(),
            asked: row.due.asked().map(|id| id.to_string()),
            attempt: row.due.attempt,
            node: owner.map(|(node, _)| node.clone()),
            instance: owner.map(|(_, instance)| instance.clone()),
            session: Some(row.session.to_string()),
            fence: Some(row.fence.0),
            claimed_at: Some(row.claimed_at.into()),
            started_at: row.started_at.map(Into::into),
            ended_at: row.ended.map(|it| it.ended_at.into()),
            took: took.map(Into::into),
            took_seconds: took.map(seconds),
            // How long a run stood still whose node was given up is not known.
            frozen_for: row.ended.filter(|_| !is_lost).map(|it| it.frozen_for.into()),
            exit_code,
            signal: end.signal,
            reason: end.reason.map(|it| it.as_str().into()),
            limit: end.limit,
            ignored_term: end.ignored_term,
            left_behind: end.left_behind,
            output_cut: end.output_cut,
            last_error_line: end.last_error_line,
            sentence,
            error: report.and_then(|report| report.error.clone()),
            pages_processed: counter("pages_processed"),
            changes_detected: counter("changes_detected"),
            price_changes: counter("price_changes"),
            snapshots: counter("snapshots"),
            result: report.map(|report| object(&report.result)).unwrap_or_default(),
            cancel_asked: row.is_cancel_asked,
            params: row.due.params.as_ref().map(|params| object(params)),
            late: row
                .late
                .map(|it| LateView { outcome: it.outcome.as_str().into(), ended_at: it.ended_at.into() }),
            retry_at: None,
            clock_was_ahead: false,
        }
    }

    /// A request that has no run: it waits for one, or was taken back.
    pub fn of_request(id: &str, key: &JobKey, waiting: Option<&Extra>) -> RunView {
        let (status, phase) = if waiting.is_some() { ("waiting", "waiting") } else { ("cancelled", "ended") };
        let params = waiting.and_then(|it| it.params.as_ref());
        RunView {
            id: id.to_owned(),
            job: key.to_string(),
            status: status.into(),
            phase: phase.into(),
            outcome: waiting.is_none().then(|| status.into()),
            scheduled_for: waiting.map(|it| it.due_at.into()),
            trigger: waiting.map_or(Trigger::Manual, |it| it.kind).as_str().into(),
            asked: Some(id.to_owned()),
            attempt: waiting.map_or(0, |it| it.attempt),
            node: None,
            instance: None,
            session: None,
            fence: None,
            claimed_at: None,
            started_at: None,
            ended_at: None,
            took: None,
            took_seconds: None,
            frozen_for: None,
            exit_code: None,
            signal: None,
            reason: None,
            limit: None,
            ignored_term: false,
            left_behind: Vec::new(),
            output_cut: 0,
            last_error_line: None,
            error: None,
            sentence: None,
            pages_processed: 0,
            changes_detected: 0,
            price_changes: 0,
            snapshots: 0,
            result: Map::new(),
            cancel_asked: false,
            params: params.map(|params| object(params)),
            late: None,
            retry_at: waiting.map(|it| it.not_before.into()),
            clock_was_ahead: false,
        }
    }

    /// Whether it is not over.
    pub fn is_open(&self) -> bool {
        self.outcome.is_none()
    }
}

fn object(table: &Table) -> Map<String, Json> {
    table.iter().map(|(name, value)| (name.clone(), to_json(value))).collect()
}

/// A request to cancel a run was accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = CancelResult)]
pub struct CancelAnswer {
    /// The id of the run.
    pub run: String,
    /// Always true: the run will be told to end, or the request for it was withdrawn.
    pub asked: bool,
}

/// Occurrences of a job that got no run of their own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Record)]
pub struct RecordView {
    /// The key of the job.
    pub job: String,
    /// Whether they were skipped or missed.
    #[schema(value_type = RecordWord)]
    pub what: Text,
    /// Why they got no run.
    #[schema(value_type = RecordReasonWord)]
    pub reason: Text,
    /// The first occurrence.
    pub first: Instant,
    /// The last occurrence.
    pub last: Instant,
    /// Number of occurrences.
    pub count: u64,
    /// When they were recorded.
    pub recorded_at: Instant,
}

impl From<&RecordRow> for RecordView {
    fn from(row: &RecordRow) -> RecordView {
        let range = &row.record.range;
        RecordView {
            job: row.key.to_string(),
            what: row.record.what.what().into(),
            reason: row.record.what.reason().into(),
            first: range.first.into(),
            last: range.last.into(),
            count: range.count,
            recorded_at: row.recorded_at.into(),
        }
    }
}
