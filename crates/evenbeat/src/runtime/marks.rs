//! How far runs have come is noted in batches, a moment later. A run that is over before that takes its mark with it to
//! its end, so that nobody sees one that ended and never began.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration as Length;

use evenbeat_core::ids::RunId;
use evenbeat_core::store::{BATCH_MAX, Mark};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::store::any::AnyStore;

/// The first of a batch waits so long for others.
const LINGER: Length = Length::from_millis(20);

/// What is yet to be noted.
#[derive(Debug)]
pub(super) struct Marks {
    waiting: Arc<Waiting>,
    writer: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Waiting {
    marks: Mutex<BTreeMap<RunId, Mark>>,
    news: Notify,
}

impl Marks {
    /// Writes to this store, for as long as this is there. Must be called within the runtime.
    pub(super) fn to(store: AnyStore) -> Marks {
        let waiting = Arc::new(Waiting::default());
        let writer = tokio::spawn(write(store, Arc::clone(&waiting)));
        Marks { waiting, writer }
    }

    /// Never waits. A mark that is lost is no harm.
    pub(super) fn note(&self, marks: Vec<Mark>) {
        self.waiting.lock().extend(marks.into_iter().map(|mark| (mark.run, mark)));
        self.waiting.news.notify_one();
    }

    /// What was not yet noted of runs that end now.
    pub(super) fn take(&self, runs: impl Iterator<Item = RunId>) -> Vec<Mark> {
        let mut marks = self.waiting.lock();
        runs.filter_map(|run| marks.remove(&run)).collect()
    }
}

impl Drop for Marks {
    fn drop(&mut self) {
        self.writer.abort();
    }
}

impl Waiting {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<RunId, Mark>> {
        self.marks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn batch(&self) -> Vec<Mark> {
        let mut marks = self.lock();
        std::iter::from_fn(|| marks.pop_first()).take(BATCH_MAX).map(|(_, mark)| mark).collect()
    }
}

async fn write(store: AnyStore, waiting: Arc<Waiting>) {
    loop {
        waiting.news.notified().await;
        tokio::time::sleep(LINGER).await;
        loop {
            let batch = waiting.batch();
            if batch.is_empty() {
                break;
            }
            let _ = store.mark(batch).await;
        }
    }
}
