//! `evenbeat context`: servers by name, so that their addresses need not be typed again.
//!
//! A context has the address of a server and the paths of files: never a token itself.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf, absolute};

use clap::{Args, Subcommand};
use evenbeat_core::nearest::nearest;
use serde::{Deserialize, Serialize};

use super::Exit;
use super::client::ServerAddress;
use super::format::{BOLD, DIM};
use super::table::{Cell, Fit, words};
use super::terminal;
use crate::printable;

/// Arguments of `evenbeat context`.
#[derive(Debug, Args)]
pub(crate) struct ContextArgs {
    #[command(subcommand)]
    action: ContextAction,
}

#[derive(Debug, Subcommand)]
enum ContextAction {
    /// Name a server, as in `evenbeat context add prod --server https://beat.example --token-file ~/.evenbeat-token`.
    Add {
        /// Name of the context.
        name: String,
        /// Server address: `https://HOST:PORT`, `http://HOST:PORT` or `unix:PATH`.
        #[arg(long, value_name = "ADDRESS")]
        server: String,
        /// File with the token to show. The path is stored, not the token.
        #[arg(long, value_name = "FILE")]
        token_file: Option<PathBuf>,
        /// File of certificates to trust besides those of the machine, in PEM format.
        #[arg(long, value_name = "FILE")]
        ca: Option<PathBuf>,
        /// Replace the context if it already exists.
        #[arg(long)]
        replace: bool,
    },
    /// List contexts. The one in use has a star.
    List {
        /// Print one JSON document instead of text.
        #[arg(long)]
        json: bool,
    },
    /// Use a context from now on.
    Use {
        /// Name of the context.
        #[arg(required_unless_present = "none")]
        name: Option<String>,
        /// Use none: ask the server on this machine again.
        #[arg(long, conflicts_with = "name")]
        none: bool,
    },
    /// Remove a context. Files that it names stay.
    Remove {
        /// Name of the context.
        name: String,
    },
}

/// All contexts of a user.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Contexts {
    /// The one in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    current: Option<String>,
    #[serde(default)]
    contexts: BTreeMap<String, NamedServer>,
}

/// A server that has a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NamedServer {
    pub(crate) server: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) token_file: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ca: Option<PathBuf>,
}

/// Longest name of a context.
const NAME_MAX: usize = 64;

/// Largest file of contexts that is read, in bytes.
const FILE_MAX: u64 = 1 << 20;

/// Where the contexts of a user are kept. None if the user has no home.
fn path(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let of = |name: &str| variable(name).filter(|it| !it.is_empty()).map(PathBuf::from);
    let config = of("XDG_CONFIG_HOME").or_else(|| of("HOME").map(|home| home.join(".config")))?;
    Some(config.join("evenbeat").join("contexts.toml"))
}

impl Contexts {
    fn read(path: &Path) -> Result<Contexts, String> {
        let fault = |why: String| format!("{}: {why}", path.display());
        match fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Contexts::default()),
            Err(error) => return Err(fault(error.to_string())),
            Ok(facts) if FILE_MAX < facts.len() => return Err(fault("is too large".to_owned())),
            Ok(_) => {}
        }
        let text = fs::read_to_string(path).map_err(|error| fault(error.to_string()))?;
        toml::from_str(&text).map_err(|error| fault(error.message().to_owned()))
    }

    /// Writes the file as a whole, for this user only.
    fn write(&self, path: &Path) -> Result<(), String> {
        let fault = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let text = toml::to_string(self).map_err(|error| fault(&error))?;
        if let Some(folder) = path.parent() {
            fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(folder)
                .map_err(|error| fault(&error))?;
        }
        let draft = path.with_extension(format!("toml.{}", std::process::id()));
        let written = fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&draft)
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .and_then(|()| fs::rename(&draft, path));
        written.map_err(|error| {
            let _ = fs::remove_file(&draft);
            fault(&error)
        })
    }

    fn get(&self, name: &str) -> Result<&NamedServer, String> {
        self.contexts.get(name).ok_or_else(|| {
            let hint = match nearest(name, self.contexts.keys().map(String::as_str)) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "`evenbeat context list` shows all of them".to_owned(),
            };
            format!("there is no context `{}` ({hint})", printable::line(name))
        })
    }
}

