//! The pipes of a run: its output is always read, its input is written as fast as it is read.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use evenbeat_core::time::{BootTime, Duration};
use rustix::pipe::{PipeFlags, pipe_with};

use crate::target::command::boot;
use crate::target::command::log::{LogWriter, OutputStream};

/// How many bytes are read before anything else gets its turn.
const TURN_BYTES: usize = 64 << 10;

/// How many bytes of the last line of standard error are kept.
const LAST_LINE_BYTES: usize = 400;

/// How long the rest of the output is read after the last process has ended.
const DRAIN_FOR: Duration = Duration::from_secs(1);

/// Standard output and standard error of a run: two pipes, so that its log can tell them apart. What comes first is
/// logged first; at the same moment, standard output.
#[derive(Debug)]
pub(super) struct OutputPipes {
    pipes: [Option<File>; 2],
    last_error: LastLine,
}

/// The ends that the run writes to.
#[derive(Debug)]
pub(super) struct WritingEnds {
    pub(super) out: OwnedFd,
    pub(super) err: OwnedFd,
}

impl OutputPipes {
    /// The reading ends, which never block, and the writing ends.
    pub(super) fn new() -> io::Result<(OutputPipes, WritingEnds)> {
        let (read_out, out) = pipe_with(PipeFlags::CLOEXEC)?;
        let (read_err, err) = pipe_with(PipeFlags::CLOEXEC)?;
        nonblocking(&read_out)?;
        nonblocking(&read_err)?;
        let pipes = [read_out, read_err].map(|it| Some(File::from(it)));
        Ok((OutputPipes { pipes, last_error: LastLine::default() }, WritingEnds { out, err }))
    }

    /// `None` once every writer is gone.
    pub(super) fn pipe(&self, stream: OutputStream) -> Option<BorrowedFd<'_>> {
        let [out, err] = &self.pipes;
        if stream == OutputStream::Out { out } else { err }.as_ref().map(AsFd::as_fd)
    }

    /// Reads what is there, but not more than its turn allows.
    pub(super) fn read(&mut self, stream: OutputStream, log: &mut LogWriter) -> ReadProgress {
        let [out, err] = &mut self.pipes;
        let end = if stream == OutputStream::Out { out } else { err };
        let Some(pipe) = end else { return ReadProgress::Drained };
        let mut bytes = [0; 16 << 10];
        let mut n_taken = 0;
        while n_taken < TURN_BYTES {
            match pipe.read(&mut bytes) {
                Ok(0) => {
                    *end = None;
                    return ReadProgress::Drained;
                }
                Ok(n_read) => {
                    let bytes = bytes.get(..n_read).unwrap_or_default();
                    log.write(stream, bytes);
                    if stream == OutputStream::Err {
                        self.last_error.push(bytes);
                    }
                    n_taken += n_read;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return ReadProgress::Drained,
                Err(_) => {
                    *end = None;
                    return ReadProgress::Drained;
                }
            }
        }
        ReadProgress::MaybeMore
    }

    /// Reads the rest. All processes of the run have ended, so its output is in the pipes; other writers are not waited
    /// for.
    pub(super) fn drain(&mut self, log: &mut LogWriter) {
        let until: BootTime = boot::now() + DRAIN_FOR;
        for stream in OutputStream::BOTH {
            while self.read(stream, log) == ReadProgress::MaybeMore && boot::now() < until {}
        }
    }

    /// The last line on standard error, without styles.
    pub(super) fn last_error_line(&self) -> Option<String> {
        self.last_error.text()
    }
}

/// Keeps the last line of a stream, cut off where it is too long.
#[derive(Debug, Default)]
struct LastLine {
    /// The last complete line that is not blank.
    complete: Vec<u8>,
    /// What came after it.
    partial: Vec<u8>,
}

impl LastLine {
    fn push(&mut self, bytes: &[u8]) {
        let mut parts = bytes.split(|it| matches!(it, b'\n' | b'\r')).peekable();
        while let Some(part) = parts.next() {
            let n_room = LAST_LINE_BYTES.saturating_sub(self.partial.len());
            self.partial.extend_from_slice(part.get(..n_room).unwrap_or(part));
            if parts.peek().is_some() {
                let line = std::mem::take(&mut self.partial);
                if !line.trim_ascii().is_empty() {
                    self.complete = line;
                }
            }
        }
    }

    fn text(&self) -> Option<String> {
        let line = if self.partial.trim_ascii().is_empty() { &self.complete } else { &self.partial };
        let text = String::from_utf8_lossy(line);
        let text = anstream::adapter::strip_str(text.trim()).to_string();
        (!text.is_empty()).then_some(text)
    }
}

/// Whether something may be left in the pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadProgress {
    Drained,
    MaybeMore,
}

/// Standard input of a run.
#[derive(Debug)]
pub(super) struct StdinPipe {
    pipe: File,
    bytes: Vec<u8>,
    n_written: usize,
}

impl StdinPipe {
    pub(super) fn new(text: String) -> io::Result<(StdinPipe, OwnedFd)> {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
        nonblocking(&write)?;
        Ok((StdinPipe { pipe: File::from(write), bytes: text.into_bytes(), n_written: 0 }, read))
    }

    pub(super) fn pipe(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }

    /// Writes what the pipe has room for. Returns whether that was all, or the reader is gone.
    pub(super) fn write(&mut self) -> bool {
        while let Some(rest) = self.bytes.get(self.n_written..).filter(|rest| !rest.is_empty()) {
            match self.pipe.write(rest) {
                Ok(n_bytes) => self.n_written += n_bytes,
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
