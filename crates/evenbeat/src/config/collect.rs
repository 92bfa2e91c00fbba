//! Collects the keys that each source sets, with their locations, and reports unknown ones.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::ops::Range;

use evenbeat_core::nearest::{nearest, shortened};
use evenbeat_core::spec::SpecError;
use evenbeat_core::time::Duration;
use evenbeat_core::value::Value;

use super::env::{self, PLAIN, PREFIX, VariableTarget};
use super::error::{ConfigError, Location};
use super::help::{all_keys_help, elsewhere, inline_help, named_table_help};
use super::path::{ConfigPath, check_name, quoted};
use super::show::ValueOrigin;
use super::source::{Precedence, ValueSource};
use super::sources::{Flag, Sources};
use super::table::{self, Key, NAME};
use super::toml_text::{self, Entry, TomlNode};
use super::value_type::{Setting, ValueError, wrong_kind};
use crate::jobfile::{FILE_BYTES_MAX, SourceText};

/// A valid value that one source sets.
#[derive(Clone, Debug)]
pub(super) struct SourceValue {
    pub(super) path: ConfigPath,
    pub(super) setting: Setting,
    pub(super) location: Location,
    pub(super) origin: ValueOrigin,
    pub(super) precedence: Precedence,
}

/// The values of all sources.
#[derive(Debug, Default)]
pub(super) struct SourceValues {
    pub(super) written: Vec<SourceValue>,
    /// The names in tables with user-chosen names, and where each first appears.
    pub(super) entries: Vec<(&'static str, String, Location)>,
    /// Keys with an invalid value in some source.
    pub(super) broken: BTreeSet<ConfigPath>,
    /// Tables that some source sets in a way that cannot be read.
    pub(super) lost_tables: BTreeSet<&'static str>,
    /// Whether the file could not be parsed, so that its values are unknown.
    pub(super) is_file_lost: bool,
    pub(super) errors: Vec<ConfigError>,
    /// Plain variables that are set but have no effect. They may be meant for another program, so they are not errors.
    pub(super) ignored: Vec<ConfigError>,
}

pub(super) fn collect(sources: &Sources) -> SourceValues {
    let mut collected = SourceValues { is_file_lost: sources.is_file_unread, ..SourceValues::default() };
    if let Some(file) = &sources.file {
        collected.file(file);
    }
    for plain in PLAIN {
        if let Some(value) = sources.variables.get(plain.name) {
            collected.plain_variable(&plain, value);
        }
    }
    for (name, value) in sources.variables.iter().filter(|(name, _)| name.starts_with(PREFIX)) {
        collected.variable(name, value);
    }
    for flag in &sources.flags {
        collected.flag(flag);
    }
    collected
}

impl SourceValues {
    fn file(&mut self, file: &SourceText) {
        let whole = |message, help: &str| ConfigError {
            location: Location::File(None),
            other: None,
            message,
            label: None,
            help: Some(help.to_owned()),
            key: None,
        };
        if FILE_BYTES_MAX < file.text.len() {
            let n_bytes = file.text.len();
            let message = format!("the file has {n_bytes} bytes, more than the {FILE_BYTES_MAX} allowed");
            self.errors.push(whole(message, "is this a configuration file? jobs belong in job files"));
            self.is_file_lost = true;
            return;
        }
        match toml_text::parse(&file.text) {
            Ok(table) => self.entries_of(&table, "", None, ValueSource::File(file)),
            Err(broken) => {
                self.is_file_lost = true;
                for (span, error) in broken {
                    self.errors.push(ConfigError::new(Location::File(Some(span)), None, error));
                }
            }
        }
    }

    fn plain_variable(&mut self, plain: &env::PlainVariable, value: &OsStr) {
        // An empty variable counts as not set.
        if value.is_empty() {
            return;
        }
        let source = ValueSource::Named { by: plain.name, toml: None, precedence: Precedence::PlainVariable };
        let Some(key) = table::find(plain.key) else { return };
        match plain_setting(plain, key, value) {
            Ok(setting) => self.written.push(SourceValue {
                path: ConfigPath::plain(key.path),
                setting,
                location: source.location(0..0),
                origin: source.origin(&(0..0)),
                precedence: source.precedence(),
            }),
            Err(error) => {
                self.ignored.push(ConfigError::new(source.location(0..0), Some(key.path.to_owned()), error));
            }
        }
    }

