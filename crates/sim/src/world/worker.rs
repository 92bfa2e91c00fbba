//! A worker: it takes up what a broker delivers, if the store says that it may, under a session of its own.
//!
//! Its rule is the one of all who execute: no longer than it may since the beginning of its last beat that the store
//! has answered. A session begins with the first start that it asks for, so trust counts from there until it has
//! beaten. A session whose trust has run out is given up for good: what executes under it is killed, and the
//! next start is requested under a new one.

use std::collections::{BTreeMap, BTreeSet};

use evenbeat_core::ids::{NodeName, RunId, SessionId};
use evenbeat_core::lease::Epoch;
use evenbeat_core::store::{Beat, SessionKind, SessionSpec, StoreDown, WorkerStart};
use evenbeat_core::time::{BootTime, Duration, Timestamp};

use super::broker::Message;
use super::clock::NodeClock;
use super::database::{Answer, StoreRequest};
use super::network::Party;
use super::worker_runs::{Stage, WorkerRun};
use super::{Happening, World, WorldWeakness};
use crate::fact::{RealTime, What};
use crate::setup::Setup;

/// How often a start without an answer is requested before it is left to another delivery.
const TRIES_MAX: u32 = 3;
/// After this many beats without a run a tidy worker ends its session.
const IDLE_BEATS_MAX: u32 = 4;

/// A worker: one process on a machine of its own.
#[derive(Debug)]
pub(super) struct Worker {
    pub(super) name: NodeName,
    pub(super) clock: NodeClock,
    pub(super) is_up: bool,
    /// Counts its lives: what is meant for an earlier one is dropped.
    pub(super) life: u32,
    boot_id: u128,
    /// Whether it is done with a message when it has won it, or only when the run is over.
    pub(super) acks_early: bool,
    is_tidy: bool,
    pub(super) session: Option<Session>,
    pub(super) runs: BTreeMap<RunId, WorkerRun>,
    /// What came while it stood still.
    waiting: Vec<ForWorker>,
    calls: BTreeMap<u64, WorkerCall>,
    n_calls: u64,
    /// The store's clock less its own, as last heard.
    pub(super) store_offset: Option<Duration>,
}

/// A session, as its worker knows it.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) id: SessionId,
    /// When the last beat that succeeded was begun; before there is one, when the store was first asked.
    pub(super) trusted_from: BootTime,
    epoch: Epoch,
    /// Whether it has won anything: before that the store may not know it, and it does not beat.
    is_known: bool,
    n_idle_beats: u32,
    /// What is over, and must not begin again.
    pub(super) done: BTreeSet<RunId>,
}

/// Something that waits for a worker.
#[derive(Debug)]
pub(super) enum ForWorker {
    /// The broker delivers a message.
    Message(Message),
    /// An answer from the database.
    Answer(u64, Result<Box<Answer>, StoreDown>),
    /// The answer is no longer waited for.
    TimesOut(u64),
    /// It is time to beat, in that session.
    Beats(SessionId),
    /// The trust of that session may be over.
    Deadline(SessionId),
    /// After a pause it asks for a start again.
    StartAgain(RunId),
    /// After a pause it tells of an end again.
    EndAgain(RunId),
    /// A process ends on its own, if it was not halted since.
    Ends(RunId, u32),
    /// A process is gone, because it was made to.
    Killed(RunId),
    /// It stood still, and looks at its clock for the first time since.
    Turn,
}

#[derive(Debug)]
struct WorkerCall {
    began_at: BootTime,
    asked: WorkerCallKind,
}

/// What was asked, as far as the answer must name it.
#[derive(Clone, Copy, Debug)]
pub(super) enum WorkerCallKind {
    Start(RunId, SessionId),
    Beat(SessionId),
    End(RunId),
    Leave,
}

impl Worker {
    pub(super) fn new(setup: &Setup, idx: usize) -> Worker {
        let it = &setup.workers[idx];
        Worker {
            name: it.name.clone(),
            clock: NodeClock::new(it.boot_offset, it.drift_ppm, setup.begins_at),
            is_up: true,
            life: 1,
            boot_id: u128::from(setup.seed) << 32 | 0xffff << 16 | (idx as u128) << 8,
            acks_early: it.acks_early,
            is_tidy: it.is_tidy,
            session: None,
            runs: BTreeMap::new(),
            waiting: Vec::new(),
            calls: BTreeMap::new(),
            n_calls: 0,
            store_offset: None,
        }
    }

