//! `evenbeat db`: checks, copies and upgrades a store.

use std::error::Error;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use evenbeat_core::store::Store as _;
use serde_json::json;

use super::Exit;
use super::chart::counted;
use super::config::{ConfigArgs, exit_of, print_errors};
use super::format::{self, with_causes};
use crate::config::StoreAddress;
use crate::config::load;
use crate::store::check::CheckReport;
use crate::store::postgres::{PgConfig, PgStore};
use crate::store::sqlite::{Options, SqliteStore, StoreFile};

/// Arguments of `evenbeat db`.
#[derive(Debug, Args)]
pub struct DbArgs {
    /// Store to use: `sqlite:PATH` or `postgres://USER@HOST/DATABASE` [default: the configured store].
    #[arg(long, global = true, env = "EVENBEAT_STORE", hide_env_values = true, value_name = "STORE")]
    store: Option<String>,
    /// Configuration file that names the store [default: the one that `evenbeat serve` uses].
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Data directory of the node that uses the store.
    #[arg(long, global = true, value_name = "DIR")]
    data_dir: Option<String>,
    /// Print one JSON document instead of text.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    action: DbAction,
}

#[derive(Debug, Subcommand)]
enum DbAction {
    /// Check the whole store for errors. Changes nothing; the store may be in use.
    Check,
    /// Copy the store to a new file. The store may be in use.
    Backup {
        /// File to create. An existing file is never overwritten.
        to: PathBuf,
    },
    /// Upgrade the store's tables to this version. Creates the store if it does not exist.
    Migrate,
    /// Start a new epoch after the store was restored from a copy: leases granted since that copy no longer count. All
    /// nodes must be stopped.
    NewEpoch,
}

impl DbArgs {
    fn config(&self) -> ConfigArgs {
        ConfigArgs { config: self.config.clone(), data_dir: self.data_dir.clone(), ..ConfigArgs::default() }
    }
}

/// Runs the command.
pub fn run(args: &DbArgs, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<Exit> {
    let store = match &args.store {
        // Parsed here and not by clap, whose error would show a password.
        Some(store) => match store.parse::<StoreAddress>() {
            Ok(store) => store,
            Err(error) => {
                writeln!(err, "error: {error}")?;
                return Ok(Exit::Usage);
            }
        },
        None => match load(&args.config().flags()) {
            Ok(loaded) => loaded.config.store,
            Err(errors) => {
                print_errors(&errors, err)?;
                return Ok(exit_of(&errors));
            }
        },
    };
    let result = match &store {
        StoreAddress::Sqlite(path) => on_file(path, &args.action),
        StoreAddress::Postgres(address) => on_server(address, &args.action),
    };
    match result {
        Ok(result) => {
            print(&result, args.json, out)?;
            Ok(if result.is_bad() { Exit::Failed } else { Exit::Ok })
        }
        Err(error) => {
            writeln!(err, "error: {}", with_causes(error.as_ref()))?;
            Ok(Exit::Failed)
        }
    }
}

/// The result of a command.
enum DbResult {
    Check(CheckReport),
    Backup(PathBuf),
    Migration,
    Epoch(u64),
}

impl DbResult {
    fn is_bad(&self) -> bool {
        matches!(self, DbResult::Check(report) if !report.findings.is_empty())
    }
}

fn on_file(path: &Path, action: &DbAction) -> Result<DbResult, Box<dyn Error>> {
    Ok(match action {
        DbAction::Check => DbResult::Check(StoreFile::find(path)?.check()?),
        DbAction::Backup { to } => {
            StoreFile::find(path)?.backup(to)?;
            DbResult::Backup(to.clone())
        }
        DbAction::Migrate => {
            SqliteStore::open(path, Options::default())?.close()?;
            DbResult::Migration
        }
        DbAction::NewEpoch => {
            StoreFile::find(path)?;
            let mut store = SqliteStore::open(path, Options::default())?;
            let epoch = store.new_epoch()?;
            // Holding the file's lock proves that no other node is alive, so there is nothing to wait for.
            store.open_epoch(epoch)?;
            store.close()?;
            DbResult::Epoch(epoch.0)
        }
    })
}

fn on_server(address: &str, action: &DbAction) -> Result<DbResult, Box<dyn Error>> {
    let store = PgStore::new(address.parse::<PgConfig>()?)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        Ok(match action {
            DbAction::Check => DbResult::Check(store.check().await?),
            DbAction::Backup { .. } => {
                let why = "a PostgreSQL database is copied by its own tools, such as `pg_dump`; after a restore, with \
                           all nodes stopped, run `evenbeat db new-epoch`";
                return Err(why.into());
            }
            DbAction::Migrate => {
                store.migrate().await?;
                DbResult::Migration
            }
            DbAction::NewEpoch => DbResult::Epoch(store.new_epoch().await?.0),
        })
    })
}

fn print(result: &DbResult, is_json: bool, out: &mut dyn Write) -> io::Result<()> {
    match result {
        DbResult::Check(report) if is_json => format::json(
            out,
            &json!({ "jobs": report.n_jobs, "open_runs": report.n_open_runs, "findings": report.findings }),
        ),
        DbResult::Check(report) => {
            for finding in &report.findings {
                writeln!(out, "{finding}")?;
            }
            let found = match report.findings.len() {
                0 => "no problems".to_owned(),
                n => counted(n as u64, "finding"),
            };
            let (jobs, runs) = (counted(report.n_jobs, "job"), counted(report.n_open_runs, "open run"));
            writeln!(out, "{jobs}, {runs}: {found}")
        }
        DbResult::Backup(to) if is_json => format::json(out, &json!({ "backup": to })),
        DbResult::Backup(to) => writeln!(
            out,
            "copied to {}; before you use the copy in place of the original, run `evenbeat db new-epoch` on it",
            to.display()
        ),
        DbResult::Migration if is_json => format::json(out, &json!({ "migrated": true })),
        DbResult::Migration => writeln!(out, "the store is up to date"),
        DbResult::Epoch(no) if is_json => format::json(out, &json!({ "epoch": no })),
        DbResult::Epoch(no) => writeln!(out, "started epoch {no}"),
    }
}
