//! Collects the keys that each source sets, with their places, and reports unknown ones.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::ops::Range;

use evenbeat_core::nearest::{nearest, shortened};
use evenbeat_core::spec::SpecError;
use evenbeat_core::time::Duration;
use evenbeat_core::value::Value;

use super::env::{self, Meaning, PLAIN, PREFIX};
use super::fault::{Fault, Place};
use super::hint::{all_keys_help, elsewhere, inline_help, named_table_help};
use super::kind::{Setting, Trouble, wrong_kind};
use super::path::{KeyPath, check_name, quoted};
use super::show::Origin;
use super::sources::{Flag, Sources};
use super::table::{self, Key, NAME};
use super::toml_text::{self, Entry, Node};
use super::voice::{Rank, Voice};
use crate::jobfile::{FILE_BYTES_MAX, SourceText};

/// A valid value that one source sets.
#[derive(Clone, Debug)]
pub(super) struct Written {
    pub(super) path: KeyPath,
    pub(super) setting: Setting,
    pub(super) place: Place,
    pub(super) origin: Origin,
    pub(super) rank: Rank,
}

/// The values of all sources.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    pub(super) written: Vec<Written>,
    /// The names in tables with user-chosen names, and where each first appears.
    pub(super) entries: Vec<(&'static str, String, Place)>,
    /// Keys with an invalid value in some source.
    pub(super) broken: BTreeSet<KeyPath>,
    /// Tables that some source sets in a way that cannot be read.
    pub(super) lost_tables: BTreeSet<&'static str>,
    /// Whether the file could not be parsed, so that its values are unknown.
    pub(super) is_file_lost: bool,
    pub(super) faults: Vec<Fault>,
    /// Plain variables that are set but have no effect. They may be meant for another program, so they are not errors.
    pub(super) ignored: Vec<Fault>,
}

pub(super) fn gather(sources: &Sources) -> Gathered {
    let mut gathered = Gathered { is_file_lost: sources.is_file_unread, ..Gathered::default() };
    if let Some(file) = &sources.file {
        gathered.file(file);
    }
    for plain in PLAIN {
        if let Some(value) = sources.variables.get(plain.name) {
            gathered.plain_variable(&plain, value);
        }
    }
    for (name, value) in sources.variables.iter().filter(|(name, _)| name.starts_with(PREFIX)) {
        gathered.variable(name, value);
    }
    for flag in &sources.flags {
        gathered.flag(flag);
    }
    gathered
}

impl Gathered {
    fn file(&mut self, file: &SourceText) {
        let whole = |message, help: &str| Fault {
            place: Place::File(None),
            other: None,
            message,
            label: None,
            help: Some(help.to_owned()),
            key: None,
        };
        if FILE_BYTES_MAX < file.text.len() {
            let n_bytes = file.text.len();
            let message = format!("the file has {n_bytes} bytes, more than the {FILE_BYTES_MAX} allowed");
            self.faults.push(whole(message, "is this a configuration file? jobs belong in job files"));
            self.is_file_lost = true;
            return;
        }
        match toml_text::parse(&file.text) {
            Ok(table) => self.entries_of(&table, "", None, Voice::File(file)),
            Err(broken) => {
                self.is_file_lost = true;
                for (span, trouble) in broken {
                    self.faults.push(Fault::new(Place::File(Some(span)), None, trouble));
                }
            }
        }
    }

    fn plain_variable(&mut self, plain: &env::PlainVariable, value: &OsStr) {
        // An empty variable counts as not set.
        if value.is_empty() {
            return;
        }
        let voice = Voice::Said { by: plain.name, toml: None, rank: Rank::PlainVariable };
        let Some(key) = table::find(plain.key) else { return };
        match plain_setting(plain, key, value) {
            Ok(setting) => self.written.push(Written {
                path: KeyPath::plain(key.path),
                setting,
                place: voice.place(0..0),
                origin: voice.origin(&(0..0)),
                rank: voice.rank(),
            }),
            Err(trouble) => {
                self.ignored.push(Fault::new(voice.place(0..0), Some(key.path.to_owned()), trouble));
            }
        }
    }

