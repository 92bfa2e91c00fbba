//! Whether the store can write. Nothing else tells before there is something to write, and a full disk must be seen by
//! then.

use std::sync::Arc;
use std::time::Duration as Length;

use evenbeat_core::store::StoreDown;
use evenbeat_core::time::{BootTime, Duration};
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::clock::Clock;
use crate::store::any::AnyStore;

/// How long an answer is reused, so that health checks do not load the store.
const HOLDS_FOR: Duration = Duration::from_secs(1);

/// How long a write may take.
const WITHIN: Length = Length::from_secs(5);

/// When it was last tried, and what came of it.
type ProbeResult = (BootTime, Result<(), String>);

/// Writes to the store when a health check wants to know whether it can. Copies share it.
#[derive(Clone, Debug)]
pub struct WriteProbe {
    store: AnyStore,
    clock: Clock,
    last: Arc<Mutex<Option<ProbeResult>>>,
}

impl WriteProbe {
    pub(crate) fn of(store: AnyStore, clock: Clock) -> WriteProbe {
        WriteProbe { store, clock, last: Arc::default() }
    }

    /// Whether the store writes; if not, why.
    pub async fn ask(&self) -> Result<(), String> {
        let mut last = self.last.lock().await;
        if let Some((at, answer)) = &*last
            && self.clock.boot() < *at + HOLDS_FOR
        {
            return answer.clone();
        }
        let answer = match timeout(WITHIN, self.store.probe()).await {
            Ok(answer) => answer.map_err(|StoreDown(why)| why),
            Err(_) => Err(format!("a write took longer than {} s", WITHIN.as_secs())),
        };
        *last = Some((self.clock.boot(), answer.clone()));
        answer
    }
}
