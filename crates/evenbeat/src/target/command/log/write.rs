//! Writing a log, within its cap.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;

use evenbeat_core::ids::RunId;

use super::{ERROR_LINE, OWN_LINE, heading};
use crate::printable;
use crate::target::command::places::Places;

/// Where a run's output goes. A disk that takes no more ends the log, never the run.
#[derive(Debug)]
pub(in crate::target::command) struct LogWriter {
    places: Places,
    run: RunId,
    head_max: u64,
    stretch_max: u64,
    /// How many bytes came, also those that are not there any more.
    n_written: u64,
    /// How many bytes came after the disk took no more.
    n_lost: u64,
    open: Option<(Place, File)>,
    is_broken: bool,
    /// How many bytes the run itself wrote.
    n_output: u64,
    /// Whose line is not complete yet.
    inside_line: Option<Stream>,
}

/// Where a run writes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::target::command) enum Stream {
    Out,
    Err,
}

impl Stream {
    pub(in crate::target::command) const BOTH: [Stream; 2] = [Stream::Out, Stream::Err];
}

/// Where the next byte belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Head,
    Stretch(u64),
}

impl LogWriter {
    pub(in crate::target::command) fn new(places: Places, run: RunId, bytes_max: u64) -> LogWriter {
        LogWriter {
            places,
            run,
            head_max: (bytes_max / 2).max(1),
            stretch_max: (bytes_max / 4).max(1),
            n_written: 0,
            n_lost: 0,
            open: None,
            is_broken: false,
            n_output: 0,
            inside_line: None,
        }
    }

    /// Takes output of the run. A line of one stream ends where the other writes.
    pub(in crate::target::command) fn write(&mut self, stream: Stream, bytes: &[u8]) {
        let Some(last) = bytes.last() else { return };
        self.n_output += bytes.len() as u64;
        if self.inside_line.is_some_and(|it| it != stream) {
            self.append(b"\n");
            self.inside_line = None;
        }
        match stream {
            Stream::Out => self.append(bytes),
            Stream::Err => self.append(&marked(bytes, self.inside_line.is_some())),
        }
        self.inside_line = (*last != b'\n').then_some(stream);
    }

    fn append(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let (place, room) = self.place();
            let n_part = usize::try_from(room).unwrap_or(usize::MAX).min(bytes.len());
            let (part, rest) = bytes.split_at(n_part);
            if self.is_broken || self.put(place, part).is_err() {
                // What was written in part cannot be told from what was not: nothing more goes into this log.
                self.is_broken = true;
                self.n_lost += bytes.len() as u64;
                return;
            }
            self.n_written += part.len() as u64;
            bytes = rest;
        }
    }

    /// Writes a line of ours.
    pub(in crate::target::command) fn say(&mut self, text: &str) {
        let end = if self.inside_line.take().is_some() { "\n" } else { "" };
        self.append(format!("{end}{OWN_LINE}{}\n", printable::line(text)).as_bytes());
    }

    /// How many bytes the run wrote.
    pub(in crate::target::command) fn output_bytes(&self) -> u64 {
        self.n_output
    }

    /// How many bytes of the log are not kept.
    pub(in crate::target::command) fn left_out_bytes(&self) -> u64 {
        let rotated = match self.last_stretch() {
            Some(last) => last.saturating_sub(1) * self.stretch_max,
            None => 0,
        };
        rotated + self.n_lost
    }

    fn last_stretch(&self) -> Option<u64> {
        let beyond = self.n_written.checked_sub(self.head_max).filter(|it| 0 < *it)?;
        Some((beyond - 1) / self.stretch_max)
    }

    fn place(&self) -> (Place, u64) {
        match self.n_written.checked_sub(self.head_max) {
            None => (Place::Head, self.head_max - self.n_written),
            Some(beyond) => {
                let room = self.stretch_max - beyond % self.stretch_max;
                (Place::Stretch(beyond / self.stretch_max), room)
            }
        }
    }

    fn put(&mut self, place: Place, bytes: &[u8]) -> io::Result<()> {
        if self.open.as_ref().is_none_or(|(open, _)| *open != place) {
            self.open = Some((place, self.make(place)?));
        }
        match &mut self.open {
            Some((_, file)) => file.write_all(bytes),
            None => Ok(()),
        }
    }

    fn make(&self, place: Place) -> io::Result<File> {
        let create = |path| OpenOptions::new().create_new(true).append(true).mode(0o600).open(path);
        match place {
            Place::Head => {
                self.places.make_log_folder(self.run)?;
                create(self.places.log(self.run))
            }
            Place::Stretch(no) => {
                let path = self.places.log_tail(self.run, no % 2);
                if 2 <= no {
                    // Removed, not emptied: whoever is reading it still has the whole of it.
                    fs::remove_file(&path)?;
                }
                let mut file = create(path)?;
                file.write_all(heading(no).as_bytes())?;
                Ok(file)
            }
        }
    }
}

/// Bytes of standard error with a mark before each line; before the first only if none is begun.
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