    fn variable(&mut self, name: &str, value: &OsStr) {
        let source = ValueSource::Named { by: name, toml: None, precedence: Precedence::Variable };
        match env::target_of(name) {
            Some(VariableTarget::Key(key)) => {
                if let Some(text) = self.utf8(value, source, Some(key)) {
                    self.text(ConfigPath::plain(key.path), text, source);
                }
            }
            Some(VariableTarget::Table(table)) => {
                if let Some(text) = self.utf8(value, source, None) {
                    self.table_text(table, text, source);
                }
            }
            None if env::is_left_alone(name) => {}
            None => {
                let known = env::all_variables();
                let near = nearest(name, known.iter().map(String::as_str));
                match near.and_then(env::target_of) {
                    Some(VariableTarget::Key(key)) => self.most_likely(ConfigPath::plain(key.path)),
                    Some(VariableTarget::Table(table)) => drop(self.lost_tables.insert(table)),
                    None => {}
                }
                let help = match near {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => named_table_help(name).unwrap_or_else(|| {
                        "unset it; variables that start with `EVENBEAT_` set configuration keys".to_owned()
                    }),
                };
                let message = format!("unknown variable `{}`", shortened(name));
                self.errors.push(ConfigError::new(
                    source.location(0..0),
                    None,
                    ValueError { message, label: None, help: Some(help) },
                ));
            }
        }
    }

    fn flag(&mut self, flag: &Flag) {
        match flag {
            Flag::Named { flag, key, value } => {
                let source = ValueSource::Named { by: flag, toml: None, precedence: Precedence::Flag };
                if let Some(key) = table::find(key) {
                    self.text(ConfigPath::plain(key.path), value, source);
                }
            }
            Flag::Set(text) => self.set(text),
        }
    }

    /// Reads `--set KEY=VALUE`.
    fn set(&mut self, text: &str) {
        let Some((written, value)) = text.split_once('=').map(|(key, value)| (key.trim(), value.trim()))
        else {
            let by = "--set".to_owned();
            let message = format!("`--set {}` has no value", shortened(text));
            let help = Some("write `--set KEY=VALUE`, such as `--set log.level=debug`".to_owned());
            let error = ValueError { message, label: None, help };
            self.errors.push(ConfigError::new(Location::Named { by, part: None }, None, error));
            return;
        };
        let by = format!("--set {}", shortened(written));
        let source = ValueSource::Named { by: &by, toml: None, precedence: Precedence::Flag };
        if let Some(path) = self.path_of(written, source) {
            self.text(path, value, source);
        } else if let Some(table) = table::named_tables().find(|table| *table == written) {
            self.table_text(table, value, source);
        } else if !self.errors.iter().any(|fault| fault.location == source.location(0..0)) {
            let names: Vec<&str> = table::effective_keys().map(|key| key.path).collect();
            let help = match nearest(written, names.iter().copied()) {
                Some(near) => {
                    self.most_likely(ConfigPath::plain(near));
                    format!("did you mean `{near}`?")
                }
                None => elsewhere(written).unwrap_or_else(all_keys_help),
            };
            let message = format!("unknown key `{}`", shortened(written));
            let error = ValueError { message, label: None, help: Some(help) };
            self.errors.push(ConfigError::new(source.location(0..0), None, error));
        }
    }

    /// Finds the key for a dotted path. Everything between the first and the last word is a name, which may contain dots
    /// and quotes.
    fn path_of(&mut self, written: &str, source: ValueSource<'_>) -> Option<ConfigPath> {
        if let Some(key) = table::find(written).filter(|key| !key.path.contains(NAME)) {
            return Some(ConfigPath::plain(key.path));
        }
        let in_table = |table: &&str| written.strip_prefix(*table).is_some_and(|rest| rest.starts_with('.'));
        let table = table::named_tables().find(in_table)?;
        let (name, leaf) = written.get(table.len() + 1..)?.rsplit_once('.')?;
        let name = name.trim_matches(['"', '\'']);
        let key = table::find(&format!("{table}.{NAME}.{leaf}"))?;
        self.entry(table, name, source.location(0..0)).then(|| ConfigPath::named(key.path, name))
    }

    /// Sets a key from a variable or a flag.
    fn text(&mut self, path: ConfigPath, text: &str, source: ValueSource<'_>) {
        let key = path.key();
        let ValueSource::Named { by, precedence, .. } = source else { return };
        if !key.kind.is_list() || !text.trim_start().starts_with('[') {
            self.value(key, path.name, &key.kind.value_of(text), 0..0, source);
            return;
        }
        let source = ValueSource::Named { by, toml: Some(text), precedence };
        match toml_text::parse_value(text) {
            Ok(TomlNode::Value(value)) => self.value(key, path.name, &value, 0..text.len(), source),
            Ok(TomlNode::Table(_)) => {
                let error = wrong_kind(key.path, "a list of strings", &Value::Table([].into()));
                self.refuse(path, source.location(0..text.len()), error);
            }
            Err(broken) => self.broken_text(&broken, source, Some(path)),
        }
    }

