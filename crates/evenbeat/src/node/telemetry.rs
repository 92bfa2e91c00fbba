//! What happened becomes a log line, a number and an event, in one place.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration as Length;

use evenbeat_core::condition::{Condition, Reason};
use evenbeat_core::notice::{Level, Notice};
use evenbeat_core::roster::Turned;
use evenbeat_core::store::StoreDown;
use evenbeat_core::time::Duration;
use tokio::sync::broadcast;
use tracing::{debug, error, info, warn};

use super::trouble::Asked;

/// The log target of everything about placement and balance (A14), so that it can be filtered.
const PLACEMENT: &str = "evenbeat::placement";

/// So many events wait for a slow listener; then it misses the oldest.
const EVENTS_MAX: usize = 1_024;

/// Writes one line. The fields have types of their own, so that numbers stay numbers in JSON.
fn log(notice: &Notice) {
    let said = notice.sentence();
    match notice {
        Notice::LedgerRebuilt { n_jobs, score } => {
            info!(target: PLACEMENT, job_count = n_jobs, distribution_score = score, "{said}");
        }
        Notice::Placed { key, slot, load } => info!(target: PLACEMENT, job_id = %key, %slot, load, "{said}"),
        Notice::Rescheduled { key, old_slot, new_slot } => {
            info!(target: PLACEMENT, job_id = %key, %old_slot, %new_slot, "{said}");
        }
        Notice::Rebalanced { n_moved, n_skipped, old_score, new_score } => {
            info!(target: PLACEMENT, moved = n_moved, skipped = n_skipped, old_score, new_score, "{said}");
        }
        Notice::SkippedByRebalance { key, reason } => {
            warn!(target: PLACEMENT, job_id = %key, %reason, "{said}");
        }
        Notice::SessionLost { n_runs } => error!(runs = n_runs, "{said}"),
        Notice::SessionFenced { session, node } => {
            warn!(node = node.as_ref().map(display), %session, "{said}");
        }
        Notice::RunsAdopted { n_runs } => info!(count = n_runs, "{said}"),
        Notice::DrainChanged { node, actor, .. } => info!(%node, actor, "{said}"),
        Notice::RunFailed { key, run, outcome, exit_code, took, error } => {
            let took = evenbeat_core::notice::rounded(*took);
            warn!(job = %key, %run, %outcome, exit_code, took, error, "{said}");
        }
        Notice::NotRun { key, record } => {
            let (reason, range) = (record.what.reason(), record.range);
            let (count, first, last) = (range.count, range.first, range.last);
            if notice.level() == Level::Warn {
                warn!(job = %key, reason, count, %first, %last, "{said}");
            } else {
                info!(job = %key, reason, count, %first, %last, "{said}");
            }
        }
        Notice::Disabled { key, reason } => error!(job = %key, reason, "{said}"),
        Notice::EndedByBlackout { key, run }
        | Notice::TookTooLong { key, run }
        | Notice::NotTakenUp { key, run } => debug!(job = %key, %run, "{said}"),
        Notice::Overrunning { key, run } => warn!(job = %key, %run, "{said}"),
        Notice::SkippedByOverlap { key, due_at } => debug!(job = %key, %due_at, "{said}"),
        Notice::PausedBySystem { key, reason } => warn!(job = %key, reason, "{said}"),
        Notice::Mended { key, fault, next } => {
            warn!(job = %key, %fault, next_run_at = next.as_ref().map(display), "{said}");
        }
        Notice::ClockWasAhead { n_jobs, latest, example } => {
            warn!(job_count = n_jobs, latest = latest.as_ref().map(display), job = %example, "{said}");
        }
        Notice::TooManyFaults { n_faults, n_jobs, example } => {
            error!(faults = n_faults, job_count = n_jobs, job = %example, "{said}");
        }
    }
}

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
        log(notice);
        *self.counts.lock().unwrap_or_else(PoisonError::into_inner).entry(said).or_default() += 1;
        // Nobody may be listening, and that changes nothing.
        let _ = self.events.send(Arc::new(notice.clone()));
    }

    /// Several of them, in order.
    pub(crate) fn notices(&self, notices: &[Notice]) {
        for notice in notices {
            self.notice(notice);
        }
    }

    /// A job's condition is another one.
    #[expect(clippy::unused_self, reason = "everything that is logged or counted goes through this type")]
    pub(crate) fn turned(&self, it: &Turned) {
        let words = [it.from, it.to].map(|it| it.map_or("untracked", Reason::as_str));
        let [from, to] = words;
        let is_error = it.to.is_some_and(|reason| reason.condition() == Condition::Error);
        if is_error {
            warn!(job = %it.key, from, to, at = %it.at, "condition changed");
        } else {
            info!(job = %it.key, from, to, at = %it.at, "condition changed");
        }
    }

    /// The store did not let a session begin.
    #[expect(clippy::unused_self, reason = "everything that is logged or counted goes through this type")]
    pub(crate) fn store_down(&self, down: &StoreDown, again_in: Length) {
        let StoreDown(why) = down;
        warn!(why, again_in_ms = again_in.as_millis(), "store not reachable, trying again");
    }

    /// The store did not do what it was asked, for the first time in a while.
    #[expect(clippy::unused_self, reason = "everything that is logged or counted goes through this type")]
    pub(crate) fn store_failed(&self, asked: Asked, down: &StoreDown) {
        let StoreDown(why) = down;
        match asked {
            Asked::Write => warn!(why, "store writes failing; runs go on, writes are tried again"),
            Asked::Watch => {
                warn!(why, "peer watch failing; takeovers are suspended until it recovers");
            }
            Asked::Fence => warn!(why, "fencing a silent node failed, trying again"),
            Asked::Changes => warn!(why, "change feed failing, trying again"),
        }
    }

    /// It does it again.
    #[expect(clippy::unused_self, reason = "everything that is logged or counted goes through this type")]
    pub(crate) fn store_recovered(&self, asked: Asked) {
        match asked {
            Asked::Write => info!("store writes recovered"),
            Asked::Watch => info!("peer watch recovered"),
            Asked::Fence => info!("fencing recovered"),
            Asked::Changes => info!("change feed recovered"),
        }
    }

    /// Somebody set the wall clock; time is ahead of it by so much.
    #[expect(clippy::unused_self, reason = "everything that is logged or counted goes through this type")]
    pub(crate) fn clock_stepped(&self, by: Duration, ahead: Duration) {
        let (by_ms, ahead_ms) = (by.as_millis(), ahead.as_millis());
        if Duration::ZERO < ahead {
            warn!(
                by_ms,
                ahead_ms, "wall clock set back a little; time runs at half speed until it has caught up"
            );
        } else {
            warn!(by_ms, "wall clock set");
        }
    }
}
