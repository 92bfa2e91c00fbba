//! How a command ends, for scripts.

use std::process::ExitCode;

/// The exit codes of every command, in one place. Documented in README.md.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// 0: done, and all is well.
    Ok,
    /// 1: done, and the answer is bad: a file is not valid, a job is in `error`, a target is
    /// out of reach.
    Failed,
    /// 2: the command line itself is wrong, or a file cannot be read.
    Usage,
    /// 3: what was named does not exist.
    NotFound,
}

impl Exit {
    fn code(self) -> u8 {
        match self {
            Exit::Ok => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::NotFound => 3,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.code())
    }
}