    /// Its session, if it is that one and lives as far as it knows.
    pub(super) fn session_of(&mut self, id: SessionId) -> Option<&mut Session> {
        self.session.as_mut().filter(|it| it.id == id)
    }
}

impl World {
    /// Something comes for a worker: it waits while the worker is paused, and is dropped if that life is over.
    pub(super) fn at_worker(&mut self, worker: usize, life: u32, it: ForWorker) {
        if self.workers[worker].life != life || !self.workers[worker].is_up {
            return;
        }
        if self.is_worker_paused(worker) {
            self.workers[worker].waiting.push(it);
            return;
        }
        match it {
            ForWorker::Message(message) => self.message_comes(worker, message),
            ForWorker::Answer(call, answer) => self.worker_hears(worker, call, answer.map(|it| *it)),
            ForWorker::TimesOut(call) => {
                self.worker_hears(worker, call, Err(StoreDown("no answer in time".to_owned())));
            }
            ForWorker::Beats(session) => {
                if self.workers[worker].session_of(session).is_some() {
                    self.worker_asks(worker, StoreRequest::Beat(session), WorkerCallKind::Beat(session));
                }
            }
            ForWorker::Deadline(session) => self.trust_may_be_over(worker, session),
            ForWorker::StartAgain(run) => self.ask_start(worker, run),
            ForWorker::EndAgain(run) => self.tell_worker_end(worker, run),
            ForWorker::Ends(run, n_halts) => self.worker_process_ends(worker, run, n_halts),
            ForWorker::Killed(run) => self.worker_process_is_gone(worker, run),
            ForWorker::Turn => self.worker_turn(worker),
        }
    }

    pub(super) fn put_for_worker(&mut self, at: RealTime, worker: usize, it: ForWorker) {
        let life = self.workers[worker].life;
        self.queue.put(at, Happening::AtWorker(worker, life, Box::new(it)));
    }

    fn message_comes(&mut self, worker: usize, message: Message) {
        let run = message.start.run;
        let it = &mut self.workers[worker];
        if let Some(held) = it.runs.get_mut(&run) {
            if !matches!(held.stage, Stage::Asking { .. }) && it.acks_early {
                self.is_done_with(message.number);
            }
            return;
        }
        let boot = it.clock.boot(self.now);
        if it.session.as_ref().is_some_and(|it| it.done.contains(&run)) {
            return self.is_done_with(message.number);
        }
        self.trust_may_be_over_now(worker);
        if self.workers[worker].session.is_none() {
            self.begin_session(worker, boot);
        }
        let Some(session) = self.workers[worker].session.as_ref().map(|it| it.id) else { return };
        let held = WorkerRun { message, session, stage: Stage::Asking { n_tries: 0 } };
        self.workers[worker].runs.insert(run, held);
        self.ask_start(worker, run);
    }

    fn begin_session(&mut self, worker: usize, boot: BootTime) {
        let id = SessionId(self.dice.wide_number());
        self.workers[worker].session = Some(Session {
            id,
            trusted_from: boot,
            epoch: Epoch(0),
            is_known: false,
            n_idle_beats: 0,
            done: BTreeSet::new(),
        });
        self.arm_trust(worker);
    }

    fn ask_start(&mut self, worker: usize, run: RunId) {
        let it = &mut self.workers[worker];
        let spec = SessionSpec {
            id: SessionId(0),
            node: it.name.clone(),
            name: format!("{}-{}", it.name, it.life),
            boot_id: it.boot_id,
            home: 0,
            kind: SessionKind::Worker,
            pools: BTreeMap::new(),
            zone_data: String::new(),
        };
        let Some(held) = it.runs.get_mut(&run) else { return };
        let Stage::Asking { n_tries } = &mut held.stage else { return };
        let session = held.session;
        // A worker whose session is over requests nothing: the broker will deliver the message again.
        if TRIES_MAX <= *n_tries || it.session.as_ref().is_none_or(|it| it.id != session) {
            it.runs.remove(&run);
            return;
        }
        *n_tries += 1;
        let (run, fence) = (held.message.start.run, held.message.start.fence);
        let spec = SessionSpec { id: session, ..spec };
        self.worker_asks(
            worker,
            StoreRequest::StartOnWorker(run, fence, spec),
            WorkerCallKind::Start(run, session),
        );
    }

