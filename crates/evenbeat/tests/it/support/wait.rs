//! The one place where tests wait: they look, and look again less and less often, until there is something to see.
//!
//! A look may fork a process or ask a database, so the pause after it is at least as long as the look itself: a test that
//! waits never takes more than half a core away from what it waits for. Bounds are generous on purpose: a bound that a busy
//! machine can exceed says nothing about the product.

use std::fmt::Debug;
use std::time::{Duration, Instant};

/// How long anything may take before a test fails.
pub(crate) const PATIENCE: Duration = Duration::from_mins(2);

const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// Looks until there is something to see, and returns it.
#[track_caller]
pub(crate) fn until<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    until_within(PATIENCE, what, look)
}

/// Looks until there is something to see, with another bound than [`PATIENCE`].
#[track_caller]
pub(crate) fn until_within<T>(bound: Duration, what: &str, look: impl FnMut() -> Option<T>) -> T {
    look_within(bound, look).unwrap_or_else(|| panic!("{what} did not come within {bound:?}"))
}

/// Looks until there is something to see or the time is up, for callers that have more to say about it.
pub(crate) fn look_within<T>(bound: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let began = Instant::now();
    let mut pause = FIRST_PAUSE;
    loop {
        let looked = Instant::now();
        let seen = look();
        if seen.is_some() || bound < began.elapsed() {
            return seen;
        }
        rest(pause.max(looked.elapsed()));
        pause = (pause * 3 / 2).min(LONGEST_PAUSE);
    }
}

/// Looks until something is so.
#[track_caller]
pub(crate) fn until_so(what: &str, mut is_so: impl FnMut() -> bool) {
    until(what, || is_so().then_some(()));
}

/// Asserts that a value does not change for a while.
#[track_caller]
pub(crate) fn stays<T: PartialEq + Debug>(length: Duration, mut look: impl FnMut() -> T) {
    let (before, began) = (look(), Instant::now());
    while began.elapsed() < length {
        assert_eq!(look(), before);
        rest(FIRST_PAUSE * 2);
    }
}

/// Lets time pass so that a fault can happen at a moment of its own, never to wait for a result.
pub(crate) fn live_for(length: Duration) {
    rest(length);
}

fn rest(length: Duration) {
    std::thread::sleep(length);
}
