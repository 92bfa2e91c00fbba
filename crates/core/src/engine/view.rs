//! What a node knows of all jobs: as little of each as a decision needs.
//!
//! Jobs are numbered; the sets that order them hold numbers. Terms that several jobs share are kept once.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::sync::Arc;

use crate::chunked_slab::ChunkedSlab;
use crate::ids::JobKey;
use crate::job::{JobState, Terms};
use crate::sorted_index::SortedIndex;
use crate::store::{JobNews, JobRow, Version};
use crate::time::Timestamp;

/// The number of a job in a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct JobIdx(pub(super) u32);

impl JobIdx {
    /// No other comes before it.
    pub(crate) const FIRST: JobIdx = JobIdx(0);
}

/// What is known of one job.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: JobKey,
    pub(crate) terms: Arc<Terms>,
    pub(crate) state: JobState,
    pub(crate) version: Version,
    pub(crate) n_open: u32,
    /// Whether its start message goes through the outbox.
    pub(crate) is_published: bool,
    pub(crate) stage: Stage,
}

/// A job as it comes with an answer or from the feed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JobUpdate<'a> {
    pub(crate) key: &'a JobKey,
    pub(crate) terms: &'a Terms,
    pub(crate) is_published: bool,
    pub(crate) state: &'a JobState,
    pub(crate) version: Version,
    pub(crate) n_open: u32,
    pub(crate) is_deleted: bool,
}

impl<'a> From<&'a JobRow> for JobUpdate<'a> {
    fn from(row: &'a JobRow) -> JobUpdate<'a> {
        JobUpdate {
            key: &row.job.key,
            terms: &row.job.terms,
            is_published: row.job.target.is_published(),
            state: &row.state,
            version: row.version,
            n_open: row.n_open,
            is_deleted: row.is_deleted,
        }
    }
}

impl<'a> From<&'a JobNews> for JobUpdate<'a> {
    fn from(news: &'a JobNews) -> JobUpdate<'a> {
        let JobNews { key, terms, is_published, state, version, n_open, is_deleted } = news;
        JobUpdate {
            key,
            terms,
            is_published: *is_published,
            state,
            version: *version,
            n_open: *n_open,
            is_deleted: *is_deleted,
        }
    }
}

/// What a job waits for on this node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Nothing to do for it here, or not before its row changes.
    #[default]
    Aside,
    /// It may start then.
    Waiting {
        /// When it is looked at next.
        at: Timestamp,
        /// Whether it is left to another node until then.
        is_left: bool,
    },
    /// It may start now; its rank is in its pool's queue.
    Ready,
    /// It may start as soon as a counter has room.
    Parked,
    /// It has been claimed, and the store has not answered yet.
    Requested,
}

/// All jobs.
#[derive(Debug, Default)]
pub(crate) struct View {
    entries: ChunkedSlab<Entry>,
    by_key: SortedIndex<JobIdx>,
    shared: SharedTerms,
}

impl View {
    pub(crate) fn idx_of(&self, key: &JobKey) -> Option<JobIdx> {
        self.by_key.find(|idx| self.against(idx, key))
    }

    /// The number of a job that had this number before, and most likely still has it.
    pub(crate) fn idx_near(&self, was: JobIdx, key: &JobKey) -> Option<JobIdx> {
        let is_same = self.get(was).is_some_and(|entry| entry.key == *key);
        if is_same { Some(was) } else { self.idx_of(key) }
    }

    pub(crate) fn get(&self, idx: JobIdx) -> Option<&Entry> {
        self.entries.get(idx.0)
    }

    pub(crate) fn get_mut(&mut self, idx: JobIdx) -> Option<&mut Entry> {
        self.entries.get_mut(idx.0)
    }

    pub(crate) fn find(&self, key: &JobKey) -> Option<&Entry> {
        self.get(self.idx_of(key)?)
    }

    /// The same for one that was known by this number.
    pub(crate) fn find_near(&self, was: JobIdx, key: &JobKey) -> Option<&Entry> {
        self.get(self.idx_near(was, key)?)
    }

    /// All of them, in the order of their keys.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.by_key.iter().filter_map(|idx| self.get(idx))
    }

    /// Those whose keys come after this one, in the order of their keys.
    pub(crate) fn entries_after<'a>(&'a self, key: &'a JobKey) -> impl Iterator<Item = &'a Entry> {
        self.by_key.iter_after(|idx| self.against(idx, key)).filter_map(|idx| self.get(idx))
    }

    /// How the key of a job compares with another.
    fn against(&self, idx: JobIdx, key: &JobKey) -> Ordering {
        self.get(idx).map_or(Ordering::Less, |entry| entry.key.cmp(key))
    }

    pub(crate) fn len(&self) -> usize {
        self.by_key.len()
    }

    pub(crate) fn indices(&self) -> impl Iterator<Item = JobIdx> {
        self.by_key.iter()
    }

    /// Takes in an update of a job, known by this number or not yet, and returns its number.
    pub(crate) fn put(&mut self, known: Option<JobIdx>, row: JobUpdate<'_>) -> JobIdx {
        let before = known.and_then(|idx| self.get(idx));
        // Keep the text of a key once, however many updates carry it.
        let key = before.map_or(row.key, |entry| &entry.key).clone();
        let same = before.filter(|entry| *entry.terms == *row.terms).map(|entry| Arc::clone(&entry.terms));
        let entry = Entry {
            key,
            terms: same.unwrap_or_else(|| self.shared.intern(row.terms)),
            state: row.state.clone(),
            version: row.version,
            n_open: row.n_open,
            is_published: row.is_published,
            stage: Stage::Aside,
        };
        match known {
            Some(idx) => {
                if let Some(kept) = self.get_mut(idx) {
                    *kept = entry;
                }
                idx
            }
            None => self.add(entry),
        }
    }

    pub(crate) fn remove(&mut self, key: &JobKey) {
        let Some(idx) = self.idx_of(key) else { return };
        let mut by_key = std::mem::take(&mut self.by_key);
        by_key.remove(|it| self.against(it, key));
        self.by_key = by_key;
        self.entries.remove(idx.0);
    }

    fn add(&mut self, entry: Entry) -> JobIdx {
        let key = entry.key.clone();
        let idx = JobIdx(self.entries.add(entry));
        let mut by_key = std::mem::take(&mut self.by_key);
        by_key.insert(idx, |it| self.against(it, &key));
        self.by_key = by_key;
        idx
    }
}

/// Terms by their hash. Those that are no longer used are dropped when the next terms of that hash come.
#[derive(Debug, Default)]
struct SharedTerms {
    by_hash: BTreeMap<u64, Vec<Arc<Terms>>>,
}

impl SharedTerms {
    fn intern(&mut self, terms: &Terms) -> Arc<Terms> {
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(terms);
        let alike = self.by_hash.entry(hash).or_default();
        if let Some(known) = alike.iter().find(|it| ***it == *terms) {
            return Arc::clone(known);
        }
        alike.retain(|it| 1 < Arc::strong_count(it));
        let shared = Arc::new(terms.clone());
        alike.push(Arc::clone(&shared));
        shared
    }
}
