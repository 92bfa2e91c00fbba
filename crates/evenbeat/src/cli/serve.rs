//! `evenbeat serve`: runs a node until it is stopped.

use std::error::Error;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Mutex;
use std::thread;

use clap::Args;

use super::Exit;
use super::config::{ConfigArgs, exit_of, print_errors};
use crate::app::StopResult;
use crate::clock::Clock;
use crate::config::{Config, load};
use crate::serve::{ConfigSource, END_WITHIN, Hangups, ServeError, Server, Signals, end, start_logging};

/// Arguments of `evenbeat serve`.
#[derive(Debug, Args)]
pub(super) struct ServeArgs {
    /// Job files or directories to apply at startup and on SIGHUP, in addition to `jobs` in the configuration.
    #[arg(value_name = "FILE")]
    jobs: Vec<PathBuf>,
    #[command(flatten)]
    config: ConfigArgs,
}

pub(super) fn run(args: &ServeArgs, clock: &Clock, err: &mut dyn Write) -> io::Result<Exit> {
    let (flags, jobs) = (args.config.flags(), args.jobs.clone());
    let read = move || {
        let mut loaded = load(&flags)?;
        for path in &jobs {
            if !loaded.config.jobs.contains(path) {
                loaded.config.jobs.push(path.clone());
            }
        }
        Ok(loaded)
    };
    let (config, origins) = match read() {
        Ok(loaded) => (loaded.config, loaded.origins),
        Err(errors) => {
            print_errors(&errors, err)?;
            return Ok(exit_of(&errors));
        }
    };
    let log = start_logging(config.log, clock);
    for ignored in origins.ignored() {
        tracing::warn!(reason = ignored.message, "environment variable ignored");
    }
    let runtime = match runtime() {
        Ok(runtime) => runtime,
        Err(error) => {
            writeln!(err, "error: cannot start threads; raise the process limit (`ulimit -u`): {error}")?;
            return Ok(Exit::Failed);
        }
    };
    let source = ConfigSource::new(Box::new(read), origins, log);
    match runtime.block_on(serve(&config, clock, source)) {
        Ok(stopped) => {
            end(runtime, stopped);
            Ok(Exit::Ok)
        }
        Err(error) => {
            runtime.shutdown_timeout(END_WITHIN);
            write_error(err, &error)?;
            Ok(Exit::Failed)
        }
    }
}

/// Threads besides one per core: for the store, for shims and for blocking work.
const N_OTHER_THREADS: usize = 8;

/// Builds the async runtime. It panics if it cannot start its threads, so we first try to start as many ourselves.
fn runtime() -> io::Result<tokio::runtime::Runtime> {
    let n_threads = thread::available_parallelism().map_or(1, usize::from) + N_OTHER_THREADS;
    let all_started = Mutex::new(());
    thread::scope(|scope| {
        let _not_yet = all_started.lock();
        for _ in 0..n_threads {
            thread::Builder::new().spawn_scoped(scope, || drop(all_started.lock()))?;
        }
        io::Result::Ok(())
    })?;
    tokio::runtime::Builder::new_multi_thread().enable_all().build()
}

async fn serve(config: &Config, clock: &Clock, source: ConfigSource) -> Result<StopResult, ServeError> {
    // Listen for signals from the first moment, so that an early Ctrl-C does not kill the process while it creates files.
    let signals = Signals::new().map_err(ServeError::Launcher)?;
    let hangups = Hangups::new().map_err(ServeError::Launcher)?;
    let server = Server::start(config, clock).await?;
    server.run(signals, hangups, source).await
}

/// Reports why the node cannot serve.
pub(super) fn write_error(err: &mut dyn Write, error: &ServeError) -> io::Result<()> {
    match error {
        // There may be many of these, and each is a complete message.
        ServeError::Jobs(faults) => write!(err, "{faults}"),
        _ => write_chain(err, error),
    }
}

/// Prints an error and its causes in one line.
fn write_chain(err: &mut dyn Write, error: &dyn Error) -> io::Result<()> {
    write!(err, "error: {error}")?;
    let mut behind = error.source();
    while let Some(cause) = behind {
        write!(err, ": {cause}")?;
        behind = cause.source();
    }
    writeln!(err)
}
