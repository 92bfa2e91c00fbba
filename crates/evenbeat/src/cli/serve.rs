//! `evenbeat serve`: run a node until it is asked to stop.

use std::error::Error;
use std::io::{self, Write};

use clap::Args;

use super::Exit;
use super::config::{ConfigArgs, exit_of, loaded, say};
use crate::config::Config;
use crate::runtime::app::Stopped;
use crate::serve::{ServeError, Server, Signals, start_logging};

/// What it is asked with.
#[derive(Debug, Args)]
pub(super) struct ServeArgs {
    #[command(flatten)]
    config: ConfigArgs,
}

/// Serves.
pub(super) fn run(args: &ServeArgs, err: &mut dyn Write) -> io::Result<Exit> {
    let config = match loaded(&args.config) {
        Ok(loaded) => loaded.config,
        Err(refused) => {
            say(&refused, err)?;
            return Ok(exit_of(&refused));
        }
    };
    start_logging(&config.log);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    match runtime.block_on(serve(&config)) {
        Ok(_) => Ok(Exit::Ok),
        Err(error) => {
            write_chain(err, &error)?;
            Ok(Exit::Failed)
        }
    }
}

async fn serve(config: &Config) -> Result<Stopped, ServeError> {
    // From the first moment on, so that nobody who hurries kills a process that is about to make its files.
    let signals = Signals::new().map_err(ServeError::Launcher)?;
    let server = Server::start(config).await?;
    server.run(signals).await
}

/// An error and what is behind it, in one line.
pub(super) fn write_chain(err: &mut dyn Write, error: &dyn Error) -> io::Result<()> {
    write!(err, "error: {error}")?;
    let mut behind = error.source();
    while let Some(cause) = behind {
        write!(err, ": {cause}")?;
        behind = cause.source();
    }
    writeln!(err)
}
