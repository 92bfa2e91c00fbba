//! `evenbeat config`: what holds, and where it is from; and the flags of every command that needs to know.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use serde_json::{Value as Json, json};

use super::Exit;
use super::show;
use crate::config::{Asked, Fault, Flag, Loaded, Refused, diagnostics, load};
use crate::jobfile::{Diagnostic, Diagnostics};

/// The flags of every command that needs a configuration.
#[derive(Clone, Debug, Default, Args)]
pub struct ConfigArgs {
    /// The configuration; by default `EVENBEAT_CONFIG`, else evenbeat/evenbeat.toml in the user's or the system's
    /// folder for configurations, if it is there.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The store: `sqlite:PATH` or `postgres://USER@HOST/DATABASE`.
    #[arg(long, value_name = "STORE")]
    pub store: Option<String>,
    /// Where the node keeps its own files.
    #[arg(long, value_name = "FOLDER")]
    pub data_dir: Option<String>,
    /// Where the API and the pages are served.
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<String>,
    /// What the node is called.
    #[arg(long, value_name = "NAME")]
    pub node: Option<String>,
    /// Set any key of the configuration, such as `log.level=debug`. Can be given several times.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
}

impl ConfigArgs {
    /// What they ask for.
    pub fn asked(&self) -> Asked {
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
        Asked { file: self.config.clone(), flags: named.chain(set).collect() }
    }
}

/// What is printed.
#[derive(Debug, Args)]
pub struct ConfigCommand {
    #[command(flatten)]
    config: ConfigArgs,
    /// Only validate.
    #[arg(long)]
    check: bool,
    /// Print one JSON document instead of text.
    #[arg(long)]
    json: bool,
}

/// Prints it, or everything that is wrong with it.
pub fn run(command: &ConfigCommand, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<Exit> {
    match load(&command.config.asked()) {
        Ok(loaded) => {
            for Fault { message, help, .. } in loaded.origins.ignored() {
                let help = help.as_ref().map_or(String::new(), |help| format!("; {help}"));
                writeln!(err, "warning: {message}{help}")?;
            }
            match (command.check, command.json) {
                (true, true) => show::json(out, &json!({ "ok": true, "diagnostics": [] }))?,
                (true, false) => writeln!(out, "{}: valid", name_of(&loaded))?,
                (false, true) => show::json(out, &loaded.origins.json())?,
                (false, false) => write!(out, "{}", loaded.origins.toml())?,
            }
            Ok(Exit::Ok)
        }
        Err(refused) => {
            if command.json {
                show::json(out, &report(&refused))?;
            } else {
                say(&refused, err)?;
            }
            Ok(exit_of(&refused))
        }
    }
}

/// Says for people why there is no configuration.
pub fn say(refused: &Refused, err: &mut dyn Write) -> io::Result<()> {
    let shown = diagnostics(refused.file.as_ref(), &refused.faults);
    write!(err, "{}", shown.render(true))?;
    let n_faults = shown.len();
    writeln!(err, "{n_faults} error{}", if n_faults == 1 { "" } else { "s" })
}

/// How a command ends that got no configuration: the command line is worse than what it names.
pub fn exit_of(refused: &Refused) -> Exit {
    let is_usage = refused.is_unread || refused.faults.iter().any(Fault::is_of_a_flag);
    if is_usage { Exit::Usage } else { Exit::Failed }
}

fn name_of(loaded: &Loaded) -> &str {
    loaded.file.as_ref().map_or("no file", |file| file.name.as_str())
}

fn report(refused: &Refused) -> Json {
    let shown = diagnostics(refused.file.as_ref(), &refused.faults);
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
