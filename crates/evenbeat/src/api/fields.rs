//! From a JSON value to a request, with faults that name the field and say what belongs there.

use std::fmt;

use evenbeat_core::nearest::{nearest, shortened};
use serde::de::value::StringDeserializer;
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Expected, IntoDeserializer, MapAccess, SeqAccess, Unexpected,
    Visitor,
};
use serde_json::Value as Json;

use super::problem::{Code, Problem};
use crate::views::model::FieldError;

/// Reads a request.
pub(super) fn read<T: DeserializeOwned>(value: Json) -> Result<T, Problem> {
    if !value.is_object() {
        let detail = format!("the body must be a JSON object, not {}", kind_of(&value));
        return Err(Problem::new(Code::InvalidBody, detail));
    }
    T::deserialize(JsonNode(value)).map_err(|FieldFault { pointer, detail }| {
        let field = pointer.trim_start_matches('/');
        let told = if detail.contains(field) { detail.clone() } else { format!("`{field}`: {detail}") };
        Problem::new(Code::InvalidBody, told).with(vec![FieldError { pointer, detail }])
    })
}

/// What kind of value it is, for people.
pub(super) fn kind_of(value: &Json) -> &'static str {
    match value {
        Json::Null => "null",
        Json::Bool(_) => "a truth value",
        Json::Number(_) => "a number",
        Json::String(_) => "a string",
        Json::Array(_) => "a list",
        Json::Object(_) => "an object",
    }
}

/// What is wrong, and where below the value that is being read.
#[derive(Debug, PartialEq, Eq)]
struct FieldFault {
    pointer: String,
    detail: String,
}

impl FieldFault {
    fn here(detail: String) -> FieldFault {
        FieldFault { pointer: String::new(), detail }
    }

    fn at(name: &str, detail: String) -> FieldFault {
        FieldFault::here(detail).under(name)
    }

    fn under(self, step: &str) -> FieldFault {
        let step = step.replace('~', "~0").replace('/', "~1");
        FieldFault { pointer: format!("/{step}{}", self.pointer), ..self }
    }
}

impl fmt::Display for FieldFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}

impl std::error::Error for FieldFault {}

