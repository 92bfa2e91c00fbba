//! Runs that execute nothing and end after a moment, to measure the scheduler itself.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration as Length;

use evenbeat_core::engine::{RunOver, Start};
use evenbeat_core::ids::RunId;
use evenbeat_core::run::Outcome;
use evenbeat_core::store::{JobRow, RunPhase, RunRow};
use evenbeat_core::time::{BootTime, Duration};
use tokio::sync::oneshot;

use crate::clock::Clock;
use crate::target::{EndDetails, Executor, NewsSender, RunNews, Task};

/// Runs that do nothing. Clones share them.
#[derive(Clone, Debug)]
pub struct Noop {
    news: NewsSender,
    takes: Length,
    clock: Clock,
    /// Ends each open run early.
    open: Arc<Mutex<BTreeMap<RunId, oneshot::Sender<Outcome>>>>,
}

impl Noop {
    /// Runs that take this long.
    pub fn new(takes: Length, clock: Clock, news: NewsSender) -> Noop {
        Noop { news, takes, clock, open: Arc::default() }
    }

    /// Sends news in the background: the node reads them only after what it is doing now.
    fn send(&self, all: Vec<RunNews>) {
        let out = self.news.clone();
        tokio::spawn(async move {
            for news in all {
                // The node may be gone.
                let _ = out.send(news).await;
            }
        });
    }

    fn open(&self) -> MutexGuard<'_, BTreeMap<RunId, oneshot::Sender<Outcome>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ended(&self, run: RunId, started_at: BootTime, outcome: Outcome) -> RunNews {
        let exit_code = (outcome == Outcome::Succeeded).then_some(0);
        let ended_at = self.clock.boot();
        let over = RunOver { started_at, ended_at, outcome, exit_code, frozen_for: Duration::ZERO };
        RunNews::Ended { run, over, told: Box::new(EndDetails { exit_code, ..EndDetails::default() }) }
    }
}

impl Executor for Noop {
    fn start(&self, start: &Start) {
        let (run, at) = (start.run, self.clock.boot());
        if start.lease_until.is_some_and(|until| until <= at) {
            let why = "its lease was over before it began".to_owned();
            return self.send(vec![RunNews::NotStarted { run, why }]);
        }
        let (stop, mut stopped) = oneshot::channel();
        self.open().insert(run, stop);
        let me = self.clone();
        // One task sends all news of a run, so its end never overtakes its start.
        tokio::spawn(async move {
            let _ = me.news.send(RunNews::Started { run, at }).await;
            let outcome = if me.takes.is_zero() {
                stopped.try_recv().unwrap_or(Outcome::Succeeded)
            } else {
                tokio::select! {
                    () = tokio::time::sleep(me.takes) => Outcome::Succeeded,
                    Ok(outcome) = &mut stopped => outcome,
                }
            };
            me.open().remove(&run);
            let _ = me.news.send(me.ended(run, at, outcome)).await;
        });
    }

    fn heard_at(&self, run: RunId) -> Option<BootTime> {
        let is_open = self.open.lock().unwrap_or_else(PoisonError::into_inner).contains_key(&run);
        is_open.then(|| self.clock.boot())
    }

    /// Ends a run unless it has ended.
    fn stop(&self, run: RunId, outcome: Outcome) {
        if let Some(stop) = self.open().remove(&run) {
            // A run that ended in this moment has reported it already.
            let _ = stop.send(outcome);
        }
    }

    /// Nothing survives its process: runs that had begun are lost, and the others never begin.
    fn adopt<'a>(&'a self, runs: &'a [RunRow], _: &'a [JobRow], _: bool) -> Task<'a> {
        let now = self.clock.boot();
        let fates = runs.iter().map(|row| match row.phase {
            RunPhase::Running => self.ended(row.run, now, Outcome::Lost),
            _ => RunNews::NotStarted { run: row.run, why: "nothing of it is left".to_owned() },
        });
        self.send(fates.collect());
        Box::pin(async {})
    }

    fn forget(&self, run: RunId) {
        self.open().remove(&run);
    }

    /// Runs that do nothing need no lease.
    fn extend(&self, _: BootTime) {}

    fn revoke(&self, run: RunId) {
        self.stop(run, Outcome::Lost);
    }

    fn let_go(&self) -> Task<'_> {
        Box::pin(async {})
    }
}

#[cfg(test)]
mod tests {
    use evenbeat_core::ids::{Fence, SessionId};
    use evenbeat_core::job::{CommandTarget, Job, Target};
    use evenbeat_core::occurrence::{Due, Serves};
    use evenbeat_core::run::Trigger;
    use evenbeat_core::schedule::Schedule;
    use evenbeat_core::time::Timestamp;
    use tokio::sync::mpsc;

    use super::*;

    const N_RUNS: u128 = 200;

    fn due() -> Due {
        Due {
            due_at: Timestamp::from_millis(0),
            attempt: 1,
            trigger: Trigger::Scheduler,
            serves: Serves::Pending,
            losses: 0,
            last_outcome: None,
            params: None,
        }
    }

    fn start(run: RunId) -> Start {
        let job =
            Job::new("sample".parse().unwrap(), Target::Command(CommandTarget::default()), Schedule::Manual);
        Start {
            run,
            fence: Fence(1),
            job: Arc::new(job),
            due: due(),
            lease_until: None,
            deadline: None,
            last_good_start_at: None,
        }
    }

    fn row(run: RunId) -> RunRow {
        RunRow {
            run,
            key: "sample".parse().unwrap(),
            due: due(),
            session: SessionId(1),
            fence: Fence(1),
            phase: RunPhase::Running,
            claimed_at: Timestamp::from_millis(0),
            started_at: None,
            ended: None,
            report: None,
            late: None,
            is_cancel_asked: false,
            takes: Vec::new(),
        }
    }

    /// The node starts, stops and adopts many runs before it listens again, and a single piece of news fits into the
    /// channel: nothing waits for the listener, and nothing is lost or out of order.
    #[tokio::test]
    async fn news_wait_for_the_node_and_the_node_never_for_them() {
        let (to_news, mut news) = mpsc::channel(1);
        let noop = Noop::new(Length::ZERO, Clock::system(), to_news);
        for no in 0..N_RUNS {
            noop.start(&start(RunId(no)));
        }
        noop.stop(RunId(3), Outcome::Cancelled);
        let left: Vec<RunRow> = (N_RUNS..2 * N_RUNS).map(|no| row(RunId(no))).collect();
        noop.adopt(&left, &[], false).await;
        drop(noop);
        let mut heard: BTreeMap<RunId, Vec<String>> = BTreeMap::new();
        while let Some(it) = news.recv().await {
            let word = match &it {
                RunNews::Started { .. } => "started".to_owned(),
                RunNews::Ended { over, .. } => over.outcome.to_string(),
                other => panic!("{other:?}"),
            };
            heard.entry(it.run()).or_default().push(word);
        }
        assert_eq!(heard.len(), 2 * usize::try_from(N_RUNS).unwrap());
        for (run, words) in heard {
            let expected: &[&str] = match run.0 {
                3 => &["started", "cancelled"],
                no if no < N_RUNS => &["started", "succeeded"],
                _ => &["lost"],
            };
            assert_eq!(words, expected, "{run}");
        }
    }
}
