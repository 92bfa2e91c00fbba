//! Neutral values as JSON text and back, without loss.

use std::fmt;

use evenbeat_core::value::{Table, Value};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value as Json};

/// A table as one line of JSON. The same table always gives the same text.
pub fn to_text(table: &Table) -> String {
    Json::Object(object(table)).to_string()
}

/// Parses a JSON object. `None` if the text is anything else.
pub fn from_text(text: &str) -> Option<Table> {
    match serde_json::from_str(text).ok()? {
        AnyValue(Value::Table(table)) => Some(table),
        AnyValue(_) => None,
    }
}

/// A value that is parsed without a JSON value in between, because every start of a run parses a definition.
struct AnyValue(Value);

impl<'de> Deserialize<'de> for AnyValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<AnyValue, D::Error> {
        deserializer.deserialize_any(ValueVisitor).map(AnyValue)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, it: bool) -> Result<Value, E> {
        Ok(Value::Bool(it))
    }

    fn visit_i64<E>(self, it: i64) -> Result<Value, E> {
        Ok(Value::Int(it))
    }

    #[expect(clippy::cast_precision_loss, reason = "numbers beyond 64 bits lose digits too")]
    fn visit_u64<E>(self, it: u64) -> Result<Value, E> {
        Ok(i64::try_from(it).map_or(Value::Float(it as f64), Value::Int))
    }

    fn visit_f64<E>(self, it: f64) -> Result<Value, E> {
        Ok(Value::Float(it))
    }

    fn visit_str<E>(self, it: &str) -> Result<Value, E> {
        Ok(Value::Text(it.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(AnyValue(it)) = seq.next_element()? {
            list.push(it);
        }
        Ok(Value::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut table = Table::new();
        while let Some((name, AnyValue(it))) = map.next_entry()? {
            table.insert(name, it);
        }
        Ok(Value::Table(table))
    }
}

/// A value as JSON.
pub fn to_json(value: &Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Bool(it) => Json::Bool(*it),
        Value::Int(it) => Json::Number((*it).into()),
        // JSON has no infinity and no NaN, and no source of values accepts them.
        Value::Float(it) => Number::from_f64(*it).map_or(Json::Null, Json::Number),
        Value::Text(it) => Json::String(it.clone()),
        Value::List(them) => Json::Array(them.iter().map(to_json).collect()),
        Value::Table(table) => Json::Object(object(table)),
    }
}

fn object(table: &Table) -> Map<String, Json> {
    table.iter().map(|(name, value)| (name.clone(), to_json(value))).collect()
}

/// A JSON value as a neutral value.
pub fn from_json(json: Json) -> Value {
    match json {
        Json::Null => Value::Null,
        Json::Bool(it) => Value::Bool(it),
        Json::Number(it) => match it.as_i64() {
            Some(whole) => Value::Int(whole),
            None => Value::Float(it.as_f64().unwrap_or(f64::MAX)),
        },
        Json::String(it) => Value::Text(it),
        Json::Array(them) => Value::List(them.into_iter().map(from_json).collect()),
        Json::Object(object) => Value::Table(table(object)),
    }
}

fn table(object: Map<String, Json>) -> Table {
    object.into_iter().map(|(name, value)| (name, from_json(value))).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            any::<i64>().prop_map(Value::Int),
            any::<f64>().prop_filter("JSON has no others", |it| it.is_finite()).prop_map(Value::Float),
            ".{0,8}".prop_map(Value::Text),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::List),
                prop::collection::btree_map(".{0,4}", inner, 0..4).prop_map(Value::Table),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(table in prop::collection::btree_map(".{0,4}", values(), 0..5)) {
            prop_assert_eq!(from_text(&to_text(&table)), Some(table));
        }
    }

    #[test]
    fn a_text_is_read_as_the_json_that_it_is() {
        let large = u64::MAX;
        let text = format!(r#"{{"a":[1,-2,{large},1e3,0.1,true,null],"b":{{"c":"d\u00e9"}},"a2":"","b":1}}"#);
        let through_json = match serde_json::from_str(&text).unwrap() {
            Json::Object(object) => table(object),
            _ => unreachable!("it is an object"),
        };
        assert_eq!(from_text(&text), Some(through_json));
    }

    #[test]
    fn only_an_object_is_a_table() {
        assert_eq!(from_text("[]"), None);
        assert_eq!(from_text("{"), None);
        assert_eq!(from_text("{}"), Some(Table::new()));
    }
}