    /// Sets a whole table from one value.
    fn table_text(&mut self, table: &'static str, text: &str, source: ValueSource<'_>) {
        let ValueSource::Named { by, precedence, .. } = source else { return };
        let source = ValueSource::Named { by, toml: Some(text), precedence };
        match toml_text::parse_value(text) {
            Ok(TomlNode::Table(entries)) => self.entries_of(&entries, table, None, source),
            Ok(TomlNode::Value(value)) => {
                let error =
                    ValueError { help: Some(inline_help(table)), ..wrong_kind(table, "a table", &value) };
                self.lost_tables.insert(table);
                self.errors.push(ConfigError::new(
                    source.location(0..text.len()),
                    Some(table.to_owned()),
                    error,
                ));
            }
            Err(mut broken) => {
                self.lost_tables.insert(table);
                for (_, error) in &mut broken {
                    error.help = Some(inline_help(table));
                }
                self.broken_text(&broken, source, None);
            }
        }
    }

    fn broken_text(
        &mut self,
        broken: &[toml_text::SyntaxError],
        source: ValueSource<'_>,
        path: Option<ConfigPath>,
    ) {
        for (span, error) in broken {
            let key = path.as_ref().map(ToString::to_string);
            self.errors.push(ConfigError::new(source.location(span.clone()), key, error.clone()));
        }
        self.broken.extend(path);
    }

    /// Reads everything in a table. `pattern` is its path in the list of keys.
    fn entries_of(&mut self, entries: &[Entry], pattern: &str, name: Option<&str>, source: ValueSource<'_>) {
        let known = table::children(pattern);
        for entry in entries {
            let below = |child: &str| {
                if pattern.is_empty() { child.to_owned() } else { format!("{pattern}.{child}") }
            };
            if known == [NAME] {
                self.named_entry(entry, pattern, &below(NAME), source);
                continue;
            }
            if !known.contains(&entry.name.as_str()) {
                self.unknown(entry, pattern, name, &known, source);
                continue;
            }
            let below = below(&entry.name);
            match (table::find(&below), &entry.node) {
                (Some(key), TomlNode::Value(value)) => {
                    self.value(key, name.map(str::to_owned), value, entry.span.clone(), source);
                }
                (Some(key), TomlNode::Table(_)) => {
                    let path = ConfigPath { pattern: key.path, name: name.map(str::to_owned) };
                    let message = format!("`{path}` is a single value, not a table");
                    let error = ValueError::new(message, "expected a value", None);
                    self.refuse(path, source.location(one_line(entry)), error);
                }
                (None, TomlNode::Table(inner)) => self.entries_of(inner, &below, name, source),
                (None, TomlNode::Value(value)) => self.no_table(entry, &below, value, source),
            }
        }
    }

    /// Reads an entry with a user-chosen name.
    fn named_entry(&mut self, entry: &Entry, table: &str, below: &str, source: ValueSource<'_>) {
        let Some(table) = table::named_tables().find(|it| *it == table) else { return };
        match &entry.node {
            TomlNode::Table(inner) => {
                if self.entry(table, &entry.name, source.location(entry.name_span.clone())) {
                    self.entries_of(inner, below, Some(&entry.name), source);
                }
            }
            TomlNode::Value(value) => {
                self.no_table(entry, &format!("{table}.{}", quoted(&entry.name)), value, source);
            }
        }
    }

    /// Records that a table has an entry of this name. Reports an invalid name.
    fn entry(&mut self, table: &'static str, name: &str, location: Location) -> bool {
        if let Err(error) = check_name(table, name) {
            let error = ValueError::from(SpecError::from(error));
            self.errors.push(ConfigError::new(location, Some(table.to_owned()), error));
            return false;
        }
        if !self.entries.iter().any(|(in_table, known, _)| *in_table == table && known == name) {
            self.entries.push((table, name.to_owned(), location));
        }
        true
    }

    fn no_table(&mut self, entry: &Entry, path: &str, value: &Value, source: ValueSource<'_>) {
        let header = path.replace(NAME, "NAME");
        let error = ValueError {
            help: Some(format!("write a table `[{header}]` with the keys below it")),
            ..wrong_kind(path, "a table", value)
        };
        self.errors.push(ConfigError::new(source.location(entry.span.clone()), Some(path.to_owned()), error));
    }

