//! How a command ends, for scripts.

use std::process::ExitCode;

/// The exit codes of every command, in one place. Documented in README.md.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// 0: done, and all is well.
    Ok,
    /// 1: done, and the answer is bad: a file is not valid, a job is in `error`, a target is
    /// out of reach, a server says no.
    Failed,
    /// 2: the command line itself is wrong, or a file cannot be read.
    Usage,
    /// 3: what was named does not exist.
    NotFound,
    /// 4: it cannot be done to things as they are: someone else was quicker, a job is paused.
    Conflict,
    /// 5: whoever asks may not.
    NotAllowed,
    /// 6: no server answers.
    NoServer,
    /// What a monitoring system understands.
    Probe(Probe),
}

/// How `evenbeat probe` ends: the codes of monitoring systems.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    /// 0.
    Ok,
    /// 1: a job has a warning.
    Warning,
    /// 2: a job is in error.
    Critical,
    /// 3: nobody can tell.
    Unknown,
}

impl Exit {
    fn code(self) -> u8 {
        match self {
            Exit::Ok | Exit::Probe(Probe::Ok) => 0,
            Exit::Failed | Exit::Probe(Probe::Warning) => 1,
            Exit::Usage | Exit::Probe(Probe::Critical) => 2,
            Exit::NotFound | Exit::Probe(Probe::Unknown) => 3,
            Exit::Conflict => 4,
            Exit::NotAllowed => 5,
            Exit::NoServer => 6,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.code())
    }
}
