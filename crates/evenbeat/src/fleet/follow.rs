//! Keeps the fleet up to date, from what its node hears of the store's feed.

use std::collections::BTreeSet;
use std::time::Duration as Length;

use evenbeat_core::ids::JobKey;
use evenbeat_core::job::PausedBy;
use evenbeat_core::key_search::KeySearch;
use evenbeat_core::notice::Notice;
use evenbeat_core::placement::Ledger;
use evenbeat_core::store::JobNews;
use evenbeat_core::time::{Duration, Timestamp};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use super::{DAY_HOURS, Fleet};
use crate::node::FleetNews;
use crate::node::telemetry::Telemetry;

/// After a change the agenda waits so long for more of them; and for so many times what it took to make the last one, so
/// that a large fleet in which something always changes does not spend its days on it.
const DEBOUNCE: Length = Length::from_secs(1);
const DEBOUNCE_TIMES: u32 = 20;

/// How often the ledger's window moves on, past what is over.
const LEDGER_EVERY: Duration = Duration::from_hours(1);

/// Follows until the node is gone.
pub async fn follow(fleet: Fleet, mut news: mpsc::Receiver<FleetNews>, telemetry: Telemetry) {
    let rebuild_every =
        Length::from_millis(fleet.inner.agenda_settings.rebuild_every.as_millis().unsigned_abs());
    let mut rebuild_at = Instant::now() + rebuild_every;
    let mut ledger_from = fleet.inner.clock.now();
    let mut rebuilt_at = ledger_from;
    let mut took = Length::ZERO;
    let mut disabled = DisabledJobs::default();
    loop {
        tokio::select! {
            heard = news.recv() => match heard {
                None => return,
                Some(FleetNews::Reset) => {
                    let balance = fleet.ledger().balance();
                    *fleet.ledger() = Ledger::new(balance, fleet.inner.clock.now());
                    *fleet.keys() = KeySearch::default();
                    fleet.paused_mut().clear();
                    fleet.inner.faults.forget_all();
                    fleet.inner.is_read.send_replace(false);
                }
                Some(FleetNews::Rows(rows, now)) => {
                    fleet.learn(&rows, now);
                    for notice in disabled.learn(&rows) {
                        telemetry.tell(notice);
                    }
                    rebuild_at = rebuild_at.min(Instant::now() + DEBOUNCE.max(took * DEBOUNCE_TIMES));
                }
                Some(FleetNews::Read) if !*fleet.inner.is_read.borrow() => {
                    took = fleet.rebuild_agenda(fleet.inner.clock.now()).await;
                    fleet.tell(&telemetry).await;
                    fleet.inner.is_read.send_replace(true);
                }
                Some(FleetNews::Read) => {}
            },
            () = sleep_until(rebuild_at) => {
                let now = fleet.inner.clock.now();
                took = fleet.rebuild_agenda(rebuilt_at.min(now)).await;
                rebuild_at = Instant::now() + rebuild_every;
                rebuilt_at = now;
                if ledger_from + LEDGER_EVERY <= now || now < ledger_from {
                    ledger_from = now;
                    fleet.move_ledger(now).await;
                }
            }
        }
    }
}

/// The jobs whose stored definition cannot be read, so that each is reported once.
#[derive(Debug, Default)]
struct DisabledJobs(BTreeSet<JobKey>);

impl DisabledJobs {
    fn learn(&mut self, rows: &[JobNews]) -> Vec<Notice> {
        let mut told = Vec::new();
        for row in rows {
            match row.state.pause.as_ref().filter(|pause| pause.by == PausedBy::Invalid && !row.is_deleted) {
                Some(pause) => {
                    if self.0.insert(row.key.clone()) {
                        let reason = pause.reason.clone().unwrap_or_default();
                        told.push(Notice::Disabled { key: row.key.clone(), reason });
                    }
                }
                None if self.0.is_empty() => {}
                None => {
                    self.0.remove(&row.key);
                }
            }
        }
        told
    }
}

impl Fleet {
    fn learn(&self, rows: &[JobNews], now: Timestamp) {
        self.inner.faults.learn(rows, now);
        let mut ledger = self.ledger();
        ledger.advance(now);
        for row in rows {
            if row.is_deleted {
                ledger.remove(&row.key);
            } else {
                ledger.put(&row.key, &row.terms, &row.state);
            }
        }
        drop(ledger);
        let mut paused = self.paused_mut();
        for row in rows {
            let by = row.state.pause.as_ref().map(|it| it.by);
            if by == Some(PausedBy::Operator) && !row.is_deleted {
                paused.insert(row.key.clone());
            } else if !paused.is_empty() {
                paused.remove(&row.key);
            }
        }
        drop(paused);
        let mut keys = self.keys();
        for row in rows {
            if row.is_deleted {
                keys.remove(&row.key);
            } else {
                keys.insert(&row.key);
            }
        }
    }

    /// Rebuilds the agenda, while others go on reading the old one; from `since` on, so that what came due meanwhile is in
    /// one of them. Says how long that took.
    async fn rebuild_agenda(&self, since: Timestamp) -> Length {
        let (fleet, began) = (self.clone(), Instant::now());
        let rebuilt = tokio::task::spawn_blocking(move || fleet.rebuild_agenda_now(since));
        match rebuilt.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "rebuilding the agenda failed, keeping the old one"),
            Err(error) => tracing::error!(%error, "rebuilding the agenda failed, keeping the old one"),
        }
        began.elapsed()
    }

    async fn move_ledger(&self, now: Timestamp) {
        let fleet = self.clone();
        let moved = tokio::task::spawn_blocking(move || {
            let mut ledger = fleet.ledger();
            let empty = Ledger::new(ledger.balance(), now);
            *ledger = std::mem::replace(&mut *ledger, empty).from_instant(now);
        });
        if let Err(error) = moved.await {
            tracing::error!(%error, "moving the ledger failed, keeping the old one");
        }
    }

    async fn tell(&self, telemetry: &Telemetry) {
        let Ok(day) = self.distribution(self.inner.clock.store_now(), DAY_HOURS).await else { return };
        let n_jobs = self.ledger().n_jobs();
        telemetry.tell(Notice::LedgerRebuilt { n_jobs, score: day.score() });
    }
}
