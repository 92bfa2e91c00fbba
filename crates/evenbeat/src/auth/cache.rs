//! A short-lived cache of rows from the store, by the hash of the secret.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use evenbeat_core::time::BootTime;

use super::{FRESH_FOR, GRACE, TOUCH_EVERY};
use crate::store::access::SecretHash;

/// Largest number of entries. Only existing secrets are cached, so guesses cannot fill it.
const ENTRIES_MAX: usize = 4_096;

/// Rows of one kind.
#[derive(Debug)]
pub(super) struct Cache<T>(Mutex<HashMap<[u8; 32], CacheEntry<T>>>);

#[derive(Debug)]
struct CacheEntry<T> {
    row: Arc<T>,
    checked_at: BootTime,
    touched_at: Option<BootTime>,
}

/// What is known about a secret without asking the store.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Cached<T> {
    /// It was looked up a moment ago.
    Fresh(Arc<T>),
    /// It was good not long ago: it counts if the store does not answer.
    Stale(Arc<T>),
    /// Nothing.
    Unknown,
}

impl<T> Default for Cache<T> {
    fn default() -> Cache<T> {
        Cache(Mutex::new(HashMap::new()))
    }
}

impl<T> Cache<T> {
    pub(super) fn get(&self, hash: SecretHash, now: BootTime) -> Cached<T> {
        match self.entries().get(&hash.0) {
            Some(entry) if now - entry.checked_at < FRESH_FOR => Cached::Fresh(Arc::clone(&entry.row)),
            Some(entry) if now - entry.checked_at < GRACE => Cached::Stale(Arc::clone(&entry.row)),
            _ => Cached::Unknown,
        }
    }

    /// Keeps what was just found.
    pub(super) fn put(&self, hash: SecretHash, row: T, now: BootTime) -> Arc<T> {
        let mut entries = self.entries();
        if ENTRIES_MAX <= entries.len() {
            entries.retain(|_, it| now - it.checked_at < FRESH_FOR);
        }
        if ENTRIES_MAX <= entries.len() {
            entries.clear();
        }
        let row = Arc::new(row);
        let touched_at = entries.get(&hash.0).and_then(|it| it.touched_at);
        entries.insert(hash.0, CacheEntry { row: Arc::clone(&row), checked_at: now, touched_at });
        row
    }

    /// Forgets one.
    pub(super) fn forget(&self, hash: SecretHash) {
        self.entries().remove(&hash.0);
    }

    /// Forgets those that match.
    pub(super) fn forget_if(&self, matches: impl Fn(&T) -> bool) {
        self.entries().retain(|_, it| !matches(&it.row));
    }

    /// Whether the last use of a secret should be written now. True only once in a while.
    pub(super) fn is_touch_due(&self, hash: SecretHash, now: BootTime) -> bool {
        let mut entries = self.entries();
        let Some(entry) = entries.get_mut(&hash.0) else { return false };
        let is_due = entry.touched_at.is_none_or(|at| TOUCH_EVERY <= now - at);
        if is_due {
            entry.touched_at = Some(now);
        }
        is_due
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<[u8; 32], CacheEntry<T>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use evenbeat_core::time::Duration;

    use super::*;

    const HASH: SecretHash = SecretHash([7; 32]);

    fn at(seconds: i64) -> BootTime {
        BootTime::from_millis(0) + Duration::from_secs(seconds)
    }

    #[test]
    fn what_was_found_is_fresh_then_stale_then_forgotten() {
        let cache = Cache::default();
        assert_eq!(cache.get(HASH, at(0)), Cached::Unknown);
        cache.put(HASH, "row", at(10));
        assert_eq!(cache.get(HASH, at(14)), Cached::Fresh(Arc::new("row")));
        assert_eq!(cache.get(HASH, at(15)), Cached::Stale(Arc::new("row")));
        assert_eq!(cache.get(HASH, at(69)), Cached::Stale(Arc::new("row")));
        assert_eq!(cache.get(HASH, at(70)), Cached::Unknown);
        cache.forget_if(|row| *row == "row");
        assert_eq!(cache.get(HASH, at(11)), Cached::Unknown);
    }

    #[test]
    fn the_last_use_is_written_once_a_minute() {
        let cache = Cache::default();
        assert!(!cache.is_touch_due(HASH, at(0)), "nothing is known of it");
        cache.put(HASH, "row", at(0));
        assert!(cache.is_touch_due(HASH, at(1)));
        assert!(!cache.is_touch_due(HASH, at(59)));
        cache.put(HASH, "row", at(60));
        assert!(!cache.is_touch_due(HASH, at(60)), "a new look-up changes nothing");
        assert!(cache.is_touch_due(HASH, at(61)));
    }

    #[test]
    fn it_does_not_grow_without_end() {
        let cache = Cache::default();
        for n in 0..3 * ENTRIES_MAX {
            let mut hash = [0; 32];
            hash[..8].copy_from_slice(&n.to_le_bytes());
            cache.put(SecretHash(hash), n, at(0));
            assert!(cache.entries().len() <= ENTRIES_MAX);
        }
    }
}
