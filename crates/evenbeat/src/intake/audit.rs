//! What an audit entry says of a change (S17): who, what, to which job, and the changed fields before and after.

use std::collections::BTreeMap;
use std::sync::Arc;

use evenbeat_core::job::{Job, JobState};
use evenbeat_core::spec::written;
use evenbeat_core::store::{AuditEntry, JobRow, PutJob};
use evenbeat_core::value::{Table, Value};
use serde_json::{Map, Value as Json};

use super::Actor;
use crate::config::{masked, names_a_secret};
use crate::value_json::to_json;

/// Longest value that is kept as it is, in bytes of JSON. Of a longer one its length is kept.
const VALUE_BYTES_MAX: usize = 2_048;

/// Longest reason or other text for people, in characters.
const DETAIL_MAX: usize = 500;

/// A change of something that is not a job.
#[derive(Clone, Debug, Default)]
pub struct AuditChange {
    /// What was done, in a word.
    pub action: &'static str,
    /// To what: `node web-1`, `token ci`.
    pub subject: String,
    /// How, for people.
    pub detail: String,
    /// The changed fields as they were.
    pub before: Option<Json>,
    /// The changed fields as they are.
    pub after: Option<Json>,
}

impl AuditChange {
    /// The entry that is written.
    pub fn by(self, actor: &Actor) -> AuditEntry {
        let AuditChange { action, subject, detail, before, after } = self;
        AuditEntry {
            actor: text(&actor.0),
            action: action.to_owned(),
            subject: text(&subject),
            detail: text(&detail),
            before: before.map(|it| it.to_string()),
            after: after.map(|it| it.to_string()),
        }
    }
}

/// The entry about a job that is about to be written. `before` is its row as it was seen.
pub(super) fn of_job(
    actor: &Actor,
    action: &'static str,
    detail: &str,
    before: Option<&JobRow>,
    put: &PutJob,
) -> AuditEntry {
    let before = before.filter(|row| !row.is_deleted);
    // A pause or a move leaves the definition alone, and there may be many of them at once.
    let is_same_job = before.is_some_and(|row| Arc::ptr_eq(&row.job, &put.job)) && !put.is_deleted;
    let fields = |job: &Job, state: &JobState| {
        let mut fields = state_fields(state);
        if !is_same_job {
            flatten("", &written(job), &mut fields);
        }
        fields
    };
    let old = before.map(|row| fields(&row.job, &row.state));
    let mut new = (!put.is_deleted).then(|| fields(&put.job, &put.state));
    if let (Some(request), Some(new)) = (put.request, &mut new) {
        new.insert("run".to_owned(), Json::String(request.id.to_string()));
    }
    let (before, after) = difference(old, new);
    let subject = put.job.key.to_string();
    AuditChange { action, subject, detail: detail.to_owned(), before, after }.by(actor)
}

/// What people can change of a job besides its definition: its pause and its next run.
fn state_fields(state: &JobState) -> BTreeMap<String, Json> {
    let mut fields = BTreeMap::new();
    let pause = state.pause.as_deref();
    let reason = pause.and_then(|pause| pause.reason.as_deref());
    fields.extend(pause.map(|pause| ("paused_by".to_owned(), Json::String(pause.by.as_str().to_owned()))));
    fields.extend(reason.map(|reason| ("pause_reason".to_owned(), Json::String(text(reason)))));
    fields.extend(state.next_run_at.map(|at| ("next_run_at".to_owned(), Json::String(at.to_string()))));
    fields
}

fn flatten(prefix: &str, table: &Table, into: &mut BTreeMap<String, Json>) {
    for (name, value) in table {
        let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        match value {
            Value::Table(below) if !below.is_empty() => flatten(&path, below, into),
            value => {
                let shown =
                    if is_secret(name) { Json::String("***".to_owned()) } else { kept(to_json(value)) };
                into.insert(path, shown);
            }
        }
    }
}

/// Whether a field of this name, such as a variable of the environment, may hold a secret.
fn is_secret(name: &str) -> bool {
    let lower = name.to_lowercase();
    names_a_secret(name) || lower.ends_with("_key") || lower.ends_with("apikey") || lower == "authorization"
}

