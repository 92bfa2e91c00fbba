//! Every job once, and by its number in exactly one list, that of its reason, in the order of keys.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::tally::PoolIdx;
use crate::condition::{Condition, Reason};
use crate::ids::JobKey;
use crate::job::Status;
use crate::keyed_slab::{KeyNo, KeyedSlab};
use crate::sorted_index::SortedIndex;
use crate::time::Timestamp;

/// Which jobs to list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// Every one.
    All,
    /// Those in this condition.
    Condition(Condition),
    /// Those whose weightiest reason is this.
    Reason(Reason),
    /// Those that are paused, disabled or done.
    Untracked,
}

impl Which {
    fn has(self, reason: Option<Reason>) -> bool {
        match self {
            Which::All => true,
            Which::Condition(condition) => reason.map(Reason::condition) == Some(condition),
            Which::Reason(only) => reason == Some(only),
            Which::Untracked => reason.is_none(),
        }
    }
}

/// What is kept of one job, beside its key.
#[derive(Clone, Copy, Debug)]
pub(super) struct RosterEntry {
    pub(super) since: Timestamp,
    pub(super) next_at: Option<Timestamp>,
    pub(super) pool: PoolIdx,
    pub(super) status: Status,
    pub(super) reason: Option<Reason>,
}

/// All jobs.
#[derive(Debug, Default)]
pub(super) struct Lists {
    all: KeyedSlab<RosterEntry>,
    by_reason: BTreeMap<Option<Reason>, SortedIndex<KeyNo>>,
}

impl Lists {
    pub(super) fn all(&self) -> &KeyedSlab<RosterEntry> {
        &self.all
    }

    /// Adds a job that is not known yet.
    pub(super) fn add(&mut self, key: &JobKey, entry: RosterEntry) -> KeyNo {
        let Lists { all, by_reason } = self;
        let no = all.insert(key, entry);
        by_reason.entry(entry.reason).or_default().insert(no, |it| all.compared(it, key));
        no
    }

    /// Keeps something else of a job.
    pub(super) fn change(&mut self, no: KeyNo, key: &JobKey, entry: RosterEntry) {
        let Lists { all, by_reason } = self;
        let Some(kept) = all.get_mut(no) else { return };
        let before = std::mem::replace(kept, entry).reason;
        // Most of what happens to a job, such as the start of a run, changes nothing about that.
        if before == entry.reason {
            return;
        }
        if let Some(list) = by_reason.get_mut(&before) {
            list.remove(|it| all.compared(it, key));
        }
        by_reason.entry(entry.reason).or_default().insert(no, |it| all.compared(it, key));
    }

    pub(super) fn remove(&mut self, no: KeyNo) {
        let Lists { all, by_reason } = self;
        let Some((key, entry)) = all.get(no) else { return };
        if let Some(list) = by_reason.get_mut(&entry.reason) {
            list.remove(|it| all.compared(it, key));
        }
        all.remove(no);
    }

    pub(super) fn page(&self, which: Which, after: Option<&JobKey>, most: usize) -> Vec<&JobKey> {
        let asked = match which {
            Which::All => vec![self.all.numbers()],
            _ => self
                .by_reason
                .iter()
                .filter(|(reason, _)| which.has(**reason))
                .map(|(_, list)| list)
                .collect(),
        };
        let mut lines: Vec<ListHead<'_, _>> =
            asked.into_iter().map(|list| ListHead::new(self.keys_after(list, after))).collect();
        let next = || {
            let line = lines.iter_mut().filter(|line| line.head.is_some()).min_by_key(|line| line.head)?;
            line.step()
        };
        std::iter::from_fn(next).take(most).collect()
    }

    fn keys_after<'a>(
        &'a self,
        list: &'a SortedIndex<KeyNo>,
        after: Option<&JobKey>,
    ) -> impl Iterator<Item = &'a JobKey> {
        // Without a key to start after, every job counts.
        let compare = move |no| after.map_or(Ordering::Greater, |key| self.all.compared(no, key));
        list.iter_after(compare).filter_map(|no| self.all.get(no)).map(|(key, _)| key)
    }
}

/// The rest of a list, and who is first in it.
struct ListHead<'a, I> {
    head: Option<&'a JobKey>,
    rest: I,
}

impl<'a, I: Iterator<Item = &'a JobKey>> ListHead<'a, I> {
    fn new(mut rest: I) -> ListHead<'a, I> {
        ListHead { head: rest.next(), rest }
    }

    fn step(&mut self) -> Option<&'a JobKey> {
        std::mem::replace(&mut self.head, self.rest.next())
    }
}