    fn unknown(
        &mut self,
        entry: &Entry,
        pattern: &str,
        name: Option<&str>,
        known: &[&'static str],
        source: ValueSource<'_>,
    ) {
        let table = name.map_or(pattern.to_owned(), |name| pattern.replace(NAME, &quoted(name)));
        let written = shortened(&entry.name);
        let inside = if table.is_empty() { String::new() } else { format!(" in `{table}`") };
        let known = table::suggestions(pattern, known);
        let help = if let Some(near) = nearest(&entry.name, known.iter().copied()) {
            let below = if pattern.is_empty() { near.to_owned() } else { format!("{pattern}.{near}") };
            if let Some(key) = table::find(&below) {
                self.most_likely(ConfigPath { pattern: key.path, name: name.map(str::to_owned) });
            }
            format!("did you mean `{near}`?")
        } else if let (Some(name), TomlNode::Table(_)) = (name, &entry.node) {
            let group = pattern.split(NAME).next().unwrap_or_default().trim_end_matches('.');
            format!("a name with dots needs quotes: `[{group}.\"{name}.{written}\"]`")
        } else if let Some(help) = elsewhere(&entry.name) {
            help
        } else if table.is_empty() {
            all_keys_help()
        } else {
            let known: Vec<String> = known.iter().map(|key| format!("`{key}`")).collect();
            format!("the keys of `{table}` are {}", known.join(", "))
        };
        let error = ValueError::new(format!("unknown key `{written}`{inside}"), "unknown key", Some(help));
        let key = if table.is_empty() { written } else { format!("{table}.{written}") };
        self.errors.push(ConfigError::new(source.location(entry.name_span.clone()), Some(key), error));
    }

    fn value(
        &mut self,
        key: &'static Key,
        name: Option<String>,
        value: &Value,
        span: Range<usize>,
        source: ValueSource<'_>,
    ) {
        let path = ConfigPath { pattern: key.path, name };
        let location = source.location(span.clone());
        match key.kind.read(&path.to_string(), value) {
            Ok(_) if !key.has_effect => {
                let error = match key.retired {
                    Some(instead) => {
                        let message = format!("`{path}` was removed in this version");
                        ValueError::new(message, "retired", Some(instead.to_owned()))
                    }
                    None => {
                        let message = format!("`{path}` has no effect in this version");
                        ValueError::new(message, "not supported yet", Some("remove it".to_owned()))
                    }
                };
                self.refuse(path, location, error);
            }
            Ok(setting) => {
                let (origin, precedence) = (source.origin(&span), source.precedence());
                let before = self.written.iter().find(|it| it.path == path && it.precedence == precedence);
                if let (Some(before), Precedence::Flag) = (before, precedence) {
                    let message = format!("`{path}` is set twice, by `{}` and by `{origin}`", before.origin);
                    let help = Some("keep one of them".to_owned());
                    self.refuse(path, location, ValueError { message, label: None, help });
                    return;
                }
                self.written.push(SourceValue { path, setting, location, origin, precedence });
            }
            Err(error) => self.refuse(path, location, error),
        }
    }

    /// Records the key that a mistyped name most likely means, so that we do not also report it as missing.
    fn most_likely(&mut self, path: ConfigPath) {
        self.broken.insert(path);
    }

    fn refuse(&mut self, path: ConfigPath, location: Location, error: ValueError) {
        self.errors.push(ConfigError::new(location, Some(path.to_string()), error));
        self.broken.insert(path);
    }

    fn utf8<'v>(
        &mut self,
        value: &'v OsStr,
        source: ValueSource<'_>,
        key: Option<&'static Key>,
    ) -> Option<&'v str> {
        if let Some(text) = value.to_str() {
            return Some(text);
        }
        let ValueSource::Named { by, .. } = source else { return None };
        let help = Some("set it to plain text, or unset it".to_owned());
        let error = ValueError { message: format!("`{by}` is not UTF-8 text"), label: None, help };
        match key {
            Some(key) => self.refuse(ConfigPath::plain(key.path), source.location(0..0), error),
            None => self.errors.push(ConfigError::new(source.location(0..0), None, error)),
        }
        None
    }
}

/// The value of a plain variable, or why it is ignored.
fn plain_setting(
    plain: &env::PlainVariable,
    key: &'static Key,
    value: &OsStr,
) -> Result<Setting, ValueError> {
    let ignored = |why: String, help: String| ValueError {
        message: format!("`{}` is ignored: {why}", plain.name),
        label: None,
        help: Some(help),
    };
    if !key.has_effect {
        return Err(ignored("it has no effect in this version".to_owned(), "unset it".to_owned()));
    }
    let help = if plain.is_millis {
        format!("write milliseconds, such as `{}=5000` for five seconds, or unset it", plain.name)
    } else {
        format!("set it to a valid value for `{}`, or unset it", key.path)
    };
    let Some(text) = value.to_str() else {
        return Err(ignored("its value is not UTF-8 text".to_owned(), help));
    };
    let value = match (plain.is_millis, text.parse::<u32>()) {
        (true, Ok(millis)) => Value::Text(Duration::from_millis(i64::from(millis)).to_string()),
        (true, Err(_)) => {
            return Err(ignored(format!("`{}` is not a number of milliseconds", shortened(text)), help));
        }
        (false, _) => key.kind.value_of(text),
    };
    key.kind.read(plain.name, &value).map_err(|error| ignored(error.message, help))
}

/// For a value on several lines, only its name can be marked.
fn one_line(entry: &Entry) -> Range<usize> {
    entry.name_span.clone()
}