    fn variable(&mut self, name: &str, value: &OsStr) {
        let voice = Voice::Said { by: name, toml: None, rank: Rank::Variable };
        match env::meaning_of(name) {
            Some(Meaning::Key(key)) => {
                if let Some(text) = self.utf8(value, voice, Some(key)) {
                    self.text(KeyPath::plain(key.path), text, voice);
                }
            }
            Some(Meaning::Table(table)) => {
                if let Some(text) = self.utf8(value, voice, None) {
                    self.table_text(table, text, voice);
                }
            }
            None if env::is_left_alone(name) => {}
            None => {
                let known = env::all_variables();
                let near = nearest(name, known.iter().map(String::as_str));
                match near.and_then(env::meaning_of) {
                    Some(Meaning::Key(key)) => self.most_likely(KeyPath::plain(key.path)),
                    Some(Meaning::Table(table)) => drop(self.lost_tables.insert(table)),
                    None => {}
                }
                let help = match near {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => named_table_help(name).unwrap_or_else(|| {
                        "unset it; variables that start with `EVENBEAT_` set configuration keys".to_owned()
                    }),
                };
                let message = format!("unknown variable `{}`", shortened(name));
                self.faults.push(Fault::new(
                    voice.place(0..0),
                    None,
                    Trouble { message, label: None, help: Some(help) },
                ));
            }
        }
    }

