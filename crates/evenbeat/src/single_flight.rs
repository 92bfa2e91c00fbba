//! Runs work once for all concurrent requests for it.
//!
//! A request that arrives while the work runs waits for the next round, which starts after its arrival. So a caller always
//! sees its own writes, and any number of concurrent requests costs two rounds at most.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Mutex as Turn, OnceCell};

/// Rounds that have not started yet, by key.
pub(crate) struct SingleFlight<K, V> {
    waiting: Mutex<BTreeMap<K, Arc<OnceCell<V>>>>,
    turn: Turn<()>,
}

impl<K, V> Default for SingleFlight<K, V> {
    fn default() -> SingleFlight<K, V> {
        SingleFlight { waiting: Mutex::new(BTreeMap::new()), turn: Turn::new(()) }
    }
}

impl<K, V> fmt::Debug for SingleFlight<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SingleFlight").finish_non_exhaustive()
    }
}

impl<K: Ord + Clone, V: Clone> SingleFlight<K, V> {
    /// Waits for the next round and returns its result.
    pub(crate) async fn run(&self, key: K, work: impl AsyncFnOnce() -> V) -> V {
        let round = Arc::clone(self.lock().entry(key.clone()).or_default());
        let answer = round.get_or_init(async || {
            let _turn = self.turn.lock().await;
            self.begin(&key, &round);
            work().await
        });
        answer.await.clone()
    }

    /// How many rounds wait for their turn, without the one of this key.
    pub(crate) fn n_others_waiting(&self, key: &K) -> usize {
        self.lock().keys().filter(|it| *it != key).count()
    }

    /// Marks a round as started: later requests get a new one.
    fn begin(&self, key: &K, round: &Arc<OnceCell<V>>) {
        let mut waiting = self.lock();
        if waiting.get(key).is_some_and(|it| Arc::ptr_eq(it, round)) {
            waiting.remove(key);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<K, Arc<OnceCell<V>>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn those_who_come_while_work_goes_on_share_the_next_round() {
        let flight: Arc<SingleFlight<u8, usize>> = Arc::default();
        let n_rounds = Arc::new(AtomicUsize::new(0));
        let (go, wait) = mpsc::channel::<()>();
        let wait = Arc::new(Mutex::new(wait));
        let ask = || {
            let (flight, n_rounds, wait) = (Arc::clone(&flight), Arc::clone(&n_rounds), Arc::clone(&wait));
            tokio::spawn(async move {
                let work = move || {
                    let round = n_rounds.fetch_add(1, Ordering::SeqCst);
                    wait.lock().unwrap().recv().unwrap();
                    round
                };
                flight.run(0, async || tokio::task::spawn_blocking(work).await.unwrap()).await
            })
        };
        let first = ask();
        // The first round has begun when nobody waits for it any longer.
        while n_rounds.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
        let others: Vec<_> = (0..20).map(|_| ask()).collect();
        while Arc::strong_count(flight.lock().entry(0).or_default()) < 21 {
            tokio::task::yield_now().await;
        }
        go.send(()).unwrap();
        assert_eq!(first.await.unwrap(), 0);
        go.send(()).unwrap();
        for other in others {
            assert_eq!(other.await.unwrap(), 1);
        }
        assert_eq!(n_rounds.load(Ordering::SeqCst), 2);
        assert!(flight.lock().is_empty());
    }
}
