//! A run, column by column.

use std::sync::Arc;

use evenbeat_core::ids::{ExtraId, Fence, JobKey, RunId, SessionId};
use evenbeat_core::occurrence::{Due, Serves};
use evenbeat_core::run::{EndDetail, EndReason, Outcome, RunReport, Trigger};
use evenbeat_core::store::{CounterKey, LateResult, RunEnded, RunPhase, RunRow};
use evenbeat_core::time::{Duration, Timestamp};
use evenbeat_core::value::{Table, Value};

use super::{number, small_number, stored_number};
use crate::store::word::{OpenPhase, ServesKind};
use crate::value_json as json;

/// What a run serves, as the columns from `due_at` to `params`.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "named like the columns, and those like the fields")]
pub struct DueColumns {
    pub due_at: i64,
    pub attempt: i64,
    pub trigger: Trigger,
    pub serves: ServesKind,
    pub extra_id: Option<u128>,
    pub losses: i64,
    pub last_outcome: Option<Outcome>,
    pub params: Option<String>,
}

impl DueColumns {
    /// What is to be served, as columns.
    pub fn of(due: &Due) -> DueColumns {
        DueColumns {
            due_at: due.due_at.as_millis(),
            attempt: due.attempt.into(),
            trigger: due.trigger,
            serves: due.serves.into(),
            extra_id: match due.serves {
                Serves::Extra(ExtraId(id)) => Some(id),
                Serves::Pending | Serves::Beside => None,
            },
            losses: due.losses.into(),
            last_outcome: due.last_outcome,
            params: due.params.as_ref().map(|params| json::to_text(params)),
        }
    }

    /// What the columns say.
    pub fn due(self) -> Due {
        Due {
            due_at: Timestamp::from_millis(self.due_at),
            attempt: small_number(self.attempt),
            trigger: self.trigger,
            serves: match (self.serves, self.extra_id) {
                (ServesKind::Extra, Some(id)) => Serves::Extra(ExtraId(id)),
                (ServesKind::Beside, _) => Serves::Beside,
                (ServesKind::Pending | ServesKind::Extra, _) => Serves::Pending,
            },
            losses: small_number(self.losses),
            last_outcome: self.last_outcome,
            params: self.params.and_then(|text| json::from_text(&text)).map(Arc::new),
        }
    }
}

/// A run as columns: an open one from `open_run`, one that is over from `run`.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "named like the columns, and those like the fields")]
pub struct RunColumns {
    pub id: u128,
    pub key: JobKey,
    pub session_id: u128,
    pub fence: i64,
    /// Of an open run; [`RunColumns::ended`] says the rest.
    pub phase: OpenPhase,
    pub due: DueColumns,
    pub claimed_at: i64,
    pub started_at: Option<i64>,
    pub is_cancel_asked: bool,
    pub takes: Option<String>,
    pub ended: Option<EndedColumns>,
    pub report: Option<String>,
}

/// What is known of the end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "named like the columns, and those like the fields")]
pub struct EndedColumns {
    pub outcome: Outcome,
    pub ended_at: i64,
    pub exit_code: Option<i64>,
    pub frozen_for: i64,
    pub late_outcome: Option<Outcome>,
    pub late_ended_at: Option<i64>,
}

impl RunColumns {
    /// The run that the columns say.
    pub fn row(self) -> RunRow {
        let at = Timestamp::from_millis;
        RunRow {
            run: RunId(self.id),
            key: self.key,
            due: self.due.due(),
            session: SessionId(self.session_id),
            fence: Fence(number(self.fence)),
            phase: self.ended.map_or(self.phase.into(), |it| RunPhase::Ended(it.outcome)),
            claimed_at: at(self.claimed_at),
            started_at: self.started_at.map(at),
            ended: self.ended.map(|it| RunEnded {
                ended_at: at(it.ended_at),
                exit_code: it.exit_code.and_then(|code| i32::try_from(code).ok()),
                frozen_for: Duration::from_millis(it.frozen_for),
            }),
            report: self.report.as_deref().and_then(report_from_text).map(Arc::new),
            late: self.ended.and_then(|it| {
                Some(LateResult { outcome: it.late_outcome?, ended_at: at(it.late_ended_at?) })
            }),
            is_cancel_asked: self.is_cancel_asked,
            takes: self.takes.map(|text| takes_from_text(&text)).unwrap_or_default(),
        }
    }
}

