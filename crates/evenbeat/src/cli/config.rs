//! `evenbeat config`, and the configuration flags that several commands share.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use serde_json::{Value as Json, json};

use super::Exit;
use super::format;
use crate::config::{ConfigError, ConfigErrors, ConfigFlags, Flag, LoadedConfig, diagnostics, load};
use crate::jobfile::{Diagnostic, Diagnostics};

/// Flags of every command that needs a configuration.
#[derive(Clone, Debug, Default, Args)]
pub struct ConfigArgs {
    /// Configuration file [default: `EVENBEAT_CONFIG`, or evenbeat/evenbeat.toml in the user's or the system's
    /// configuration directory].
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Store to use: `sqlite:PATH` or `postgres://USER@HOST/DATABASE`.
    #[arg(long, value_name = "STORE")]
    pub store: Option<String>,
    /// Directory for the node's own files.
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<String>,
    /// Address and port to serve the API and the web pages on.
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<String>,
    /// Name of the node.
    #[arg(long, value_name = "NAME")]
    pub node: Option<String>,
    /// Set any configuration key, such as `log.level=debug`. Can be repeated.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
}

impl ConfigArgs {
    /// The file and flags for the loader.
    pub fn flags(&self) -> ConfigFlags {
        let named = [
            ("--store", "store", &self.store),
            ("--data-dir", "data_dir", &self.data_dir),
            ("--listen", "listen", &self.listen),
            ("--node", "node.name", &self.node),
        ];
        let named = named
            .into_iter()
            .filter_map(|(flag, key, value)| value.clone().map(|value| Flag::Named { flag, key, value }));
        let set = self.set.iter().cloned().map(Flag::Set);
        ConfigFlags { file: self.config.clone(), flags: named.chain(set).collect() }
    }
}

/// Arguments of `evenbeat config`.
#[derive(Debug, Args)]
pub struct ConfigCommand {
    #[command(flatten)]
    config: ConfigArgs,
    /// Validate the configuration without printing it.
    #[arg(long)]
    check: bool,
    /// Print one JSON document instead of text.
    #[arg(long)]
    json: bool,
}

/// Prints the configuration, or all of its errors.
pub fn run(command: &ConfigCommand, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<Exit> {
    match load(&command.config.flags()) {
        Ok(loaded) => {
            for ConfigError { message, help, .. } in loaded.origins.ignored() {
                let help = help.as_ref().map_or(String::new(), |help| format!("; {help}"));
                writeln!(err, "warning: {message}{help}")?;
            }
            match (command.check, command.json) {
                (true, true) => format::json(out, &json!({ "ok": true, "diagnostics": [] }))?,
                (true, false) => writeln!(out, "{}: valid", name_of(&loaded))?,
                (false, true) => format::json(out, &loaded.origins.json())?,
                (false, false) => write!(out, "{}", loaded.origins.toml())?,
            }
            Ok(Exit::Ok)
        }
        Err(errors) => {
            if command.json {
                format::json(out, &report(&errors))?;
            } else {
                print_errors(&errors, err)?;
            }
            Ok(exit_of(&errors))
        }
    }
}

/// Prints why there is no configuration.
pub fn print_errors(errors: &ConfigErrors, err: &mut dyn Write) -> io::Result<()> {
    let shown = diagnostics(errors.file.as_ref(), &errors.errors);
    write!(err, "{}", shown.render(true))?;
    let n_errors = shown.len();
    writeln!(err, "{n_errors} error{}", if n_errors == 1 { "" } else { "s" })
}

/// The exit code without a configuration. A bad command line takes precedence over a bad file.
pub fn exit_of(errors: &ConfigErrors) -> Exit {
    let is_usage = errors.is_unread || errors.errors.iter().any(ConfigError::is_of_a_flag);
    if is_usage { Exit::Usage } else { Exit::Failed }
}

fn name_of(loaded: &LoadedConfig) -> &str {
    loaded.file.as_ref().map_or("no file", |file| file.name.as_str())
}

fn report(errors: &ConfigErrors) -> Json {
    let shown = diagnostics(errors.file.as_ref(), &errors.errors);
    let entries: Vec<Json> = shown.iter().map(|it| entry(&shown, it)).collect();
    json!({ "ok": false, "diagnostics": entries })
}

fn entry(all: &Diagnostics, diagnostic: &Diagnostic) -> Json {
    let positions = all.positions_of(diagnostic);
    json!({
        "severity": diagnostic.severity.as_str(),
        "source": all.source_of(diagnostic).map(|it| &it.name),
        "line": positions.map(|(start, _)| start.line),
        "column": positions.map(|(start, _)| start.column),
        "key": diagnostic.field,
        "message": diagnostic.message,
        "hint": diagnostic.help,
    })
}
