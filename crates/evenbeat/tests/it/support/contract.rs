//! Holds answers against the API document: the status, the code of a problem, and the schema of the body.

use std::sync::OnceLock;

use evenbeat::testing::api::openapi;
use serde_json::Value as Json;

use super::served::Reply;

fn document() -> &'static Json {
    static DOCUMENT: OnceLock<Json> = OnceLock::new();
    DOCUMENT.get_or_init(|| serde_json::from_str(&openapi()).unwrap())
}

/// The operation that a path leads to. A path without variables goes before one with them.
fn operation(method: &str, path: &str) -> Option<&'static Json> {
    let path = path.split(['?', '#']).next().unwrap();
    let paths = document()["paths"].as_object().unwrap();
    let fits = |template: &str| {
        let (parts, given) = (template.split('/'), path.split('/'));
        parts.clone().count() == given.clone().count()
            && parts
                .zip(given)
                .all(|(part, given)| part == given || (part.starts_with('{') && !given.is_empty()))
    };
    let item = paths.get(path).or_else(|| paths.iter().find(|(it, _)| fits(it)).map(|(_, item)| item))?;
    item.get(method.to_lowercase())
}

/// Panics if the document does not have this answer.
#[track_caller]
pub(crate) fn check(method: &str, path: &str, reply: &Reply) {
    // Without this header it comes from below the routes: a head that is no HTTP, or too large.
    if reply.header("x-content-type-options").is_none() || reply.header("content-type").is_none() {
        return;
    }
    let Some(operation) = operation(method, path) else { return };
    let answer = &operation["responses"][reply.status.to_string()];
    let told = || format!("{method} {path}: {} {}", reply.status, String::from_utf8_lossy(&reply.body));
    assert!(!answer.is_null(), "the API document does not have this answer: {}", told());
    let kind = reply.header("content-type").unwrap();
    let content = &answer["content"][kind];
    assert!(!content.is_null(), "the API document does not have `{kind}` here: {}", told());
    if !kind.contains("json") {
        return;
    }
    let body = reply.json();
    if kind == "application/problem+json" {
        let codes = answer["x-evenbeat-codes"].as_array().unwrap();
        assert!(codes.contains(&body["code"]), "list this code in `table.rs` with `refuses`: {}", told());
    }
    let mut faults = Vec::new();
    compare(&content["schema"], &body, "", &mut faults);
    assert!(faults.is_empty(), "{faults:#?}\n{}", told());
}

/// As much of JSON Schema as the document uses.
fn compare(schema: &Json, value: &Json, at: &str, faults: &mut Vec<String>) {
    if let Some(name) = schema["$ref"].as_str() {
        let pointer = name.strip_prefix('#').unwrap();
        return compare(document().pointer(pointer).unwrap(), value, at, faults);
    }
    if let Some(all) = schema["allOf"].as_array() {
        for part in all {
            compare(part, value, at, faults);
        }
        return;
    }
    if let Some(any) = schema["oneOf"].as_array() {
        let n_fit = any
            .iter()
            .filter(|part| {
                let mut faults = Vec::new();
                compare(part, value, at, &mut faults);
                faults.is_empty()
            })
            .count();
        if n_fit != 1 {
            faults.push(format!("{at}: {n_fit} of the alternatives fit {value}"));
        }
        return;
    }
    let types: Vec<&str> = match &schema["type"] {
        Json::String(one) => vec![one],
        Json::Array(several) => several.iter().filter_map(Json::as_str).collect(),
        _ => Vec::new(),
    };
    let is = match value {
        Json::Null => "null",
        Json::Bool(_) => "boolean",
        Json::Number(it) if it.is_i64() || it.is_u64() => "integer",
        Json::Number(_) => "number",
        Json::String(_) => "string",
        Json::Array(_) => "array",
        Json::Object(_) => "object",
    };
    let fits = types.is_empty() || types.contains(&is) || (is == "integer" && types.contains(&"number"));
    if !fits {
        faults.push(format!("{at}: {value} is not {types:?}"));
    }
    if schema["enum"].as_array().is_some_and(|words| !words.contains(value)) {
        faults.push(format!("{at}: {value} is not one of {}", schema["enum"]));
    }
    if let Some(items) = value.as_array().filter(|_| !schema["items"].is_null()) {
        for (idx, item) in items.iter().enumerate() {
            compare(&schema["items"], item, &format!("{at}/{idx}"), faults);
        }
    }
    let Some(object) = value.as_object() else { return };
    for name in schema["required"].as_array().into_iter().flatten() {
        if !object.contains_key(name.as_str().unwrap()) {
            faults.push(format!("{at}: {name} is missing"));
        }
    }
    for (name, value) in object {
        let at = format!("{at}/{name}");
        match (&schema["properties"][name], &schema["additionalProperties"]) {
            (Json::Null, Json::Null | Json::Bool(true)) => {}
            (Json::Null, Json::Bool(false)) => faults.push(format!("{at} is not allowed")),
            (Json::Null, more) => compare(more, value, &at, faults),
            (property, _) => compare(property, value, &at, faults),
        }
    }
}
