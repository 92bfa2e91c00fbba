//! A stretch of an agenda, borrowed.

use std::iter::FusedIterator;

use super::query::Agenda;
use crate::ids::JobKey;
use crate::time::Timestamp;

/// One due moment of one job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occurrence<'a> {
    /// When it is due.
    pub at: Timestamp,
    /// Whose it is.
    pub job: &'a JobKey,
    /// Whether the instant is expected rather than known, as that of a `fresh` job is.
    pub is_estimate: bool,
}

/// Neighbouring occurrences, in order.
#[derive(Clone, Copy, Debug)]
pub struct Slice<'a> {
    pub(super) agenda: &'a Agenda,
    pub(super) from_idx: usize,
    pub(super) to_idx: usize,
    /// The first occurrence does not lie before this second.
    pub(super) second: u32,
}

impl<'a> Slice<'a> {
    /// How many occurrences there are.
    pub fn len(&self) -> usize {
        self.to_idx - self.from_idx
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.from_idx == self.to_idx
    }

    /// The occurrences, one by one.
    pub fn iter(&self) -> Iter<'a> {
        Iter { left: *self }
    }

    /// The first one.
    pub fn first(&self) -> Option<Occurrence<'a>> {
        self.iter().next()
    }

    /// The last one.
    pub fn last(&self) -> Option<Occurrence<'a>> {
        let from_idx = self.to_idx.checked_sub(1)?.max(self.from_idx);
        Slice { from_idx, ..*self }.first()
    }
}

impl<'a> IntoIterator for Slice<'a> {
    type Item = Occurrence<'a>;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

impl<'a> IntoIterator for &Slice<'a> {
    type Item = Occurrence<'a>;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

/// Walks over a [`Slice`].
#[derive(Clone, Debug)]
pub struct Iter<'a> {
    left: Slice<'a>,
}

impl<'a> Iterator for Iter<'a> {
    type Item = Occurrence<'a>;

    #[inline]
    fn next(&mut self) -> Option<Occurrence<'a>> {
        let Slice { agenda, from_idx, to_idx, second } = self.left;
        if from_idx == to_idx {
            return None;
        }
        let word = agenda.table.word(from_idx)?;
        self.left.second = agenda.table.second_of(from_idx, second);
        self.left.from_idx += 1;
        agenda.occurrence(self.left.second, word)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left.len(), Some(self.left.len()))
    }
}

impl ExactSizeIterator for Iter<'_> {}
impl FusedIterator for Iter<'_> {}
