//! Writes a log of limited size.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;

use evenbeat_core::ids::RunId;

use super::{ERROR_LINE, OWN_LINE, heading};
use crate::printable;
use crate::target::command::places::Places;

/// Writes the output of a run. A full disk ends the log, never the run.
#[derive(Debug)]
pub(in crate::target::command) struct LogWriter {
    places: Places,
    run: RunId,
    head_max: u64,
    segment_max: u64,
    /// Number of bytes so far, including those that were removed since.
    n_written: u64,
    /// Number of bytes that came after the disk was full.
    n_lost: u64,
    open: Option<(LogPosition, File)>,
    is_broken: bool,
    /// Number of bytes that the run itself wrote.
    n_output: u64,
    /// The stream whose line is not complete yet.
    inside_line: Option<OutputStream>,
}

/// A stream of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::target::command) enum OutputStream {
    Out,
    Err,
}

impl OutputStream {
    pub(in crate::target::command) const BOTH: [OutputStream; 2] = [OutputStream::Out, OutputStream::Err];
}

/// The file that the next byte belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LogPosition {
    Head,
    Segment(u64),
}

impl LogWriter {
    pub(in crate::target::command) fn new(places: Places, run: RunId, bytes_max: u64) -> LogWriter {
        LogWriter {
            places,
            run,
            head_max: (bytes_max / 2).max(1),
            segment_max: (bytes_max / 4).max(1),
            n_written: 0,
            n_lost: 0,
            open: None,
            is_broken: false,
            n_output: 0,
            inside_line: None,
        }
    }

    /// Writes output of the run. A line of one stream ends where the other writes.
    pub(in crate::target::command) fn write(&mut self, stream: OutputStream, bytes: &[u8]) {
        let Some(last) = bytes.last() else { return };
        self.n_output += bytes.len() as u64;
        if self.inside_line.is_some_and(|it| it != stream) {
            self.append(b"\n");
            self.inside_line = None;
        }
        match stream {
            OutputStream::Out => self.append(bytes),
            OutputStream::Err => self.append(&marked(bytes, self.inside_line.is_some())),
        }
        self.inside_line = (*last != b'\n').then_some(stream);
    }

    fn append(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let (position, room) = self.position();
            let n_part = usize::try_from(room).unwrap_or(usize::MAX).min(bytes.len());
            let (part, rest) = bytes.split_at(n_part);
            if self.is_broken || self.put(position, part).is_err() {
                // Part of it may have been written, so later positions would be wrong: end the log here.
                self.is_broken = true;
                self.n_lost += bytes.len() as u64;
                return;
            }
            self.n_written += part.len() as u64;
            bytes = rest;
        }
    }

    /// Writes a line of ours.
    pub(in crate::target::command) fn note(&mut self, text: &str) {
        let end = if self.inside_line.take().is_some() { "\n" } else { "" };
        self.append(format!("{end}{OWN_LINE}{}\n", printable::line(text)).as_bytes());
    }

    /// How many bytes the run wrote.
    pub(in crate::target::command) fn output_bytes(&self) -> u64 {
        self.n_output
    }

    /// How many bytes of the log are not kept.
    pub(in crate::target::command) fn left_out_bytes(&self) -> u64 {
        let rotated = match self.last_segment() {
            Some(last) => last.saturating_sub(1) * self.segment_max,
            None => 0,
        };
        rotated + self.n_lost
    }

    fn last_segment(&self) -> Option<u64> {
        let beyond = self.n_written.checked_sub(self.head_max).filter(|it| 0 < *it)?;
        Some((beyond - 1) / self.segment_max)
    }

    fn position(&self) -> (LogPosition, u64) {
        match self.n_written.checked_sub(self.head_max) {
            None => (LogPosition::Head, self.head_max - self.n_written),
            Some(beyond) => {
                let room = self.segment_max - beyond % self.segment_max;
                (LogPosition::Segment(beyond / self.segment_max), room)
            }
        }
    }

    fn put(&mut self, position: LogPosition, bytes: &[u8]) -> io::Result<()> {
        if self.open.as_ref().is_none_or(|(open, _)| *open != position) {
            self.open = Some((position, self.make(position)?));
        }
        match &mut self.open {
            Some((_, file)) => file.write_all(bytes),
            None => Ok(()),
        }
    }

    fn make(&self, position: LogPosition) -> io::Result<File> {
        let create = |path| OpenOptions::new().create_new(true).append(true).mode(0o600).open(path);
        match position {
            LogPosition::Head => {
                self.places.make_log_folder(self.run)?;
                create(self.places.log(self.run))
            }
            LogPosition::Segment(no) => {
                let path = self.places.log_tail(self.run, no % 2);
                if 2 <= no {
                    // Removed instead of truncated, so that a reader still has the whole file.
                    fs::remove_file(&path)?;
                }
                let mut file = create(path)?;
                file.write_all(heading(no).as_bytes())?;
                Ok(file)
            }
        }
    }
}

/// Puts a mark before each line of standard error, but not in the middle of a line.
fn marked(bytes: &[u8], is_inside_line: bool) -> Vec<u8> {
    let mut marked = Vec::with_capacity(bytes.len() + 64);
    for (idx, line) in bytes.split_inclusive(|it| *it == b'\n').enumerate() {
        if 0 < idx || !is_inside_line {
            marked.extend_from_slice(ERROR_LINE.as_bytes());
        }
        marked.extend_from_slice(line);
    }
    marked
}
