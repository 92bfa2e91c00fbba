//! Pages of changes: while one is taken in, the next is read.
//!
//! A page that was read early is no harm. What changes after that comes with a later one, and of two versions of a job
//! the later is kept.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use evenbeat_core::store::{Changes, Cursor, StoreDown};
use tokio::task::JoinHandle;

use crate::store::any::AnyStore;

/// Jobs per page.
const PAGE_MAX: usize = 5_000;

/// Reads pages of changes. Copies share what was read ahead.
#[derive(Clone, Debug)]
pub(super) struct FeedReader {
    store: AnyStore,
    ahead: Arc<Mutex<Option<EarlyPage>>>,
}

/// A page that was read ahead.
#[derive(Debug)]
struct EarlyPage {
    since: Cursor,
    page: JoinHandle<Result<Changes, StoreDown>>,
}

impl FeedReader {
    pub(super) fn of(store: AnyStore) -> FeedReader {
        FeedReader { store, ahead: Arc::default() }
    }

    /// What has changed since then.
    pub(super) async fn read(&self, since: Option<Cursor>) -> Result<Changes, StoreDown> {
        let ahead = self.lock().take();
        let page = match ahead {
            Some(ahead) if Some(ahead.since) == since => ahead.page.await.ok(),
            _ => None,
        };
        let page = match page {
            Some(page) => page,
            None => self.store.changes(since, PAGE_MAX).await,
        };
        if let Ok(Changes::Rows { next, is_last: false, .. }) = &page {
            let (store, since) = (self.store.clone(), *next);
            let page = tokio::spawn(async move { store.changes(Some(since), PAGE_MAX).await });
            *self.lock() = Some(EarlyPage { since, page });
        }
        page
    }

    fn lock(&self) -> MutexGuard<'_, Option<EarlyPage>> {
        self.ahead.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
