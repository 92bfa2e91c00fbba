//! What can be asked of an agenda.

use std::sync::Arc;

use super::key_table::KeyTable;
use super::slice::{Occurrence, Slice};
use super::table::{OccurrenceTable, SECOND_MS, Word};
use crate::time::{Duration, TimeWindow, Timestamp};

/// The occurrences of a window, sorted by instant and then by job key. Never edited, only replaced.
#[derive(Debug)]
pub struct Agenda {
    pub(super) window: TimeWindow,
    /// The whole second in which the window begins; seconds are counted from here.
    pub(super) origin: Timestamp,
    pub(super) table: OccurrenceTable,
    pub(super) roster: Arc<KeyTable>,
}

impl Agenda {
    /// The agenda in which nothing happens.
    pub fn empty(window: TimeWindow) -> Agenda {
        let origin = Timestamp::from_second(window.start().as_second());
        Agenda { window, origin, table: OccurrenceTable::empty(), roster: Arc::default() }
    }

    /// The window that it was built for; outside of it this agenda knows nothing.
    pub fn window(&self) -> TimeWindow {
        self.window
    }

    /// How many occurrences there are.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether nothing happens in the window.
    pub fn is_empty(&self) -> bool {
        self.table.len() == 0
    }

    /// The occurrences in `[start, end)`, as far as that lies in the window; none if it is reversed.
    #[inline]
    pub fn between(&self, start: Timestamp, end: Timestamp) -> Slice<'_> {
        let (from_idx, second) = self.find(start);
        let (to_idx, _) = self.find(end);
        Slice { agenda: self, from_idx, to_idx: to_idx.max(from_idx), second }
    }

    /// All occurrences.
    pub fn all(&self) -> Slice<'_> {
        Slice { agenda: self, from_idx: 0, to_idx: self.len(), second: 0 }
    }

    /// The first occurrence at or after an instant.
    #[inline]
    pub fn peek(&self, at_or_after: Timestamp) -> Option<Occurrence<'_>> {
        let (idx, second) = self.find(at_or_after);
        let word = self.table.word(idx)?;
        self.occurrence(self.table.second_of(idx, second), word)
    }

    /// What the occurrences occupy. The keys are not counted: agendas of the same jobs share them.
    pub fn bytes(&self) -> usize {
        size_of::<Agenda>() + self.table.bytes()
    }

    /// How many occurrences lie before an instant, and a second before which the next one is not.
    #[inline]
    fn find(&self, at: Timestamp) -> (usize, u32) {
        if at <= self.window.start() {
            return (0, 0);
        }
        // An instant inside the window is at most 31 days and a second after the origin.
        let offset = (at - self.origin).as_millis();
        match u32::try_from(offset) {
            Ok(offset) if at < self.window.end() => {
                let second = offset / SECOND_MS;
                (self.table.n_before(second, offset % SECOND_MS), second)
            }
            _ => (self.len(), 0),
        }
    }

    #[inline]
    pub(super) fn occurrence(&self, second: u32, word: Word) -> Option<Occurrence<'_>> {
        let listed = self.roster.get(word.job_idx())?;
        let offset = Duration::from_millis(i64::from(second * SECOND_MS + word.millis()));
        Some(Occurrence { at: self.origin + offset, job: &listed.key, is_estimate: listed.is_estimate })
    }
}
