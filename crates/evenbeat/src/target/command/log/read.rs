//! Reading a log, also while it grows.

use std::fs::File;
use std::os::unix::fs::FileExt;

use evenbeat_core::ids::RunId;

use super::{HEADING_BYTES, OWN_LINE};
use crate::target::command::places::Places;

/// Reads the log of one run.
#[derive(Debug)]
pub struct LogReader {
    places: Places,
    run: RunId,
    at: u64,
}

/// A part of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// The next bytes. Empty if there are no more for now.
    pub bytes: Vec<u8>,
    /// Whether these are the last bytes. A run that has not started yet looks like one that has ended.
    pub is_over: bool,
}

/// Which bytes of a run's output are kept: the beginning, and the end. Nothing lies between them if nothing was left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeptBytes {
    /// The beginning is kept up to here.
    pub head_end: u64,
    /// The rest is kept from here on.
    pub tail_start: u64,
    /// How much there is in all, as far as it has been written.
    pub end: u64,
    /// Whether nothing more will be written. A run that has not started yet looks like one that has ended.
    pub is_over: bool,
}

/// One segment of a log, and which bytes of the output it holds.
#[derive(Debug)]
struct LogSegment {
    file: File,
    no: u64,
    start: u64,
    length: u64,
}

/// Reads the log of a run from this byte of its output on.
pub fn read_log(places: &Places, run: RunId, from: u64) -> LogReader {
    LogReader { places: places.clone(), run, at: from }
}

impl LogReader {
    /// The position of the next byte in the whole output.
    pub fn at(&self) -> u64 {
        self.at
    }

    /// The next bytes, at most this many. Where bytes were left out, a line of ours says how many.
    pub fn next(&mut self, bytes_max: usize) -> Chunk {
        // Checked before anything is read, so that everything the run wrote is there.
        let was_over = self.is_over();
        let bytes = self.more(bytes_max);
        let is_over = was_over && self.is_at_end();
        Chunk { bytes, is_over }
    }

    /// Which bytes are kept.
    pub fn kept(&self) -> KeptBytes {
        // Checked before anything is measured, so that everything the run wrote is there.
        let is_over = self.is_over();
        let head_end = File::open(self.places.log(self.run)).ok().as_ref().map_or(0, length);
        let segments = self.segments(head_end);
        let tail_start = segments.first().map_or(head_end, |it| it.start);
        let end = segments.last().map_or(head_end, |it| it.start + it.length);
        KeptBytes { head_end, tail_start, end, is_over }
    }

    fn is_at_end(&mut self) -> bool {
        let at = self.at;
        let is_at_end = self.more(1).is_empty();
        self.at = at;
        is_at_end
    }

    fn is_over(&self) -> bool {
        self.places.end(self.run).exists() || !self.places.run(self.run).exists()
    }

    fn more(&mut self, bytes_max: usize) -> Vec<u8> {
        let head = File::open(self.places.log(self.run)).ok();
        let head_length = head.as_ref().map_or(0, length);
        if let Some(head) = head.filter(|_| self.at < head_length) {
            return self.read(&head, self.at, bytes_max);
        }
        let segments = self.segments(head_length);
        let Some(it) = segments.iter().find(|it| self.at < it.start + it.length) else { return Vec::new() };
        if self.at < it.start {
            let n_left_out = it.start - self.at;
            self.at = it.start;
            return format!("\n{OWN_LINE}{n_left_out} bytes left out\n").into_bytes();
        }
        self.read(&it.file, self.at - it.start + HEADING_BYTES, bytes_max)
    }

    fn read(&mut self, file: &File, from: u64, bytes_max: usize) -> Vec<u8> {
        let mut bytes = vec![0; bytes_max.max(1)];
        let n_read = file.read_at(&mut bytes, from).unwrap_or(0);
        bytes.truncate(n_read);
        self.at += bytes.len() as u64;
        bytes
    }

    /// The segments, at most two. All but the last are full, so the first has the length of each.
    fn segments(&self, head_length: u64) -> Vec<LogSegment> {
        let mut segments: Vec<LogSegment> = (0..2).filter_map(|tail| self.segment(tail)).collect();
        segments.sort_unstable_by_key(|it| it.no);
        let full = segments.first().map_or(0, |it| it.length);
        for it in &mut segments {
            it.start = head_length + it.no * full;
        }
        segments
    }

    fn segment(&self, tail: u64) -> Option<LogSegment> {
        let file = File::open(self.places.log_tail(self.run, tail)).ok()?;
        let mut heading = vec![0; usize::try_from(HEADING_BYTES).ok()?];
        file.read_exact_at(&mut heading, 0).ok()?;
        let no = std::str::from_utf8(&heading).ok()?.trim_end().rsplit(' ').next()?.parse().ok()?;
        let length = length(&file).checked_sub(HEADING_BYTES)?;
        Some(LogSegment { file, no, start: 0, length })
    }
}

fn length(file: &File) -> u64 {
    file.metadata().map_or(0, |it| it.len())
}