    /// Asks the database, and stops waiting after the time that one attempt may take.
    pub(super) fn worker_asks(&mut self, worker: usize, request: StoreRequest, asked: WorkerCallKind) {
        let attempt = self.setup.timings.spec().attempt;
        let it = &mut self.workers[worker];
        let began_at = it.clock.boot(self.now);
        let (life, call, times_out_at) = (it.life, it.n_calls, it.clock.real(began_at + attempt));
        it.n_calls += 1;
        it.calls.insert(call, WorkerCall { began_at, asked });
        self.put_for_worker(times_out_at, worker, ForWorker::TimesOut(call));
        self.post(Party::Worker(worker), life, call, request);
    }

    fn worker_hears(&mut self, worker: usize, call: u64, answer: Result<Answer, StoreDown>) {
        let Some(WorkerCall { began_at, asked }) = self.workers[worker].calls.remove(&call) else { return };
        self.trace.line(format_args!("{} < {asked:?}: {answer:?}", self.workers[worker].name));
        match (asked, answer) {
            (WorkerCallKind::Start(run, session), Ok(Answer::StartedOnWorker(answer))) => {
                self.start_answered(worker, run, session, answer);
            }
            (WorkerCallKind::Start(run, _), _) => {
                let at = self.after(100, 1_000);
                self.put_for_worker(at, worker, ForWorker::StartAgain(run));
            }
            (WorkerCallKind::Beat(session), Ok(Answer::Beaten(beat))) => {
                self.worker_beaten(worker, session, began_at, beat);
            }
            (WorkerCallKind::Beat(session), _) => {
                let at = self.after(50, 500);
                self.put_for_worker(at, worker, ForWorker::Beats(session));
            }
            (WorkerCallKind::End(run), Ok(Answer::Ended(answers))) => {
                let answer = answers.into_iter().next().expect("one end has one answer");
                self.worker_end_answered(worker, run, answer);
            }
            (WorkerCallKind::End(run), _) => {
                let at = self.after(100, 1_000);
                self.put_for_worker(at, worker, ForWorker::EndAgain(run));
            }
            (WorkerCallKind::Leave, _) => {}
        }
    }

    fn start_answered(&mut self, worker: usize, run: RunId, session: SessionId, answer: WorkerStart) {
        let begins_anyway = self.is_weak(WorldWeakness::WorkerBeginsUnwon);
        let Some(held) = self.workers[worker].runs.get(&run) else { return };
        let (number, is_asking) = (held.message.number, matches!(held.stage, Stage::Asking { .. }));
        if !is_asking || held.session != session {
            return;
        }
        match answer {
            WorkerStart::Won(row) => {
                if self.workers[worker].acks_early {
                    self.is_done_with(number);
                }
                self.trust_may_be_over_now(worker);
                let Some(it) = self.workers[worker].session_of(session) else {
                    // Too late: this session is given up, and its run will be released with it.
                    self.workers[worker].runs.remove(&run);
                    return;
                };
                it.n_idle_beats = 0;
                if !std::mem::replace(&mut it.is_known, true) {
                    let at = self.after(1, 50);
                    self.put_for_worker(at, worker, ForWorker::Beats(session));
                }
                self.begin_on_worker(worker, &row);
            }
            WorkerStart::Taken | WorkerStart::Closed if begins_anyway => {
                self.begin_unwon(worker, run);
            }
            WorkerStart::Taken => {
                self.workers[worker].runs.remove(&run);
                self.is_done_with(number);
            }
            WorkerStart::Closed => {
                self.workers[worker].runs.remove(&run);
            }
        }
    }

