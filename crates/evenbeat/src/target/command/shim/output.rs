//! The two ends of a run's pipes: what it writes is always taken, what it reads is given as it is wanted.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use evenbeat_core::time::{BootTime, Duration};
use rustix::pipe::{PipeFlags, pipe_with};

use crate::target::command::boot;
use crate::target::command::log::LogWriter;

/// How much is read before anything else gets its turn.
const TURN_BYTES: usize = 64 << 10;

/// How long the last output is read for, when nothing of the run is left that could write.
const DRAIN_FOR: Duration = Duration::from_secs(1);

/// What a run writes, standard output and standard error in one.
#[derive(Debug)]
pub(super) struct Output {
    pipe: Option<File>,
}

impl Output {
    /// The reading end, which never waits, and the writing end.
    pub(super) fn new() -> io::Result<(Output, OwnedFd)> {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
        nonblocking(&read)?;
        Ok((Output { pipe: Some(File::from(read)) }, write))
    }

    /// None once everybody who could write is gone.
    pub(super) fn pipe(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().map(AsFd::as_fd)
    }

    /// Takes what is there, but not for long.
    pub(super) fn take(&mut self, log: &mut LogWriter) -> Taken {
        let Some(pipe) = &mut self.pipe else { return Taken::All };
        let mut bytes = [0; 16 << 10];
        let mut n_taken = 0;
        while n_taken < TURN_BYTES {
            match pipe.read(&mut bytes) {
                Ok(0) => {
                    self.pipe = None;
                    return Taken::All;
                }
                Ok(n_read) => {
                    log.write(bytes.get(..n_read).unwrap_or_default());
                    n_taken += n_read;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Taken::All,
                Err(_) => {
                    self.pipe = None;
                    return Taken::All;
                }
            }
        }
        Taken::MoreMayBeThere
    }

    /// Takes the last of it. Nothing of the run is left: what it wrote is in the pipe, and if anybody else still
    /// writes to it that is no reason to wait.
    pub(super) fn drain(&mut self, log: &mut LogWriter) {
        let until: BootTime = boot::now() + DRAIN_FOR;
        while self.take(log) == Taken::MoreMayBeThere && boot::now() < until {}
    }
}

/// Whether anything was left in the pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    All,
    MoreMayBeThere,
}

/// What a run reads.
#[derive(Debug)]
pub(super) struct Input {
    pipe: File,
    bytes: Vec<u8>,
    n_given: usize,
}

impl Input {
    pub(super) fn new(text: String) -> io::Result<(Input, OwnedFd)> {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
        nonblocking(&write)?;
        Ok((Input { pipe: File::from(write), bytes: text.into_bytes(), n_given: 0 }, read))
    }

    pub(super) fn pipe(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }

    /// Gives what the pipe has room for; whether that was all, or nobody wants the rest.
    pub(super) fn give(&mut self) -> bool {
        while let Some(rest) = self.bytes.get(self.n_given..).filter(|rest| !rest.is_empty()) {
            match self.pipe.write(rest) {
                Ok(n_written) => self.n_given += n_written,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
                Err(_) => return true,
            }
        }
        true
    }
}

fn nonblocking(fd: &OwnedFd) -> io::Result<()> {
    Ok(rustix::io::ioctl_fionbio(fd, true)?)
}
