//! What happened becomes a log line, a number and an event, in one place.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration as Length;

use evenbeat_core::condition::{Condition, Reason};
use evenbeat_core::notice::Notice;
use evenbeat_core::roster::Turned;
use evenbeat_core::store::StoreDown;
use evenbeat_core::time::Duration;
use tokio::sync::broadcast;
use tracing::{error, info, warn};

use super::trouble::Asked;

/// So many events wait for a slow listener; then it misses the oldest.
const EVENTS_MAX: usize = 1_024;

/// Tells people what happened. Copies share everything.
#[derive(Clone, Debug)]
pub struct Telemetry {
    events: broadcast::Sender<Arc<Notice>>,
    counts: Arc<Mutex<BTreeMap<&'static str, u64>>>,
}

impl Default for Telemetry {
    fn default() -> Telemetry {
        Telemetry { events: broadcast::channel(EVENTS_MAX).0, counts: Arc::default() }
    }
}

impl Telemetry {
    /// Hears of everything from now on.
    pub fn listen(&self) -> broadcast::Receiver<Arc<Notice>> {
        self.events.subscribe()
    }

    /// How often each thing has happened, by its sentence.
    pub fn counts(&self) -> BTreeMap<&'static str, u64> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Something that the core tells.
    pub fn notice(&self, notice: &Notice) {
        let said = notice.sentence();
        match notice {
            Notice::LedgerRebuilt { n_jobs, score } => {
                info!(job_count = n_jobs, distribution_score = score, "{said}");
            }
            Notice::Placed { key, slot, load } => info!(job_id = %key, slot = slot.key(), load, "{said}"),
            Notice::Rescheduled { key, old_slot, new_slot } => {
                info!(job_id = %key, old_slot = old_slot.key(), new_slot = new_slot.key(), "{said}");
            }
            Notice::Rebalanced { n_moved, n_skipped, old_score, new_score } => {
                info!(moved = n_moved, skipped = n_skipped, old_score, new_score, "{said}");
            }
            Notice::SkippedByRebalance { key, reason } => warn!(job_id = %key, %reason, "{said}"),
            Notice::SessionLost { n_runs } => error!(runs = n_runs, "{said}"),
            Notice::SessionFenced { session } => warn!(%session, "{said}"),
            Notice::EndedByBlackout { key, run }
            | Notice::TookTooLong { key, run }
            | Notice::NotTakenUp { key, run }
            | Notice::Overrunning { key, run } => error!(job_id = %key, %run, "{said}"),
            Notice::SkippedByOverlap { key, due_at } => warn!(job_id = %key, %due_at, "{said}"),
            Notice::PausedBySystem { key, reason } => warn!(job_id = %key, reason, "{said}"),
            Notice::Mended { key, fault, next } => {
                let next_run_at = next.map_or_else(|| "none".to_owned(), |at| at.to_string());
                warn!(job_id = %key, %fault, next_run_at, "{said}");
            }
            Notice::ClockWasAhead { n_jobs, latest, example } => {
                let latest = latest.map_or_else(|| "none".to_owned(), |at| at.to_string());
                warn!(job_count = n_jobs, latest, job_id = %example, "{said}");
            }
            Notice::TooManyFaults { n_faults, n_jobs, example } => {
                error!(faults = n_faults, job_count = n_jobs, job_id = %example, "{said}");
            }
        }
        *self.counts.lock().unwrap_or_else(PoisonError::into_inner).entry(said).or_default() += 1;
        // Nobody may be listening, and that changes nothing.
        let _ = self.events.send(Arc::new(notice.clone()));
    }

    /// A job's condition is another one.
    #[expect(clippy::unused_self, reason = "whoever tells something tells it here")]
    pub(crate) fn turned(&self, it: &Turned) {
        let words = [it.from, it.to].map(|it| it.map_or("untracked", Reason::as_str));
        let [from, to] = words;
        let is_error = it.to.is_some_and(|reason| reason.condition() == Condition::Error);
        if is_error {
            warn!(job_id = %it.key, from, to, at = %it.at, "condition changed");
        } else {
            info!(job_id = %it.key, from, to, at = %it.at, "condition changed");
        }
    }

    /// The store did not let a session begin.
    #[expect(clippy::unused_self, reason = "whoever tells something tells it here")]
    pub(crate) fn store_down(&self, down: &StoreDown, again_in: Length) {
        let StoreDown(why) = down;
        warn!(why, again_in_ms = again_in.as_millis(), "the store does not answer");
    }

    /// The store did not do what it was asked, for the first time in a while.
    #[expect(clippy::unused_self, reason = "whoever tells something tells it here")]
    pub(crate) fn store_failed(&self, asked: Asked, down: &StoreDown) {
        let StoreDown(why) = down;
        match asked {
            Asked::Write => warn!(why, "the store takes nothing; what runs goes on, and it is tried again"),
            Asked::Watch => {
                warn!(
                    why,
                    "the store does not tell who lives; until it does, no silent node's runs are taken away"
                );
            }
            Asked::Fence => warn!(why, "a silent node's runs could not be taken away; it is tried again"),
            Asked::Changes => warn!(why, "the store does not tell what changed; it is asked again"),
        }
    }

    /// It does it again.
    #[expect(clippy::unused_self, reason = "whoever tells something tells it here")]
    pub(crate) fn store_recovered(&self, asked: Asked) {
        match asked {
            Asked::Write => info!("the store takes something again"),
            Asked::Watch => info!("the store tells again who lives"),
            Asked::Fence => info!("a silent node's runs can be taken away again"),
            Asked::Changes => info!("the store tells again what changed"),
        }
    }

    /// Somebody set the wall clock; time is ahead of it by so much.
    #[expect(clippy::unused_self, reason = "whoever tells something tells it here")]
    pub(crate) fn clock_stepped(&self, by: Duration, ahead: Duration) {
        let (by_ms, ahead_ms) = (by.as_millis(), ahead.as_millis());
        if Duration::ZERO < ahead {
            warn!(
                by_ms,
                ahead_ms,
                "wall clock was set back a little; time goes on at half speed until it has caught up"
            );
        } else {
            warn!(by_ms, "wall clock was set");
        }
    }
}