    fn worker_beaten(&mut self, worker: usize, session: SessionId, began_at: BootTime, beat: Beat) {
        let beat_every = self.setup.timings.heartbeat();
        let boot = self.workers[worker].clock.boot(self.now);
        self.trust_may_be_over_now(worker);
        let is_free = self.workers[worker].runs.is_empty();
        let is_tidy = self.workers[worker].is_tidy;
        let Some(it) = self.workers[worker].session_of(session) else { return };
        let (epoch, now, runs) = match beat {
            Beat::Dead => return self.session_is_dead(worker, session),
            Beat::Alive { epoch, now, runs, .. } => (epoch, now, runs),
        };
        let next_at = began_at + beat_every;
        // A late word from a primary that has fallen says nothing.
        if it.epoch <= epoch {
            it.epoch = epoch;
            it.trusted_from = it.trusted_from.max(began_at);
            it.n_idle_beats = if is_free && runs.is_empty() { it.n_idle_beats + 1 } else { 0 };
            if is_tidy && IDLE_BEATS_MAX < it.n_idle_beats {
                self.workers[worker].session = None;
                return self.worker_asks(worker, StoreRequest::Leave(session), WorkerCallKind::Leave);
            }
            self.worker_hears_time(worker, began_at, boot, now);
            self.compare_runs(worker, session, began_at, &runs, now);
        }
        let at = self.workers[worker].clock.real(next_at).max(RealTime(self.now.0 + 1));
        self.put_for_worker(at, worker, ForWorker::Beats(session));
    }

    /// The store's clock showed this somewhere between a question and its answer.
    fn worker_hears_time(&mut self, worker: usize, asked_at: BootTime, boot: BootTime, now: Timestamp) {
        let offset_at = |boot: BootTime| now - Timestamp::from_millis(boot.as_millis());
        let (least, most) = (offset_at(boot), offset_at(asked_at));
        let offset = &mut self.workers[worker].store_offset;
        *offset = Some(offset.map_or(least, |it| it.clamp(least, most.max(least))));
    }

    fn arm_trust(&mut self, worker: usize) {
        let self_fence = self.setup.timings.self_fence();
        let it = &self.workers[worker];
        let Some(session) = &it.session else { return };
        let at = it.clock.real(session.trusted_from + self_fence).max(RealTime(self.now.0 + 1));
        let id = session.id;
        self.put_for_worker(at, worker, ForWorker::Deadline(id));
    }

    fn trust_may_be_over(&mut self, worker: usize, session: SessionId) {
        if self.workers[worker].session_of(session).is_some() {
            self.trust_may_be_over_now(worker);
            self.arm_trust(worker);
        }
    }

    /// A session that has not beaten for as long as it may is given up, with all that executes under it.
    pub(super) fn trust_may_be_over_now(&mut self, worker: usize) {
        let boot = self.workers[worker].clock.boot(self.now);
        let self_fence = self.setup.timings.self_fence();
        let it = &mut self.workers[worker];
        let Some(session) = it.session.take_if(|it| it.trusted_from + self_fence <= boot) else { return };
        self.trace.line(format_args!("{} gives up session {}", self.workers[worker].name, session.id));
        if !self.is_weak(WorldWeakness::WorkerOutstaysTrust) {
            self.stop_all_of(worker, session.id, true);
        }
    }

    /// Others have taken over what it had.
    fn session_is_dead(&mut self, worker: usize, session: SessionId) {
        self.workers[worker].session = None;
        self.stop_all_of(worker, session, false);
    }

    /// The power of its machine fails.
    pub(super) fn crash_worker(&mut self, worker: usize) {
        let it = &mut self.workers[worker];
        it.is_up = false;
        it.session = None;
        it.store_offset = None;
        it.waiting.clear();
        it.calls.clear();
        for (run, held) in std::mem::take(&mut it.runs) {
            if held.has_process() {
                self.trace.tell(What::IsGone { run });
            }
        }
    }

    /// It is started again.
    pub(super) fn boot_worker(&mut self, worker: usize) {
        let offset = Duration::from_millis(self.dice.between(2_000, 60_000));
        let it = &mut self.workers[worker];
        if it.is_up {
            return;
        }
        it.is_up = true;
        it.life += 1;
        it.boot_id += 1;
        it.clock.reboot(self.now, offset);
    }

    /// A worker that stood still goes on: first it looks at its clock, then all the rest comes.
    pub(super) fn resume_worker(&mut self, worker: usize) {
        let at = self.after(0, super::mishaps::TURN_MAX_MS);
        self.put_for_worker(at, worker, ForWorker::Turn);
        for it in std::mem::take(&mut self.workers[worker].waiting) {
            let at = RealTime(self.now.0 + super::mishaps::TURN_MAX_MS);
            self.put_for_worker(at, worker, it);
        }
    }
}
