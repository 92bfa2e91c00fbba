//! The jobs whose stored next run cannot be, as the feed tells of them.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use evenbeat_core::ids::JobKey;
use evenbeat_core::repair::{self, Fault};
use evenbeat_core::store::JobNews;
use evenbeat_core::time::Timestamp;
use tokio::sync::Notify;

/// The jobs whose stored next run cannot be.
#[derive(Debug, Default)]
pub struct Faults {
    known: Mutex<BTreeMap<JobKey, Fault>>,
    news: Notify,
}

impl Faults {
    pub(super) fn learn(&self, rows: &[JobNews], now: Timestamp) {
        let mut known = self.lock();
        let mut is_news = false;
        for row in rows {
            let fault = repair::fault(&row.terms, &row.state, row.n_open, now).filter(|_| !row.is_deleted);
            match fault {
                Some(fault) => {
                    is_news = true;
                    known.insert(row.key.clone(), fault);
                }
                None if known.is_empty() => {}
                None => {
                    known.remove(&row.key);
                }
            }
        }
        if is_news {
            self.news.notify_one();
        }
    }

    pub(super) fn forget_all(&self) {
        self.lock().clear();
    }

    /// In how many jobs something is wrong now, and one of them.
    pub fn count(&self) -> (usize, Option<JobKey>) {
        let known = self.lock();
        (known.len(), known.keys().next().cloned())
    }

    /// What is wrong now.
    pub fn all(&self) -> BTreeMap<JobKey, Fault> {
        self.lock().clone()
    }

    /// Waits until something new is wrong.
    pub async fn news(&self) {
        self.news.notified().await;
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<JobKey, Fault>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
