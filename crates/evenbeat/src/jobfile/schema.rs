//! The JSON Schema of job files and of single definitions, made from the table of fields.

use evenbeat_core::ids::{KEY_PATTERN, NAME_PATTERN};
use evenbeat_core::spec::{FieldDefault, FieldKind, FieldSpec, JOB_FIELDS};
use serde_json::{Value as Json, json};
use utoipa::openapi::schema::{
    AdditionalProperties, ArrayBuilder, KnownFormat, Object, ObjectBuilder, OneOfBuilder, Schema,
    SchemaFormat, SchemaType, Type,
};
use utoipa::openapi::{Deprecated, Ref, RefOr};

/// `1h30m`, `1h 30 min`, `1.5h`, `PT15M`.
const DURATION_PATTERN: &str = r"^\s*([Pp][0-9A-Za-z.]+|([0-9]+(\.[0-9]+)?\s*[A-Za-zµ]+\s*)+)$";
const TIME_PATTERN: &str = r"^[0-9]{1,2}:[0-9]{2}(:[0-9]{2})?$";
const HOUR_PATTERN: &str = r"^\s*([01]?[0-9]|2[0-3])\s*(-\s*([01]?[0-9]|2[0-3])\s*)?$";
const URL_PATTERN: &str = r"^[Hh][Tt][Tt][Pp][Ss]?://[^\s/?#]+";

/// Where the schemas of inner tables are.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SchemaHome {
    /// Next to the schema of a job file.
    JobFile,
    /// Among the schemas of the API document.
    ApiDocument,
}

/// The schema of a single definition.
pub(crate) fn definition(home: SchemaHome) -> Object {
    let fields = JOB_FIELDS.iter().filter(|it| !it.is_computed());
    let about = "The definition of a job: the fields of a `[[job]]` in a job file. A job has exactly one target \
                 (`command`, `http` or `queue`) and exactly one schedule (`every`, `fresh`, `cron`, `at`, `manual` or \
                 `schedule`).";
    match home {
        SchemaHome::JobFile => table(about, fields, home, Inner::No),
        SchemaHome::ApiDocument => table(about, fields.filter(|it| !it.is_file_only()), home, Inner::No),
    }
}

/// The schemas of the tables inside a definition, by name.
pub(crate) fn inner_tables(home: SchemaHome) -> Vec<(String, Schema)> {
    let mut found = Vec::new();
    for field in &JOB_FIELDS {
        collect(&field.kind, field.meaning, home, &mut found);
    }
    found
}

const SCHEDULE_TABLE: &str = "Schedule";

fn collect(kind: &FieldKind, meaning: &str, home: SchemaHome, found: &mut Vec<(String, Schema)>) {
    match kind {
        FieldKind::Table { name, fields } => {
            found.push((
                (*name).to_owned(),
                Schema::Object(table(&plain(meaning), fields.iter(), home, Inner::Yes)),
            ));
        }
        FieldKind::ScheduleTable => {
            let fields = JOB_FIELDS.iter().filter(|it| it.in_schedule);
            let schedule = table("The schedule of a job.", fields, home, Inner::No);
            found.push((SCHEDULE_TABLE.to_owned(), Schema::Object(schedule)));
        }
        FieldKind::Either(kinds) => {
            for kind in *kinds {
                collect(kind, meaning, home, found);
            }
        }
        FieldKind::List { item, .. } => collect(item, meaning, home, found),
        _ => {}
    }
}