/// The server that a context names: the given one, or the one in use.
pub(crate) fn chosen(
    given: Option<&str>,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Result<Option<NamedServer>, String> {
    let name = given.map(str::to_owned);
    let name = name.or_else(|| variable("EVENBEAT_CONTEXT").and_then(|it| it.into_string().ok()));
    let name = name.filter(|it| !it.is_empty());
    let Some(path) = path(variable) else {
        return name.map_or(Ok(None), |_| Err("there is no home directory to keep contexts in".to_owned()));
    };
    let contexts = Contexts::read(&path)?;
    name.or_else(|| contexts.current.clone()).map(|name| contexts.get(&name).cloned()).transpose()
}

pub(crate) fn run(
    args: ContextArgs,
    variable: impl Fn(&str) -> Option<OsString>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<Exit> {
    let done = match path(variable) {
        Some(path) => carry_out(args.action, &path, out),
        None => Err((Exit::Failed, "set HOME: contexts are kept in `~/.config/evenbeat`".to_owned())),
    };
    match done {
        Ok(()) => Ok(Exit::Ok),
        Err((exit, why)) => {
            writeln!(err, "error: {why}")?;
            Ok(exit)
        }
    }
}

fn carry_out(action: ContextAction, path: &Path, out: &mut dyn Write) -> Result<(), (Exit, String)> {
    let failed = |why: String| (Exit::Failed, why);
    let usage = |why: String| (Exit::Usage, why);
    let shown = |result: io::Result<()>| result.map_err(|error| (Exit::Usage, error.to_string()));
    let mut contexts = Contexts::read(path).map_err(failed)?;
    match action {
        ContextAction::Add { name, server, token_file, ca, replace } => {
            check_name(&name).map_err(usage)?;
            let address: ServerAddress =
                server.parse().map_err(|error| usage(format!("--server: {error}")))?;
            if contexts.contexts.contains_key(&name) && !replace {
                let why =
                    format!("the context `{name}` exists already; add `--replace`, or choose another name");
                return Err((Exit::Conflict, why));
            }
            let whole = |file: Option<PathBuf>| {
                file.map(absolute).transpose().map_err(|error| usage(error.to_string()))
            };
            let named =
                NamedServer { server: address.to_string(), token_file: whole(token_file)?, ca: whole(ca)? };
            contexts.contexts.insert(name.clone(), named);
            contexts.write(path).map_err(failed)?;
            let hint = if contexts.current.as_ref() == Some(&name) {
                String::new()
            } else {
                format!("; `evenbeat context use {name}` makes it the usual one")
            };
            shown(writeln!(out, "{BOLD}{name}{BOLD:#} is {address}{hint}"))
        }
        ContextAction::List { json } => shown(list(&contexts, json, out)),
        ContextAction::Use { name, none: _ } => {
            if let Some(name) = &name {
                contexts.get(name).map_err(|why| (Exit::NotFound, why))?;
            }
            contexts.current.clone_from(&name);
            contexts.write(path).map_err(failed)?;
            match name {
                Some(name) => shown(writeln!(out, "{BOLD}{name}{BOLD:#} is used from now on")),
                None => shown(writeln!(out, "the server on this machine is used from now on")),
            }
        }
        ContextAction::Remove { name } => {
            contexts.get(&name).map_err(|why| (Exit::NotFound, why))?;
            contexts.contexts.remove(&name);
            if contexts.current.as_ref() == Some(&name) {
                contexts.current = None;
            }
            contexts.write(path).map_err(failed)?;
            shown(writeln!(out, "{BOLD}{name}{BOLD:#} removed"))
        }
    }
}

fn list(contexts: &Contexts, json: bool, out: &mut dyn Write) -> io::Result<()> {
    if json {
        return super::format::json(out, &serde_json::to_value(contexts).unwrap_or_default());
    }
    if contexts.contexts.is_empty() {
        return writeln!(out, "no contexts");
    }
    let row = |(name, it): (&String, &NamedServer)| {
        let star = if contexts.current.as_ref() == Some(name) { "*" } else { "" };
        let token = it.token_file.as_ref().map_or("-".to_owned(), |it| it.display().to_string());
        vec![
            Cell::plain(star),
            Cell::plain(name),
            Cell::plain(&it.server),
            Cell::styled(printable::line(&token).into_owned(), DIM),
        ]
    };
    let rows: Vec<Vec<Cell>> = contexts.contexts.iter().map(row).collect();
    let columns =
        [("", Fit::Whole), ("NAME", Fit::Whole), ("SERVER", Fit::Shorten(20)), ("TOKEN FILE", Fit::Drop)];
    for line in words(&columns, &rows, terminal::table_width()) {
        writeln!(out, "{}", super::chart::trimmed(&line))?;
    }
    Ok(())
}

fn check_name(name: &str) -> Result<(), String> {
    let is_good = |it: char| it.is_ascii_alphanumeric() || ['-', '_', '.'].contains(&it);
    if name.is_empty() || NAME_MAX < name.len() || !name.chars().all(is_good) {
        let name = printable::line(name).into_owned();
        return Err(format!(
            "`{name}` is not a name: use up to {NAME_MAX} letters, digits, `-`, `_` and `.`"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contexts_are_kept_where_configuration_is() {
        let of = |set: &[(&str, &str)]| {
            let found = path(|name| set.iter().find(|(it, _)| *it == name).map(|(_, value)| value.into()));
            found.map(|it| it.display().to_string())
        };
        assert_eq!(of(&[("HOME", "/h")]).as_deref(), Some("/h/.config/evenbeat/contexts.toml"));
        assert_eq!(
            of(&[("HOME", "/h"), ("XDG_CONFIG_HOME", "/c")]).as_deref(),
            Some("/c/evenbeat/contexts.toml")
        );
        assert_eq!(of(&[("XDG_CONFIG_HOME", "")]), None);
    }

    #[test]
    fn names_are_plain() {
        for good in ["prod", "eu-1.example_x"] {
            assert_eq!(check_name(good), Ok(()));
        }
        for bad in ["", "a b", "../x", "\u{1b}[31m", &"x".repeat(65)] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
    }
}
