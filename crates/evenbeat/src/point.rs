//! Places where a test can stop the process, to see what a death right there leaves behind.
//!
//! `EVENBEAT_TEST_STOP_AT=claim.asked:2` stops it, with SIGSTOP, when it comes by `claim.asked` for the second time.
//! Only builds with debug assertions know of it; in a release nothing is left of a point.

/// The variable that names a place, and how many times it is passed before.
#[cfg(debug_assertions)]
pub(crate) const STOP_AT: &str = "EVENBEAT_TEST_STOP_AT";

/// A place where the process can be stopped.
#[cfg(debug_assertions)]
pub(crate) fn point(name: &str) {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    static STOPS_AT: OnceLock<Option<(String, u64)>> = OnceLock::new();
    static N_PASSED: AtomicU64 = AtomicU64::new(0);
    let stops_at = STOPS_AT.get_or_init(|| {
        let text = std::env::var(STOP_AT).ok()?;
        let (name, nth) = text.split_once(':')?;
        Some((name.to_owned(), nth.parse().ok()?))
    });
    if let Some((stops_at, nth)) = stops_at
        && stops_at == name
        && N_PASSED.fetch_add(1, Ordering::Relaxed) + 1 == *nth
    {
        // The test sees that we stand, and decides how it goes on.
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::STOP);
        // Another thread may be the first to stop; this one must not pass meanwhile.
        std::thread::park_timeout(std::time::Duration::from_millis(200));
    }
}

/// Nothing.
#[cfg(not(debug_assertions))]
#[inline(always)]
#[expect(clippy::inline_always, reason = "a release is to be as if no point had been written")]
pub(crate) fn point(_name: &str) {}
