//! What runs wrote, to be read while they write.

use std::fmt;
use std::io;

use evenbeat_core::ids::RunId;
use evenbeat_core::time::Duration;

use crate::target::command::KeptBytes;

/// The logs of runs of this machine.
pub trait LogBook: fmt::Debug + Send + Sync {
    /// What a run wrote from a byte of its whole output on, at most `most` bytes. None if there is no log of it
    /// here.
    fn read(&self, run: RunId, from: u64, most: usize) -> io::Result<Option<LogPart>>;

    /// Which bytes of a run's output are kept. None if there is no log of it here.
    fn kept(&self, run: RunId) -> Option<KeptBytes>;

    /// How long logs are kept after their run; none if that is not known.
    fn kept_for(&self) -> Option<Duration>;
}

/// A part of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogPart {
    /// What is there; nothing if there is no more for now.
    pub bytes: Vec<u8>,
    /// From which byte of the whole output to go on. It may lie further than these bytes reach, where some were left
    /// out.
    pub next: u64,
    /// Whether nothing will ever follow after these bytes.
    pub is_over: bool,
}

/// For a process that keeps no logs.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoLogs;

impl LogBook for NoLogs {
    fn read(&self, _run: RunId, _from: u64, _most: usize) -> io::Result<Option<LogPart>> {
        Ok(None)
    }

    fn kept(&self, _run: RunId) -> Option<KeptBytes> {
        None
    }

    fn kept_for(&self) -> Option<Duration> {
        None
    }
}
