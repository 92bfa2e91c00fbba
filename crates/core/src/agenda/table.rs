//! The two flat arrays: words, and where their seconds are.

use super::counting::{sorted_by_count, starts_from_counts};
use super::strands::Strands;

pub(super) const SECOND_MS: u32 = 1_000;
const JOB_BITS: u32 = 22;
const _: () = assert!(1 << JOB_BITS == super::JOBS_MAX, "every job has a number");
const _: () = assert!(SECOND_MS <= 1 << (u32::BITS - JOB_BITS), "every millisecond fits above the job");

/// One occurrence within its second: ordered by millisecond, then by job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Word(u32);

impl Word {
    pub(super) fn new(millis: u32, job_idx: u32) -> Word {
        Word(millis << JOB_BITS | job_idx)
    }

    pub(super) fn millis(self) -> u32 {
        self.0 >> JOB_BITS
    }

    pub(super) fn job_idx(self) -> u32 {
        self.0 & ((1 << JOB_BITS) - 1)
    }
}

/// Occurrences in order, by seconds counted from an origin.
#[derive(Debug)]
pub(super) struct OccurrenceTable {
    words: Box<[Word]>,
    pub(super) seconds: Seconds,
}

/// Which second each word lies in.
#[derive(Debug)]
pub(super) enum Seconds {
    /// For each second where its words begin, and at last where they all end.
    Dense { starts: Box<[u32]> },
    /// For each word its second.
    Sparse { each: Box<[u32]> },
}

impl OccurrenceTable {
    pub(super) fn empty() -> OccurrenceTable {
        OccurrenceTable { words: Box::default(), seconds: Seconds::Sparse { each: Box::default() } }
    }

    /// The table of strands that are sorted by millisecond, all of them in the first `n_seconds`.
    pub(super) fn of(strands: &Strands, n_seconds: u32) -> OccurrenceTable {
        if (n_seconds as usize) < strands.n_occurrences() {
            OccurrenceTable::dense(strands, n_seconds)
        } else {
            OccurrenceTable::sparse(strands, n_seconds)
        }
    }

    fn dense(strands: &Strands, n_seconds: u32) -> OccurrenceTable {
        // Each second has its number one to the right of where it will be found: there it is first
        // the count, then the start and, when all words have been dealt out, the end of the second,
        // which is the start of the next one.
        let mut starts = vec![0_u32; n_seconds as usize + 1];
        let shifted = starts.get_mut(1..).unwrap_or_default();
        for second in strands.seconds() {
            if let Some(count) = shifted.get_mut(second as usize) {
                *count += 1;
            }
        }
        starts_from_counts(shifted);
        let mut words = vec![Word::default(); strands.n_occurrences()];
        strands.for_each(|second, word| {
            if let Some(next) = shifted.get_mut(second as usize) {
                if let Some(slot) = words.get_mut(*next as usize) {
                    *slot = word;
                }
                *next += 1;
            }
        });
        OccurrenceTable { words: words.into(), seconds: Seconds::Dense { starts: starts.into() } }
    }

    fn sparse(strands: &Strands, n_seconds: u32) -> OccurrenceTable {
        // Two rounds of 11 bits are enough for 48 days of seconds.
        const DIGIT_BITS: u32 = 11;
        let mut occurrences: Vec<(u32, Word)> = Vec::with_capacity(strands.n_occurrences());
        strands.for_each(|second, word| occurrences.push((second, word)));
        let mut sorted_bits = 0;
        while n_seconds >> sorted_bits > 0 {
            let digit = |(second, _): &(u32, Word)| (second >> sorted_bits) as usize % (1 << DIGIT_BITS);
            occurrences = sorted_by_count(&occurrences, 1 << DIGIT_BITS, digit);
            sorted_bits += DIGIT_BITS;
        }
        let each = occurrences.iter().map(|(second, _)| *second).collect();
        let words = occurrences.iter().map(|(_, word)| *word).collect();
        OccurrenceTable { words, seconds: Seconds::Sparse { each } }
    }

    pub(super) fn len(&self) -> usize {
        self.words.len()
    }

    pub(super) fn word(&self, idx: usize) -> Option<Word> {
        self.words.get(idx).copied()
    }

    /// How many words lie before this millisecond of this second.
    #[inline]
    pub(super) fn n_before(&self, second: u32, millis: u32) -> usize {
        match &self.seconds {
            Seconds::Dense { starts } => {
                let at = |idx: usize| starts.get(idx).map_or(self.len(), |start| *start as usize);
                let start = at(second as usize);
                // Most questions are about whole seconds.
                if millis == 0 {
                    return start;
                }
                let own = self.words.get(start..at(second as usize + 1)).unwrap_or_default();
                start + own.partition_point(|it| it.millis() < millis)
            }
            Seconds::Sparse { each } => {
                let start = each.partition_point(|it| *it < second);
                let is_later = |idx: usize| match (each.get(idx), self.words.get(idx)) {
                    (Some(own), Some(word)) => second < *own || millis <= word.millis(),
                    _ => true,
                };
                first_where(start, is_later)
            }
        }
    }

    /// The second of a word, which is `known` or later.
    #[inline]
    pub(super) fn second_of(&self, idx: usize, known: u32) -> u32 {
        match &self.seconds {
            Seconds::Dense { starts } => {
                let ends_later = |second: usize| starts.get(second + 1).is_none_or(|end| idx < *end as usize);
                u32::try_from(first_where(known as usize, ends_later)).unwrap_or(u32::MAX)
            }
            Seconds::Sparse { each } => each.get(idx).copied().unwrap_or(known),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        let seconds = match &self.seconds {
            Seconds::Dense { starts } => starts,
            Seconds::Sparse { each } => each,
        };
        size_of_val(&*self.words) + size_of_val(&**seconds)
    }
}

/// The first number from `from` on for which something holds that goes on to hold. Looks in strides
/// that double: what is looked for is nearly always near, and after a day of silence it still is quick.
#[inline]
fn first_where(from: usize, holds: impl Fn(usize) -> bool) -> usize {
    if holds(from) {
        return from;
    }
    let (mut low, mut stride) = (from + 1, 1);
    while !holds(low + stride - 1) {
        low += stride;
        stride *= 2;
    }
    let mut high = low + stride - 1;
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}
