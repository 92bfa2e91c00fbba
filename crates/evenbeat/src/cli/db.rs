//! `evenbeat db`: looks through a store, copies it, takes it to today's tables.

use std::error::Error;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use evenbeat_core::store::Store as _;
use serde_json::json;

use super::Exit;
use super::chart::counted;
use super::config::{ConfigArgs, exit_of, say};
use super::show;
use crate::config::StorePlace;
use crate::config::load;
use crate::store::check::CheckReport;
use crate::store::postgres::{PgConfig, PgStore};
use crate::store::sqlite::{Options, SqliteStore, StoreFile};

/// What is done, and with which store.
#[derive(Debug, Args)]
pub struct DbArgs {
    /// The store: `sqlite:PATH` or `postgres://USER@HOST/DATABASE`. By default that of the configuration.
    #[arg(long, global = true, env = "EVENBEAT_STORE", hide_env_values = true, value_name = "STORE")]
    store: Option<String>,
    /// The configuration that names the store, found as `evenbeat serve` finds it.
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The data folder of the node whose store it is.
    #[arg(long, global = true, value_name = "FOLDER")]
    data_dir: Option<String>,
    /// Print one JSON document instead of text.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Check the whole store for faults. Changes nothing; the store may be in use.
    Check,
    /// Copy the store, as it is now, to a new file. The store may be in use.
    Backup {
        /// The copy. An existing file is never overwritten.
        to: PathBuf,
    },
    /// Upgrade the tables of the store to this version. Creates the store if it does not exist.
    Migrate,
    /// Say that this store was restored from a copy: no lease that was given out since then counts. All nodes must be
    /// stopped.
    NewEpoch,
}

impl DbArgs {
    fn config(&self) -> ConfigArgs {
        ConfigArgs { config: self.config.clone(), data_dir: self.data_dir.clone(), ..ConfigArgs::default() }
    }
}

/// Does it.
pub fn run(args: &DbArgs, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<Exit> {
    let store = match &args.store {
        // Read here and not with the command line: a fault there would show a password.
        Some(store) => match store.parse::<StorePlace>() {
            Ok(store) => store,
            Err(error) => {
                writeln!(err, "error: {error}")?;
                return Ok(Exit::Usage);
            }
        },
        None => match load(&args.config().asked()) {
            Ok(loaded) => loaded.config.store,
            Err(refused) => {
                say(&refused, err)?;
                return Ok(exit_of(&refused));
            }
        },
    };
    let done = match &store {
        StorePlace::Sqlite(path) => on_file(path, &args.action),
        StorePlace::Postgres(address) => on_server(address, &args.action),
    };
    match done {
        Ok(done) => {
            tell(&done, args.json, out)?;
            Ok(if done.is_bad() { Exit::Failed } else { Exit::Ok })
        }
        Err(error) => {
            writeln!(err, "error: {}", with_causes(error.as_ref()))?;
            Ok(Exit::Failed)
        }
    }
}

/// What was done.
enum Done {
    Checked(CheckReport),
    Copied(PathBuf),
    Migrated,
    Begun(u64),
}

impl Done {
    fn is_bad(&self) -> bool {
        matches!(self, Done::Checked(report) if !report.findings.is_empty())
    }
}

fn on_file(path: &Path, action: &Action) -> Result<Done, Box<dyn Error>> {
    Ok(match action {
        Action::Check => Done::Checked(StoreFile::find(path)?.check()?),
        Action::Backup { to } => {
            StoreFile::find(path)?.backup(to)?;
            Done::Copied(to.clone())
        }
        Action::Migrate => {
            SqliteStore::open(path, Options::default())?.close()?;
            Done::Migrated
        }
        Action::NewEpoch => {
            StoreFile::find(path)?;
            let mut store = SqliteStore::open(path, Options::default())?;
            let epoch = store.new_epoch()?;
            // The file's lock says that nobody else lives: nothing has to be waited for.
            store.open_epoch(epoch)?;
            store.close()?;
            Done::Begun(epoch.0)
        }
    })
}

fn on_server(address: &str, action: &Action) -> Result<Done, Box<dyn Error>> {
    let store = PgStore::new(address.parse::<PgConfig>()?)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        Ok(match action {
            Action::Check => Done::Checked(store.check().await?),
            Action::Backup { .. } => {
                let why = "a PostgreSQL database is copied by its own tools, such as `pg_dump`; after a restore, with \
                           all nodes stopped, run `evenbeat db new-epoch`";
                return Err(why.into());
            }
            Action::Migrate => {
                store.migrate().await?;
                Done::Migrated
            }
            Action::NewEpoch => Done::Begun(store.new_epoch().await?.0),
        })
    })
}

fn tell(done: &Done, is_json: bool, out: &mut dyn Write) -> io::Result<()> {
    match done {
        Done::Checked(report) if is_json => show::json(
            out,
            &json!({ "jobs": report.n_jobs, "open_runs": report.n_open_runs, "findings": report.findings }),
        ),
        Done::Checked(report) => {
            for finding in &report.findings {
                writeln!(out, "{finding}")?;
            }
            let found = match report.findings.len() {
                0 => "all is well".to_owned(),
                n => counted(n as u64, "finding"),
            };
            let (jobs, runs) = (counted(report.n_jobs, "job"), counted(report.n_open_runs, "open run"));
            writeln!(out, "{jobs}, {runs}: {found}")
        }
        Done::Copied(to) if is_json => show::json(out, &json!({ "backup": to })),
        Done::Copied(to) => writeln!(
            out,
            "copied to {}; before it is used in place of the original, run `evenbeat db new-epoch` on it",
            to.display()
        ),
        Done::Migrated if is_json => show::json(out, &json!({ "migrated": true })),
        Done::Migrated => writeln!(out, "the tables are those of this program"),
        Done::Begun(no) if is_json => show::json(out, &json!({ "epoch": no })),
        Done::Begun(no) => writeln!(out, "epoch {no} has begun"),
    }
}

fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let _ = write!(text, ": {error}");
        cause = error.source();
    }
    text
}
