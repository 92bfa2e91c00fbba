//! Every job in exactly one list, that of its reason, in the order of keys.

use std::collections::BTreeMap;
use std::collections::btree_map::Range;
use std::ops::Bound;

use super::tally::PoolIdx;
use crate::condition::{Condition, Reason};
use crate::ids::JobKey;
use crate::job::Status;
use crate::time::Timestamp;

/// Which jobs are asked for.
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

/// What is kept of one job, beside its key and its reason.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) since: Timestamp,
    pub(super) next_at: Option<Timestamp>,
    pub(super) pool: PoolIdx,
    pub(super) status: Status,
}

/// All jobs.
///
/// A list has what is kept of its jobs: an index by key beside it would cost as much memory again. So finding
/// a job asks nine lists, of which all but one or two are short.
#[derive(Debug, Default)]
pub(super) struct Lists {
    by_reason: BTreeMap<Option<Reason>, BTreeMap<JobKey, Entry>>,
}

impl Lists {
    pub(super) fn find(&self, key: &JobKey) -> Option<(Option<Reason>, &Entry)> {
        self.by_reason.iter().find_map(|(reason, list)| Some((*reason, list.get(key)?)))
    }

    pub(super) fn take(&mut self, key: &JobKey) -> Option<(JobKey, Option<Reason>, Entry)> {
        self.by_reason.iter_mut().find_map(|(reason, list)| {
            let (key, entry) = list.remove_entry(key)?;
            Some((key, *reason, entry))
        })
    }

    /// Adds a job that is in no list.
    pub(super) fn put(&mut self, key: JobKey, reason: Option<Reason>, entry: Entry) {
        self.by_reason.entry(reason).or_default().insert(key, entry);
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (Option<Reason>, &JobKey)> {
        self.by_reason.iter().flat_map(|(reason, list)| list.keys().map(move |key| (*reason, key)))
    }

    pub(super) fn page(&self, which: Which, after: Option<&JobKey>, most: usize) -> Vec<&JobKey> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let asked = self.by_reason.iter().filter(|(reason, _)| which.has(**reason));
        let mut lines: Vec<Line<'_>> =
            asked.map(|(_, list)| Line::new(list.range::<JobKey, _>((from, Bound::Unbounded)))).collect();
        let next = || {
            let line = lines.iter_mut().filter(|line| line.head.is_some()).min_by_key(|line| line.head)?;
            line.step()
        };
        std::iter::from_fn(next).take(most).collect()
    }
}

impl FromIterator<(Option<Reason>, JobKey, Entry)> for Lists {
    fn from_iter<I: IntoIterator<Item = (Option<Reason>, JobKey, Entry)>>(all: I) -> Lists {
        let mut apart: BTreeMap<Option<Reason>, Vec<(JobKey, Entry)>> = BTreeMap::new();
        for (reason, key, entry) in all {
            apart.entry(reason).or_default().push((key, entry));
        }
        let by_reason = apart.into_iter().map(|(reason, list)| (reason, list.into_iter().collect()));
        Lists { by_reason: by_reason.collect() }
    }
}

/// The rest of a list, and who is first in it.
struct Line<'a> {
    head: Option<&'a JobKey>,
    rest: Range<'a, JobKey, Entry>,
}

impl<'a> Line<'a> {
    fn new(mut rest: Range<'a, JobKey, Entry>) -> Line<'a> {
        Line { head: rest.next().map(|(key, _)| key), rest }
    }

    fn step(&mut self) -> Option<&'a JobKey> {
        std::mem::replace(&mut self.head, self.rest.next().map(|(key, _)| key))
    }
}
