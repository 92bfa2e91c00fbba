//! The one database: it does what arrives, in the order in which it arrives, and reports to the checkers what was
//! committed.

use std::collections::BTreeMap;

use evenbeat_core::ids::{Fence, NodeName, RunId, SessionId};
use evenbeat_core::lease::{Epoch, Silent, Timings};
use evenbeat_core::run::Outcome;
use evenbeat_core::store::{
    BATCH_MAX, Beat, Cancelled, Changes, Claim, ClaimAnswer, Claims, Cursor, End, EndAnswer, EndBy, Fencing,
    Joined, Lives, Mark, OutboxRow, PutAnswer, PutJob, RunRow, SessionKind, SessionSpec, Settle,
    SettleAnswer, Store, StoreDown, Views, Watch, WorkerStart,
};
use evenbeat_core::time::{Duration, Timestamp};

use crate::fact::{RealTime, What};
use crate::reference::ReferenceStore;
use crate::trace::Trace;

/// How many start messages are read at a time.
const OUTBOX_MAX: usize = 50;

/// What a node or a worker asks.
#[derive(Clone, Debug)]
pub(super) enum StoreRequest {
    Join(SessionSpec),
    Adopt(SessionId),
    Beat(SessionId),
    Watch,
    Fence(Epoch, Vec<Silent>),
    OpenEpoch(Epoch),
    Changes(Option<Cursor>),
    Claim(SessionId, Epoch, Vec<Claim>),
    Settle(SessionId, Epoch, Vec<Settle>),
    End(Epoch, Vec<End>),
    Mark(Vec<Mark>),
    Leave(SessionId),
    Outbox,
    Published(Vec<(RunId, Fence)>),
    StartOnWorker(RunId, Fence, SessionSpec),
}

/// What comes back.
#[derive(Clone, Debug)]
pub(super) enum Answer {
    Joined(Joined),
    Adopted(Vec<RunRow>),
    Beaten(Beat),
    Watched(Watch),
    Fenced(Vec<Fencing>),
    EpochOpened(bool),
    Changed(Changes),
    Claimed(Claims),
    Settled(Vec<SettleAnswer>),
    Ended(Vec<EndAnswer>),
    Outbox(Vec<OutboxRow>),
    StartedOnWorker(WorkerStart),
    Done,
}

/// The database.
#[derive(Debug)]
pub(super) struct Database {
    store: ReferenceStore,
    timings: Timings,
    /// What its clock says when real time is 0.
    wall_at_zero: Timestamp,
    /// What the primaries to come will know, by the fault that brings them.
    kept: BTreeMap<usize, (RealTime, ReferenceStore)>,
    /// How many primaries there were before this one.
    pub(super) reign: u32,
    last_opened: Epoch,
}

impl Database {
    pub(super) fn new(store: ReferenceStore, timings: Timings, wall_at_zero: Timestamp) -> Database {
        let last_opened = store.epoch();
        Database { store, timings, wall_at_zero, kept: BTreeMap::new(), reign: 0, last_opened }
    }

    pub(super) fn store(&self) -> &ReferenceStore {
        &self.store
    }

    pub(super) fn now(&self, at: RealTime) -> Timestamp {
        self.wall_at_zero + Duration::from_millis(at.0)
    }

    /// Its clock is set.
    pub(super) fn step_wall(&mut self, by: Duration) {
        self.wall_at_zero = self.wall_at_zero + by;
    }

    /// From now on commits will be lost by that fault.
    pub(super) fn keep_for(&mut self, fault: usize, now: RealTime) {
        self.kept.insert(fault, (RealTime(now.0 - 1), self.store.clone()));
    }

    /// Another primary takes over, as far as it knows.
    pub(super) fn fail_over(&mut self, fault: usize, is_seen: bool, trace: &mut Trace) {
        let later = Epoch(self.store.epoch().0 + 1);
        let (kept_until, store) = match self.kept.remove(&fault) {
            Some((kept_until, store)) => (kept_until, store),
            None => (trace.now, self.store.clone()),
        };
        // What others kept after that instant belongs to a history that never was.
        self.kept.retain(|_, (at, _)| *at <= kept_until);
        self.store = store;
        self.reign += 1;
        if is_seen {
            self.store.fail_over(later);
        }
        trace.tell(What::FailedOver { kept_until, epoch: self.store.epoch() });
    }

