//! What a worker executes, and how it tells of the end.

use evenbeat_core::ids::{JobKey, RunId, SessionId};
use evenbeat_core::job::{JobState, RunEnd};
use evenbeat_core::lease::Epoch;
use evenbeat_core::occurrence::{self, Due, Serves};
use evenbeat_core::run::{Outcome, Trigger};
use evenbeat_core::store::{End, EndAnswer, EndBy, JobRow, OutboxRow, RunRow, Version};
use evenbeat_core::time::{BootTime, Duration, Timestamp};

use super::World;
use super::broker::Message;
use super::database::StoreRequest;
use super::process::Process;
use super::worker::{ForWorker, WorkerCallKind};
use crate::fact::What;

/// A run that a worker has to do with.
#[derive(Debug)]
pub(super) struct WorkerRun {
    pub(super) message: Message,
    /// Under which session.
    pub(super) session: SessionId,
    pub(super) stage: Stage,
}

/// How far it has come.
#[derive(Debug)]
pub(super) enum Stage {
    /// It asks whether it may start.
    Asking { n_tries: u32 },
    /// It executes, or is being killed.
    Began(Box<Execution>),
    /// It is over; the store does not know yet.
    Over(Box<EndReport>),
}

/// A run that executes.
#[derive(Debug)]
pub(super) struct Execution {
    process: Process,
    due: Due,
    /// By the store's clock.
    started_at: Timestamp,
    /// When it became ours: what the store said before that knows nothing of it.
    since: BootTime,
    /// Whether the store is to hear of its end.
    is_told: bool,
}

/// What the store is to hear.
#[derive(Debug)]
pub(super) struct EndReport {
    end: RunEnd,
    due: Due,
    /// The job, once the store has shown it.
    row: Option<JobRow>,
}

impl WorkerRun {
    pub(super) fn has_process(&self) -> bool {
        matches!(self.stage, Stage::Began(_))
    }

    fn execution(&mut self) -> Option<&mut Execution> {
        match &mut self.stage {
            Stage::Began(execution) => Some(execution),
            _ => None,
        }
    }
}

impl World {
    /// The store says that a run is this worker's: it begins, unless that moment lies in a blackout.
    pub(super) fn begin_on_worker(&mut self, worker: usize, row: &RunRow) {
        let boot = self.workers[worker].clock.boot(self.now);
        let started_at = row.started_at.unwrap_or(row.claimed_at);
        if self.is_in_blackout(&row.key, started_at) {
            let end = RunEnd {
                run: row.run,
                started_at,
                ended_at: started_at,
                outcome: Outcome::Blackout,
                exit_code: None,
                frozen_for: Duration::ZERO,
            };
            return self.tell_of_worker_run(worker, end, row.due.clone());
        }
        let process = self.draw_process(&row.key, boot);
        let execution = Execution { process, due: row.due.clone(), started_at, since: boot, is_told: true };
        self.begin_process(worker, row.run, execution);
    }

    /// A worker that does not ask whether it may begins.
    pub(super) fn begin_unwon(&mut self, worker: usize, run: RunId) {
        let boot = self.workers[worker].clock.boot(self.now);
        let Some(held) = self.workers[worker].runs.get(&run) else { return };
        let key = held.message.start.key.clone();
        let due = Due {
            due_at: self.store_now(),
            attempt: 1,
            trigger: Trigger::Scheduler,
            serves: Serves::Pending,
            losses: 0,
            last_outcome: None,
            params: None,
        };
        let started_at = self.store_now();
        let process = self.draw_process(&key, boot);
        self.begin_process(worker, run, Execution { process, due, started_at, since: boot, is_told: true });
    }

    fn begin_process(&mut self, worker: usize, run: RunId, execution: Execution) {
        let Some(held) = self.workers[worker].runs.get_mut(&run) else { return };
        held.stage = Stage::Began(Box::new(execution));
        let (key, fence) = (held.message.start.key.clone(), held.message.start.fence);
        let cost = self.definitions.get(&key).map_or(1, |job| job.place.cost);
        let node = self.workers[worker].name.clone();
        self.trace.tell(What::Begins { run, key, fence, node, cost });
        self.put_worker_end(worker, run);
    }

    fn put_worker_end(&mut self, worker: usize, run: RunId) {
        let now = self.now;
        let Some(execution) = self.workers[worker].runs.get_mut(&run).and_then(WorkerRun::execution) else {
            return;
        };
        let (at, n_halts) = execution.process.ends_at(now);
        self.put_for_worker(at, worker, ForWorker::Ends(run, n_halts));
    }

