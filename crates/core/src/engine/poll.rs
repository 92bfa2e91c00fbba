//! A question that the engine asks the store again and again.

use crate::time::{BootTime, Duration};

/// The first pause after a failure. Each further failure doubles it.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// When to ask next, and whether an answer is outstanding.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Poll {
    is_asked: bool,
    next_at: Option<BootTime>,
    n_failures: u32,
}

impl Poll {
    pub(crate) fn is_asked(&self) -> bool {
        self.is_asked
    }

    pub(crate) fn is_due(&self, now: BootTime) -> bool {
        !self.is_asked && self.next_at.is_none_or(|at| at <= now)
    }

    pub(crate) fn asked(&mut self) {
        self.is_asked = true;
    }

    pub(crate) fn answered(&mut self, next_at: BootTime) {
        *self = Poll { is_asked: false, next_at: Some(next_at), n_failures: 0 };
    }

    /// Asks again after a pause that doubles up to a cap.
    pub(crate) fn failed(&mut self, now: BootTime, cap: Duration) {
        let doubled = FIRST_PAUSE.as_millis() << self.n_failures.min(16);
        let pause = Duration::from_millis(doubled).min(cap);
        *self = Poll { is_asked: false, next_at: Some(now + pause), n_failures: self.n_failures + 1 };
    }

    pub(crate) fn at_once(&mut self) {
        self.next_at = None;
    }

    pub(crate) fn wakes_at(&self, now: BootTime) -> Option<BootTime> {
        (!self.is_asked).then(|| self.next_at.unwrap_or(now).max(now))
    }
}
