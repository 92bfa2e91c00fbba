//! What the next day asks for, counted by a walk over the fleet and kept for a while: a million jobs take a good part of a
//! second, and people look again and again.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use evenbeat_core::placement::DayOutlook;
use evenbeat_core::slot::Slot;
use evenbeat_core::time::Timestamp;
use tokio::time::{Duration, Instant, timeout};

use super::Fleet;
use crate::single_flight::SingleFlight;

/// How long one is good for: at least this long, and longer the longer it took to make.
const FRESH_FOR_MIN: Duration = Duration::from_secs(1);
const FRESH_FOR_COSTS: u32 = 20;

/// How long a caller waits for a new one. After that they get the last one, if it begins with the same slot.
const PATIENCE: Duration = Duration::from_millis(60);

/// The last outlook, and the next one.
#[derive(Debug, Default)]
pub(super) struct OutlookCell {
    last: Mutex<Option<KeptOutlook>>,
    rounds: SingleFlight<(), Arc<DayOutlook>>,
}

#[derive(Clone, Debug)]
struct KeptOutlook {
    outlook: Arc<DayOutlook>,
    made_at: Instant,
    cost: Duration,
}

impl KeptOutlook {
    fn is_fresh(&self) -> bool {
        self.made_at.elapsed() < FRESH_FOR_MIN.max(self.cost * FRESH_FOR_COSTS)
    }
}

impl OutlookCell {
    fn last(&self) -> MutexGuard<'_, Option<KeptOutlook>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Fleet {
    /// What the next day asks for, from the slot of `now` on. None if it is still being counted.
    pub async fn outlook(&self, now: Timestamp) -> Option<Arc<DayOutlook>> {
        let width = self.ledger().balance().width;
        let start = Slot::of(now, width).start(width);
        let last = self.inner.outlook.last().clone();
        let last = last.filter(|it| it.outlook.running.window.start() == start);
        if let Some(fresh) = last.as_ref().filter(|it| it.is_fresh()) {
            return Some(Arc::clone(&fresh.outlook));
        }
        // It goes on when the caller has lost patience: the next one gets it.
        let fleet = self.clone();
        let counted = tokio::spawn(async move { fleet.count_outlook(now).await });
        match timeout(PATIENCE, counted).await {
            Ok(Ok(outlook)) => Some(outlook),
            Ok(Err(_)) | Err(_) => last.map(|it| it.outlook),
        }
    }

    async fn count_outlook(&self, now: Timestamp) -> Arc<DayOutlook> {
        let count = async || {
            let (jobs, began) = (self.snapshot(), Instant::now());
            let outlook = Arc::new(self.walk(move |_| jobs.outlook(now)).await);
            let kept =
                KeptOutlook { outlook: Arc::clone(&outlook), made_at: Instant::now(), cost: began.elapsed() };
            *self.inner.outlook.last() = Some(kept);
            outlook
        };
        self.inner.outlook.rounds.run((), count).await
    }
}
