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

use super::{Instant, Length, Text, seconds};
use crate::value_json::to_json;

/// One attempt at an occurrence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunView {
    /// Which.
    pub id: String,
    /// Of which job.
    pub job: String,
    /// `waiting` for a request that has no run yet, `starting`, `running`, or the outcome: `succeeded`, `failed`, `timed_out`, `blackout`, `cancelled`, `lost`,
    /// `unknown`, `superseded`.
    pub status: Text,
    /// `waiting`, `claimed`, `published`, `running` or `ended`.
    pub phase: Text,
    /// The outcome; null while it is open.
    pub outcome: Option<Text>,
    /// The occurrence that it serves: when that was due. Null for a request that was taken back before it had a run.
    pub scheduled_for: Option<Instant>,
    /// `scheduler`, `manual`, `retry`, `catchup` or `backfill`.
    pub trigger: Text,
    /// The id of the request that it serves, for triggered runs.
    pub asked: Option<String>,
    /// Which attempt at its occurrence, from 1 on.
    pub attempt: u32,
    /// The server; null if its session has been forgotten.
    pub node: Option<String>,
    /// The instance on it.
    pub instance: Option<String>,
    /// The session that owns or owned it; null while it waits, like the two below.
    pub session: Option<String>,
    /// The number of its lease.
    pub fence: Option<u64>,
    /// When it was claimed.
    pub claimed_at: Option<Instant>,
    /// When it began to execute.
    pub started_at: Option<Instant>,
    /// When it ended.
    pub ended_at: Option<Instant>,
    /// From start to end.
    pub took: Option<Length>,
    /// The same in seconds.
    pub took_seconds: Option<f64>,
    /// How long of that it stood frozen.
    pub frozen_for: Option<Length>,
    /// Its exit code, where there is one.
    pub exit_code: Option<i32>,
    /// The signal that ended its first process, where one did.
    pub signal: Option<i32>,
    /// Why it ended: `exit_code`, `signal`, `not_started`, `time_limit`, `blackout`, `cancelled`, `revoked`, `orphaned`,
    /// `frozen_too_long`, `not_frozen`, `guard_died`, `machine_restarted`; null for a good run, and where it is not known.
    pub reason: Option<Text>,
    /// The limit that it exceeded, with its value: `max_allowed_duration 6s`.
    pub limit: Option<String>,
    /// Whether it did not end when it was asked to, and had to be killed.
    pub ignored_term: bool,
    /// The names of processes that were still there after its first process had ended.
    pub left_behind: Vec<String>,
    /// How many bytes of its output were not kept.
    pub output_cut: u64,
    /// The last line that it wrote to standard error; only of runs that did not succeed.
    pub last_error_line: Option<String>,
    /// What went wrong, in words: its own, from `error` in its result file, or those of the system.
    pub error: Option<String>,
    /// Why it ended as it did, in a sentence for people; null for a good run with nothing to remark on.
    pub sentence: Option<String>,
    /// What it counted: pages.
    pub pages_processed: i64,
    /// What it counted: changes.
    pub changes_detected: i64,
    /// What it counted: changes of prices.
    pub price_changes: i64,
    /// What it counted: snapshots.
    pub snapshots: i64,
    /// All that it reported, by name.
    pub result: Map<String, Json>,
    /// Whether someone wants it to end.
    pub cancel_asked: bool,
    /// What was handed to it over the job's own params.
    pub params: Option<Map<String, Json>>,
    /// A result that came after it had been given up.
    pub late: Option<LateView>,
    /// The earliest start of the request's next run; null if it gets none.
    pub retry_at: Option<Instant>,
    /// Whether its times are still to come: they were stored by a clock that was ahead.
    pub clock_was_ahead: bool,
}

/// A result that came after the run had been given up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LateView {
    /// What it says of itself.
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

/// What became of the wish to end a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CancelAnswer {
    /// Which run.
    pub run: String,
    /// Always true: its owner will hear it, or the request was taken back. A run that is over already is a problem.
    pub asked: bool,
}

/// Occurrences of a job that got no run of their own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordView {
    /// Of which job.
    pub job: String,
    /// `skipped` or `missed`.
    pub what: Text,
    /// `overlap`, `late`, `backoff`, `paused` or `replaced`.
    pub reason: Text,
    /// The first of them.
    pub first: Instant,
    /// The last of them.
    pub last: Instant,
    /// How many.
    pub count: u64,
    /// When they went on record.
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
