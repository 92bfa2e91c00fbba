//! The table of fields says what reading does.

use super::validate;
use crate::schedule::Preset;
use crate::spec::sample::table;
use crate::spec::{
    FieldDefault, FieldKind, FieldSpec, JOB_FIELDS, JobSpec, RETRY_FIELDS, SpecError, written,
};
use crate::value::{Path, Step, Table, Value};

/// The smallest job in which a field can stand.
fn job_for(field: &FieldSpec) -> Table {
    let is_rule = ["every", "fresh", "cron", "at", "manual", "schedule", "interval", "interval_minutes"];
    let rule = match field.name {
        name if is_rule.contains(&name) => "",
        "interval_type" => ", interval_minutes: 5",
        "cooldown" => ", fresh: '1d'",
        _ => ", every: '1h'",
    };
    let target = if ["command", "http", "queue"].contains(&field.name) { "" } else { ", command: ['x']" };
    let name = if ["name", "key"].contains(&field.name) { "" } else { "name: 'x'" };
    let more = if field.name == "max_parallel" { ", overlap: 'allow'" } else { "" };
    table(format!("{name}{target}{rule}{more}").trim_start_matches(", "))
}

/// What is wrong with a value of a field, and nothing else.
fn errors(field: &FieldSpec, name: &str, value: Value) -> Vec<SpecError> {
    let mut job = job_for(field);
    job.insert(name.to_owned(), value);
    let faults = validate(&JobSpec::read(&job)).err().unwrap_or_default();
    let is_here = |path: &Path| path.steps().first() == Some(&Step::Key(name.to_owned()));
    faults.into_iter().filter(|it| is_here(&it.place.path)).map(|it| it.error).collect()
}

/// JSON in the notation of these tests.
fn value(json: &str) -> Value {
    let text = json.replace('"', "'").replace("': ", ": ").replace("{'", "{");
    table(&format!("it: {text}")).remove("it").unwrap()
}

#[test]
fn every_name_and_alias_is_read() {
    for field in &JOB_FIELDS {
        for name in [&field.name].into_iter().chain(field.aliases) {
            let unknown = errors(field, name, Value::List(vec![Value::Bool(true)]))
                .iter()
                .any(|it| matches!(it, SpecError::UnknownField { .. }));
            assert_eq!(unknown, field.is_file_only(), "{name}");
        }
    }
}

#[test]
fn every_example_is_accepted() {
    for field in JOB_FIELDS.iter().filter(|it| !it.example.is_empty()) {
        let errors = errors(field, field.name, value(field.example));
        assert!(errors.is_empty(), "{}: {errors:?}", field.name);
    }
}

#[test]
fn what_is_written_as_the_default_says_says_nothing() {
    for field in JOB_FIELDS.iter().filter(|it| it.is_canonical()) {
        let FieldDefault::Value(text) = field.default else { continue };
        let mut job = job_for(field);
        job.insert(field.name.to_owned(), value(text));
        let read = validate(&JobSpec::read(&job)).unwrap_or_else(|it| panic!("{}: {it:?}", field.name));
        assert!(!written(&read.job).contains_key(field.name), "{}", field.name);
    }
    let retry: Vec<String> = RETRY_FIELDS
        .iter()
        .filter_map(|it| match it.default {
            FieldDefault::Value(text) => Some(format!("{}: {}", it.name, text.replace('"', "'"))),
            _ => None,
        })
        .collect();
    let job = table(&format!("name: 'x', command: ['x'], every: '1h', retry: {{{}}}", retry.join(", ")));
    let read = validate(&JobSpec::read(&job)).unwrap();
    assert!(!written(&read.job).contains_key("retry"), "{retry:?}");
}

/// What an error about a value of this kind says is allowed there.
#[test]
fn values_are_those_of_the_kind() {
    for field in JOB_FIELDS.iter().filter(|it| !it.is_computed() && !it.is_file_only()) {
        let found = |value: Value| errors(field, field.name, value);
        match field.kind {
            FieldKind::Words(words) => {
                let errors = found("no such word".into());
                let choices = errors.iter().find_map(|it| match it {
                    SpecError::UnknownWord { choices, .. } => Some(choices.clone()),
                    _ => None,
                });
                assert_eq!(choices.as_deref(), Some(words), "{}: {errors:?}", field.name);
            }
            FieldKind::Whole { min, max } => {
                let out = |errors: Vec<SpecError>| {
                    errors.iter().any(|it| matches!(it, SpecError::OutOfRange { .. }))
                };
                assert!(!out(found(Value::Int(min))), "{}", field.name);
                assert!(out(found(Value::Int(min - 1))), "{}", field.name);
                // Of a number of days the most are fewer than of minutes.
                if field.name != "interval_minutes" {
                    assert!(!out(found(Value::Int(max))), "{}", field.name);
                    assert!(max == i64::MAX || out(found(Value::Int(max + 1))), "{}", field.name);
                }
            }
            FieldKind::Truth | FieldKind::OnlyTrue => {
                expects(field, &found("x".into()), "`true` or `false`");
                let is_refused = !found(Value::Bool(false)).is_empty();
                assert_eq!(is_refused, matches!(field.kind, FieldKind::OnlyTrue), "{}", field.name);
            }
            FieldKind::Duration | FieldKind::Interval => {
                expects(field, &found(Value::Int(5)), "a duration");
                let is_refused = !found("250ms".into()).is_empty();
                assert_eq!(is_refused, matches!(field.kind, FieldKind::Interval), "{}", field.name);
            }
            FieldKind::Instant | FieldKind::Once => expects(field, &found(Value::Int(5)), "an instant"),
            FieldKind::InstantOrMillis => {
                expects(field, &found(Value::Bool(true)), "an instant, or milliseconds since 1970");
            }
            FieldKind::Table { .. } | FieldKind::Map { .. } | FieldKind::AnyTable => {
                expects(field, &found("x".into()), "a table");
            }
            FieldKind::List { max, .. } => {
                let errors = found(Value::List(vec![Value::Bool(true); max + 1]));
                let n_most = errors.iter().find_map(|it| match it {
                    SpecError::TooMany { n_most, .. } => Some(*n_most),
                    _ => None,
                });
                assert_eq!(n_most, Some(max), "{}", field.name);
            }
            FieldKind::Text { bytes_max } if bytes_max < usize::MAX => {
                assert!(found("x".repeat(bytes_max).as_str().into()).is_empty(), "{}", field.name);
                assert!(!found("x".repeat(bytes_max + 1).as_str().into()).is_empty(), "{}", field.name);
            }
            FieldKind::Text { .. } | FieldKind::Name | FieldKind::Key | FieldKind::Zone | FieldKind::Cron => {
                expects(field, &found(Value::Int(5)), "a string");
            }
            // Several forms: their own tests know them.
            FieldKind::Either(_) => {}
            other => panic!("{}: no check for {other:?}", field.name),
        }
    }
    let FieldKind::Either([FieldKind::Words(presets), _]) =
        JOB_FIELDS.iter().find(|it| it.name == "schedule").unwrap().kind
    else {
        panic!("`schedule` is a preset or a table")
    };
    assert!(Preset::names().eq(presets.iter().copied()));
}

#[track_caller]
fn expects(field: &FieldSpec, errors: &[SpecError], kind: &str) {
    let said = errors.iter().find_map(|it| match it {
        SpecError::WrongKind { expected, .. } => Some(*expected),
        _ => None,
    });
    assert_eq!(said, Some(kind), "{}: {errors:?}", field.name);
}
