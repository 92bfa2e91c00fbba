//! JSON bodies, read within limits: how deep, how many values, and no key twice in one object.
//!
//! A tree takes far more memory than its text, so the limits hold while it is read, not afterwards. A long list of
//! large items is handed over item by item and never kept as a whole.

use std::cell::{Cell, RefCell};
use std::fmt;

use evenbeat_core::nearest::shortened;
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value as Json};

use super::problem::{Code, Problem};
use crate::views::model::FieldError;

/// How deep lists and objects may be nested.
const DEPTH_MAX: usize = 32;

/// How many values a body may have; of a list that is handed over, each item.
const VALUES_MAX: usize = 10_000;

/// Reads a whole body.
pub(super) fn read(bytes: &[u8]) -> Result<Json, Problem> {
    read_with(bytes, None)
}

/// Reads an object whose list of this name is handed over item by item, with its place in the list. Ends early, with
/// an error, if `each` says so.
pub(super) fn read_each(
    bytes: &[u8],
    name: &'static str,
    each: &mut dyn FnMut(usize, Json) -> Result<(), Stopping>,
) -> Result<Json, Problem> {
    read_with(bytes, Some((name, RefCell::new(each))))
}

/// Nothing more is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stopping;

type Each<'e> = RefCell<&'e mut dyn FnMut(usize, Json) -> Result<(), Stopping>>;

fn read_with(bytes: &[u8], listed: Option<(&'static str, Each<'_>)>) -> Result<Json, Problem> {
    let reading = ReadState { n_left: Cell::new(VALUES_MAX), fault: RefCell::default(), listed };
    let mut text = serde_json::Deserializer::from_slice(bytes);
    let seed = Seed { reading: &reading, place: JsonPlace::Root, depth: 0 };
    let read = seed.deserialize(&mut text).and_then(|value| text.end().map(|()| value));
    read.map_err(|error| match reading.fault.into_inner() {
        Some(fault) => Problem::new(Code::InvalidBody, fault.detail.clone()).with(vec![fault]),
        None => malformed(&error),
    })
}

fn malformed(error: &serde_json::Error) -> Problem {
    let (line, column) = (error.line(), error.column());
    if error.is_eof() {
        let detail = format!("the body ends in the middle of a JSON value (line {line}, column {column})");
        return Problem::new(Code::MalformedBody, detail);
    }
    let said = error.to_string();
    let what = said.rsplit_once(" at line ").map_or(said.as_str(), |(what, _)| what);
    let detail = format!("the body is not valid JSON: {what} (line {line}, column {column})");
    Problem::new(Code::MalformedBody, detail)
}

/// What holds for the whole body while it is read.
struct ReadState<'e> {
    n_left: Cell<usize>,
    /// What is wrong with it although it is JSON.
    fault: RefCell<Option<FieldError>>,
    listed: Option<(&'static str, Each<'e>)>,
}

/// Where in the body we are.
#[derive(Clone, Copy)]
enum JsonPlace<'p> {
    Root,
    Field(&'p JsonPlace<'p>, &'p str),
    Item(&'p JsonPlace<'p>, usize),
}

impl fmt::Display for JsonPlace<'_> {
    /// As a JSON pointer (RFC 6901).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JsonPlace::Root => Ok(()),
            JsonPlace::Field(of, name) => write!(f, "{of}/{}", name.replace('~', "~0").replace('/', "~1")),
            JsonPlace::Item(of, idx) => write!(f, "{of}/{idx}"),
        }
    }
}

#[derive(Clone, Copy)]
struct Seed<'r, 'e, 'p> {
    reading: &'r ReadState<'e>,
    place: JsonPlace<'p>,
    depth: usize,
}

impl<'r, 'e> Seed<'r, 'e, '_> {
    fn refuse<E: serde::de::Error>(&self, detail: String) -> E {
        *self.reading.fault.borrow_mut() = Some(FieldError { pointer: self.place.to_string(), detail });
        E::custom("refused")
    }

    fn count<E: serde::de::Error>(&self) -> Result<(), E> {
        match self.reading.n_left.get().checked_sub(1) {
            Some(n_left) => {
                self.reading.n_left.set(n_left);
                Ok(())
            }
            None => Err(self.refuse(format!("there are more than {VALUES_MAX} values; send fewer at once"))),
        }
    }

    fn deeper<E: serde::de::Error>(&self) -> Result<usize, E> {
        if self.depth == DEPTH_MAX {
            let detail = format!("lists and objects are nested more than {DEPTH_MAX} deep; nest them less");
            return Err(self.refuse(detail));
        }
        Ok(self.depth + 1)
    }

    /// The one who takes the items of this list.
    fn listed(&self) -> Option<&'r Each<'e>> {
        let (wanted, each) = self.reading.listed.as_ref()?;
        matches!(self.place, JsonPlace::Field(JsonPlace::Root, name) if name == *wanted).then_some(each)
    }
}