impl de::Error for FieldFault {
    fn custom<T: fmt::Display>(message: T) -> FieldFault {
        FieldFault::here(message.to_string())
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> FieldFault {
        FieldFault::here(format!("expected {}, found {}", plain(&expected.to_string()), shown(found)))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> FieldFault {
        FieldFault::invalid_type(found, expected)
    }

    fn unknown_field(field: &str, known: &'static [&'static str]) -> FieldFault {
        let hint = match nearest(field, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None if known.is_empty() => "it has none".to_owned(),
            None => format!("there are `{}`", known.join("`, `")),
        };
        let field = shortened(field);
        FieldFault::at(&field, format!("there is no field `{field}` ({hint})"))
    }

    fn missing_field(field: &'static str) -> FieldFault {
        FieldFault::at(field, format!("`{field}` is missing"))
    }
}

/// What `serde` calls things, as people do.
fn plain(expected: &str) -> &str {
    match expected {
        "a sequence" => "a list",
        "a map" => "an object",
        "a boolean" => "`true` or `false`",
        _ if expected.starts_with("struct ") => "an object",
        _ => expected,
    }
}

fn shown(found: Unexpected<'_>) -> String {
    match found {
        Unexpected::Bool(it) => format!("`{it}`"),
        Unexpected::Unsigned(it) => format!("the number {it}"),
        Unexpected::Signed(it) => format!("the number {it}"),
        Unexpected::Float(it) => format!("the number {it}"),
        Unexpected::Str(it) => format!("the string `{}`", shortened(it)),
        Unexpected::Unit | Unexpected::Option => "null".to_owned(),
        Unexpected::Seq => "a list".to_owned(),
        Unexpected::Map => "an object".to_owned(),
        other => other.to_string(),
    }
}

/// A value, as what is read from.
struct JsonNode(Json);

impl<'de> de::Deserializer<'de> for JsonNode {
    type Error = FieldFault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldFault> {
        match self.0 {
            Json::Null => visitor.visit_unit(),
            Json::Bool(it) => visitor.visit_bool(it),
            Json::Number(it) => match (it.as_u64(), it.as_i64()) {
                (Some(it), _) => visitor.visit_u64(it),
                (None, Some(it)) => visitor.visit_i64(it),
                (None, None) => visitor.visit_f64(it.as_f64().unwrap_or_default()),
            },
            Json::String(it) => visitor.visit_string(it),
            Json::Array(items) => {
                visitor.visit_seq(ItemsDeserializer { items: items.into_iter().enumerate() })
            }
            Json::Object(fields) => {
                visitor.visit_map(FieldsDeserializer { fields: fields.into_iter(), value: None })
            }
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, FieldFault> {
        if self.0.is_null() {
            return Err(FieldFault::here("null is not a value; leave the field out".to_owned()));
        }
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, FieldFault> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, FieldFault> {
        match self.0 {
            Json::String(word) => visitor.visit_enum(IntoDeserializer::<FieldFault>::into_deserializer(word)),
            other => Err(FieldFault::here(format!("expected a string, found {}", kind_of(&other)))),
        }
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier ignored_any
    }
}

struct ItemsDeserializer {
    items: std::iter::Enumerate<std::vec::IntoIter<Json>>,
}

impl<'de> SeqAccess<'de> for ItemsDeserializer {
    type Error = FieldFault;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, FieldFault> {
        let Some((idx, item)) = self.items.next() else { return Ok(None) };
        seed.deserialize(JsonNode(item)).map(Some).map_err(|fault| fault.under(&idx.to_string()))
    }
}

struct FieldsDeserializer {
    fields: serde_json::map::IntoIter,
    value: Option<(String, Json)>,
}

impl<'de> MapAccess<'de> for FieldsDeserializer {
    type Error = FieldFault;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, FieldFault> {
        let Some((name, value)) = self.fields.next() else { return Ok(None) };
        self.value = Some((name.clone(), value));
        seed.deserialize(StringDeserializer::<FieldFault>::new(name)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, FieldFault> {
        let (name, value) = self.value.take().unwrap_or_default();
        seed.deserialize(JsonNode(value)).map_err(|fault| fault.under(&name))
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only its shape matters")]
    struct Sample {
        draining: bool,
        #[serde(default)]
        reason: Option<String>,
        #[serde(default)]
        items: Vec<Inner>,
        #[serde(default)]
        params: Option<serde_json::Map<String, Json>>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(transparent)]
    #[expect(dead_code, reason = "only its shape matters")]
    struct Inner(serde_json::Map<String, Json>);

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let told = match read::<Sample>(serde_json::from_str(text).unwrap()) {
            Ok(_) => "ok".to_owned(),
            Err(problem) => {
                let body = problem.body();
                let pointers: Vec<&str> = body.errors.iter().map(|it| it.pointer.as_str()).collect();
                format!("{}: {}", pointers.join(" "), body.detail)
            }
        };
        assert_eq!(told, expected, "{text}");
    }

    #[test]
    fn faults_name_the_field_and_say_what_belongs_there() {
        check(r#"{"draining":true,"reason":"x","items":[{"a":[1]}],"params":{"b":{}}}"#, "ok");
        check(
            r#"{"draining":true,"reason":null}"#,
            "/reason: `reason`: null is not a value; leave the field out",
        );
        check("[]", ": the body must be a JSON object, not a list");
        check("7", ": the body must be a JSON object, not a number");
        check("{}", "/draining: `draining` is missing");
        check(
            r#"{"draining":"yes"}"#,
            "/draining: `draining`: expected `true` or `false`, found the string `yes`",
        );
        check(r#"{"draining":true,"reason":7}"#, "/reason: `reason`: expected a string, found the number 7");
        check(r#"{"draining":true,"items":{}}"#, "/items: `items`: expected a list, found an object");
        check(
            r#"{"draining":true,"items":[{},[]]}"#,
            "/items/1: `items/1`: expected an object, found a list",
        );
        check(
            r#"{"draining":true,"params":"x"}"#,
            "/params: `params`: expected an object, found the string `x`",
        );
        check(
            r#"{"draining":true,"reeson":"x"}"#,
            "/reeson: there is no field `reeson` (did you mean `reason`?)",
        );
        check(
            r#"{"draining":true,"zzz":"x"}"#,
            "/zzz: there is no field `zzz` (there are `draining`, `reason`, `items`, `params`)",
        );
    }
}
