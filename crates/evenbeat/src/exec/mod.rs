//! Routes each run to the executor of its target.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use evenbeat_core::engine::{RunOver, Start};
use evenbeat_core::ids::RunId;
use evenbeat_core::job::Target;
use evenbeat_core::run::{EndReason, Outcome};
use evenbeat_core::store::{JobRow, RunRow};
use evenbeat_core::time::{BootTime, Duration};

use crate::clock::Clock;
use crate::target::{EndDetails, Executor, NewsSender, RunNews};

/// All executors of a node. Clones share them.
///
/// A new kind of target is one more call of [`Router::with`]. Commands and `noop` runs of tests and benchmarks are
/// executors like any other.
#[derive(Clone, Debug)]
pub struct Router {
    inner: Arc<RouterState>,
}

#[derive(Debug)]
struct RouterState {
    /// By the kind of target: `command`, `http`, `queue`.
    executors: Vec<(&'static str, Box<dyn Executor>)>,
    /// Which executor has which run. Empty while there is only one.
    routes: Mutex<HashMap<RunId, usize>>,
    clock: Clock,
    news: NewsSender,
}

impl Router {
    /// A router without executors: every run fails and says that this node has none for its target.
    pub fn new(clock: Clock, news: NewsSender) -> Router {
        let inner = RouterState { executors: Vec::new(), routes: Mutex::default(), clock, news };
        Router { inner: Arc::new(inner) }
    }

    /// One executor for everything, whatever the target: for tests and benchmarks.
    pub fn only(executor: impl Executor + 'static, clock: Clock, news: NewsSender) -> Router {
        Router::new(clock, news).with(ANY, executor)
    }

    /// Adds the executor of a kind of target.
    ///
    /// # Panics
    /// If the router is shared already.
    #[must_use]
    pub fn with(mut self, kind: &'static str, executor: impl Executor + 'static) -> Router {
        let inner = Arc::get_mut(&mut self.inner).expect("executors are added before the router is shared");
        inner.executors.push((kind, Box::new(executor)));
        self
    }

    /// Starts a run. Never waits; the outcome comes as news.
    pub fn start(&self, start: &Start) {
        match self.inner.place_of(&start.job.target) {
            Some(idx) => {
                if 1 < self.inner.executors.len() {
                    self.inner.routes().insert(start.run, idx);
                }
                self.inner.executors[idx].1.start(start);
            }
            None => self.inner.fail(start),
        }
    }

    /// Extends the lease of all leased runs to this instant of the boot clock.
    pub fn extend(&self, until: BootTime) {
        for (_, executor) in &self.inner.executors {
            executor.extend(until);
        }
    }

    /// Ends a run in good order.
    pub fn stop(&self, run: RunId, outcome: Outcome) {
        if let Some(executor) = self.inner.executor_of(run) {
            executor.stop(run, outcome);
        }
    }

    /// Kills a run that this node no longer owns.
    pub fn revoke(&self, run: RunId) {
        if let Some(executor) = self.inner.executor_of(run) {
            executor.revoke(run);
        }
    }

    /// Takes over the runs of an earlier life of this node, and ends whatever else is left of it.
    pub async fn adopt(&self, runs: &[RunRow], jobs: &[JobRow], is_leased: bool) {
        let inner = &self.inner;
        let target_of =
            |run: &RunRow| jobs.iter().find(|row| row.job.key == run.key).map(|row| &row.job.target);
        // What belongs to no target that is known is the first executor's: it must end whatever is left of it.
        let place_of = |run: &RunRow| target_of(run).and_then(|target| inner.place_of(target)).unwrap_or(0);
        for (idx, (_, executor)) in inner.executors.iter().enumerate() {
            let theirs: Vec<RunRow> = runs.iter().filter(|run| place_of(run) == idx).cloned().collect();
            if 1 < inner.executors.len() {
                inner.routes().extend(theirs.iter().map(|run| (run.run, idx)));
            }
            executor.adopt(&theirs, jobs, is_leased).await;
        }
    }

    /// When a run last gave a sign of life.
    pub fn heard_at(&self, run: RunId) -> Option<BootTime> {
        self.inner.executor_of(run)?.heard_at(run)
    }

    /// The end of a run is on record; nothing of it needs to be kept.
    pub fn forget(&self, run: RunId) {
        if let Some(executor) = self.inner.executor_of(run) {
            executor.forget(run);
        }
        if 1 < self.inner.executors.len() {
            self.inner.routes().remove(&run);
        }
    }

