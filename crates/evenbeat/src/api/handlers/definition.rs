//! From a definition in a body to a valid job: the same validation as for job files.

use evenbeat_core::ids::JobKey;
use evenbeat_core::job::Job;
use evenbeat_core::spec::JobSpec;
use evenbeat_core::time::Timestamp;
use evenbeat_core::value::{Table, Value};
use evenbeat_core::zone::Zones;

use crate::api::problem::{Code, Problem, field_errors, pointer};
use crate::value_json::from_json;
pub(super) use crate::views::definition::doubts_around;
use crate::views::model::{DefinitionDoubt, FieldError, JobDefinition};

/// A valid job, and what is doubtful about it.
#[derive(Debug)]
pub(super) struct ReadDefinition {
    pub(super) job: Job,
    pub(super) warnings: Vec<DefinitionDoubt>,
}

/// Reads a definition that stands at `base` of a body.
pub(super) fn read(
    definition: JobDefinition,
    base: &str,
    now: Timestamp,
    zones: &mut Zones,
) -> Result<ReadDefinition, Vec<FieldError>> {
    read_table(&table(definition), base, now, zones)
}

/// Reads the definition of the job that an address names. It may name the job as well, and must not name another.
pub(super) fn read_named(
    definition: JobDefinition,
    key: &JobKey,
    now: Timestamp,
    zones: &mut Zones,
) -> Result<ReadDefinition, Problem> {
    let mut table = table(definition);
    let names_itself = ["name", "key", "configuration"].iter().any(|field| table.contains_key(*field));
    if !names_itself {
        table.insert("key".to_owned(), Value::Text(key.to_string()));
    }
    let read = read_table(&table, "", now, zones).and_then(|read| {
        if read.job.key == *key {
            return Ok(read);
        }
        let detail = format!(
            "the address names the job `{key}`, and the definition `{}`; leave the name out, or make them one",
            read.job.key
        );
        Err(vec![FieldError { pointer: "/name".to_owned(), detail }])
    });
    read.map_err(invalid)
}

/// The problem that these faults are.
pub(super) fn invalid(errors: Vec<FieldError>) -> Problem {
    let detail = match errors.as_slice() {
        [only] => only.detail.clone(),
        [first, rest @ ..] => format!("{} (and {} more)", first.detail, rest.len()),
        [] => "the definition is not valid".to_owned(),
    };
    Problem::new(Code::InvalidJob, detail).with(errors)
}

fn table(JobDefinition(object): JobDefinition) -> Table {
    object.into_iter().map(|(name, value)| (name, from_json(value))).collect()
}

fn read_table(
    table: &Table,
    base: &str,
    now: Timestamp,
    zones: &mut Zones,
) -> Result<ReadDefinition, Vec<FieldError>> {
    let validated =
        JobSpec::read(table).validate(now, zones).map_err(|faults| field_errors(base, &faults))?;
    let doubt = |it: &evenbeat_core::spec::Warning| DefinitionDoubt {
        job: validated.job.key.to_string(),
        pointer: pointer(base, &it.place),
        detail: it.warning.to_string(),
    };
    let warnings = validated.warnings.iter().map(doubt).collect();
    Ok(ReadDefinition { job: validated.job, warnings })
}
