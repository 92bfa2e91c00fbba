//! What a job runs: exactly one target.

use std::collections::BTreeMap;
use std::fmt::Display;

use super::fields::{COMMAND_NAMES, HTTP_NAMES, QUEUE_NAMES, TARGET_KINDS};
use super::job::Completeness;
use super::node::Node;
use super::read::Subject;
use super::reader::{LIST_MAX, Reader};
use super::{SpecError, scalar};
use crate::job::{CommandTarget, HttpTarget, QueueTarget, Target};
use crate::nearest::shortened;
use crate::value::{Path, Value};

pub(super) fn read(reader: &mut Reader<'_>, want: Completeness) -> Option<Target> {
    let kinds: Vec<Node<'_>> = TARGET_KINDS.iter().filter_map(|kind| reader.get(kind)).collect();
    let Some((first, more)) = kinds.split_first() else {
        let missing = want == Completeness::Whole && !reader.spec.speaks_of(Subject::Target);
        if missing {
            reader.fault(&Path::root(), SpecError::NoTarget);
        }
        return None;
    };
    for second in more {
        let error = SpecError::TwoTargets {
            first: reader.shown(&first.path()),
            second: reader.shown(&second.path()),
        };
        reader.fault_between(&second.path(), &first.path(), error);
    }
    let targets: Vec<Option<Target>> = kinds.iter().map(|kind| one(reader, kind, want)).collect();
    targets.into_iter().next().flatten()
}

fn one(reader: &mut Reader<'_>, node: &Node<'_>, want: Completeness) -> Option<Target> {
    if node.is("command") {
        command(reader, node, want).map(Target::Command)
    } else if node.is("http") {
        http(reader, node).map(Target::Http)
    } else {
        queue(reader, node).map(Target::Queue)
    }
}

