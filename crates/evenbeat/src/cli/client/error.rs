//! Why a command failed that talks to a server.

use std::fmt;
use std::io;

use super::ServerAddress;
use crate::cli::Exit;
use crate::views::model::ProblemBody;

/// Why a command failed that talks to a server.
#[derive(Debug)]
pub(crate) enum CommandError {
    /// Nothing listens there.
    NoServer { address: ServerAddress, why: String },
    /// The user is not allowed to connect to the socket.
    Closed { address: ServerAddress, why: String },
    /// The server was reached, but its answer did not arrive or broke off.
    NoAnswer { address: ServerAddress, why: String },
    /// The server's certificate is not one to trust, or it does not speak TLS.
    NotTrusted { address: ServerAddress, why: String },
    /// The answer does not come from Evenbeat.
    NotOurs { address: ServerAddress, why: String },
    /// The server refused the request.
    Problem(Box<ProblemBody>),
    /// The command line is invalid.
    Usage(String),
    /// The command failed for another reason.
    Bad(String),
    /// Writing our output failed.
    Output(io::Error),
}

impl CommandError {
    /// The exit code for this failure.
    pub(crate) fn exit(&self) -> Exit {
        match self {
            CommandError::NoServer { .. } => Exit::NoServer,
            CommandError::Closed { .. } => Exit::NotAllowed,
            CommandError::NoAnswer { .. }
            | CommandError::NotTrusted { .. }
            | CommandError::NotOurs { .. }
            | CommandError::Bad(_) => Exit::Failed,
            CommandError::Usage(_) | CommandError::Output(_) => Exit::Usage,
            CommandError::Problem(problem) => match problem.status {
                404 => Exit::NotFound,
                409 | 412 => Exit::Conflict,
                401 | 403 | 421 => Exit::NotAllowed,
                _ => Exit::Failed,
            },
        }
    }
}

impl From<io::Error> for CommandError {
    fn from(error: io::Error) -> CommandError {
        CommandError::Output(error)
    }
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CommandError::NoServer { address, why } => write!(
                f,
                "no server at {address} ({why}); start one with `evenbeat serve`, or pass another address with `--server` or \
                 EVENBEAT_SERVER"
            ),
            CommandError::Closed { address, why } => write!(
                f,
                "no permission to connect to {address} ({why}); run as the user that runs the server, or connect to its port \
                 with `--server http://HOST:PORT` and a token"
            ),
            CommandError::NotTrusted { address, why } => write!(
                f,
                "no secure connection to {address}: {why}; if the server's certificate comes from an authority of your own, \
                 pass its file with `--ca` or EVENBEAT_CA"
            ),
            CommandError::NoAnswer { address, why } => write!(f, "no answer from {address}: {why}"),
            CommandError::NotOurs { address, why } => {
                write!(f, "{address} does not answer like an Evenbeat server: {why}")
            }
            CommandError::Problem(problem) => {
                let [_, _, ..] = problem.errors.as_slice() else { return f.write_str(&problem.detail) };
                let mut title = problem.title.chars();
                let first = title.next().map(|it| it.to_ascii_lowercase()).unwrap_or_default();
                write!(f, "{first}{}:", title.as_str())?;
                for error in &problem.errors {
                    let field =
                        if error.pointer.is_empty() { String::new() } else { format!("{}: ", error.pointer) };
                    write!(f, "\n  {field}{}", error.detail)?;
                }
                Ok(())
            }
            CommandError::Usage(what) | CommandError::Bad(what) => f.write_str(what),
            CommandError::Output(error) => write!(f, "cannot write the output: {error}"),
        }
    }
}
