//! Many jobs at once.

use std::collections::BTreeMap;

use evenbeat_core::value::{Table, Value};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use utoipa::ToSchema;

use super::words::JobChangeWord;
use super::{JobDefinition, Text};
use crate::value_json::to_json;

/// The jobs that the fleet should have.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ApplyRequest {
    /// The jobs, each with its `name`.
    pub jobs: Vec<JobDefinition>,
    /// Also removes jobs that are not listed.
    #[serde(default)]
    pub prune: bool,
    /// Only reports what would change.
    #[serde(default)]
    pub dry_run: bool,
}

/// What an apply changed, or would change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = ApplyResult)]
pub struct ApplyAnswer {
    /// True if nothing was written.
    pub dry_run: bool,
    /// How many jobs were created, changed, left alone and removed.
    pub counts: ApplyCounts,
    /// Every job that was declared or removed, ordered by key.
    pub changes: Vec<AppliedJob>,
    /// What is doubtful about the definitions.
    pub warnings: Vec<DefinitionDoubt>,
}

/// Jobs by what happened to them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ApplyCounts {
    /// New jobs.
    pub created: usize,
    /// Jobs with a new definition.
    pub changed: usize,
    /// Jobs that stay as they are.
    pub unchanged: usize,
    /// Jobs that were not listed and are gone.
    pub removed: usize,
}

/// What happened to one job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AppliedJob {
    /// The key of the job.
    pub job: String,
    /// What happened to it.
    #[schema(value_type = JobChangeWord)]
    pub change: Text,
    /// The fields that changed. Lists every field of a job that was created or removed.
    pub fields: Vec<FieldChange>,
}

/// A field whose value changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FieldChange {
    /// The path of the field, such as `retry.delays`.
    pub field: String,
    /// The old value; null if the field was not set.
    #[schema(value_type = Value)]
    pub before: Json,
    /// The new value; null if the field is no longer set.
    #[schema(value_type = Value)]
    pub after: Json,
}

/// Something doubtful about a job that was accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Warning)]
pub struct DefinitionDoubt {
    /// The key of the job.
    pub job: String,
    /// The field: a JSON pointer into the body.
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
