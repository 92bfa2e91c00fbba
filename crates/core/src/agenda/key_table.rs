//! The jobs of an agenda, numbered in the order of their keys.

use std::sync::Arc;

use super::source::Source;
use crate::ids::JobKey;

/// Keys in bytewise order, each once. Shared by agendas of the same jobs: copying a million keys
/// takes longer than sorting a million occurrences.
#[derive(Debug, Default)]
pub(super) struct KeyTable {
    jobs: Box<[KeyRow]>,
}

#[derive(Debug)]
pub(super) struct KeyRow {
    pub(super) key: JobKey,
    pub(super) is_estimate: bool,
}

impl KeyTable {
    pub(super) fn get(&self, job_idx: u32) -> Option<&KeyRow> {
        self.jobs.get(job_idx as usize)
    }
}

/// Sources by job, in the order of their keys.
///
/// With a million jobs, comparing keys is most of the work: they lie all over the memory. So the
/// usual cases are recognised in one look at each.
pub(super) struct JobSources<'s, 'a> {
    sources: Vec<&'s Source<'a>>,
    /// No job has two sources.
    is_one_each: bool,
    /// They are exactly the jobs of a roster that was there before.
    is_known: bool,
}

impl<'s, 'a> JobSources<'s, 'a> {
    pub(super) fn of(sources: &'s [Source<'a>], known: &KeyTable) -> JobSources<'s, 'a> {
        let mut sources: Vec<&Source> = sources.iter().collect();
        let are_known = |sources: &[&Source]| {
            let listed = known.jobs.iter().map(|it| (&it.key, it.is_estimate));
            listed.eq(sources.iter().map(|it| (it.key, it.is_estimate)))
        };
        if are_known(&sources) {
            return JobSources { sources, is_one_each: true, is_known: true };
        }
        if sources.is_sorted_by(|one, next| one.key < next.key) {
            return JobSources { sources, is_one_each: true, is_known: false };
        }
        sources.sort_by_key(|source| source.key);
        let is_known = are_known(&sources);
        JobSources { sources, is_one_each: is_known, is_known }
    }

    /// The sources of each job.
    pub(super) fn iter(&self) -> impl Iterator<Item = &[&'s Source<'a>]> {
        self.sources.chunk_by(|one, next| !self.is_one_each && one.key == next.key)
    }

    /// The roster of these jobs; `known`, the one they were compared with, if it is that.
    pub(super) fn roster(&self, known: &Arc<KeyTable>) -> Arc<KeyTable> {
        if self.is_known {
            return Arc::clone(known);
        }
        let listed = |sources: &[&Source]| {
            // A job that is partly known and partly expected counts as expected.
            let is_estimate = sources.iter().any(|source| source.is_estimate);
            sources.first().map(|first| KeyRow { key: first.key.clone(), is_estimate })
        };
        Arc::new(KeyTable { jobs: self.iter().filter_map(listed).collect() })
    }
}