    fn flag(&mut self, flag: &Flag) {
        match flag {
            Flag::Named { flag, key, value } => {
                let voice = Voice::Said { by: flag, toml: None, rank: Rank::Flag };
                if let Some(key) = table::find(key) {
                    self.text(KeyPath::plain(key.path), value, voice);
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
            let trouble = Trouble { message, label: None, help };
            self.faults.push(Fault::new(Place::Said { by, part: None }, None, trouble));
            return;
        };
        let by = format!("--set {}", shortened(written));
        let voice = Voice::Said { by: &by, toml: None, rank: Rank::Flag };
        if let Some(path) = self.path_of(written, voice) {
            self.text(path, value, voice);
        } else if let Some(table) = table::named_tables().find(|table| *table == written) {
            self.table_text(table, value, voice);
        } else if !self.faults.iter().any(|fault| fault.place == voice.place(0..0)) {
            let names: Vec<&str> = table::effective_keys().map(|key| key.path).collect();
            let help = match nearest(written, names.iter().copied()) {
                Some(near) => {
                    self.most_likely(KeyPath::plain(near));
                    format!("did you mean `{near}`?")
                }
                None => elsewhere(written).unwrap_or_else(all_keys_help),
            };
            let message = format!("unknown key `{}`", shortened(written));
            let trouble = Trouble { message, label: None, help: Some(help) };
            self.faults.push(Fault::new(voice.place(0..0), None, trouble));
        }
    }

    /// Finds the key for a dotted path. Everything between the first and the last word is a name, which may contain dots
    /// and quotes.
    fn path_of(&mut self, written: &str, voice: Voice<'_>) -> Option<KeyPath> {
        if let Some(key) = table::find(written).filter(|key| !key.path.contains(NAME)) {
            return Some(KeyPath::plain(key.path));
        }
        let (table, rest) = written.split_once('.')?;
        let (name, leaf) = rest.rsplit_once('.')?;
        let name = name.trim_matches(['"', '\'']);
        let key = table::find(&format!("{table}.{NAME}.{leaf}"))?;
        let table = table::named_tables().find(|it| *it == table)?;
        self.entry(table, name, voice.place(0..0)).then(|| KeyPath::named(key.path, name))
    }

    /// Sets a key from a variable or a flag.
    fn text(&mut self, path: KeyPath, text: &str, voice: Voice<'_>) {
        let key = path.key();
        let Voice::Said { by, rank, .. } = voice else { return };
        if !key.kind.is_list() || !text.trim_start().starts_with('[') {
            self.value(key, path.name, &key.kind.value_of(text), 0..0, voice);
            return;
        }
        let voice = Voice::Said { by, toml: Some(text), rank };
        match toml_text::parse_value(text) {
            Ok(Node::Value(value)) => self.value(key, path.name, &value, 0..text.len(), voice),
            Ok(Node::Table(_)) => {
                let trouble = wrong_kind(key.path, "a list of strings", &Value::Table([].into()));
                self.refuse(path, voice.place(0..text.len()), trouble);
            }
            Err(broken) => self.broken_text(&broken, voice, Some(path)),
        }
    }

    /// Sets a whole table from one value.
    fn table_text(&mut self, table: &'static str, text: &str, voice: Voice<'_>) {
        let Voice::Said { by, rank, .. } = voice else { return };
        let voice = Voice::Said { by, toml: Some(text), rank };
        match toml_text::parse_value(text) {
            Ok(Node::Table(entries)) => self.entries_of(&entries, table, None, voice),
            Ok(Node::Value(value)) => {
                let trouble =
                    Trouble { help: Some(inline_help(table)), ..wrong_kind(table, "a table", &value) };
                self.lost_tables.insert(table);
                self.faults.push(Fault::new(voice.place(0..text.len()), Some(table.to_owned()), trouble));
            }
            Err(mut broken) => {
                self.lost_tables.insert(table);
                for (_, trouble) in &mut broken {
                    trouble.help = Some(inline_help(table));
                }
                self.broken_text(&broken, voice, None);
            }
        }
    }

    fn broken_text(&mut self, broken: &[toml_text::Broken], voice: Voice<'_>, path: Option<KeyPath>) {
        for (span, trouble) in broken {
            let key = path.as_ref().map(ToString::to_string);
            self.faults.push(Fault::new(voice.place(span.clone()), key, trouble.clone()));
        }
        self.broken.extend(path);
    }

    /// Reads everything in a table. `pattern` is its path in the list of keys.
    fn entries_of(&mut self, entries: &[Entry], pattern: &str, name: Option<&str>, voice: Voice<'_>) {
        let known = table::children(pattern);
        for entry in entries {
            let below = |child: &str| {
                if pattern.is_empty() { child.to_owned() } else { format!("{pattern}.{child}") }
            };
            if known == [NAME] {
                self.named_entry(entry, pattern, &below(NAME), voice);
                continue;
            }
            if !known.contains(&entry.name.as_str()) {
                self.unknown(entry, pattern, name, &known, voice);
                continue;
            }
            let below = below(&entry.name);
            match (table::find(&below), &entry.node) {
                (Some(key), Node::Value(value)) => {
                    self.value(key, name.map(str::to_owned), value, entry.span.clone(), voice);
                }
                (Some(key), Node::Table(_)) => {
                    let path = KeyPath { pattern: key.path, name: name.map(str::to_owned) };
                    let message = format!("`{path}` is a single value, not a table");
                    let trouble = Trouble::new(message, "expected a value", None);
                    self.refuse(path, voice.place(one_line(entry)), trouble);
                }
                (None, Node::Table(inner)) => self.entries_of(inner, &below, name, voice),
                (None, Node::Value(value)) => self.no_table(entry, &below, value, voice),
            }
        }
    }

    /// Reads an entry with a user-chosen name.
    fn named_entry(&mut self, entry: &Entry, table: &str, below: &str, voice: Voice<'_>) {
        let Some(table) = table::named_tables().find(|it| *it == table) else { return };
        match &entry.node {
            Node::Table(inner) => {
                if self.entry(table, &entry.name, voice.place(entry.name_span.clone())) {
                    self.entries_of(inner, below, Some(&entry.name), voice);
                }
            }
            Node::Value(value) => {
                self.no_table(entry, &format!("{table}.{}", quoted(&entry.name)), value, voice);
            }
        }
    }

    /// Records that a table has an entry of this name. Reports an invalid name.
    fn entry(&mut self, table: &'static str, name: &str, place: Place) -> bool {
        if let Err(error) = check_name(table, name) {
            let trouble = Trouble::from(SpecError::from(error));
            self.faults.push(Fault::new(place, Some(table.to_owned()), trouble));
            return false;
        }
        if !self.entries.iter().any(|(in_table, known, _)| *in_table == table && known == name) {
            self.entries.push((table, name.to_owned(), place));
        }
        true
    }

    fn no_table(&mut self, entry: &Entry, path: &str, value: &Value, voice: Voice<'_>) {
        let header = path.replace(NAME, "NAME");
        let trouble = Trouble {
            help: Some(format!("write a table `[{header}]` with the keys below it")),
            ..wrong_kind(path, "a table", value)
        };
        self.faults.push(Fault::new(voice.place(entry.span.clone()), Some(path.to_owned()), trouble));
    }

    fn unknown(
        &mut self,
        entry: &Entry,
        pattern: &str,
        name: Option<&str>,
        known: &[&'static str],
        voice: Voice<'_>,
    ) {
        let table = name.map_or(pattern.to_owned(), |name| pattern.replace(NAME, &quoted(name)));
        let written = shortened(&entry.name);
        let inside = if table.is_empty() { String::new() } else { format!(" in `{table}`") };
        let known = table::suggestions(pattern, known);
        let help = if let Some(near) = nearest(&entry.name, known.iter().copied()) {
            let below = if pattern.is_empty() { near.to_owned() } else { format!("{pattern}.{near}") };
            if let Some(key) = table::find(&below) {
                self.most_likely(KeyPath { pattern: key.path, name: name.map(str::to_owned) });
            }
            format!("did you mean `{near}`?")
        } else if let (Some(name), Node::Table(_)) = (name, &entry.node) {
            let group = pattern.split('.').next().unwrap_or_default();
            format!("a name with dots needs quotes: `[{group}.\"{name}.{written}\"]`")
        } else if let Some(help) = elsewhere(&entry.name) {
            help
        } else if table.is_empty() {
            all_keys_help()
        } else {
            let known: Vec<String> = known.iter().map(|key| format!("`{key}`")).collect();
            format!("the keys of `{table}` are {}", known.join(", "))
        };
        let trouble = Trouble::new(format!("unknown key `{written}`{inside}"), "unknown key", Some(help));
        let key = if table.is_empty() { written } else { format!("{table}.{written}") };
        self.faults.push(Fault::new(voice.place(entry.name_span.clone()), Some(key), trouble));
    }

    fn value(
        &mut self,
        key: &'static Key,
        name: Option<String>,
        value: &Value,
        span: Range<usize>,
        voice: Voice<'_>,
    ) {
        let path = KeyPath { pattern: key.path, name };
        let place = voice.place(span.clone());
        match key.kind.read(&path.to_string(), value) {
            Ok(_) if !key.has_effect => {
                let message = format!("`{path}` has no effect in this version");
                let trouble = Trouble::new(message, "not supported yet", Some("remove it".to_owned()));
                self.refuse(path, place, trouble);
            }
            Ok(setting) => {
                let (origin, rank) = (voice.origin(&span), voice.rank());
                let before = self.written.iter().find(|it| it.path == path && it.rank == rank);
                if let (Some(before), Rank::Flag) = (before, rank) {
                    let message = format!("`{path}` is set twice, by `{}` and by `{origin}`", before.origin);
                    let help = Some("keep one of them".to_owned());
                    self.refuse(path, place, Trouble { message, label: None, help });
                    return;
                }
                self.written.push(Written { path, setting, place, origin, rank });
            }
            Err(trouble) => self.refuse(path, place, trouble),
        }
    }

    /// Records the key that a mistyped name most likely means, so that we do not also report it as missing.
    fn most_likely(&mut self, path: KeyPath) {
        self.broken.insert(path);
    }

    fn refuse(&mut self, path: KeyPath, place: Place, trouble: Trouble) {
        self.faults.push(Fault::new(place, Some(path.to_string()), trouble));
        self.broken.insert(path);
    }

    fn utf8<'v>(&mut self, value: &'v OsStr, voice: Voice<'_>, key: Option<&'static Key>) -> Option<&'v str> {
        if let Some(text) = value.to_str() {
            return Some(text);
        }
        let Voice::Said { by, .. } = voice else { return None };
        let help = Some("set it to plain text, or unset it".to_owned());
        let trouble = Trouble { message: format!("`{by}` is not UTF-8 text"), label: None, help };
        match key {
            Some(key) => self.refuse(KeyPath::plain(key.path), voice.place(0..0), trouble),
            None => self.faults.push(Fault::new(voice.place(0..0), None, trouble)),
        }
        None
    }
}

/// The value of a plain variable, or why it is ignored.
fn plain_setting(plain: &env::PlainVariable, key: &'static Key, value: &OsStr) -> Result<Setting, Trouble> {
    let ignored = |why: String, help: String| Trouble {
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
    key.kind.read(plain.name, &value).map_err(|trouble| ignored(trouble.message, help))
}

/// For a value on several lines, only its name can be marked.
fn one_line(entry: &Entry) -> Range<usize> {
    entry.name_span.clone()
}
