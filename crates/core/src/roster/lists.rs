//! Every job once, and by its number in exactly one list, that of its reason, in the order of keys. Those that are late or
//! at risk are also in the list of their cause, the most urgent first, and those that run in a list of their own.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BTreeSet};

use super::cause::AttentionCause;
use super::tally::{CountedBy, PoolIdx};
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
    /// Those that are late or at risk.
    Attention,
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
            Which::Attention => reason.is_some_and(|it| it.condition() != Condition::Ok),
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
    pub(super) cause: Option<AttentionCause>,
    /// The end of time if there is none.
    pub(super) deadline: Timestamp,
}

/// Where a job stands among those that need attention: late ones come first, then what is due first.
type AttentionRank = (Reverse<Condition>, Timestamp, KeyNo);

impl RosterEntry {
    pub(super) fn counted_by(&self) -> CountedBy {
        CountedBy { status: self.status, reason: self.reason, cause: self.cause }
    }

    fn attention(&self, no: KeyNo) -> Option<(AttentionCause, AttentionRank)> {
        let condition = self.reason?.condition();
        Some((self.cause?, (Reverse(condition), self.deadline, no)))
    }
}

/// All jobs.
#[derive(Debug, Default)]
pub(super) struct Lists {
    all: KeyedSlab<RosterEntry>,
    by_reason: BTreeMap<Option<Reason>, SortedIndex<KeyNo>>,
    by_cause: BTreeMap<AttentionCause, BTreeSet<AttentionRank>>,
    running: BTreeSet<KeyNo>,
}

impl Lists {
    pub(super) fn all(&self) -> &KeyedSlab<RosterEntry> {
        &self.all
    }

    /// Adds a job that is not known yet.
    pub(super) fn add(&mut self, key: &JobKey, entry: RosterEntry) -> KeyNo {
        let Lists { all, by_reason, .. } = self;
        let no = all.insert(key, entry);
        by_reason.entry(entry.reason).or_default().insert(no, |it| all.compared(it, key));
        self.list(no, &entry);
        no
    }

    fn list(&mut self, no: KeyNo, entry: &RosterEntry) {
        if let Some((cause, rank)) = entry.attention(no) {
            self.by_cause.entry(cause).or_default().insert(rank);
        }
        if entry.status == Status::Running {
            self.running.insert(no);
        }
    }

    fn unlist(&mut self, no: KeyNo, entry: &RosterEntry) {
        if let Some((cause, rank)) = entry.attention(no)
            && let Some(list) = self.by_cause.get_mut(&cause)
        {
            list.remove(&rank);
        }
        if entry.status == Status::Running {
            self.running.remove(&no);
        }
    }

    /// Keeps something else of a job.
    pub(super) fn change(&mut self, no: KeyNo, key: &JobKey, entry: RosterEntry) {
        let Some(kept) = self.all.get_mut(no) else { return };
        let before = std::mem::replace(kept, entry);
        self.unlist(no, &before);
        self.list(no, &entry);
        let (Lists { all, by_reason, .. }, before) = (self, before.reason);
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
        let Some(entry) = self.all.get(no).map(|(_, entry)| *entry) else { return };
        self.unlist(no, &entry);
        let Lists { all, by_reason, .. } = self;
        let Some((key, _)) = all.get(no) else { return };
        if let Some(list) = by_reason.get_mut(&entry.reason) {
            list.remove(|it| all.compared(it, key));
        }
        all.remove(no);
    }

    /// Jobs that are late or at risk, the most urgent first: of one cause or of all, in one condition or in both.
    pub(super) fn most_urgent(
        &self,
        cause: Option<AttentionCause>,
        condition: Option<Condition>,
    ) -> impl Iterator<Item = KeyNo> {
        let lists = self.by_cause.iter().filter(move |(it, _)| cause.is_none_or(|cause| cause == **it));
        // The late ones come first in each list, so that those at risk begin with the first of them.
        let from = match condition {
            Some(condition) => condition,
            None => Condition::Error,
        };
        let start = (Reverse(from), Timestamp::MIN, KeyNo::FIRST);
        let mut lists: Vec<_> = lists.map(|(_, list)| list.range(start..).peekable()).collect();
        let next = move || {
            let first = lists.iter_mut().filter_map(|list| Some((*list.peek()?, list)));
            first.min_by_key(|(rank, _)| **rank)?.1.next()
        };
        let is_wanted = move |rank: &&AttentionRank| condition.is_none_or(|it| rank.0 == Reverse(it));
        std::iter::from_fn(next).take_while(is_wanted).map(|(.., no)| *no)
    }

    /// Jobs that run.
    pub(super) fn running(&self) -> impl Iterator<Item = KeyNo> {
        self.running.iter().copied()
    }

    pub(super) fn page(&self, which: Which, after: Option<&JobKey>, most: usize) -> Vec<&JobKey> {
        let keys = self.by_key(which, after).filter_map(|no| self.all.get(no)).map(|(key, _)| key);
        keys.take(most).collect()
    }

    /// Jobs after a key, in the order of keys.
    pub(super) fn by_key(&self, which: Which, after: Option<&JobKey>) -> impl Iterator<Item = KeyNo> {
        let lists = match which {
            Which::All => vec![self.all.numbers()],
            _ => self
                .by_reason
                .iter()
                .filter(|(reason, _)| which.has(**reason))
                .map(|(_, list)| list)
                .collect(),
        };
        let mut lines: Vec<ListHead<'_, _>> =
            lists.into_iter().map(|list| ListHead::new(self.keys_after(list, after))).collect();
        let next = move || {
            let line = lines.iter_mut().filter(|line| line.head.is_some()).min_by_key(|line| line.head)?;
            line.step()
        };
        std::iter::from_fn(next).map(|(_, no)| no)
    }

    fn keys_after<'a>(
        &'a self,
        list: &'a SortedIndex<KeyNo>,
        after: Option<&JobKey>,
    ) -> impl Iterator<Item = (&'a JobKey, KeyNo)> {
        // Without a key to start after, every job counts.
        let compare = move |no| after.map_or(Ordering::Greater, |key| self.all.compared(no, key));
        list.iter_after(compare).filter_map(|no| Some((self.all.get(no)?.0, no)))
    }
}

/// The rest of a list, and who is first in it.
struct ListHead<'a, I> {
    head: Option<(&'a JobKey, KeyNo)>,
    rest: I,
}

impl<'a, I: Iterator<Item = (&'a JobKey, KeyNo)>> ListHead<'a, I> {
    fn new(mut rest: I) -> ListHead<'a, I> {
        ListHead { head: rest.next(), rest }
    }

    fn step(&mut self) -> Option<(&'a JobKey, KeyNo)> {
        std::mem::replace(&mut self.head, self.rest.next())
    }
}
