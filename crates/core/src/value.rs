//! A neutral tree of values: what a job file, an API body or an imported document says, before
//! anything is known about its meaning.
//!
//! It is not a wire format: the rim reads TOML or JSON into it and writes it back, and
//! [`crate::spec`] gives it meaning, once, for all doors.

use std::collections::BTreeMap;
use std::fmt;

/// Fields by name.
pub type Table = BTreeMap<String, Value>;

/// One value, of whatever kind.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Said to be nothing.
    Null,
    /// Yes or no.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// Any other number.
    Float(f64),
    /// A text. Instants of formats that know them are texts here, in RFC 3339.
    Text(String),
    /// Several values in order.
    List(Vec<Value>),
    /// Several values by name.
    Table(Table),
}

impl Value {
    /// What kind of value it is, for people.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Null => "nothing",
            Value::Bool(_) => "true or false",
            Value::Int(_) => "a whole number",
            Value::Float(_) => "a number",
            Value::Text(_) => "a string",
            Value::List(_) => "a list",
            Value::Table(_) => "a table",
        }
    }

    /// The text, if it is one.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The fields, if it is a table.
    pub fn as_table(&self) -> Option<&Table> {
        match self {
            Value::Table(table) => Some(table),
            _ => None,
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Text(text.to_owned())
    }
}

/// Where in a tree a value stands: `blackout_periods[1].start`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path(Vec<Step>);

/// One step down a tree.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// Into a table.
    Key(String),
    /// Into a list, the first being 0.
    Index(usize),
}

impl Path {
    /// The top of the tree.
    pub fn root() -> Path {
        Path::default()
    }

    /// One step further down, into a table.
    #[must_use]
    pub fn key(&self, key: &str) -> Path {
        self.with(Step::Key(key.to_owned()))
    }

    /// One step further down, into a list.
    #[must_use]
    pub fn index(&self, index: usize) -> Path {
        self.with(Step::Index(index))
    }

    /// The steps from the top.
    pub fn steps(&self) -> &[Step] {
        &self.0
    }

    fn with(&self, step: Step) -> Path {
        let mut steps = self.0.clone();
        steps.push(step);
        Path(steps)
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (idx, step) in self.0.iter().enumerate() {
            match step {
                Step::Key(key) if idx == 0 => f.write_str(key)?,
                Step::Key(key) => write!(f, ".{key}")?,
                Step::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_reads_as_people_write_it() {
        let path = Path::root().key("blackout_periods").index(1).key("start");
        assert_eq!(path.to_string(), "blackout_periods[1].start");
        assert_eq!(path.steps().len(), 3);
    }
}
