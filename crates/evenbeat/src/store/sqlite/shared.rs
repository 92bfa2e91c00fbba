//! What the writer and all readers of one store know in common.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use evenbeat_core::ids::JobKey;
use evenbeat_core::job::Job;
use evenbeat_core::time::Timestamp;

use super::Clock;
use super::feed::Tokens;
use crate::store::definition::{self, TermsCache, Unreadable};
use crate::store::similar::SimilarJobs;

/// So many definitions are remembered at least, those that were used last.
const DEFINITIONS_MIN: usize = 8_192;

pub(super) struct Shared {
    pub(super) path: PathBuf,
    pub(super) clock: Clock,
    pub(super) terms: TermsCache,
    pub(super) definitions: Definitions,
    pub(super) tokens: Mutex<Tokens>,
}

impl Shared {
    pub(super) fn new(path: PathBuf, clock: Clock) -> Shared {
        let tokens = Mutex::new(Tokens::new(clock()));
        Shared { path, clock, terms: TermsCache::default(), definitions: Definitions::default(), tokens }
    }

    pub(super) fn now(&self) -> Timestamp {
        (self.clock)()
    }
}

/// Definitions that were read before: a claim and its end speak of the same job, and reading a definition costs more
/// than all that the database does for it.
#[derive(Default)]
pub(super) struct Definitions {
    known: Mutex<Generations>,
    /// For those of a burst, which are more than are remembered.
    similar: SimilarJobs,
}

/// What is used moves into the young generation; when that is full, the old one goes.
#[derive(Default)]
struct Generations {
    young: HashMap<i64, Known>,
    old: HashMap<i64, Known>,
}

struct Known {
    text: Box<str>,
    job: Arc<Job>,
}

impl Definitions {
    /// The job that a text says, which was read for this id before or is read now.
    fn job(&self, id: i64, key: &JobKey, text: &str) -> Result<Arc<Job>, Unreadable> {
        if let Some(job) = self.known(id, text) {
            return Ok(job);
        }
        let job = self.similar.job(key, text)?;
        self.remember(id, text, &job);
        Ok(job)
    }

    pub(super) fn remember(&self, id: i64, text: &str, job: &Arc<Job>) {
        let known = Known { text: text.into(), job: Arc::clone(job) };
        self.known.lock().unwrap_or_else(PoisonError::into_inner).put(id, known);
    }

    fn known(&self, id: i64, text: &str) -> Option<Arc<Job>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let found = match known.young.get(&id) {
            Some(found) => found,
            None => {
                let found = known.old.remove(&id)?;
                known.put(id, found);
                known.young.get(&id)?
            }
        };
        (*found.text == *text).then(|| Arc::clone(&found.job))
    }

    /// The same; a job that does nothing if the text cannot be read, and why.
    pub(super) fn job_or_none(&self, id: i64, key: &JobKey, text: &str) -> (Arc<Job>, Option<Unreadable>) {
        match self.job(id, key, text) {
            Ok(job) => (job, None),
            Err(unreadable) => (Arc::new(definition::broken_job(key)), Some(unreadable)),
        }
    }
}

impl Generations {
    fn put(&mut self, id: i64, known: Known) {
        if DEFINITIONS_MIN <= self.young.len() {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(id, known);
    }
}