/// A value as it is kept: without passwords, and not longer than a limit.
fn kept(value: Json) -> Json {
    let value = without_secrets(value);
    let n_bytes = value.to_string().len();
    if n_bytes <= VALUE_BYTES_MAX { value } else { Json::String(format!("({n_bytes} bytes)")) }
}

fn without_secrets(value: Json) -> Json {
    match value {
        Json::String(text) => Json::String(masked(&text)),
        Json::Array(items) => items.into_iter().map(without_secrets).collect(),
        Json::Object(fields) => {
            let field = |(name, value): (String, Json)| {
                let value =
                    if is_secret(&name) { Json::String("***".to_owned()) } else { without_secrets(value) };
                (name, value)
            };
            fields.into_iter().map(field).collect()
        }
        other => other,
    }
}

/// The fields that differ, before and after. A field that is not there is null.
fn difference(
    before: Option<BTreeMap<String, Json>>,
    after: Option<BTreeMap<String, Json>>,
) -> (Option<Json>, Option<Json>) {
    let (Some(before), Some(after)) = (&before, &after) else {
        let whole =
            |fields: Option<BTreeMap<String, Json>>| fields.map(|it| it.into_iter().collect::<Json>());
        return (whole(before), whole(after));
    };
    let (mut old, mut new) = (Map::new(), Map::new());
    for name in before.keys().chain(after.keys()) {
        let (was, is) = (before.get(name), after.get(name));
        if was != is {
            old.insert(name.clone(), was.cloned().unwrap_or_default());
            new.insert(name.clone(), is.cloned().unwrap_or_default());
        }
    }
    if old.is_empty() { (None, None) } else { (Some(Json::Object(old)), Some(Json::Object(new))) }
}

/// Text that fits into a column of either database.
fn text(said: &str) -> String {
    let mut kept: String =
        said.chars().take(DETAIL_MAX).map(|it| if it == '\0' { '\u{fffd}' } else { it }).collect();
    if said.chars().nth(DETAIL_MAX).is_some() {
        kept.push('…');
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value_json::from_text;

    #[track_caller]
    fn check(before: Option<&str>, after: Option<&str>, expected: (&str, &str)) {
        let of = |text: Option<&str>| {
            text.map(|text| {
                let mut fields = BTreeMap::new();
                flatten("", &from_text(text).unwrap(), &mut fields);
                fields
            })
        };
        let (before, after) = difference(of(before), of(after));
        let shown = |it: Option<Json>| it.map_or("none".to_owned(), |it| it.to_string());
        assert_eq!((shown(before).as_str(), shown(after).as_str()), expected);
    }

    #[test]
    fn only_what_changed_is_kept() {
        check(Some(r#"{"every":"6h"}"#), Some(r#"{"every":"6h"}"#), ("none", "none"));
        check(
            Some(r#"{"every":"6h","retry":{"delays":["5m"],"max":3}}"#),
            Some(r#"{"every":"8h","retry":{"delays":["5m"]},"cost":2}"#),
            (r#"{"cost":null,"every":"6h","retry.max":3}"#, r#"{"cost":2,"every":"8h","retry.max":null}"#),
        );
        check(None, Some(r#"{"every":"6h"}"#), ("none", r#"{"every":"6h"}"#));
        check(Some(r#"{"every":"6h"}"#), None, (r#"{"every":"6h"}"#, "none"));
    }

    #[test]
    fn secrets_and_long_values_are_not_kept() {
        check(
            None,
            Some(
                r#"{"env":{"API_TOKEN":"x1","SHOP_KEY":"x2","LANG":"C","DSN":"https://ann:x3@db"},
                    "params":{"list":[{"password":"x4"}]},"command":["crawl","password=x5"]}"#,
            ),
            (
                "none",
                r#"{"command":["crawl","password=**"],"env.API_TOKEN":"***","env.DSN":"https://******@db","env.LANG":"C","env.SHOP_KEY":"***","params.list":[{"password":"***"}]}"#,
            ),
        );
        let long = format!(r#"{{"description":"{}"}}"#, "x".repeat(3_000));
        check(None, Some(&long), ("none", r#"{"description":"(3002 bytes)"}"#));
        assert_eq!(text("a\0b"), "a\u{fffd}b");
        assert_eq!(text(&"ä".repeat(600)).chars().count(), DETAIL_MAX + 1);
    }
}