impl<'de> DeserializeSeed<'de> for Seed<'_, '_, '_> {
    type Value = Json;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Json, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_, '_, '_> {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_bool<E: serde::de::Error>(self, it: bool) -> Result<Json, E> {
        self.count().map(|()| Json::Bool(it))
    }

    fn visit_i64<E: serde::de::Error>(self, it: i64) -> Result<Json, E> {
        self.count().map(|()| Json::Number(it.into()))
    }

    fn visit_u64<E: serde::de::Error>(self, it: u64) -> Result<Json, E> {
        self.count().map(|()| Json::Number(it.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, it: f64) -> Result<Json, E> {
        self.count().map(|()| Number::from_f64(it).map_or(Json::Null, Json::Number))
    }

    fn visit_str<E: serde::de::Error>(self, it: &str) -> Result<Json, E> {
        self.count().map(|()| Json::String(it.to_owned()))
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<Json, E> {
        self.count().map(|()| Json::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json, A::Error> {
        self.count()?;
        let (depth, listed) = (self.deeper()?, self.listed());
        let mut kept = Vec::new();
        for idx in 0.. {
            if listed.is_some() {
                self.reading.n_left.set(VALUES_MAX);
            }
            let seed = Seed { reading: self.reading, place: JsonPlace::Item(&self.place, idx), depth };
            let Some(item) = items.next_element_seed(seed)? else { break };
            match listed {
                None => kept.push(item),
                Some(each) => {
                    let taken = (each.borrow_mut())(idx, item);
                    taken.map_err(|Stopping| A::Error::custom("stopped"))?;
                }
            }
        }
        Ok(Json::Array(kept))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Json, A::Error> {
        self.count()?;
        let depth = self.deeper()?;
        let mut kept = Map::new();
        while let Some(name) = fields.next_key::<String>()? {
            let seed = Seed { reading: self.reading, place: JsonPlace::Field(&self.place, &name), depth };
            if kept.contains_key(&name) {
                let shown = shortened(&name);
                return Err(seed.refuse(format!("the key `{shown}` appears twice; remove one")));
            }
            let value = fields.next_value_seed(seed)?;
            kept.insert(name, value);
        }
        Ok(Json::Object(kept))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let told = match read(text.as_bytes()) {
            Ok(value) => value.to_string(),
            Err(problem) => {
                let body = problem.body();
                let pointers: Vec<&str> = body.errors.iter().map(|it| it.pointer.as_str()).collect();
                format!("{} {}: {}", problem.code().as_str(), pointers.join(" "), body.detail)
            }
        };
        assert_eq!(told, expected, "{text}");
    }

    #[test]
    fn every_kind_of_value_is_read() {
        check(
            r#" {"b":[true,null,-1,18446744073709551615,0.1,"x\ny"],"a":{}} "#,
            r#"{"a":{},"b":[true,null,-1,18446744073709551615,0.1,"x\ny"]}"#,
        );
    }

    #[test]
    fn a_key_stands_once_in_an_object() {
        check(r#"{"a":1,"a":1}"#, "invalid_body /a: the key `a` appears twice; remove one");
        check(
            r#"{"a":[{},{"b/c":1,"d":{},"b/c":2}]}"#,
            "invalid_body /a/1/b~1c: the key `b/c` appears twice; remove one",
        );
        check(r#"{"a":{"b":1},"c":{"b":1}}"#, r#"{"a":{"b":1},"c":{"b":1}}"#);
    }

    #[test]
    fn what_is_no_json_is_told_with_its_place() {
        check("{", "malformed_body : the body ends in the middle of a JSON value (line 1, column 1)");
        check(
            "{\"a\":\n1,}",
            "malformed_body : the body is not valid JSON: trailing comma (line 2, column 3)",
        );
        check("{} x", "malformed_body : the body is not valid JSON: trailing characters (line 1, column 4)");
    }

    #[test]
    fn a_body_is_neither_deep_nor_long() {
        let deep = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
        check(&deep(32), &deep(32));
        let place = "/0".repeat(32);
        check(
            &deep(33),
            &format!("invalid_body {place}: lists and objects are nested more than 32 deep; nest them less"),
        );
        let long = |n: usize| format!("[{}]", vec!["0"; n].join(","));
        check(&long(9_999), &long(9_999));
        check(&long(10_000), "invalid_body /9999: there are more than 10000 values; send fewer at once");
    }

    #[test]
    fn a_list_is_handed_over_and_can_be_stopped() {
        let mut heard = Vec::new();
        let rest = read_each(br#"{"jobs":[{"a":1},2],"x":[3]}"#, "jobs", &mut |idx, item| {
            heard.push(format!("{idx}: {item}"));
            Ok(())
        });
        assert_eq!(rest.unwrap().to_string(), r#"{"jobs":[],"x":[3]}"#);
        assert_eq!(heard, [r#"0: {"a":1}"#, "1: 2"]);
        let mut n_heard = 0;
        let stopped = read_each(br#"{"jobs":[0,1,2,3]}"#, "jobs", &mut |_, _| {
            n_heard += 1;
            if n_heard == 2 { Err(Stopping) } else { Ok(()) }
        });
        assert_eq!((stopped.is_err(), n_heard), (true, 2));
    }
}
