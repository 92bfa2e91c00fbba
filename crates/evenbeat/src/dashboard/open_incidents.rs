//! The number of open incidents, which the navigation of every page shows.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration as Length;

use tokio::time::Instant;

use crate::store::any::AnyStore;

/// How old the number may be. Every page has it, and many people look at many pages.
const KEPT_FOR: Length = Length::from_secs(3);

/// Counting stops here.
const COUNT_MAX: usize = 1_000;

/// The number of open incidents, as last counted. Copies share it.
#[derive(Clone, Debug, Default)]
pub(super) struct OpenIncidents(Arc<Mutex<Option<(Instant, u64)>>>);

impl OpenIncidents {
    /// The number now, or a moment ago. None if the store does not answer: a page says that by itself where it matters.
    pub(super) async fn count(&self, store: &AnyStore) -> Option<u64> {
        let kept = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, n)) = kept
            && at.elapsed() < KEPT_FOR
        {
            return Some(n);
        }
        let n = store.n_open_incidents(COUNT_MAX).await.ok()?;
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), n));
        Some(n)
    }
}