/// The JSON Schema of a job file, for editors.
pub fn file_schema() -> String {
    let home = SchemaHome::JobFile;
    let as_json = |schema: &Schema| serde_json::to_value(schema).unwrap_or_default();
    let job = Schema::Object(definition(home));
    let mut defs = serde_json::Map::new();
    for (name, schema) in inner_tables(home) {
        defs.insert(name, as_json(&schema));
    }
    let mut part = as_json(&job);
    part["description"] = json!("Fields for many jobs at once.");
    defs.insert("Defaults".to_owned(), without(part, &["name", "configuration", "key", "template"]));
    let mut job = as_json(&job);
    job["anyOf"] = json!([{"required": ["name"]}, {"required": ["key"]}]);
    // A rule or a target may come from a template or the defaults, but there is never a second one.
    job["allOf"] = json!([at_most_one(&["command", "http", "queue"])]);
    defs.insert("Job".to_owned(), job);
    let schema = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Evenbeat job file",
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "job": {"type": "array", "items": {"$ref": "#/definitions/Job"}, "description": "One table for each job."},
            "defaults": {"$ref": "#/definitions/Defaults"},
            "template": {
                "type": "object",
                "additionalProperties": {"$ref": "#/definitions/Defaults"},
                "description": "Fields for every job that names the template.",
            },
        },
        "definitions": defs,
    });
    serde_json::to_string_pretty(&schema).unwrap_or_default()
}

fn without(mut schema: Json, names: &[&str]) -> Json {
    if let Some(properties) = schema["properties"].as_object_mut() {
        properties.retain(|name, _| !names.contains(&name.as_str()));
    }
    schema
}

fn at_most_one(names: &[&str]) -> Json {
    let pairs: Vec<Json> = names
        .iter()
        .enumerate()
        .flat_map(|(idx, one)| names.iter().skip(idx + 1).map(move |two| json!({"required": [one, two]})))
        .collect();
    json!({"not": {"anyOf": pairs}})
}

/// Whether a table stands inside a definition. What a definition must have may come from a template.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Inner {
    Yes,
    No,
}

/// The schema of a table with these fields and no others.
fn table<'f>(
    about: &str,
    fields: impl Iterator<Item = &'f FieldSpec>,
    home: SchemaHome,
    inner: Inner,
) -> Object {
    let mut object = ObjectBuilder::new()
        .description(Some(about))
        .additional_properties(Some(AdditionalProperties::<Schema>::FreeForm(false)));
    for field in fields {
        object = object.property(field.name, property(field, &plain(field.meaning), home));
        for alias in field.aliases {
            let mut other = property(field, &format!("Another name of `{}`.", field.name), home);
            if let RefOr::T(Schema::Object(other)) = &mut other {
                other.deprecated = Some(Deprecated::True);
            }
            object = object.property(*alias, other);
        }
        if field.default == FieldDefault::Required && inner == Inner::Yes {
            object = object.required(field.name);
        }
    }
    object.build()
}

fn property(field: &FieldSpec, meaning: &str, home: SchemaHome) -> RefOr<Schema> {
    let mut schema = of_kind(&field.kind, home);
    let (meaning, default) = described(field, meaning, home);
    let example = serde_json::from_str::<Json>(field.example).ok();
    match &mut schema {
        RefOr::Ref(it) => it.description = meaning,
        RefOr::T(Schema::Object(it)) => {
            (it.description, it.default) = (Some(meaning), default);
            it.examples = example.into_iter().collect();
        }
        RefOr::T(Schema::Array(it)) => {
            (it.description, it.default) = (Some(meaning), default);
            it.examples = example.into_iter().collect();
        }
        RefOr::T(Schema::OneOf(it)) => {
            (it.description, it.default) = (Some(meaning), default);
            it.examples = example.into_iter().collect();
        }
        RefOr::T(_) => {}
    }
    schema
}

/// The description and the default. Generated clients would send each default of a schema, so in the API document it is
/// part of the description.
fn described(field: &FieldSpec, meaning: &str, home: SchemaHome) -> (String, Option<Json>) {
    match (field.default, home) {
        (FieldDefault::Value(text), SchemaHome::JobFile) => {
            (meaning.to_owned(), serde_json::from_str(text).ok())
        }
        (FieldDefault::Value(text), SchemaHome::ApiDocument) => {
            (format!("{meaning} Default: `{text}`."), None)
        }
        (FieldDefault::Words(text), _) => (format!("{meaning} Default: {text}."), None),
        (FieldDefault::None | FieldDefault::Required, _) => (meaning.to_owned(), None),
    }
}