fn command(reader: &mut Reader<'_>, node: &Node<'_>, want: Completeness) -> Option<CommandTarget> {
    let Value::Table(table) = node.value else {
        let argv = argv(reader, node, Shell::No)?;
        return Some(CommandTarget { argv, ..CommandTarget::default() });
    };
    reader.known_only(node, table, "command", &COMMAND_NAMES);
    let shell = node.get("shell").and_then(|it| reader.read(&it, scalar::truth)).unwrap_or(false);
    let way_out = "write the program and its arguments, such as `[\"curl\", \"https://example.org\"]`";
    // Defaults may say how commands run and leave the commands to the jobs.
    let argv = match want {
        Completeness::Whole => reader.required(node, "argv", way_out),
        Completeness::Part => node.get("argv"),
    };
    let argv = argv.and_then(|it| self::argv(reader, &it, if shell { Shell::Yes } else { Shell::No }));
    let cwd = node.get("cwd").and_then(|it| reader.read(&it, plain_text));
    let env = node.get("env").map(|it| env(reader, &it)).unwrap_or_default();
    let env_pass = node.get("env_pass").map(|it| env_pass(reader, &it)).unwrap_or_default();
    let stdin = node.get("stdin").map(|it| {
        reader.bounded_depth(&it);
        it.value.clone()
    });
    let grace = node.get("grace").and_then(|it| reader.read(&it, scalar::duration));
    Some(CommandTarget { argv: argv?, shell, cwd, env, env_pass, stdin, grace })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shell {
    Yes,
    No,
}

fn argv(reader: &mut Reader<'_>, node: &Node<'_>, shell: Shell) -> Option<Vec<String>> {
    match (node.value, shell) {
        (Value::Text(text), Shell::No) => {
            let field = reader.shown(&node.path());
            let argv = text.split_whitespace().map(shortened).collect();
            reader.fault(&node.path(), SpecError::TextNeedsShell { field, text: text.clone(), argv });
            None
        }
        (Value::Text(_), Shell::Yes) => {
            let line = reader.read(node, plain_text)?;
            not_empty(reader, node, line.trim().is_empty())?;
            Some(vec![line])
        }
        (Value::List(words), Shell::Yes) if words.len() != 1 => {
            let field = reader.shown(&node.path());
            reader.fault(&node.path(), SpecError::ShellNeedsText { field });
            None
        }
        _ => {
            let n_faults = reader.faults.len();
            let nodes = reader.list(node, "a list of strings", LIST_MAX);
            if reader.faults.len() == n_faults {
                let is_empty =
                    |text: &str| text.is_empty() || (shell == Shell::Yes && text.trim().is_empty());
                let program_is_empty =
                    nodes.first().is_none_or(|it| it.value.as_text().is_some_and(is_empty));
                not_empty(reader, node, program_is_empty)?;
            }
            let words: Vec<Option<String>> = nodes.iter().map(|it| reader.read(it, plain_text)).collect();
            let words: Vec<String> = words.into_iter().collect::<Option<_>>()?;
            (!words.is_empty()).then_some(words)
        }
    }
}

fn not_empty(reader: &mut Reader<'_>, node: &Node<'_>, is_empty: bool) -> Option<()> {
    if is_empty {
        let field = reader.shown(&node.path());
        let way_out = "name the program to run";
        reader.fault(&node.path(), SpecError::Empty { field, way_out });
        return None;
    }
    Some(())
}

/// A text that a process can be given.
fn plain_text(field: &dyn Display, value: &Value) -> Result<String, SpecError> {
    without(field, scalar::text(field, value)?, "what a process is given", &['\0'])
}

fn without(field: &dyn Display, text: &str, what: &'static str, bad: &[char]) -> Result<String, SpecError> {
    match text.chars().find(|it| bad.contains(it)) {
        Some(found) => Err(SpecError::BadCharacter { field: field.to_string(), what, found }),
        None => Ok(text.to_owned()),
    }
}

fn env(reader: &mut Reader<'_>, node: &Node<'_>) -> BTreeMap<String, String> {
    let mut env = BTreeMap::new();
    for (name, value) in reader.entries(node) {
        reader.read(&value, |field, _| variable_name(field, name));
        if let Some(text) = reader.read(&value, plain_text) {
            env.insert(name.to_owned(), text);
        }
    }
    env
}

fn env_pass(reader: &mut Reader<'_>, node: &Node<'_>) -> Vec<String> {
    let nodes = reader.list(node, "a list of strings", LIST_MAX);
    let name = |field: &dyn Display, value: &Value| variable_name(field, scalar::text(field, value)?);
    nodes.iter().filter_map(|node| reader.read(node, name)).collect()
}

fn variable_name(field: &dyn Display, name: &str) -> Result<String, SpecError> {
    if name.is_empty() {
        return Err(SpecError::Empty { field: field.to_string(), way_out: "name the variable" });
    }
    without(field, name, "the name of a variable", &['\0', '='])
}

fn http(reader: &mut Reader<'_>, node: &Node<'_>) -> Option<HttpTarget> {
    let target = |url| HttpTarget { url, headers: BTreeMap::new(), timeout: None, idempotent: false };
    let Value::Table(table) = node.value else {
        return reader.read(node, url).map(target);
    };
    reader.known_only(node, table, "http", &HTTP_NAMES);
    let url = reader.required(node, "url", "write where to post to").and_then(|it| reader.read(&it, url));
    let headers = node.get("headers").map(|it| headers(reader, &it)).unwrap_or_default();
    let timeout = node.get("timeout").and_then(|it| reader.read(&it, scalar::duration));
    let idempotent = node.get("idempotent").and_then(|it| reader.read(&it, scalar::truth)).unwrap_or(false);
    Some(HttpTarget { headers, timeout, idempotent, ..target(url?) })
}

/// As much as can be said without asking the network: `http` or `https`, and a host.
pub(super) fn url(field: &dyn Display, value: &Value) -> Result<String, SpecError> {
    let text = scalar::text(field, value)?;
    let good = text.split_once("://").is_some_and(|(scheme, rest)| {
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        let web = ["http", "https"].contains(&scheme.to_ascii_lowercase().as_str());
        web && !host.is_empty() && !host.starts_with(':')
    });
    let good = good && !text.contains(|it: char| it.is_whitespace() || it.is_control());
    if good { Ok(text.to_owned()) } else { Err(SpecError::BadUrl { text: shortened(text) }) }
}

fn headers(reader: &mut Reader<'_>, node: &Node<'_>) -> BTreeMap<String, String> {
    let mut headers = BTreeMap::new();
    for (name, value) in reader.entries(node) {
        let is_token = |it: char| it.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(it);
        if let Some(found) = name.chars().find(|it| !is_token(*it)) {
            let (field, what) = (reader.shown(&value.path()), "the name of a header");
            reader.fault(&value.path(), SpecError::BadCharacter { field, what, found });
        } else if name.is_empty() {
            let field = reader.shown(&value.path());
            reader.fault(&value.path(), SpecError::Empty { field, way_out: "name the header" });
        }
        let header_text = |field: &dyn Display, value: &Value| {
            without(field, scalar::text(field, value)?, "a header", &['\0', '\r', '\n'])
        };
        if let Some(text) = reader.read(&value, header_text) {
            headers.insert(name.to_owned(), text);
        }
    }
    headers
}

fn queue(reader: &mut Reader<'_>, node: &Node<'_>) -> Option<QueueTarget> {
    let word = |field: &dyn Display, value: &Value| {
        let text = scalar::text(field, value)?;
        if text.is_empty() {
            return Err(SpecError::Empty {
                field: field.to_string(),
                way_out: "leave it out for the default",
            });
        }
        without(field, text, "the name of a topic or a broker", &['\0', '\r', '\n', ' ', '\t'])
    };
    let Value::Table(table) = node.value else {
        let topic = reader.read(node, word)?;
        return Some(QueueTarget { topic: Some(topic), ..QueueTarget::default() });
    };
    reader.known_only(node, table, "queue", &QUEUE_NAMES);
    let broker = node.get("broker").and_then(|it| reader.read(&it, word));
    let topic = node.get("topic").and_then(|it| reader.read(&it, word));
    let cloudevents = node.get("cloudevents").and_then(|it| reader.read(&it, scalar::truth)).unwrap_or(false);
    Some(QueueTarget { broker, topic, cloudevents })
}
