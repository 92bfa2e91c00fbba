//! Prints the effective configuration as TOML or JSON, with the origin of each value.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use evenbeat_core::value::Value;
use serde_json::{Map, Value as Json, json};

use super::error::ConfigError;
use super::path::ConfigPath;
use super::table::{KEYS, NAME, is_reloadable};
use super::value_type::Setting;

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueOrigin {
    /// The default.
    Default,
    /// The file.
    File {
        /// Line number, from 1.
        line: usize,
    },
    /// A variable or a flag of this name.
    Named(String),
}

impl fmt::Display for ValueOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ValueOrigin::Default => f.write_str("default"),
            ValueOrigin::File { line } => write!(f, "line {line}"),
            ValueOrigin::Named(by) => f.write_str(by),
        }
    }
}

/// All effective values and where they come from, without secrets.
#[derive(Clone, Debug, PartialEq)]
pub struct Origins {
    file: Option<String>,
    lines: Vec<OriginLine>,
    ignored: Vec<ConfigError>,
}

#[derive(Clone, Debug, PartialEq)]
struct OriginLine {
    path: ConfigPath,
    setting: Setting,
    origin: ValueOrigin,
}

/// A key that has another value than before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigChange {
    pub key: String,
    /// The value before, as TOML and without secrets; none if the key was not there.
    pub before: Option<String>,
    /// The value now.
    pub after: Option<String>,
    /// Whether a running node can take it up. If not, it needs a restart.
    pub is_reloadable: bool,
}

impl Origins {
    pub(super) fn new(
        file: Option<String>,
        values: impl Iterator<Item = (ConfigPath, Setting, ValueOrigin)>,
        ignored: Vec<ConfigError>,
    ) -> Origins {
        let line = |(path, setting, origin)| OriginLine { path, setting, origin };
        let mut lines: Vec<OriginLine> = values.map(line).filter(|line| line.path.key().has_effect).collect();
        lines.sort_by_cached_key(|line| turn_of(&line.path));
        Origins { file, lines, ignored }
    }

    /// Variables that are set but have no effect.
    pub fn ignored(&self) -> &[ConfigError] {
        &self.ignored
    }

    /// The keys whose values differ in another configuration, in the order of their names.
    pub fn changes(&self, other: &Origins) -> Vec<ConfigChange> {
        fn by_key(origins: &Origins) -> BTreeMap<String, &OriginLine> {
            origins.lines.iter().map(|line| (line.path.to_string(), line)).collect()
        }
        let (before, after) = (by_key(self), by_key(other));
        let keys: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        let change = |key: &String| {
            let (was, is) = (before.get(key), after.get(key));
            let path = &was.or(is)?.path;
            let shown = |line: &&OriginLine| match line.setting {
                Setting::Nothing => "none".to_owned(),
                _ => written(&line.setting.value()),
            };
            let has_changed = was.map(|it| &it.setting) != is.map(|it| &it.setting);
            has_changed.then(|| ConfigChange {
                key: key.clone(),
                before: was.map(shown),
                after: is.map(shown),
                is_reloadable: is_reloadable(path.pattern),
            })
        };
        keys.into_iter().filter_map(change).collect()
    }

    /// Where the value of a key comes from. `None` if there is no such key.
    pub fn of(&self, key: &str) -> Option<&ValueOrigin> {
        self.lines.iter().find(|line| line.path.to_string() == key).map(|line| &line.origin)
    }

    /// The configuration as TOML, which could be read again except for its secrets.
    pub fn toml(&self) -> String {
        let mut text = String::new();
        if let Some(file) = &self.file {
            text.extend(["# with ", &in_one_line(file), "\n"]);
        }
        let mut table = None;
        for line in &self.lines {
            let its_table = line.path.table();
            if its_table != table {
                let header = its_table.as_deref().unwrap_or_default();
                text.extend(["\n[", header, "]\n"]);
                table = its_table;
            }
            let hidden = if line.setting.is_hidden() { ", partly hidden" } else { "" };
            let origin = self.named(&line.origin);
            let value = written(&line.setting.value());
            text.extend([line.path.leaf(), " = ", &value, "  # ", &origin, hidden, "\n"]);
        }
        text
    }

    /// The configuration as JSON: values in their tables, and origins by key.
    pub fn json(&self) -> Json {
        let (mut values, mut origins) = (Map::new(), Map::new());
        for line in &self.lines {
            let groups = line.path.pattern.rsplit_once('.').map_or("", |(groups, _)| groups);
            let named = |step| if step == NAME { line.path.name.as_deref().unwrap_or(NAME) } else { step };
            let steps: Vec<&str> = groups.split('.').filter(|it| !it.is_empty()).map(named).collect();
            insert(&mut values, &steps, line.path.leaf(), as_json(&line.setting));
            origins.insert(line.path.to_string(), Json::String(self.named(&line.origin)));
        }
        json!({ "file": self.file, "config": values, "origins": origins })
    }

    /// `evenbeat.toml:12`: the file without its directory, because there is only one.
    fn named(&self, origin: &ValueOrigin) -> String {
        match (origin, &self.file) {
            (ValueOrigin::File { line }, Some(file)) => {
                format!("{}:{line}", in_one_line(file.rsplit('/').next().unwrap_or(file)))
            }
            (origin, _) => in_one_line(&origin.to_string()),
        }
    }
}

/// Inserts a value at a path, and creates missing tables.
fn insert(table: &mut Map<String, Json>, steps: &[&str], leaf: &str, value: Json) {
    let Some((first, rest)) = steps.split_first() else {
        table.insert(leaf.to_owned(), value);
        return;
    };
    let below = table.entry(*first).or_insert_with(|| Json::Object(Map::new()));
    if let Json::Object(below) = below {
        insert(below, rest, leaf, value);
    }
}

/// The sort order: tables in the order of the keys, entries of a named table grouped by name.
fn turn_of(path: &ConfigPath) -> (usize, Option<String>, usize) {
    let table_of = |pattern: &str| pattern.rsplit_once('.').map(|(table, _)| table.to_owned());
    let table = table_of(path.pattern);
    let first = KEYS.iter().position(|key| table_of(key.path) == table);
    let own = KEYS.iter().position(|key| key.path == path.pattern);
    (first.unwrap_or(0), path.name.clone(), own.unwrap_or(0))
}

/// Removes line breaks from a file name, because it is printed in a comment.
fn in_one_line(text: &str) -> String {
    text.chars().map(|it| if it.is_control() { '?' } else { it }).collect()
}

/// A value as TOML.
fn written(value: &Value) -> String {
    match value {
        Value::Bool(truth) => truth.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Float(number) => toml::Value::Float(*number).to_string(),
        Value::Text(text) => toml::Value::String(text.clone()).to_string(),
        Value::List(values) => format!("[{}]", values.iter().map(written).collect::<Vec<_>>().join(", ")),
        Value::Null | Value::Table(_) => String::new(),
    }
}

fn as_json(setting: &Setting) -> Json {
    let text = |value: &Value| value.as_text().map(str::to_owned);
    match setting.value() {
        _ if *setting == Setting::Nothing => Json::Null,
        Value::Bool(truth) => Json::Bool(truth),
        Value::Int(number) => Json::from(number),
        Value::Float(number) => Json::from(number),
        Value::Text(text) => Json::String(text),
        Value::List(values) => values.iter().filter_map(text).collect(),
        Value::Null | Value::Table(_) => Json::Null,
    }
}
