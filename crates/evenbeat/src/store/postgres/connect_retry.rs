//! Connects in the background when a caller's deadline was too short.
//!
//! A caller whose deadline passes drops its attempt. If that were all, a slow server (far away, or overloaded) would
//! never be reached, however often it is tried. So a dropped attempt starts another one in the background, with more
//! time. The next caller gets its connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How many deadlines a background attempt may take. There is one at a time, and callers still make their own
/// attempts, so a dead server does not keep them from reaching another one.
const PATIENCE: u32 = 10;

/// Starts a background attempt when a caller gives up, one at a time.
#[derive(Debug, Default)]
pub(super) struct ConnectRetry {
    is_busy: Arc<AtomicBool>,
}

impl ConnectRetry {
    /// Waits for `now`. If this future is dropped first, runs `later` in the background, with more time.
    pub(super) async fn connect<T, F>(
        &self,
        deadline: Duration,
        now: impl Future<Output = T>,
        later: impl FnOnce() -> F,
    ) -> T
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let mut on_drop =
            RetryOnDrop { is_busy: &self.is_busy, patience: deadline * PATIENCE, later: Some(later) };
        let made = now.await;
        on_drop.later = None;
        made
    }
}

/// Starts the background attempt when it is dropped.
struct RetryOnDrop<'a, L, F>
where
    L: FnOnce() -> F,
    F: Future<Output = ()> + Send + 'static,
{
    is_busy: &'a Arc<AtomicBool>,
    patience: Duration,
    later: Option<L>,
}

impl<L, F> Drop for RetryOnDrop<'_, L, F>
where
    L: FnOnce() -> F,
    F: Future<Output = ()> + Send + 'static,
{
    fn drop(&mut self) {
        let Some(later) = self.later.take() else { return };
        // Without a runtime there is no next caller either.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if self.is_busy.swap(true, Ordering::AcqRel) {
            return;
        }
        let (busy, attempt) =
            (BusyGuard(Arc::clone(self.is_busy)), tokio::time::timeout(self.patience, later()));
        runtime.spawn(async move {
            let _busy = busy;
            // The next caller finds the connection, or tries again.
            let _ = attempt.await;
        });
    }
}

/// While this lives, no other background attempt starts.
struct BusyGuard(Arc<AtomicBool>);

impl Drop for BusyGuard {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::atomic::AtomicU32;
    use std::task::Poll;

    use tokio::sync::Notify;

    use super::*;

    #[tokio::test]
    async fn only_what_was_given_up_is_tried_again_and_one_at_a_time() {
        let (retry, n_later, go_on) =
            (ConnectRetry::default(), Arc::new(AtomicU32::new(0)), Arc::new(Notify::new()));
        let later = || {
            let (n_later, go_on) = (Arc::clone(&n_later), Arc::clone(&go_on));
            move || async move {
                n_later.fetch_add(1, Ordering::Relaxed);
                go_on.notified().await;
            }
        };
        let give_up = async |deadline| {
            {
                let mut making = pin!(retry.connect(deadline, std::future::pending::<()>(), later()));
                let is_made =
                    std::future::poll_fn(|cx| Poll::Ready(making.as_mut().poll(cx).is_ready())).await;
                assert!(!is_made);
            }
            // The background attempt begins.
            tokio::task::yield_now().await;
            n_later.load(Ordering::Relaxed)
        };
        let (long, short) = (Duration::from_hours(1), Duration::from_millis(1));
        assert_eq!(retry.connect(long, async { 7 }, later()).await, 7);
        tokio::task::yield_now().await;
        assert_eq!(n_later.load(Ordering::Relaxed), 0, "it was made at once");
        assert_eq!(give_up(long).await, 1);
        assert_eq!(give_up(long).await, 1, "the first is still on its way");
        go_on.notify_one();
        while retry.is_busy.load(Ordering::Acquire) {
            tokio::task::yield_now().await;
        }
        assert_eq!(give_up(short).await, 2);
        // A failed attempt does not block later ones.
        while retry.is_busy.load(Ordering::Acquire) {
            tokio::task::yield_now().await;
        }
        assert_eq!(give_up(long).await, 3);
    }
}