    /// Lets go of all runs when the process ends. What can go on without it does.
    pub async fn let_go(&self) {
        for (_, executor) in &self.inner.executors {
            executor.let_go().await;
        }
    }
}

/// The kind of an executor that takes every target.
const ANY: &str = "any";

impl RouterState {
    fn place_of(&self, target: &Target) -> Option<usize> {
        let kind = target.kind();
        self.executors.iter().position(|(it, _)| *it == kind || *it == ANY)
    }

    /// The executor that has a run. With several, a run that was given to none has none.
    fn executor_of(&self, run: RunId) -> Option<&dyn Executor> {
        let idx = if self.executors.len() == 1 { 0 } else { *self.routes().get(&run)? };
        self.executors.get(idx).map(|(_, executor)| executor.as_ref())
    }

    /// Reports a run that nothing here can execute. In a task: the node listens only when it has done what it is doing.
    fn fail(&self, start: &Start) {
        let (run, at) = (start.run, self.clock.boot());
        let error = format!("this node runs no `{}` targets", start.job.target.kind());
        let over = RunOver {
            started_at: at,
            ended_at: at,
            outcome: Outcome::Failed,
            exit_code: None,
            frozen_for: Duration::ZERO,
        };
        let details =
            EndDetails { reason: Some(EndReason::NotStarted), error: Some(error), ..EndDetails::default() };
        let news = self.news.clone();
        tokio::spawn(async move {
            let _ = news.send(RunNews::Started { run, at }).await;
            let _ = news.send(RunNews::Ended { run, over, told: Box::new(details) }).await;
        });
    }

    fn routes(&self) -> MutexGuard<'_, HashMap<RunId, usize>> {
        self.routes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration as Length;

    use evenbeat_core::ids::Fence;
    use evenbeat_core::job::{CommandTarget, Job, QueueTarget};
    use evenbeat_core::occurrence::{Due, Serves};
    use evenbeat_core::run::Trigger;
    use evenbeat_core::schedule::Schedule;
    use evenbeat_core::time::Timestamp;

    use super::*;
    use crate::target::news_channel;
    use crate::target::noop::Noop;

    fn start(no: u128, target: Target) -> Start {
        let due = Due {
            due_at: Timestamp::from_millis(0),
            attempt: 1,
            trigger: Trigger::Scheduler,
            serves: Serves::Pending,
            losses: 0,
            last_outcome: None,
            params: None,
        };
        Start {
            run: RunId(no),
            fence: Fence(1),
            job: Arc::new(Job::new("sample".parse().unwrap(), target, Schedule::Manual)),
            due,
            lease_until: None,
            deadline: None,
            last_good_start_at: None,
        }
    }

    fn command() -> Target {
        Target::Command(CommandTarget::default())
    }

    fn queue() -> Target {
        Target::Queue(QueueTarget::default())
    }

    #[tokio::test]
    async fn a_run_goes_to_the_executor_of_its_target() {
        let (clock, (to_news, mut news)) = (Clock::system(), news_channel());
        let never = Noop::new(Length::from_hours(1), clock.clone(), to_news.clone());
        let at_once = Noop::new(Length::ZERO, clock.clone(), to_news.clone());
        let exec = Router::new(clock, to_news).with("command", never).with("queue", at_once);
        exec.start(&start(1, command()));
        exec.start(&start(2, queue()));
        let mut ended = Vec::new();
        while ended.len() < 2 {
            if let Some(RunNews::Ended { run, over, .. }) = news.recv().await {
                ended.push((run, over.outcome));
                // The other one ends only when it is told to, by way of its own executor.
                assert!(exec.heard_at(RunId(1)).is_some() || ended.len() == 2);
                exec.stop(RunId(1), Outcome::Cancelled);
            }
        }
        assert_eq!(ended, [(RunId(2), Outcome::Succeeded), (RunId(1), Outcome::Cancelled)]);
        exec.forget(RunId(1));
        assert_eq!(exec.heard_at(RunId(1)), None);
    }

    #[tokio::test]
    async fn a_run_that_nothing_here_can_execute_fails_and_says_why() {
        let (clock, (to_news, mut news)) = (Clock::system(), news_channel());
        let noop = Noop::new(Length::ZERO, clock.clone(), to_news.clone());
        let exec = Router::new(clock, to_news).with("command", noop);
        exec.start(&start(7, queue()));
        assert!(matches!(news.recv().await, Some(RunNews::Started { run: RunId(7), .. })));
        let Some(RunNews::Ended { over, told, .. }) = news.recv().await else { panic!("it ends") };
        assert_eq!(over.outcome, Outcome::Failed);
        assert_eq!(told.error.as_deref(), Some("this node runs no `queue` targets"));
    }
}