fn of_kind(kind: &FieldKind, home: SchemaHome) -> RefOr<Schema> {
    let text = || ObjectBuilder::new().schema_type(Type::String);
    let pattern = |pattern: &str| text().pattern(Some(pattern)).into();
    let reference = |name: &str| match home {
        SchemaHome::JobFile => RefOr::Ref(Ref::new(format!("#/definitions/{name}"))),
        SchemaHome::ApiDocument => RefOr::Ref(Ref::from_schema_name(name)),
    };
    let whole = |min: i64, max: i64| {
        let bound = |it: i64| (it.unsigned_abs() < 1 << 53).then_some(it);
        ObjectBuilder::new().schema_type(Type::Integer).minimum(bound(min)).maximum(bound(max))
    };
    let date_time = || text().format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)));
    match kind {
        FieldKind::Text { bytes_max } => {
            text().max_length(Some(*bytes_max).filter(|it| *it < usize::MAX)).into()
        }
        FieldKind::Truth => ObjectBuilder::new().schema_type(Type::Boolean).into(),
        FieldKind::OnlyTrue => {
            ObjectBuilder::new().schema_type(Type::Boolean).enum_values(Some([true])).into()
        }
        FieldKind::Whole { min, max } => whole(*min, *max).into(),
        FieldKind::Share => {
            ObjectBuilder::new().schema_type(Type::Number).minimum(Some(0)).maximum(Some(1)).into()
        }
        FieldKind::Duration | FieldKind::Interval => pattern(DURATION_PATTERN),
        FieldKind::Instant => date_time().into(),
        // `now`, besides an instant.
        FieldKind::Once | FieldKind::Zone | FieldKind::Cron | FieldKind::Weekday => text().into(),
        FieldKind::InstantOrMillis => one_of([date_time().into(), whole(i64::MIN, i64::MAX).into()]),
        FieldKind::TimeOfDay => pattern(TIME_PATTERN),
        FieldKind::Name => pattern(NAME_PATTERN),
        FieldKind::Key => pattern(KEY_PATTERN),
        FieldKind::Url => pattern(URL_PATTERN),
        FieldKind::Hour => one_of([whole(0, 23).into(), pattern(HOUR_PATTERN)]),
        FieldKind::Words(words) => text().enum_values(Some(words.iter().copied())).into(),
        FieldKind::List { item, min, max } => RefOr::T(
            ArrayBuilder::new()
                .items(of_kind(item, home))
                .min_items(Some(*min).filter(|it| 0 < *it))
                .max_items(Some(*max))
                .into(),
        ),
        FieldKind::Map { value, max } => {
            let values = AdditionalProperties::RefOr(of_kind(value, home));
            let most = Some(*max).filter(|it| *it < usize::MAX);
            ObjectBuilder::new().additional_properties(Some(values)).max_properties(most).into()
        }
        FieldKind::Table { name, .. } => reference(name),
        FieldKind::ScheduleTable => reference(SCHEDULE_TABLE),
        FieldKind::Either(kinds) => one_of(kinds.iter().map(|kind| of_kind(kind, home))),
        FieldKind::AnyTable => ObjectBuilder::new().into(),
        FieldKind::Any => ObjectBuilder::new().schema_type(SchemaType::AnyValue).into(),
    }
}

fn one_of(schemas: impl IntoIterator<Item = RefOr<Schema>>) -> RefOr<Schema> {
    let one_of = schemas.into_iter().fold(OneOfBuilder::new(), OneOfBuilder::item);
    RefOr::T(Schema::OneOf(one_of.build()))
}

/// Markdown without links: `[Retries](#retries)` is `Retries`. As a sentence.
fn plain(markdown: &str) -> String {
    let mut shown = String::new();
    let mut rest = markdown;
    while let Some((before, after)) = rest.split_once('[') {
        let Some((label, target)) = after.split_once("](") else { break };
        let Some((_, tail)) = target.split_once(')') else { break };
        shown.push_str(before);
        shown.push_str(label);
        rest = tail;
    }
    shown.push_str(rest);
    let mut letters = shown.chars();
    let first = letters.next().map(|it| it.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", letters.as_str())
}