    pub(super) fn worker_process_ends(&mut self, worker: usize, run: RunId, n_halts: u32) {
        let Some(execution) = self.workers[worker].runs.get_mut(&run).and_then(WorkerRun::execution) else {
            return;
        };
        if execution.process.is_executing && execution.process.n_halts == n_halts {
            self.worker_process_is_gone(worker, run);
        }
    }

    /// The last process of a run is gone.
    pub(super) fn worker_process_is_gone(&mut self, worker: usize, run: RunId) {
        let now = self.now;
        let it = &mut self.workers[worker];
        let boot = it.clock.boot(now);
        let offset = it.store_offset;
        let Some(execution) = it.runs.get_mut(&run).and_then(WorkerRun::execution) else { return };
        execution.process.count_halt(now);
        let by_hand = execution.started_at + (boot - execution.since);
        let ended_at = offset.map_or(by_hand, |offset| Timestamp::from_millis(boot.as_millis()) + offset);
        let end = RunEnd {
            run,
            started_at: execution.started_at,
            ended_at: ended_at.max(execution.started_at),
            outcome: execution.process.outcome,
            exit_code: execution.process.exit_code,
            frozen_for: execution.process.halted_for(),
        };
        let (due, is_told) = (execution.due.clone(), execution.is_told);
        self.trace.tell(What::IsGone { run });
        if is_told {
            self.tell_of_worker_run(worker, end, due);
        } else {
            self.forget_worker_run(worker, run);
        }
    }

    /// Holds what the store says against what this worker believes.
    pub(super) fn compare_runs(
        &mut self,
        worker: usize,
        session: SessionId,
        began_at: BootTime,
        named: &[RunRow],
        now: Timestamp,
    ) {
        let boot = self.workers[worker].clock.boot(self.now);
        let held: Vec<RunId> = self.workers[worker].runs.keys().copied().collect();
        for run in held {
            let Some(held) = self.workers[worker].runs.get_mut(&run) else { continue };
            let (key, is_of_session) = (held.message.start.key.clone(), held.session == session);
            let fence = held.message.start.fence;
            let Some(execution) = held.execution() else { continue };
            let (since, is_dying) = (execution.since, execution.process.is_dying);
            if !is_of_session || is_dying || began_at <= since {
                continue;
            }
            let worked = (boot - since) - execution.process.halted_for();
            match named.iter().find(|row| row.run == run && row.fence == fence) {
                None => self.kill_on_worker(worker, run, None),
                Some(row) if row.is_cancel_asked => {
                    self.kill_on_worker(worker, run, Some(Outcome::Cancelled));
                }
                Some(_) if self.is_in_blackout(&key, now) => {
                    self.kill_on_worker(worker, run, Some(Outcome::Blackout));
                }
                Some(_) if self.longest_allowed(&key).is_some_and(|most| most < worked) => {
                    self.kill_on_worker(worker, run, Some(Outcome::TimedOut));
                }
                Some(_) => {}
            }
        }
        for row in named {
            self.give_back_unheard(worker, session, row, now);
        }
    }

    /// A run that the store says is ours and that is unknown here: the answer to its start was lost, or a failover has
    /// lost its end. It never begins here, or never again.
    fn give_back_unheard(&mut self, worker: usize, session: SessionId, row: &RunRow, now: Timestamp) {
        if self.workers[worker].runs.contains_key(&row.run) {
            return;
        }
        let start = OutboxRow { run: row.run, key: row.key.clone(), fence: row.fence };
        let message = Message { number: 0, start };
        let held = WorkerRun { message, session, stage: Stage::Asking { n_tries: 0 } };
        self.workers[worker].runs.insert(row.run, held);
        let started_at = row.started_at.unwrap_or(row.claimed_at);
        let end = RunEnd {
            run: row.run,
            started_at,
            ended_at: now.max(started_at),
            outcome: Outcome::Lost,
            exit_code: None,
            frozen_for: Duration::ZERO,
        };
        self.tell_of_worker_run(worker, end, row.due.clone());
    }

    /// Kills what executes under a session that is over. Whether the store hears of it is left to the caller: it may
    /// still have the session.
    pub(super) fn stop_all_of(&mut self, worker: usize, session: SessionId, is_told: bool) {
        let all = self.workers[worker].runs.iter().filter(|(_, held)| held.session == session);
        let runs: Vec<RunId> = all.filter(|(_, held)| held.has_process()).map(|(run, _)| *run).collect();
        for run in runs {
            self.kill_on_worker(worker, run, is_told.then_some(Outcome::Failed));
        }
    }

