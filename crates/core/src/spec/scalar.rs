//! Single values: each of one kind, or an error that says what was expected and found.
//!
//! The name of the field is spelled out only for an error: a million jobs are read at start, and it would
//! take longer than all the rest.

use std::fmt::Display;
use std::str::FromStr;

use super::SpecError;
use super::field::FieldKind;
use super::fields::limits_of;
use crate::nearest::{nearest, shortened};
use crate::time::{Duration, Timestamp};
use crate::value::Value;

pub(super) fn text<'a>(field: &dyn Display, value: &'a Value) -> Result<&'a str, SpecError> {
    value.as_text().ok_or_else(|| wrong_kind(field, "a string", value))
}

pub(super) fn truth(field: &dyn Display, value: &Value) -> Result<bool, SpecError> {
    match value {
        Value::Bool(truth) => Ok(*truth),
        _ => Err(wrong_kind(field, "`true` or `false`", value)),
    }
}

/// A whole number between two limits, both included.
pub(super) fn whole(field: &dyn Display, value: &Value, min: i64, max: i64) -> Result<i64, SpecError> {
    let Value::Int(number) = value else { return Err(wrong_kind(field, "a whole number", value)) };
    if min <= *number && *number <= max {
        return Ok(*number);
    }
    // A limit that is far away would only be noise.
    let limits = if max == i64::MAX || (*number < min && 10_000 < max) {
        format!("at least {min}")
    } else {
        format!("from {min} to {max}")
    };
    Err(SpecError::OutOfRange { field: field.to_string(), found: number.to_string(), limits })
}

/// A number that counts something.
pub(super) fn count(field: &dyn Display, value: &Value, kind: &FieldKind) -> Result<u32, SpecError> {
    let (min, max) = limits_of(kind);
    let number = whole(field, value, min, max)?;
    Ok(u32::try_from(number).unwrap_or(u32::MAX))
}

/// A part of one: 0 to 1.
pub(super) fn share(field: &dyn Display, value: &Value) -> Result<f64, SpecError> {
    let number = match value {
        Value::Float(number) => *number,
        Value::Int(0) => 0.0,
        Value::Int(1) => 1.0,
        Value::Int(number) => return Err(out_of_share(field, &number.to_string())),
        _ => return Err(wrong_kind(field, "a number from 0 to 1", value)),
    };
    // Written so that what is not a number is refused too.
    if (0.0..=1.0).contains(&number) { Ok(number) } else { Err(out_of_share(field, &number.to_string())) }
}

fn out_of_share(field: &dyn Display, found: &str) -> SpecError {
    SpecError::OutOfRange {
        field: field.to_string(),
        found: found.to_owned(),
        limits: "from 0 to 1 (0.1 is a tenth)".to_owned(),
    }
}

pub(super) fn duration(field: &dyn Display, value: &Value) -> Result<Duration, SpecError> {
    match value {
        Value::Text(text) => Ok(text.parse()?),
        _ => Err(wrong_kind(field, "a duration", value)),
    }
}

pub(super) fn instant(field: &dyn Display, value: &Value) -> Result<Timestamp, SpecError> {
    match value {
        Value::Text(text) => Ok(text.parse()?),
        _ => Err(wrong_kind(field, "an instant", value)),
    }
}

/// An instant as other tools write it: in milliseconds since 1970.
pub(super) fn instant_or_millis(field: &dyn Display, value: &Value) -> Result<Timestamp, SpecError> {
    match value {
        Value::Int(millis) => {
            let range = Timestamp::MIN.as_millis()..=Timestamp::MAX.as_millis();
            if range.contains(millis) {
                return Ok(Timestamp::from_millis(*millis));
            }
            Err(SpecError::OutOfRange {
                field: field.to_string(),
                found: millis.to_string(),
                limits: "milliseconds since 1970, within the years 1 to 9999".to_owned(),
            })
        }
        Value::Text(text) => Ok(text.parse()?),
        _ => Err(wrong_kind(field, "an instant, or milliseconds since 1970", value)),
    }
}

/// A text that is a name of some kind.
pub(super) fn parsed<T>(field: &dyn Display, value: &Value) -> Result<T, SpecError>
where
    T: FromStr,
    SpecError: From<T::Err>,
{
    Ok(text(field, value)?.parse()?)
}

/// One of a few words, and what it stands for.
pub(super) fn word<T: Clone>(
    field: &dyn Display,
    value: &Value,
    words: &[(&'static str, T)],
) -> Result<T, SpecError> {
    let written = text(field, value)?;
    match words.iter().find(|(word, _)| *word == written) {
        Some((_, meaning)) => Ok(meaning.clone()),
        None => Err(unknown_word(field, written, words.iter().map(|(word, _)| *word).collect())),
    }
}

pub(super) fn unknown_word(field: &dyn Display, text: &str, choices: Vec<&'static str>) -> SpecError {
    SpecError::UnknownWord {
        field: field.to_string(),
        text: shortened(text),
        nearest: nearest(text, choices.iter().copied()),
        choices,
    }
}

pub(super) fn wrong_kind(field: &dyn Display, expected: &'static str, value: &Value) -> SpecError {
    let found = match value {
        Value::Int(number) => format!("the number `{number}`"),
        Value::Float(number) => format!("the number `{number}`"),
        Value::Bool(truth) => format!("`{truth}`"),
        Value::Text(text) => format!("the string `{}`", shortened(text)),
        other => other.kind().to_owned(),
    };
    let way_out = way_out(field, expected, value);
    SpecError::WrongKind { field: field.to_string(), expected, found, way_out }
}

/// What was most likely meant, in the form that is accepted.
fn way_out(field: &dyn Display, expected: &str, value: &Value) -> Option<String> {
    match (expected, value) {
        ("a duration", Value::Int(number)) if *number < 1 => Some("write it as `\"15m\"`".to_owned()),
        ("a duration", Value::Int(number)) => {
            Some(format!("write `\"{number}s\"`, `\"{number}m\"` or `\"{number}h\"`"))
        }
        ("a duration", Value::Float(number)) => Some(format!("write it with a unit: `\"{number}h\"`")),
        ("an instant", _) => Some("write it as `\"2026-12-01T09:00:00Z\"`".to_owned()),
        ("a whole number", Value::Text(text)) if text.trim().parse::<i64>().is_ok() => {
            Some(format!("write `{}` without quotes", text.trim()))
        }
        ("`true` or `false`", Value::Text(text)) if ["true", "false"].contains(&text.as_str()) => {
            Some(format!("write `{text}` without quotes"))
        }
        ("`true` or `false`", Value::Text(text)) if ["yes", "on"].contains(&text.as_str()) => {
            Some("write `true`".to_owned())
        }
        ("`true` or `false`", Value::Text(text)) if ["no", "off"].contains(&text.as_str()) => {
            Some("write `false`".to_owned())
        }
        ("a list" | "a list of strings", Value::Text(text)) if text.len() <= 60 => {
            Some(format!("write `[{text:?}]`"))
        }
        ("a list", Value::Int(number)) => Some(format!("write `[{number}]`")),
        ("a string", Value::Int(number)) => Some(format!("write `\"{number}\"`")),
        ("a list of tables", Value::Table(_)) => Some(format!("write `[[job.{field}]]`, or `[{{ … }}]`")),
        _ => None,
    }
}
