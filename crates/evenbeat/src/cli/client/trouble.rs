//! Why a request failed.

use std::fmt;
use std::io;

use super::Place;
use crate::cli::Exit;
use crate::views::model::ProblemBody;

/// Why a request failed.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// Nothing listens there.
    NoServer { place: Place, why: String },
    /// The user is not allowed to connect to the socket.
    Closed { place: Place, why: String },
    /// The server was reached, but its answer did not arrive or broke off.
    NoAnswer { place: Place, why: String },
    /// The answer does not come from Evenbeat.
    NotOurs { place: Place, why: String },
    /// The server refused the request.
    Problem(Box<ProblemBody>),
    /// The command line is invalid.
    Usage(String),
    /// The command failed for another reason.
    Bad(String),
    /// Writing our output failed.
    Output(io::Error),
}

impl Trouble {
    /// The exit code for this failure.
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Trouble::NoServer { .. } => Exit::NoServer,
            Trouble::Closed { .. } => Exit::NotAllowed,
            Trouble::NoAnswer { .. } | Trouble::NotOurs { .. } | Trouble::Bad(_) => Exit::Failed,
            Trouble::Usage(_) | Trouble::Output(_) => Exit::Usage,
            Trouble::Problem(problem) => match problem.status {
                404 => Exit::NotFound,
                409 | 412 => Exit::Conflict,
                401 | 403 | 421 => Exit::NotAllowed,
                _ => Exit::Failed,
            },
        }
    }
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Trouble {
        Trouble::Output(error)
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::NoServer { place, why } => write!(
                f,
                "no server at {place} ({why}); start one with `evenbeat serve`, or pass another address with `--server` or \
                 EVENBEAT_SERVER"
            ),
            Trouble::Closed { place, why } => write!(
                f,
                "no permission to connect to {place} ({why}); run as the user that runs the server, or connect to its port \
                 with `--server http://HOST:PORT`"
            ),
            Trouble::NoAnswer { place, why } => write!(f, "no answer from {place}: {why}"),
            Trouble::NotOurs { place, why } => {
                write!(f, "{place} does not answer like an Evenbeat server: {why}")
            }
            Trouble::Problem(problem) => {
                let [_, _, ..] = problem.errors.as_slice() else { return f.write_str(&problem.detail) };
                let mut title = problem.title.chars();
                let first = title.next().map(|it| it.to_ascii_lowercase()).unwrap_or_default();
                write!(f, "{first}{}:", title.as_str())?;
                for error in &problem.errors {
                    let place =
                        if error.pointer.is_empty() { String::new() } else { format!("{}: ", error.pointer) };
                    write!(f, "\n  {place}{}", error.detail)?;
                }
                Ok(())
            }
            Trouble::Usage(what) | Trouble::Bad(what) => f.write_str(what),
            Trouble::Output(error) => write!(f, "cannot write the output: {error}"),
        }
    }
}
