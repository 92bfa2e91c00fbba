//! Many jobs at once.

use std::collections::BTreeMap;

use evenbeat_core::value::{Table, Value};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::{JobDefinition, Text};
use crate::value_json::to_json;

/// What the fleet is to be.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApplyRequest {
    /// The jobs, each with its `name`.
    pub jobs: Vec<JobDefinition>,
    /// Whether jobs that are not among them are removed.
    #[serde(default)]
    pub prune: bool,
    /// Whether only to tell what would change.
    #[serde(default)]
    pub dry_run: bool,
}

/// What became, or would become, of the fleet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ApplyAnswer {
    /// Whether nothing was written.
    pub dry_run: bool,
    /// How many of each.
    pub counts: ApplyCounts,
    /// Every job that was declared or removed, by key.
    pub changes: Vec<AppliedJob>,
    /// What is doubtful about the definitions.
    pub warnings: Vec<DefinitionDoubt>,
}

/// How many jobs each thing happened to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApplyCounts {
    /// They were not there.
    pub created: usize,
    /// They have another definition.
    pub changed: usize,
    /// They are as they were.
    pub unchanged: usize,
    /// They were not declared, and are gone.
    pub removed: usize,
}

/// One job, and what became of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AppliedJob {
    /// Its key.
    pub job: String,
    /// `created`, `changed`, `unchanged` or `removed`.
    pub change: Text,
    /// What changed, field by field; all of its fields for a job that came or went.
    pub fields: Vec<FieldChange>,
}

/// A field that has another value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FieldChange {
    /// Which: `retry.delays`.
    pub field: String,
    /// As it was; null if it was not said.
    pub before: Json,
    /// The new value; null if the field is no longer set.
    pub after: Json,
}

/// Something that a job is accepted with, and that its owner should know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DefinitionDoubt {
    /// Of which job.
    pub job: String,
    /// Which field: a JSON pointer into the body.
    pub pointer: String,
    /// What is doubtful.
    pub detail: String,
}

/// What two definitions say differently, by name. Tables are compared field by field, anything else whole.
pub fn field_changes(before: &Table, after: &Table) -> Vec<FieldChange> {
    let (before, after) = (flat(before), flat(after));
    let mut fields: Vec<&String> = before.keys().chain(after.keys()).collect();
    fields.sort_unstable();
    fields.dedup();
    fields
        .into_iter()
        .filter(|field| before.get(*field) != after.get(*field))
        .map(|field| FieldChange {
            field: field.clone(),
            before: before.get(field).map_or(Json::Null, |it| to_json(it)),
            after: after.get(field).map_or(Json::Null, |it| to_json(it)),
        })
        .collect()
}

fn flat(table: &Table) -> BTreeMap<String, &Value> {
    let mut flattened = BTreeMap::new();
    flatten_into("", table, &mut flattened);
    flattened
}

fn flatten_into<'a>(prefix: &str, table: &'a Table, into: &mut BTreeMap<String, &'a Value>) {
    for (name, value) in table {
        let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        match value {
            Value::Table(below) if !below.is_empty() => flatten_into(&path, below, into),
            value => {
                into.insert(path, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value_json::from_text;

    #[track_caller]
    fn check(before: &str, after: &str, expected: &[&str]) {
        let changes = field_changes(&from_text(before).unwrap(), &from_text(after).unwrap());
        let shown: Vec<String> =
            changes.iter().map(|it| format!("{}: {} -> {}", it.field, it.before, it.after)).collect();
        assert_eq!(shown, expected);
    }

    #[test]
    fn definitions_are_compared_field_by_field() {
        check(r#"{"every":"6h","cost":2}"#, r#"{"every":"6h","cost":2}"#, &[]);
        check(
            r#"{"every":"6h"}"#,
            r#"{"fresh":"6h"}"#,
            &[r#"every: "6h" -> null"#, r#"fresh: null -> "6h""#],
        );
        check(
            r#"{"retry":{"scale":true,"delays":["5m"]}}"#,
            r#"{"retry":{"scale":true,"delays":["5m","1h"]}}"#,
            &[r#"retry.delays: ["5m"] -> ["5m","1h"]"#],
        );
        check(r#"{"retry":{"scale":true}}"#, "{}", &["retry.scale: true -> null"]);
        check(
            r#"{"command":["a"]}"#,
            r#"{"command":{"argv":["a"],"cwd":"/tmp"}}"#,
            &[
                r#"command: ["a"] -> null"#,
                r#"command.argv: null -> ["a"]"#,
                r#"command.cwd: null -> "/tmp""#,
            ],
        );
    }
}
