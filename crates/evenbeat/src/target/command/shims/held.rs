//! A run that a scheduler holds, and what it has to say to its shim.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use evenbeat_core::ids::Fence;
use evenbeat_core::time::{BootTime, Duration};
use tokio::sync::Notify;

use crate::target::command::word::ToShim;

/// A run that is held.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) fence: Fence,
    pub(super) is_leased: bool,
    pub(super) grace: Duration,
    /// Whether anybody wants to hear of it. What was found and is nobody's is only to end.
    pub(super) is_wanted: bool,
    words: Mutex<Words>,
    has_words: Notify,
    /// When its shim last said anything, on the machine's boot clock in milliseconds; 0 before it did.
    heard_at: AtomicI64,
}

#[derive(Debug, Default)]
struct Words {
    unsaid: Vec<ToShim>,
    is_revoked: bool,
}

impl Held {
    pub(super) fn new(fence: Fence, is_leased: bool, grace: Duration) -> Held {
        Held {
            fence,
            is_leased,
            grace,
            is_wanted: true,
            words: Mutex::default(),
            has_words: Notify::new(),
            heard_at: AtomicI64::new(0),
        }
    }

    /// One that was found in nobody's hands.
    pub(super) fn unwanted() -> Held {
        Held { is_wanted: false, ..Held::new(Fence(0), false, Duration::ZERO) }
    }

    /// Its shim has said something.
    pub(super) fn heard(&self, at: BootTime) {
        self.heard_at.store(at.as_millis(), Ordering::Relaxed);
    }

    /// When its shim last said anything.
    pub(super) fn heard_at(&self) -> Option<BootTime> {
        Some(self.heard_at.load(Ordering::Relaxed)).filter(|at| *at != 0).map(BootTime::from_millis)
    }

    /// Puts a word behind those that were not said yet. Of several extensions only the last means anything, so that a
    /// shim which does not listen piles nothing up.
    pub(super) fn say(&self, word: ToShim) {
        let mut words = self.words();
        let is_extension = matches!(word, ToShim::Extend { .. });
        if words.is_revoked && (is_extension || word == ToShim::Revoke) {
            return;
        }
        words.is_revoked |= word == ToShim::Revoke;
        match words.unsaid.last_mut() {
            Some(last) if is_extension && matches!(last, ToShim::Extend { .. }) => *last = word,
            Some(last) if *last == word => {}
            _ => words.unsaid.push(word),
        }
        drop(words);
        self.has_words.notify_one();
    }

    /// All that was not said yet, in order.
    pub(super) fn take(&self) -> Vec<ToShim> {
        std::mem::take(&mut self.words().unsaid)
    }

    /// Waits until there is something to be said.
    pub(super) async fn wait(&self) {
        self.has_words.notified().await;
    }

    fn words(&self) -> MutexGuard<'_, Words> {
        self.words.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use evenbeat_core::run::Outcome;

    use super::*;

    fn extend(until: i64) -> ToShim {
        ToShim::Extend { until: BootTime::from_millis(until), fence: Fence(1) }
    }

    const STOP: ToShim = ToShim::Stop { outcome: Outcome::TimedOut, grace: Duration::ZERO };

    #[track_caller]
    fn check(said: &[ToShim], expected: &[ToShim]) {
        let held = Held::new(Fence(1), true, Duration::ZERO);
        for word in said {
            held.say(*word);
        }
        assert_eq!(held.take(), expected);
        assert_eq!(held.take(), []);
    }

    #[test]
    fn words_keep_their_order() {
        check(&[extend(1), STOP, extend(2), ToShim::Revoke], &[extend(1), STOP, extend(2), ToShim::Revoke]);
    }

    #[test]
    fn nothing_piles_up() {
        check(&[extend(1), extend(2), extend(3)], &[extend(3)]);
        check(&[STOP, STOP, ToShim::Noted], &[STOP, ToShim::Noted]);
    }

    #[test]
    fn what_is_revoked_is_never_extended() {
        check(&[ToShim::Revoke, extend(1), ToShim::Revoke, ToShim::Noted], &[ToShim::Revoke, ToShim::Noted]);
    }
}
