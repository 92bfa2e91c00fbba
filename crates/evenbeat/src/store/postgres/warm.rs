//! Connections that take longer to make than whoever asked for one could wait.
//!
//! Who gives up drops what was begun. If each of them did only that, a server that is slow to greet (far away, or on a
//! machine with too much to do) would never be reached at all, however often it is asked. So whoever gives up leaves
//! one more attempt behind, that has more time; what comes of it is there for the next one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// So many deadlines an attempt may take that nobody waits for. It is one at a time, and whoever asks meanwhile makes
/// attempts of their own: if the server it has reached is gone, it keeps nobody from reaching another.
const PATIENCE: u32 = 10;

/// Leaves an attempt behind where one was given up; one at a time.
#[derive(Debug, Default)]
pub(super) struct Warmer {
    is_busy: Arc<AtomicBool>,
}

impl Warmer {
    /// Makes a connection. If this is given up, `later` is tried with more time.
    pub(super) async fn make<T, F>(
        &self,
        deadline: Duration,
        now: impl Future<Output = T>,
        later: impl FnOnce() -> F,
    ) -> T
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let mut behind = Behind { is_busy: &self.is_busy, patience: deadline * PATIENCE, later: Some(later) };
        let made = now.await;
        behind.later = None;
        made
    }
}

/// What is left behind when this is dropped.
struct Behind<'a, L, F>
where
    L: FnOnce() -> F,
    F: Future<Output = ()> + Send + 'static,
{
    is_busy: &'a Arc<AtomicBool>,
    patience: Duration,
    later: Option<L>,
}

impl<L, F> Drop for Behind<'_, L, F>
where
    L: FnOnce() -> F,
    F: Future<Output = ()> + Send + 'static,
{
    fn drop(&mut self) {
        let Some(later) = self.later.take() else { return };
        // Without a runtime there will be no next one either.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if self.is_busy.swap(true, Ordering::AcqRel) {
            return;
        }
        let (busy, attempt) = (Busy(Arc::clone(self.is_busy)), tokio::time::timeout(self.patience, later()));
        runtime.spawn(async move {
            let _busy = busy;
            // Whether it came to something is seen by whoever asks next.
            let _ = attempt.await;
        });
    }
}

/// Until this is dropped, no other attempt is left behind.
struct Busy(Arc<AtomicBool>);

impl Drop for Busy {
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
        let (warmer, n_later, go_on) =
            (Warmer::default(), Arc::new(AtomicU32::new(0)), Arc::new(Notify::new()));
        let later = || {
            let (n_later, go_on) = (Arc::clone(&n_later), Arc::clone(&go_on));
            move || async move {
                n_later.fetch_add(1, Ordering::Relaxed);
                go_on.notified().await;
            }
        };
        let give_up = async |deadline| {
            {
                let mut making = pin!(warmer.make(deadline, std::future::pending::<()>(), later()));
                let is_made =
                    std::future::poll_fn(|cx| Poll::Ready(making.as_mut().poll(cx).is_ready())).await;
                assert!(!is_made);
            }
            // Whatever was left behind begins.
            tokio::task::yield_now().await;
            n_later.load(Ordering::Relaxed)
        };
        let (long, short) = (Duration::from_hours(1), Duration::from_millis(1));
        assert_eq!(warmer.make(long, async { 7 }, later()).await, 7);
        tokio::task::yield_now().await;
        assert_eq!(n_later.load(Ordering::Relaxed), 0, "it was made at once");
        assert_eq!(give_up(long).await, 1);
        assert_eq!(give_up(long).await, 1, "the first is still on its way");
        go_on.notify_one();
        while warmer.is_busy.load(Ordering::Acquire) {
            tokio::task::yield_now().await;
        }
        assert_eq!(give_up(short).await, 2);
        // One that comes to nothing does not keep others from it for ever.
        while warmer.is_busy.load(Ordering::Acquire) {
            tokio::task::yield_now().await;
        }
        assert_eq!(give_up(long).await, 3);
    }
}
