//! Documents that a scheduler and its shims exchange: JSON objects, read field by field.

use evenbeat_core::time::{BootTime, Duration};
use serde_json::{Map, Value as Json};

/// A JSON object that is being read.
#[derive(Debug)]
pub(super) struct Fields(Map<String, Json>);

/// Why a document is not what it should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    /// It is no JSON object.
    #[error("the document is not a JSON object")]
    NotAnObject,
    /// A field is not there, or is of another kind.
    #[error("the field `{name}` is missing or is not {what}")]
    Bad {
        /// Which.
        name: &'static str,
        /// What it should be.
        what: &'static str,
    },
}

impl Fields {
    pub(super) fn read(text: &[u8]) -> Result<Fields, FieldError> {
        match serde_json::from_slice(text) {
            Ok(Json::Object(fields)) => Ok(Fields(fields)),
            _ => Err(FieldError::NotAnObject),
        }
    }

    pub(super) fn take(&mut self, name: &'static str) -> Json {
        self.0.remove(name).unwrap_or(Json::Null)
    }

    pub(super) fn text(&mut self, name: &'static str) -> Result<String, FieldError> {
        self.text_if_any(name)?.ok_or(FieldError::Bad { name, what: "a text" })
    }

    pub(super) fn text_if_any(&mut self, name: &'static str) -> Result<Option<String>, FieldError> {
        match self.take(name) {
            Json::Null => Ok(None),
            Json::String(text) => Ok(Some(text)),
            _ => Err(FieldError::Bad { name, what: "a text" }),
        }
    }

    pub(super) fn texts(&mut self, name: &'static str) -> Result<Vec<String>, FieldError> {
        let bad = FieldError::Bad { name, what: "a list of texts" };
        let Json::Array(list) = self.take(name) else { return Err(bad) };
        let text = |it| if let Json::String(text) = it { Some(text) } else { None };
        list.into_iter().map(text).collect::<Option<Vec<String>>>().ok_or(bad)
    }

    pub(super) fn texts_if_any(&mut self, name: &'static str) -> Result<Vec<String>, FieldError> {
        if self.0.get(name).is_none_or(Json::is_null) { Ok(Vec::new()) } else { self.texts(name) }
    }

    pub(super) fn whole(&mut self, name: &'static str) -> Result<i64, FieldError> {
        self.whole_if_any(name)?.ok_or(FieldError::Bad { name, what: "a whole number" })
    }

    pub(super) fn whole_if_any(&mut self, name: &'static str) -> Result<Option<i64>, FieldError> {
        match self.take(name) {
            Json::Null => Ok(None),
            it => it.as_i64().map(Some).ok_or(FieldError::Bad { name, what: "a whole number" }),
        }
    }

    pub(super) fn count(&mut self, name: &'static str) -> Result<u64, FieldError> {
        self.count_if_any(name)?.ok_or(FieldError::Bad { name, what: "a number of something" })
    }

    pub(super) fn count_if_any(&mut self, name: &'static str) -> Result<Option<u64>, FieldError> {
        match self.take(name) {
            Json::Null => Ok(None),
            it => it.as_u64().map(Some).ok_or(FieldError::Bad { name, what: "a number of something" }),
        }
    }

    pub(super) fn flag(&mut self, name: &'static str) -> Result<bool, FieldError> {
        self.take(name).as_bool().ok_or(FieldError::Bad { name, what: "true or false" })
    }

    pub(super) fn instant(&mut self, name: &'static str) -> Result<BootTime, FieldError> {
        self.whole(name).map(BootTime::from_millis)
    }

    pub(super) fn length(&mut self, name: &'static str) -> Result<Duration, FieldError> {
        self.whole(name).map(Duration::from_millis)
    }
}
