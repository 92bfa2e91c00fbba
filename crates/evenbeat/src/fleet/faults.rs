//! The jobs whose stored times cannot be right, as the feed tells of them.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use evenbeat_core::ids::JobKey;
use evenbeat_core::repair::{self, Fault};
use evenbeat_core::store::JobNews;
use evenbeat_core::time::Timestamp;
use tokio::sync::Notify;

/// The jobs whose stored times cannot be right.
#[derive(Debug, Default)]
pub struct JobFaults {
    known: Mutex<BTreeMap<JobKey, Fault>>,
    news: Notify,
}

impl JobFaults {
    /// Looks at jobs as they are, as of an instant of the fleet's time.
    pub(super) fn learn(&self, rows: &[JobNews], now: Timestamp) {
        self.look(rows, |row| repair::fault(&row.terms, &row.state, row.n_open, now));
    }

    /// The same where a clock is known to have been ahead: it may have carried jobs along of which nothing ran.
    pub(crate) fn learn_after_step(&self, rows: &[JobNews], now: Timestamp) {
        self.look(rows, |row| {
            let JobNews { terms, state, n_open, .. } = row;
            let carried =
                || repair::was_carried_along(terms, state, *n_open, now).then_some(state.next_run_at?);
            repair::fault(terms, state, *n_open, now).or_else(|| carried().map(Fault::ClockWasAhead))
        });
    }

    fn look(&self, rows: &[JobNews], fault_of: impl Fn(&JobNews) -> Option<Fault>) {
        let mut known = self.lock();
        let mut is_news = false;
        for row in rows {
            let fault = fault_of(row).filter(|_| !row.is_deleted);
            match fault {
                Some(fault) => {
                    is_news = true;
                    known.insert(row.key.clone(), fault);
                }
                None if known.is_empty() => {}
                None => {
                    known.remove(&row.key);
                }
            }
        }
        if is_news {
            self.news.notify_one();
        }
    }

    pub(super) fn forget_all(&self) {
        self.lock().clear();
    }

    /// Whether the clock of any job was ahead.
    pub fn is_any_of_clock(&self) -> bool {
        self.lock().values().any(|fault| fault.is_of_clock())
    }

    /// The jobs whose clock was ahead.
    pub fn of_clock(&self) -> BTreeMap<JobKey, Fault> {
        self.those(Fault::is_of_clock)
    }

    /// The jobs in which anything else is wrong.
    pub fn others(&self) -> BTreeMap<JobKey, Fault> {
        self.those(|fault| !fault.is_of_clock())
    }

    fn those(&self, is_wanted: impl Fn(Fault) -> bool) -> BTreeMap<JobKey, Fault> {
        let known = self.lock();
        known
            .iter()
            .filter(|(_, fault)| is_wanted(**fault))
            .map(|(key, fault)| (key.clone(), *fault))
            .collect()
    }

    /// Waits until something new is wrong.
    pub async fn news(&self) {
        self.news.notified().await;
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<JobKey, Fault>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
