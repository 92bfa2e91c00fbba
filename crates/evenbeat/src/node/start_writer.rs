//! How far runs have come is noted in batches, a moment later. A run that is over before that takes its mark with it to
//! its end, so that no reader sees a run that ended without a start, and nothing is written twice about a short run.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration as Length;

use evenbeat_core::ids::RunId;
use evenbeat_core::store::{BATCH_MAX, Mark};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::metrics::Metrics;
use crate::store::any::AnyStore;

/// How long the first start of a batch waits for others.
const LINGER: Length = Length::from_millis(20);

/// What is yet to be noted.
#[derive(Debug)]
pub(super) struct StartWriter {
    waiting: Arc<StartQueue>,
    writer: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct StartQueue {
    marks: Mutex<StartBatch>,
    news: Notify,
}

#[derive(Debug, Default)]
struct StartBatch {
    marks: BTreeMap<RunId, Mark>,
    /// Of runs that are over: their end takes them along.
    of_ended: BTreeMap<RunId, Mark>,
}

impl StartWriter {
    /// Writes to this store, for as long as this is there. Must be called within the runtime.
    pub(super) fn to(store: AnyStore, metrics: Metrics) -> StartWriter {
        let waiting = Arc::new(StartQueue::default());
        let writer = tokio::spawn(write(store, Arc::clone(&waiting), metrics));
        StartWriter { waiting, writer }
    }

    /// Never waits. A mark that is lost is no harm.
    pub(super) fn note(&self, marks: Vec<Mark>) {
        self.waiting.note(marks);
    }

    /// A run is over: if it was not noted yet how far it had come, its end will tell.
    pub(super) fn keep_for_end(&self, run: RunId) {
        self.waiting.keep_for_end(run);
    }

    /// What was not yet noted of runs that end now.
    pub(super) fn take(&self, runs: impl Iterator<Item = RunId>) -> Vec<Mark> {
        self.waiting.take(runs)
    }
}

impl Drop for StartWriter {
    fn drop(&mut self) {
        self.writer.abort();
    }
}

impl StartQueue {
    fn note(&self, marks: Vec<Mark>) {
        self.lock().marks.extend(marks.into_iter().map(|mark| (mark.run, mark)));
        self.news.notify_one();
    }

    fn keep_for_end(&self, run: RunId) {
        let mut noted = self.lock();
        if let Some(mark) = noted.marks.remove(&run) {
            noted.of_ended.insert(run, mark);
        }
    }

    fn take(&self, runs: impl Iterator<Item = RunId>) -> Vec<Mark> {
        let mut noted = self.lock();
        runs.filter_map(|run| noted.marks.remove(&run).or_else(|| noted.of_ended.remove(&run))).collect()
    }

    fn lock(&self) -> MutexGuard<'_, StartBatch> {
        self.marks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn batch(&self) -> Vec<Mark> {
        let mut noted = self.lock();
        std::iter::from_fn(|| noted.marks.pop_first()).take(BATCH_MAX).map(|(_, mark)| mark).collect()
    }
}

async fn write(store: AnyStore, waiting: Arc<StartQueue>, metrics: Metrics) {
    loop {
        waiting.news.notified().await;
        tokio::time::sleep(LINGER).await;
        loop {
            let batch = waiting.batch();
            if batch.is_empty() {
                break;
            }
            let began = Instant::now();
            let is_done = store.mark(batch).await.is_ok();
            metrics.store_answered("mark", began.elapsed(), is_done);
        }
    }
}

#[cfg(test)]
mod tests {
    use evenbeat_core::ids::Fence;
    use evenbeat_core::store::MarkKind;
    use evenbeat_core::time::Timestamp;

    use super::*;

    fn mark(run: u128) -> Mark {
        Mark { run: RunId(run), fence: Fence(1), kind: MarkKind::Started(Timestamp::UNIX_EPOCH) }
    }

    #[test]
    fn what_a_run_was_marked_with_goes_once_and_with_its_end_if_it_is_over() {
        let waiting = StartQueue::default();
        waiting.note(vec![mark(1), mark(2), mark(3)]);
        waiting.keep_for_end(RunId(2));
        waiting.keep_for_end(RunId(9));
        assert_eq!(waiting.take([RunId(3)].into_iter()), [mark(3)], "its end was sent at once");
        assert_eq!(waiting.batch(), [mark(1)], "the second is over");
        assert_eq!(waiting.take([1, 2, 9].map(RunId).into_iter()), [mark(2)]);
        assert_eq!(waiting.batch(), []);
        assert_eq!(waiting.take([RunId(2)].into_iter()), []);
    }
}
