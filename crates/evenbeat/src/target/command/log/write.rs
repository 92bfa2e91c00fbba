//! Writing a log, within its cap.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};

use evenbeat_core::ids::RunId;

use super::{OWN_LINE, heading};
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
    is_inside_line: bool,
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
            is_inside_line: false,
        }
    }

    /// Takes output of the run.
    pub(in crate::target::command) fn write(&mut self, mut bytes: &[u8]) {
        if let Some(last) = bytes.last() {
            self.is_inside_line = *last != b'\n';
        }
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
        let end = if self.is_inside_line { "\n" } else { "" };
        let escaped: String = text.chars().flat_map(shown).collect();
        self.write(format!("{end}{OWN_LINE}{escaped}\n").as_bytes());
    }

    /// How many bytes came.
    pub(in crate::target::command) fn output_bytes(&self) -> u64 {
        self.n_written + self.n_lost
    }

    /// How many of them are not kept.
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
                DirBuilder::new().recursive(true).mode(0o700).create(self.places.log_folder(self.run))?;
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

/// A character as it may stand in a line.
fn shown(it: char) -> Box<dyn Iterator<Item = char>> {
    if it.is_control() { Box::new(it.escape_default()) } else { Box::new(std::iter::once(it)) }
}