    /// Does what a node asks for.
    pub(super) fn answer(&mut self, by: &NodeName, request: &StoreRequest, trace: &mut Trace) -> Answer {
        let store_now = self.now(trace.now);
        self.store.set_now(store_now);
        self.perform(by, request, store_now, trace).expect("the reference store always answers")
    }

    fn perform(
        &mut self,
        by: &NodeName,
        request: &StoreRequest,
        store_now: Timestamp,
        trace: &mut Trace,
    ) -> Result<Answer, StoreDown> {
        Ok(match request {
            StoreRequest::Join(spec) => {
                let joined = self.store.join(spec, &self.timings)?;
                if let Joined::Welcome { .. } = joined {
                    trace.tell(What::Joined { session: spec.id, node: spec.node.clone() });
                }
                Answer::Joined(joined)
            }
            StoreRequest::Adopt(me) => {
                let living = self.living()?;
                let runs = self.store.adopt(*me, Lives::OfThisBoot)?;
                let still_living = self.living()?;
                for session in living.into_iter().filter(|it| !still_living.contains(it)) {
                    trace.tell(What::Adopted { session, by: by.clone() });
                }
                Answer::Adopted(runs)
            }
            StoreRequest::Beat(me) => {
                let beat = self.store.beat(*me)?;
                if let Beat::Alive { .. } = beat {
                    trace.tell(What::Beat { session: *me });
                }
                Answer::Beaten(beat)
            }
            StoreRequest::Watch => {
                trace.tell(What::Watched { by: by.clone() });
                Answer::Watched(self.store.watch(BATCH_MAX)?)
            }
            StoreRequest::Fence(epoch, silent) => {
                let fenced = self.store.fence(*epoch, silent)?;
                for (it, _) in silent.iter().zip(&fenced).filter(|(_, it)| **it == Fencing::Fenced) {
                    trace.tell(What::Fenced { session: it.session, by: by.clone() });
                    let kind = self.store.session(it.session).map(|it| it.spec.kind);
                    trace.tally.n_workers_fenced += u64::from(kind == Some(SessionKind::Worker));
                }
                Answer::Fenced(fenced)
            }
            StoreRequest::OpenEpoch(epoch) => {
                let is_done = self.store.open_epoch(*epoch)?;
                if is_done && self.last_opened < *epoch {
                    self.last_opened = *epoch;
                    trace.tell(What::EpochOpened { epoch: *epoch });
                }
                Answer::EpochOpened(is_done)
            }
            StoreRequest::Changes(since) => Answer::Changed(self.store.changes(*since, BATCH_MAX)?),
            StoreRequest::Claim(me, epoch, claims) => {
                let answer = self.store.claim(*me, *epoch, claims)?;
                if let Claims::Answered(answers) = &answer {
                    for (claim, answer) in claims.iter().zip(answers) {
                        tell_claim(claim, answer, *me, *epoch, store_now, trace);
                    }
                }
                Answer::Claimed(answer)
            }
            StoreRequest::Settle(me, epoch, settles) => {
                let answers = self.store.settle(*me, *epoch, settles)?;
                for (settle, answer) in settles.iter().zip(&answers) {
                    if let SettleAnswer::Settled(_) = answer {
                        for record in &settle.records {
                            trace.tell(What::Recorded { key: settle.key.clone(), record: *record });
                        }
                    }
                }
                Answer::Settled(answers)
            }
            StoreRequest::End(epoch, ends) => {
                let answers = self.store.end(*epoch, ends)?;
                for (end, _) in ends.iter().zip(&answers).filter(|(_, it)| matches!(it, EndAnswer::Ended(_)))
                {
                    tell_end(end, trace);
                }
                Answer::Ended(answers)
            }
            StoreRequest::Mark(marks) => {
                self.store.mark(marks)?;
                Answer::Done
            }
            StoreRequest::Leave(me) => {
                self.store.leave(*me)?;
                Answer::Done
            }
            StoreRequest::Outbox => Answer::Outbox(self.store.outbox(OUTBOX_MAX)?),
            StoreRequest::Published(runs) => {
                self.store.published(runs)?;
                Answer::Done
            }
            StoreRequest::StartOnWorker(run, fence, worker) => {
                let is_known = self.store.session(worker.id).is_some();
                let owner = self.store.owner_of(*run);
                let answer = self.store.start_on_worker(*run, *fence, worker)?;
                // One that is asked again is won again, and nothing has happened.
                if matches!(answer, WorkerStart::Won(_)) && owner != Some(worker.id) {
                    let (session, node) = (worker.id, worker.node.clone());
                    if !is_known {
                        trace.tell(What::Joined { session, node: node.clone() });
                    }
                    trace.tell(What::TakenUp { run: *run, session, worker: node });
                }
                Answer::StartedOnWorker(answer)
            }
        })
    }

