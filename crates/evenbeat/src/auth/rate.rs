//! How many requests a second and how many streams at a time one caller may have (S13).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use evenbeat_core::time::BootTime;

/// Streams that one caller may have open.
pub const STREAMS_MAX: usize = 128;

/// Requests that may come at once, in seconds of the rate.
const BURST_SECONDS: i64 = 2;

/// Callers that are remembered. There are never as many tokens.
const CALLERS_MAX: usize = 10_000;

/// A bucket per token: it fills by the rate, and each request takes one.
#[derive(Debug)]
pub(super) struct RateLimits {
    rate: Option<u32>,
    buckets: Mutex<HashMap<String, Bucket>>,
}

/// What a token may still ask, in thousandths of a request.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    left_millis: i64,
    at: BootTime,
}

impl RateLimits {
    pub(super) fn new(rate: Option<u32>) -> RateLimits {
        RateLimits { rate, buckets: Mutex::default() }
    }

    /// Counts a request. Returns the rate if it was one too many.
    pub(super) fn exceeded(&self, token: &str, now: BootTime) -> Option<u32> {
        let rate = self.rate?;
        let per_second = i64::from(rate);
        let full = per_second * BURST_SECONDS * 1_000;
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if CALLERS_MAX <= buckets.len() {
            buckets.clear();
        }
        let bucket = match buckets.get_mut(token) {
            Some(bucket) => bucket,
            None => buckets.entry(token.to_owned()).or_insert(Bucket { left_millis: full, at: now }),
        };
        let filled = (now - bucket.at).as_millis().max(0).saturating_mul(per_second);
        bucket.left_millis = bucket.left_millis.saturating_add(filled).min(full);
        bucket.at = now;
        if bucket.left_millis < 1_000 {
            return Some(rate);
        }
        bucket.left_millis -= 1_000;
        None
    }
}

/// Open streams by caller.
#[derive(Clone, Debug, Default)]
pub(super) struct StreamCounts(Arc<Mutex<HashMap<String, usize>>>);

/// A place for one stream.
#[derive(Debug)]
pub struct StreamPermit {
    counts: StreamCounts,
    caller: String,
}

impl StreamCounts {
    pub(super) fn enter(&self, caller: &str) -> Option<StreamPermit> {
        let mut counts = self.counts();
        let n = counts.entry(caller.to_owned()).or_default();
        if STREAMS_MAX <= *n {
            return None;
        }
        *n += 1;
        Some(StreamPermit { counts: self.clone(), caller: caller.to_owned() })
    }

    fn counts(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        let mut counts = self.counts.counts();
        let left = counts.get_mut(&self.caller).map(|n| {
            *n = n.saturating_sub(1);
            *n
        });
        if left == Some(0) {
            counts.remove(&self.caller);
        }
    }
}

#[cfg(test)]
mod tests {
    use evenbeat_core::time::Duration;

    use super::*;

    #[test]
    fn a_token_has_a_burst_and_then_its_rate() {
        let limits = RateLimits::new(Some(10));
        let at = |millis: i64| BootTime::from_millis(0) + Duration::from_millis(millis);
        let n_let_in = |millis: i64| (0..100).filter(|_| limits.exceeded("a", at(millis)).is_none()).count();
        assert_eq!(n_let_in(0), 20);
        assert_eq!(n_let_in(99), 0);
        assert_eq!(n_let_in(100), 1);
        assert_eq!(n_let_in(1_100), 10);
        assert_eq!(n_let_in(60_000), 20, "what was not used is not saved up");
        assert_eq!(limits.exceeded("b", at(0)), None, "another token has its own");
        assert_eq!(limits.exceeded("a", at(60_000)), Some(10));
    }

    #[test]
    fn without_a_rate_there_is_no_limit() {
        let limits = RateLimits::new(None);
        assert!((0..10_000).all(|_| limits.exceeded("a", BootTime::from_millis(0)).is_none()));
    }

    #[test]
    fn streams_are_counted_until_they_end() {
        let counts = StreamCounts::default();
        let mut open: Vec<StreamPermit> = (0..STREAMS_MAX).map(|_| counts.enter("a").unwrap()).collect();
        assert!(counts.enter("a").is_none());
        assert!(counts.enter("b").is_some());
        open.pop();
        assert!(counts.enter("a").is_some());
        open.clear();
        assert!(counts.counts().is_empty(), "nothing is kept of callers without streams");
    }
}
