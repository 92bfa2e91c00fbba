//! Occurrences on their way into an agenda: expanded, and in the order of (millisecond, job).

use super::counting::sorted_by_count;
use super::source::Source;
use super::table::{SECOND_MS, Word};
use crate::time::{TimeWindow, Timestamp};

/// Occurrences of one job that share their millisecond: a stretch of the offsets.
#[derive(Clone, Copy, Default)]
struct Strand {
    word: Word,
    start: u32,
    end: u32,
}

/// Expanded occurrences of jobs.
pub(super) struct Strands {
    window: TimeWindow,
    origin_ms: i64,
    /// Milliseconds since the origin, job after job; each job's ascending, each once.
    offsets: Vec<u32>,
    list: Vec<Strand>,
}

impl Strands {
    /// None yet. The origin is the whole second in which the window begins.
    pub(super) fn new(window: TimeWindow, origin: Timestamp, n_expected: usize) -> Strands {
        let offsets = Vec::with_capacity(n_expected);
        Strands { window, origin_ms: origin.as_millis(), offsets, list: Vec::new() }
    }

    pub(super) fn n_occurrences(&self) -> usize {
        self.offsets.len()
    }

    /// Adds the occurrences of the next job, which may come from several sources.
    pub(super) fn push_job(&mut self, job_idx: u32, sources: &[&Source]) {
        let start = self.offsets.len();
        for source in sources {
            source.for_each_in(self.window, |at| {
                // An instant inside the window is at most 31 days and a second after the origin.
                if let Ok(offset) = u32::try_from(at.as_millis() - self.origin_ms) {
                    self.offsets.push(offset);
                }
            });
        }
        self.put_in_order(start);
        self.push_strands(job_idx, start);
    }

    /// A rhythm is always in order. What a caller expanded may not be, and this is the only
    /// place where occurrences are compared: those of one such job, with each other.
    fn put_in_order(&mut self, start: usize) {
        if self.offsets.get(start..).unwrap_or_default().is_sorted_by(|one, next| one < next) {
            return;
        }
        let mut own = self.offsets.split_off(start);
        own.sort_unstable();
        own.dedup();
        self.offsets.append(&mut own);
    }

    fn push_strands(&mut self, job_idx: u32, start: usize) {
        let own = self.offsets.get(start..).unwrap_or_default();
        let Some(first) = own.first() else { return };
        let millis = first % SECOND_MS;
        let keeps_millis = own.iter().all(|offset| offset % SECOND_MS == millis);
        // There are at most as many occurrences as fit into 32 bits.
        let number = |idx: usize| u32::try_from(idx).unwrap_or(u32::MAX);
        if keeps_millis {
            let word = Word::new(millis, job_idx);
            self.list.push(Strand { word, start: number(start), end: number(start + own.len()) });
            return;
        }
        self.list.extend((start..).zip(own).map(|(idx, offset)| {
            let word = Word::new(offset % SECOND_MS, job_idx);
            Strand { word, start: number(idx), end: number(idx + 1) }
        }));
    }

    /// Jobs were pushed in order, so this is the order of (millisecond, job).
    pub(super) fn sort_by_millis(&mut self) {
        let millis = |strand: &Strand| strand.word.millis();
        if !self.list.is_sorted_by_key(millis) {
            let key = |strand: &Strand| millis(strand) as usize;
            self.list = sorted_by_count(&self.list, SECOND_MS as usize, key);
        }
    }

    /// The seconds of all occurrences, in no useful order.
    pub(super) fn seconds(&self) -> impl Iterator<Item = u32> {
        self.offsets.iter().map(|offset| offset / SECOND_MS)
    }

    /// Visits the second and the word of each occurrence, strand after strand.
    pub(super) fn for_each(&self, mut visit: impl FnMut(u32, Word)) {
        for strand in &self.list {
            for offset in self.offsets.get(strand.start as usize..strand.end as usize).unwrap_or_default() {
                visit(offset / SECOND_MS, strand.word);
            }
        }
    }
}