    /// Writes what people want.
    pub(super) fn put(&mut self, puts: &[PutJob], trace: &mut Trace) -> Vec<PutAnswer> {
        let store_now = self.now(trace.now);
        let told = |put: &PutJob| {
            if put.is_deleted {
                What::Removed { key: put.job.key.clone(), store_now }
            } else {
                What::Put {
                    job: put.job.clone(),
                    placement: put.state.placement.clone(),
                    is_paused: put.state.pause.is_some(),
                    store_now,
                }
            }
        };
        self.put_and_tell(puts, told, trace)
    }

    /// Writes a requested run. The definition stays the same.
    pub(super) fn put_trigger(
        &mut self,
        put: &PutJob,
        due_at: Timestamp,
        trace: &mut Trace,
    ) -> Vec<PutAnswer> {
        let told = |put: &PutJob| What::Triggered { key: put.job.key.clone(), due_at };
        self.put_and_tell(std::slice::from_ref(put), told, trace)
    }

    fn put_and_tell(
        &mut self,
        puts: &[PutJob],
        told: impl Fn(&PutJob) -> What,
        trace: &mut Trace,
    ) -> Vec<PutAnswer> {
        self.store.set_now(self.now(trace.now));
        let answers = self.store.put_jobs(puts).expect("the reference store always answers");
        for (put, _) in puts.iter().zip(&answers).filter(|(_, it)| matches!(it, PutAnswer::Put(_))) {
            for record in &put.records {
                trace.tell(What::Recorded { key: put.job.key.clone(), record: *record });
            }
            trace.tell(told(put));
        }
        answers
    }

    /// Asks for the end of a run.
    pub(super) fn cancel(&mut self, run: RunId, trace: &mut Trace) {
        self.store.set_now(self.now(trace.now));
        let answers = self.store.cancel(&[run]).expect("the reference store always answers");
        if answers == [Cancelled::Asked] {
            trace.tell(What::CancelAsked { run });
        }
    }

    /// Says whether a session takes new runs.
    pub(super) fn drain(&mut self, session: SessionId, is_draining: bool, now: RealTime) {
        self.store.set_now(self.now(now));
        self.store.drain(session, is_draining).expect("the reference store always answers");
    }

    fn living(&self) -> Result<Vec<SessionId>, StoreDown> {
        let sessions = self.store.sessions()?;
        Ok(sessions.into_iter().filter(|it| !it.is_dead).map(|it| it.spec.id).collect())
    }
}

fn tell_claim(
    claim: &Claim,
    answer: &ClaimAnswer,
    session: SessionId,
    epoch: Epoch,
    store_now: Timestamp,
    trace: &mut Trace,
) {
    let ClaimAnswer::Granted(row) = answer else { return };
    let bid = &claim.bid;
    for record in &bid.records {
        trace.tell(What::Recorded { key: bid.key.clone(), record: *record });
    }
    trace.tell(What::Granted {
        run: claim.run,
        key: bid.key.clone(),
        fence: row.fence,
        session,
        epoch,
        due_at: bid.due.due_at,
        attempt: bid.due.attempt,
        trigger: bid.due.trigger,
        store_now,
    });
}

fn tell_end(end: &End, trace: &mut Trace) {
    for record in &end.records {
        trace.tell(What::Recorded { key: end.key.clone(), record: *record });
    }
    let (outcome, is_release) = match end.by {
        EndBy::Owner(end) => (Some(end.outcome), false),
        EndBy::Unstarted => (None, false),
        EndBy::Release { .. } => (Some(Outcome::Lost), true),
    };
    trace.tell(What::RunEnded { run: end.run, key: end.key.clone(), outcome, is_release });
}