    /// Ends a process by force, within the time that takes. Without an outcome its end is not reported.
    fn kill_on_worker(&mut self, worker: usize, run: RunId, outcome: Option<Outcome>) {
        let gone_at = self.after(1, self.setup.timings.spec().stop_bound.as_millis());
        let Some(execution) = self.workers[worker].runs.get_mut(&run).and_then(WorkerRun::execution) else {
            return;
        };
        execution.is_told &= outcome.is_some();
        if execution.process.is_dying {
            return;
        }
        execution.process.is_dying = true;
        (execution.process.outcome, execution.process.exit_code) = (outcome.unwrap_or(Outcome::Lost), None);
        self.put_for_worker(gone_at, worker, ForWorker::Killed(run));
    }

    fn tell_of_worker_run(&mut self, worker: usize, end: RunEnd, due: Due) {
        let run = end.run;
        let Some(held) = self.workers[worker].runs.get_mut(&run) else { return };
        held.stage = Stage::Over(Box::new(EndReport { end, due, row: None }));
        self.tell_worker_end(worker, run);
    }

    /// Tells the store of an end. What the job's row looks like it hears with the first answer.
    pub(super) fn tell_worker_end(&mut self, worker: usize, run: RunId) {
        let Some(held) = self.workers[worker].runs.get(&run) else { return };
        let Stage::Over(telling) = &held.stage else { return };
        let EndReport { end, due, row } = &**telling;
        let key = &held.message.start.key;
        let (seen, state, records) = match row {
            Some(row) => {
                let step = occurrence::finish(key, &row.job.terms, &row.state, due, end);
                (row.version, step.state, step.records)
            }
            None => (Version(0), JobState::new(end.ended_at), Vec::new()),
        };
        let end = End {
            run,
            fence: held.message.start.fence,
            me: held.session,
            key: key.clone(),
            seen,
            by: EndBy::Owner(*end),
            state,
            records,
            report: None,
        };
        self.worker_asks(worker, StoreRequest::End(Epoch(0), vec![end]), WorkerCallKind::End(run));
    }

    pub(super) fn worker_end_answered(&mut self, worker: usize, run: RunId, answer: EndAnswer) {
        let Some(held) = self.workers[worker].runs.get_mut(&run) else { return };
        let Stage::Over(telling) = &mut held.stage else { return };
        match answer {
            EndAnswer::Stale(row) => {
                telling.row = Some(row);
                self.tell_worker_end(worker, run);
            }
            EndAnswer::Ended(_) | EndAnswer::Late | EndAnswer::Refused => {
                let number = held.message.number;
                self.forget_worker_run(worker, run);
                self.is_done_with(number);
            }
        }
    }

    /// It is over for this worker. Under the same session its start would be won again, if a failover loses its end.
    fn forget_worker_run(&mut self, worker: usize, run: RunId) {
        let it = &mut self.workers[worker];
        let Some(held) = it.runs.remove(&run) else { return };
        if let Some(session) = it.session_of(held.session) {
            session.done.insert(run);
        }
    }

    /// The whole worker stands still.
    pub(super) fn halt_worker(&mut self, worker: usize) {
        let now = self.now;
        for (run, held) in &mut self.workers[worker].runs {
            if held.execution().is_some_and(|it| it.process.stop(now)) {
                self.trace.tell(What::Halts { run: *run });
            }
        }
    }

    /// It goes on: nothing executes before it has looked at its clock.
    pub(super) fn worker_turn(&mut self, worker: usize) {
        self.trust_may_be_over_now(worker);
        let (now, held) = (self.now, &mut self.workers[worker].runs);
        let mut going = Vec::new();
        for (run, held) in held {
            // What is being killed stands still until it is gone.
            if held.execution().is_some_and(|it| !it.process.is_dying && it.process.resume(now)) {
                going.push(*run);
            }
        }
        for run in going {
            self.trace.tell(What::GoesOn { run });
            self.put_worker_end(worker, run);
        }
    }

    fn is_in_blackout(&self, key: &JobKey, at: Timestamp) -> bool {
        self.definitions.get(key).is_some_and(|job| job.blackouts.contains(&job.zone, at))
    }

    fn longest_allowed(&self, key: &JobKey) -> Option<Duration> {
        self.definitions.get(key)?.limits.max_allowed
    }
}
