//! What the writer and all readers of one store share.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use evenbeat_core::ids::JobKey;
use evenbeat_core::job::Job;
use evenbeat_core::time::Timestamp;

use super::NowFn;
use super::feed::Tokens;
use crate::store::definition::{self, TermsCache, Unreadable};
use crate::store::generations::Generations;
use crate::store::similar::SimilarJobs;

/// At least this many definitions are remembered, and at most twice as many.
const DEFINITIONS_SIZE: usize = 8_192;

pub(super) struct StoreContext {
    pub(super) path: PathBuf,
    pub(super) clock: NowFn,
    pub(super) terms: TermsCache,
    pub(super) definitions: DefinitionCache,
    pub(super) tokens: Mutex<Tokens>,
}

impl StoreContext {
    pub(super) fn new(path: PathBuf, clock: NowFn) -> StoreContext {
        let tokens = Mutex::new(Tokens::new(clock()));
        StoreContext {
            path,
            clock,
            terms: TermsCache::default(),
            definitions: DefinitionCache::default(),
            tokens,
        }
    }

    pub(super) fn now(&self) -> Timestamp {
        (self.clock)()
    }
}

/// Reads definitions, and remembers them by id: a claim and its end are about the same job, and reading its definition
/// costs more than all that the database does for it.
#[derive(Default)]
pub(super) struct DefinitionCache {
    read: Generations<i64, CachedDefinition, DEFINITIONS_SIZE>,
    /// For a burst of more jobs than are remembered by id.
    similar: SimilarJobs,
}

struct CachedDefinition {
    text: Box<str>,
    job: Arc<Job>,
}

impl DefinitionCache {
    /// The job of a text that is stored under this id.
    fn job(&self, id: i64, key: &JobKey, text: &str) -> Result<Arc<Job>, Unreadable> {
        let matching = |it: &CachedDefinition| (*it.text == *text).then(|| Arc::clone(&it.job));
        if let Some(job) = self.read.get(&id, matching).flatten() {
            return Ok(job);
        }
        let job = self.similar.job(key, text)?;
        self.remember(id, text, &job);
        Ok(job)
    }

    pub(super) fn remember(&self, id: i64, text: &str, job: &Arc<Job>) {
        self.read.put(id, CachedDefinition { text: text.into(), job: Arc::clone(job) });
    }

    /// The job of a text. If it cannot be read: a job that does nothing, and the reason.
    pub(super) fn job_or_broken(&self, id: i64, key: &JobKey, text: &str) -> (Arc<Job>, Option<Unreadable>) {
        match self.job(id, key, text) {
            Ok(job) => (job, None),
            Err(unreadable) => (Arc::new(definition::broken_job(key)), Some(unreadable)),
        }
    }
}
