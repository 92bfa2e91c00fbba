//! The two ends of a run's pipes: what it writes is always taken, what it reads is given as it is wanted.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use evenbeat_core::time::{BootTime, Duration};
use rustix::pipe::{PipeFlags, pipe_with};

use crate::target::command::boot;
use crate::target::command::log::{LogWriter, Stream};

/// How much is read before anything else gets its turn.
const TURN_BYTES: usize = 64 << 10;

/// How much is kept of the last line of standard error.
const LAST_LINE_BYTES: usize = 400;

/// How long the last output is read for, when nothing of the run is left that could write.
const DRAIN_FOR: Duration = Duration::from_secs(1);

/// What a run writes: two pipes, so that its log can tell which is which. What comes first is written first; of what is
/// there at the same moment, standard output.
#[derive(Debug)]
pub(super) struct Output {
    pipes: [Option<File>; 2],
    last_error: LastLine,
}

/// The writing ends.
#[derive(Debug)]
pub(super) struct WritingEnds {
    pub(super) out: OwnedFd,
    pub(super) err: OwnedFd,
}

impl Output {
    /// The reading ends, which never wait, and the writing ends.
    pub(super) fn new() -> io::Result<(Output, WritingEnds)> {
        let (read_out, out) = pipe_with(PipeFlags::CLOEXEC)?;
        let (read_err, err) = pipe_with(PipeFlags::CLOEXEC)?;
        nonblocking(&read_out)?;
        nonblocking(&read_err)?;
        let pipes = [read_out, read_err].map(|it| Some(File::from(it)));
        Ok((Output { pipes, last_error: LastLine::default() }, WritingEnds { out, err }))
    }

    /// None once everybody who could write is gone.
    pub(super) fn pipe(&self, stream: Stream) -> Option<BorrowedFd<'_>> {
        let [out, err] = &self.pipes;
        if stream == Stream::Out { out } else { err }.as_ref().map(AsFd::as_fd)
    }

    /// Takes what is there, but not for long.
    pub(super) fn take(&mut self, stream: Stream, log: &mut LogWriter) -> Taken {
        let [out, err] = &mut self.pipes;
        let slot = if stream == Stream::Out { out } else { err };
        let Some(pipe) = slot else { return Taken::All };
        let mut bytes = [0; 16 << 10];
        let mut n_taken = 0;
        while n_taken < TURN_BYTES {
            match pipe.read(&mut bytes) {
                Ok(0) => {
                    *slot = None;
                    return Taken::All;
                }
                Ok(n_read) => {
                    let bytes = bytes.get(..n_read).unwrap_or_default();
                    log.write(stream, bytes);
                    if stream == Stream::Err {
                        self.last_error.push(bytes);
                    }
                    n_taken += n_read;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Taken::All,
                Err(_) => {
                    *slot = None;
                    return Taken::All;
                }
            }
        }
        Taken::MoreMayBeThere
    }

    /// Takes the last of it. Nothing of the run is left: what it wrote is in the pipes, and if anybody else still
    /// writes to them that is no reason to wait.
    pub(super) fn drain(&mut self, log: &mut LogWriter) {
        let until: BootTime = boot::now() + DRAIN_FOR;
        for stream in Stream::BOTH {
            while self.take(stream, log) == Taken::MoreMayBeThere && boot::now() < until {}
        }
    }

    /// The last line that it wrote to standard error, without styles; none if it wrote none.
    pub(super) fn last_error_line(&self) -> Option<String> {
        self.last_error.text()
    }
}

/// The last line of what comes in parts, cut where it is too long.
#[derive(Debug, Default)]
struct LastLine {
    /// The last that is complete and not blank.
    complete: Vec<u8>,
    /// What came after it.
    begun: Vec<u8>,
}

impl LastLine {
    fn push(&mut self, bytes: &[u8]) {
        let mut parts = bytes.split(|it| matches!(it, b'\n' | b'\r')).peekable();
        while let Some(part) = parts.next() {
            let n_room = LAST_LINE_BYTES.saturating_sub(self.begun.len());
            self.begun.extend_from_slice(part.get(..n_room).unwrap_or(part));
            if parts.peek().is_some() {
                let line = std::mem::take(&mut self.begun);
                if !line.trim_ascii().is_empty() {
                    self.complete = line;
                }
            }
        }
    }

    fn text(&self) -> Option<String> {
        let line = if self.begun.trim_ascii().is_empty() { &self.complete } else { &self.begun };
        let text = String::from_utf8_lossy(line);
        let text = anstream::adapter::strip_str(text.trim()).to_string();
        (!text.is_empty()).then_some(text)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(parts: &[&str], expected: Option<&str>) {
        let mut line = LastLine::default();
        for part in parts {
            line.push(part.as_bytes());
        }
        assert_eq!(line.text().as_deref(), expected);
    }

    #[test]
    fn the_last_line_that_says_something_is_kept() {
        check(&[], None);
        check(&["\n \n"], None);
        check(&["one\ntwo\n"], Some("two"));
        check(&["one\ntw", "o\n\n  \n"], Some("two"));
        check(&["one\ntwo"], Some("two"));
        check(&["10%\r20%\r"], Some("20%"));
        check(&["\u{1b}[31mred\u{1b}[0m\n"], Some("red"));
        check(
            &[&"x".repeat(300), &"y".repeat(300)],
            Some(&format!("{}{}", "x".repeat(300), "y".repeat(100))),
        );
    }
}
