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
use super::show;
use crate::store::check::CheckReport;
use crate::store::place::StorePlace;
use crate::store::postgres::{PgConfig, PgStore};
use crate::store::sqlite::{Options, SqliteStore, StoreFile};

/// What is done, and with which store.
#[derive(Debug, Args)]
pub struct DbArgs {
    /// The store: `sqlite:PATH` or `postgres://USER@HOST/DATABASE`.
    #[arg(long, global = true, env = "EVENBEAT_STORE", hide_env_values = true, value_name = "STORE")]
    store: Option<String>,
    /// Print one JSON document instead of text.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Look through the whole store for what should not be there; nothing is changed, and it may be in use.
    Check,
    /// Copy the store, as it is now, into a new file; it may be in use.
    Backup {
        /// The copy. A file that is there is never overwritten.
        to: PathBuf,
    },
    /// Take the store to the tables of this program; one that is not there is made.
    Migrate,
    /// Say that this store was restored from a copy: no lease that was given out since then counts. All nodes must be
    /// stopped.
    NewEpoch,
}

/// Does it.
pub fn run(args: &DbArgs, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<Exit> {
    let Some(store) = &args.store else {
        writeln!(err, "error: no store is named; add `--store sqlite:PATH`, or set EVENBEAT_STORE")?;
        return Ok(Exit::Usage);
    };
    // Read here and not with the command line: a fault there would show a password.
    let store: StorePlace = match store.parse() {
        Ok(store) => store,
        Err(error) => {
            writeln!(err, "error: {error}")?;
            return Ok(Exit::Usage);
        }
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
