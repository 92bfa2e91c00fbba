//! Runs of which nothing executes: each is over after a moment. What is left is the cost of the scheduler itself.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration as Length;

use evenbeat_core::engine::{RunOver, Start};
use evenbeat_core::ids::RunId;
use evenbeat_core::run::Outcome;
use evenbeat_core::store::{RunPhase, RunRow};
use evenbeat_core::time::{BootTime, Duration};

use super::clock;
use super::works::NewsOut;
use crate::target::command::{ShimNews, Told};

/// Runs that do nothing. Copies share them.
#[derive(Clone, Debug)]
pub struct Noop {
    news: NewsOut,
    takes: Length,
    /// When each began.
    open: Arc<Mutex<BTreeMap<RunId, BootTime>>>,
}

impl Noop {
    /// Each run takes so long.
    pub fn new(takes: Length, news: NewsOut) -> Noop {
        Noop { news, takes, open: Arc::default() }
    }

    pub(super) fn start(&self, start: &Start) {
        let (run, at) = (start.run, clock::boot());
        if start.lease_until.is_some_and(|until| until <= at) {
            let why = "its lease was over before it began".to_owned();
            return self.tell(ShimNews::NotStarted { run, why });
        }
        self.open.lock().unwrap_or_else(PoisonError::into_inner).insert(run, at);
        self.tell(ShimNews::Started { run, at });
        if self.takes.is_zero() {
            return self.stop(run, Outcome::Succeeded);
        }
        let me = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(me.takes).await;
            me.stop(run, Outcome::Succeeded);
        });
    }

    /// What does nothing is always there.
    pub(super) fn heard_at(&self, run: RunId) -> Option<BootTime> {
        let is_open = self.open.lock().unwrap_or_else(PoisonError::into_inner).contains_key(&run);
        is_open.then(clock::boot)
    }

    /// Ends a run, if it is not over.
    pub(super) fn stop(&self, run: RunId, outcome: Outcome) {
        let Some(started_at) = self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(&run) else {
            return;
        };
        let exit_code = (outcome == Outcome::Succeeded).then_some(0);
        let over =
            RunOver { started_at, ended_at: clock::boot(), outcome, exit_code, frozen_for: Duration::ZERO };
        self.tell(ShimNews::Ended { run, over, told: Box::new(Told { exit_code, ..Told::default() }) });
    }

    /// Nothing survives a life: what had begun is lost, and what had not never will.
    pub(super) fn adopt(&self, runs: &[RunRow]) {
        let now = clock::boot();
        for row in runs {
            if row.phase == RunPhase::Running {
                self.open.lock().unwrap_or_else(PoisonError::into_inner).insert(row.run, now);
                self.stop(row.run, Outcome::Lost);
            } else {
                let why = "nothing of it is left".to_owned();
                self.tell(ShimNews::NotStarted { run: row.run, why });
            }
        }
    }

    pub(super) fn forget(&self, run: RunId) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(&run);
    }

    fn tell(&self, news: ShimNews) {
        // A node that is gone wants to hear nothing.
        let _ = self.news.send(news);
    }
}