/// What a run reported and what is known of its end, as text; none for most runs. What is not known is left out.
pub fn report_to_text(report: Option<&RunReport>) -> Option<String> {
    let RunReport { error, result, end } = report?;
    let text = |text: &String| Value::Text(text.clone());
    let fields = [
        ("error", error.as_ref().map(text)),
        ("result", (!result.is_empty()).then(|| Value::Table(result.clone()))),
        ("signal", end.signal.map(|it| Value::Int(it.into()))),
        ("reason", end.reason.map(|it| Value::Text(it.as_str().to_owned()))),
        ("limit", end.limit.as_ref().map(text)),
        ("ignored_term", end.ignored_term.then_some(Value::Bool(true))),
        (
            "left_behind",
            (!end.left_behind.is_empty()).then(|| Value::List(end.left_behind.iter().map(text).collect())),
        ),
        ("output_cut", (0 < end.output_cut).then(|| Value::Int(stored_number(end.output_cut)))),
        ("last_error_line", end.last_error_line.as_ref().map(text)),
    ];
    let known = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Some(json::to_text(&known.collect()))
}

/// The same back. What cannot be read is not known.
pub fn report_from_text(text: &str) -> Option<RunReport> {
    let mut known = json::from_text(text)?;
    let result = match known.remove("result") {
        Some(Value::Table(result)) => result,
        _ => Table::default(),
    };
    let mut text = |name: &str| match known.remove(name) {
        Some(Value::Text(text)) => Some(text),
        _ => None,
    };
    let (error, limit, last_error_line) = (text("error"), text("limit"), text("last_error_line"));
    let reason = text("reason").and_then(|it| EndReason::named(&it));
    let whole = |value: Option<&Value>| if let Some(Value::Int(it)) = value { Some(*it) } else { None };
    let name = |it: &Value| if let Value::Text(name) = it { Some(name.clone()) } else { None };
    let left_behind = match known.get("left_behind") {
        Some(Value::List(names)) => names.iter().filter_map(name).collect(),
        _ => Vec::new(),
    };
    let end = EndDetail {
        signal: whole(known.get("signal")).and_then(|it| i32::try_from(it).ok()),
        reason,
        limit,
        ignored_term: known.get("ignored_term") == Some(&Value::Bool(true)),
        left_behind,
        output_cut: whole(known.get("output_cut")).map_or(0, number),
        last_error_line,
    };
    Some(RunReport { error, result, end })
}

/// The counters that a run holds, as text; none for most runs.
pub fn takes_to_text(takes: &[CounterKey]) -> Option<String> {
    let pair = |it: &CounterKey| {
        Value::List(vec![Value::Text(it.kind().to_owned()), Value::Text(it.key().to_owned())])
    };
    (!takes.is_empty()).then(|| json::to_json(&Value::List(takes.iter().map(pair).collect())).to_string())
}

/// The same, read back.
pub fn takes_from_text(text: &str) -> Vec<CounterKey> {
    let Ok(Value::List(pairs)) = serde_json::from_str(text).map(json::from_json) else { return Vec::new() };
    let counter = |pair: &Value| match pair {
        Value::List(pair) => match pair.as_slice() {
            [Value::Text(kind), Value::Text(key)] => counter_of(kind, key),
            _ => None,
        },
        _ => None,
    };
    pairs.iter().filter_map(counter).collect()
}

/// The counter of a kind and a key, as they are stored.
pub fn counter_of(kind: &str, key: &str) -> Option<CounterKey> {
    match kind {
        "name" => Some(CounterKey::Name(key.into())),
        "site" => key.parse().ok().map(CounterKey::Site),
        "tenant" => key.parse().ok().map(CounterKey::Tenant),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_run_serves_comes_back() {
        let plain = Due {
            due_at: Timestamp::from_millis(1),
            attempt: 2,
            trigger: Trigger::Retry,
            serves: Serves::Beside,
            losses: 3,
            last_outcome: Some(Outcome::Failed),
            params: None,
        };
        let params = Some(Arc::new([("a".to_owned(), Value::Bool(true))].into()));
        let extra = Due { serves: Serves::Extra(ExtraId(u128::MAX)), params, ..plain.clone() };
        for due in [Due { serves: Serves::Pending, ..plain.clone() }, plain, extra] {
            assert_eq!(DueColumns::of(&due).due(), due);
        }
    }

    #[test]
    fn the_counters_of_a_run_come_back() {
        let takes = [
            CounterKey::Name("a\"b".into()),
            CounterKey::Site("shop".parse().unwrap()),
            CounterKey::Tenant("acme".parse().unwrap()),
        ];
        assert_eq!(takes_from_text(&takes_to_text(&takes).unwrap()), takes);
        assert_eq!(takes_to_text(&[]), None);
        assert_eq!(takes_from_text("[[\"moon\", \"x\"], 1]"), []);
    }
}
