//! A run as columns.

use std::sync::Arc;

use evenbeat_core::ids::{ExtraId, Fence, JobKey, RunId, SessionId};
use evenbeat_core::occurrence::{Due, Serves};
use evenbeat_core::run::{EndDetail, EndReason, Outcome, RunReport, Trigger};
use evenbeat_core::store::{CounterKey, LateResult, RunEnded, RunPhase, RunRow};
use evenbeat_core::time::{Duration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json, json};

use super::{lenient, number, small_number, stored_number};
use crate::store::keyword::{OpenPhase, ServesKind};
use crate::value_json::{from_json, from_text, to_json, to_text};

/// What a run serves, as the columns from `due_at` to `params`.
#[derive(Clone, Debug, PartialEq)]
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
    /// An occurrence as columns.
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
            params: due.params.as_ref().map(|params| to_text(params)),
        }
    }

    /// The occurrence, read back.
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
            params: self.params.and_then(|text| from_text(&text)).map(Arc::new),
        }
    }
}

/// A run as columns: open runs are in `open_run`, ended ones in `run`.
#[derive(Clone, Debug, PartialEq)]
pub struct RunColumns {
    pub id: u128,
    pub key: JobKey,
    pub session_id: u128,
    pub fence: i64,
    /// The phase of an open run. Ended runs have [`RunColumns::ended`].
    pub phase: OpenPhase,
    pub due: DueColumns,
    pub claimed_at: i64,
    pub started_at: Option<i64>,
    pub is_cancel_asked: bool,
    pub takes: Option<String>,
    pub ended: Option<EndedColumns>,
    pub report: Option<String>,
}

/// The columns that only ended runs have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndedColumns {
    pub outcome: Outcome,
    pub ended_at: i64,
    pub exit_code: Option<i64>,
    pub frozen_for: i64,
    pub late_outcome: Option<Outcome>,
    pub late_ended_at: Option<i64>,
}

impl RunColumns {
    /// The run, read back.
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

/// The report of a run as JSON. Fields without a value are left out.
#[derive(Default, Deserialize, Serialize)]
#[serde(default)]
struct ReportText {
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(deserialize_with = "lenient", skip_serializing_if = "std::ops::Not::not")]
    ignored_term: bool,
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    last_error_line: Option<String>,
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Vec::is_empty")]
    left_behind: Vec<String>,
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    limit: Option<String>,
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    output_cut: Option<i64>,
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Map::is_empty")]
    result: Map<String, Json>,
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    signal: Option<i64>,
}

/// What a run reported and how it ended, as text. Most runs have no report.
pub fn report_to_text(report: Option<&RunReport>) -> Option<String> {
    let RunReport { error, result, end } = report?;
    let text = ReportText {
        error: error.clone(),
        ignored_term: end.ignored_term,
        last_error_line: end.last_error_line.clone(),
        left_behind: end.left_behind.clone(),
        limit: end.limit.clone(),
        output_cut: (0 < end.output_cut).then(|| stored_number(end.output_cut)),
        reason: end.reason.map(|it| it.as_str().to_owned()),
        result: result.iter().map(|(name, value)| (name.clone(), to_json(value))).collect(),
        signal: end.signal.map(i64::from),
    };
    Some(json!(text).to_string())
}

/// A report, read back. Fields that cannot be read are left out.
pub fn report_from_text(text: &str) -> Option<RunReport> {
    let fields: Map<String, Json> = serde_json::from_str(text).ok()?;
    let text: ReportText = serde_json::from_value(Json::Object(fields)).ok()?;
    let end = EndDetail {
        signal: text.signal.and_then(|it| i32::try_from(it).ok()),
        reason: text.reason.as_deref().and_then(EndReason::named),
        limit: text.limit,
        ignored_term: text.ignored_term,
        left_behind: text.left_behind,
        output_cut: text.output_cut.map_or(0, number),
        last_error_line: text.last_error_line,
    };
    let result = text.result.into_iter().map(|(name, value)| (name, from_json(value))).collect();
    Some(RunReport { error: text.error, result, end })
}

/// The counters that a run holds, as text. Most runs hold none.
pub fn takes_to_text(takes: &[CounterKey]) -> Option<String> {
    let pairs: Vec<(&str, &str)> = takes.iter().map(|it| (it.kind(), it.key())).collect();
    (!pairs.is_empty()).then(|| json!(pairs).to_string())
}

/// The counters that a run holds, read back. Those that cannot be read are left out.
pub fn takes_from_text(text: &str) -> Vec<CounterKey> {
    let pairs: Vec<Json> = serde_json::from_str(text).unwrap_or_default();
    let counter = |pair: Json| {
        let (kind, key): (String, String) = serde_json::from_value(pair).ok()?;
        counter_of(&kind, &key)
    };
    pairs.into_iter().filter_map(counter).collect()
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
    use evenbeat_core::value::Value;

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
    fn a_report_is_stored_in_this_form() {
        let empty = RunReport::default();
        let full = RunReport {
            error: Some("no \"disk\"".to_owned()),
            result: [("n".to_owned(), Value::Int(3))].into(),
            end: EndDetail {
                signal: Some(9),
                reason: Some(EndReason::TimeLimit),
                limit: Some("1h".to_owned()),
                ignored_term: true,
                left_behind: vec!["sh".to_owned()],
                output_cut: u64::MAX,
                last_error_line: Some("oops".to_owned()),
            },
        };
        let stored = concat!(
            r#"{"error":"no \"disk\"","ignored_term":true,"last_error_line":"oops","left_behind":["sh"],"#,
            r#""limit":"1h","output_cut":9223372036854775807,"reason":"time_limit","result":{"n":3},"signal":9}"#
        );
        assert_eq!(report_to_text(Some(&full)).as_deref(), Some(stored));
        assert_eq!(report_to_text(Some(&empty)).as_deref(), Some("{}"));
        assert_eq!(report_to_text(None), None);
        let read = RunReport { end: EndDetail { output_cut: number(i64::MAX), ..full.end.clone() }, ..full };
        assert_eq!(report_from_text(stored), Some(read));
        assert_eq!(report_from_text("{}"), Some(empty));
    }

    #[test]
    fn a_report_with_wrong_fields_is_read_without_them() {
        let text = r#"{"error":"x","ignored_term":1,"left_behind":7,"limit":null,"output_cut":-1,
            "reason":"new","result":[],"signal":99999999999,"unknown":1}"#;
        let read = RunReport { error: Some("x".to_owned()), ..RunReport::default() };
        assert_eq!(report_from_text(text), Some(read));
        assert_eq!(report_from_text("[]"), None);
        assert_eq!(report_from_text("{"), None);
    }

    #[test]
    fn the_counters_of_a_run_come_back() {
        let takes = [
            CounterKey::Name("a\"b".into()),
            CounterKey::Site("shop".parse().unwrap()),
            CounterKey::Tenant("acme".parse().unwrap()),
        ];
        assert_eq!(takes_from_text(&takes_to_text(&takes).unwrap()), takes);
        assert_eq!(
            takes_to_text(&takes).unwrap(),
            r#"[["name","a\"b"],["site","shop"],["tenant","acme"]]"#,
            "the stored form"
        );
        assert_eq!(takes_to_text(&[]), None);
        assert_eq!(takes_from_text("[[\"moon\", \"x\"], 1]"), []);
        assert_eq!(takes_from_text("[[\"name\", \"x\"], 1]"), [CounterKey::Name("x".into())]);
    }
}
