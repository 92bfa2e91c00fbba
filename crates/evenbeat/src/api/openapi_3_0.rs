//! The API document in OpenAPI 3.0, for generators that do not know 3.1 yet.

use serde_json::{Map, Value as Json, json};

/// The same document in OpenAPI 3.0.
pub(super) fn downgraded(document: &str) -> String {
    let mut json: Json = serde_json::from_str(document).unwrap_or_default();
    json["openapi"] = json!("3.0.3");
    if let Some(license) = json["info"]["license"].as_object_mut() {
        license.remove("identifier");
    }
    convert(&mut json);
    json.to_string()
}

fn convert(json: &mut Json) {
    match json {
        Json::Array(items) => items.iter_mut().for_each(convert),
        Json::Object(object) => {
            object.values_mut().for_each(convert);
            convert_schema(object);
        }
        _ => {}
    }
}

/// Nothing but a schema has these forms.
fn convert_schema(object: &mut Map<String, Json>) {
    let is_null = |it: &Json| it["type"] == "null" || *it == json!("null");
    if let Some(Json::Array(types)) = object.get_mut("type") {
        let n_all = types.len();
        types.retain(|it| !is_null(it));
        let is_nullable = types.len() < n_all;
        if let [only] = types.as_slice() {
            let only = only.clone();
            object.insert("type".to_owned(), only);
        }
        if is_nullable {
            object.insert("nullable".to_owned(), json!(true));
        }
    }
    if let Some(Json::Array(items)) = object.get_mut("oneOf") {
        let n_all = items.len();
        items.retain(|it| !is_null(it));
        let is_nullable = items.len() < n_all;
        if let [only] = items.as_slice() {
            let only = json!([only]);
            object.remove("oneOf");
            object.insert("allOf".to_owned(), only);
        }
        if is_nullable {
            object.insert("nullable".to_owned(), json!(true));
        }
    }
    if let Some(Json::Array(examples)) = object.get("examples") {
        let first = examples.first().cloned();
        object.remove("examples");
        object.extend(first.map(|it| ("example".to_owned(), it)));
    }
    object.remove("propertyNames");
    // A part of a whole needs no words of its own, and generators look for a plain reference there.
    if let Some(Json::Array(parts)) = object.get_mut("allOf") {
        for part in parts.iter_mut().filter(|it| it["allOf"][0]["$ref"].is_string()) {
            *part = part["allOf"][0].clone();
        }
    }
    // Next to a reference, nothing else counts in 3.0.
    if 1 < object.len()
        && let Some(reference) = object.get("$ref").filter(|it| it.is_string()).cloned()
    {
        object.remove("$ref");
        object.insert("allOf".to_owned(), json!([{"$ref": reference}]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(schema: &Json, expected: &Json) {
        let mut converted = schema.clone();
        convert(&mut converted);
        assert_eq!(converted, *expected);
    }

    #[test]
    fn what_is_new_in_3_1_is_said_in_the_old_way() {
        check(&json!({"type": ["string", "null"]}), &json!({"type": "string", "nullable": true}));
        check(
            &json!({"oneOf": [{"$ref": "#/a"}, {"type": "null"}]}),
            &json!({"allOf": [{"$ref": "#/a"}], "nullable": true}),
        );
        check(
            &json!({"oneOf": [{"type": "string"}, {"type": "integer"}]}),
            &json!({"oneOf": [{"type": "string"}, {"type": "integer"}]}),
        );
        check(&json!({"type": "string", "examples": ["a", "b"]}), &json!({"type": "string", "example": "a"}));
        check(
            &json!({"$ref": "#/a", "description": "b"}),
            &json!({"allOf": [{"$ref": "#/a"}], "description": "b"}),
        );
        check(&json!({"$ref": "#/a"}), &json!({"$ref": "#/a"}));
        check(
            &json!({"allOf": [{"$ref": "#/a", "description": "b"}, {"type": "object"}]}),
            &json!({"allOf": [{"$ref": "#/a"}, {"type": "object"}]}),
        );
        check(
            &json!({"properties": {"type": {"type": "string"}}}),
            &json!({"properties": {"type": {"type": "string"}}}),
        );
    }
}
