//! The store of a simulated fleet: plain maps that always answer.
//!
//! It keeps the rules of [`evenbeat_core::store`] that a world without faults can meet: stale versions, limits, and
//! sessions that an outage left behind. There is one epoch, no request is lost or repeated, and no job is edited, so
//! the rest of the contract is left out. Tests compare every answer with the reference store (`compared.rs`).

#[cfg(test)]
mod compared;
mod counter;

use std::collections::BTreeMap;
use std::sync::Arc;

use evenbeat_core::ids::{Fence, JobKey, RunId, SessionId};
use evenbeat_core::job::{Job, JobState, Owner};
use evenbeat_core::lease::{Epoch, Silent};
use evenbeat_core::store::{
    Beat, Bid, Changes, Claim, ClaimAnswer, Claims, CounterKey, Cursor, End, EndAnswer, EndBy, Fencing,
    JobRow, Lives, Revision, RunPhase, RunRow, SessionRow, SessionSpec, Settle, SettleAnswer, Version, Watch,
};
use evenbeat_core::time::Timestamp;

use counter::Counter;

/// The one epoch. It is open from the start.
pub(crate) const EPOCH: Epoch = Epoch(1);

/// What simulations run on. In tests it compares each answer with the reference store's.
#[cfg(not(test))]
pub(crate) use self::MemoryStore as KernelStore;
#[cfg(test)]
pub(crate) use self::compared::ComparedStore as KernelStore;

pub(crate) struct MemoryStore {
    now: Timestamp,
    /// Sessions that live. A dead one is forgotten: its open runs are those of no session.
    sessions: BTreeMap<SessionId, SessionRow>,
    jobs: BTreeMap<JobKey, StoredJob>,
    /// The key of the job that changed at each position; only its latest change.
    feed: BTreeMap<u64, JobKey>,
    n_changes: u64,
    open_runs: BTreeMap<RunId, RunRow>,
    counters: BTreeMap<CounterKey, Counter>,
}

struct StoredJob {
    row: JobRow,
    /// The position of its latest change in the feed.
    position: u64,
}

impl MemoryStore {
    pub(crate) fn new(now: Timestamp, jobs: &[(Job, JobState)]) -> MemoryStore {
        let mut store = MemoryStore {
            now,
            sessions: BTreeMap::new(),
            jobs: BTreeMap::new(),
            feed: BTreeMap::new(),
            n_changes: 0,
            open_runs: BTreeMap::new(),
            counters: BTreeMap::new(),
        };
        for (job, state) in jobs {
            store.write(JobRow {
                job: Arc::new(job.clone()),
                state: JobState { owner: None, ..state.clone() },
                revision: Revision(1),
                version: Version(0),
                fence: Fence(0),
                n_open: 0,
                is_deleted: false,
            });
        }
        store
    }

    pub(crate) fn set_now(&mut self, now: Timestamp) {
        self.now = now;
    }

    pub(crate) fn job(&self, key: &JobKey) -> Option<&JobRow> {
        self.jobs.get(key).map(|it| &it.row)
    }

    pub(crate) fn join(&mut self, spec: &SessionSpec) {
        let row = SessionRow { spec: spec.clone(), beat: 0, is_dead: false, is_draining: false };
        self.sessions.insert(spec.id, row);
    }

    /// Gives the open runs of earlier lives to a session that has joined, and returns all that it has.
    pub(crate) fn adopt(&mut self, me: &SessionSpec, lives: Lives) -> Vec<RunRow> {
        let is_earlier_life = |it: &SessionSpec| {
            let is_over = match lives {
                Lives::OfThisBoot => (&it.node, it.boot_id) == (&me.node, me.boot_id),
                Lives::OfAllNodes => true,
            };
            it.id != me.id && is_over
        };
        for (earlier, _) in self.sessions.extract_if(.., |_, it| is_earlier_life(&it.spec)) {
            for run in self.open_runs.values_mut().filter(|run| run.session == earlier) {
                run.session = me.id;
            }
        }
        self.open_runs_of(me.id)
    }

    pub(crate) fn beat(&mut self, me: SessionId) -> Beat {
        let Some(session) = self.sessions.get_mut(&me) else { return Beat::Dead };
        session.beat += 1;
        let runs = self.open_runs_of(me);
        Beat::Alive { epoch: EPOCH, is_open: true, now: self.now, is_draining: false, runs }
    }

    pub(crate) fn watch(&self, most_runs: usize) -> Watch {
        let orphans = self.open_runs.values().filter(|run| !self.sessions.contains_key(&run.session));
        Watch {
            epoch: EPOCH,
            is_open: true,
            now: self.now,
            sessions: self.sessions.values().cloned().collect(),
            orphans: orphans.take(most_runs).cloned().collect(),
        }
    }

    pub(crate) fn fence(&mut self, silent: &[Silent]) -> Vec<Fencing> {
        let fence_one = |it: &Silent| {
            if self.sessions.get(&it.session).is_none_or(|session| session.beat != it.beat) {
                return Fencing::NotAsSeen;
            }
            self.sessions.remove(&it.session);
            Fencing::Fenced
        };
        silent.iter().map(fence_one).collect()
    }

    pub(crate) fn changes(&self, since: Option<Cursor>, most: usize) -> Changes {
        let from = since.map_or(0, |it| it.position);
        let mut later = self.feed.range(from + 1..);
        let page: Vec<(&u64, &JobKey)> = later.by_ref().take(most).collect();
        let position = page.last().map_or(from, |(position, _)| **position);
        let rows = page.iter().filter_map(|(_, key)| Some(self.job(key)?.news())).collect();
        Changes::Rows { rows, next: Cursor { epoch: EPOCH, position }, is_last: later.next().is_none() }
    }

    pub(crate) fn claim(&mut self, me: SessionId, claims: &[Claim]) -> Claims {
        let Some(spec) = self.sessions.get(&me).map(|it| it.spec.clone()) else {
            return Claims::SessionDead;
        };
        Claims::Answered(claims.iter().map(|claim| self.claim_one(&spec, claim)).collect())
    }

    pub(crate) fn settle(&mut self, me: SessionId, settles: &[Settle]) -> Vec<SettleAnswer> {
        if !self.sessions.contains_key(&me) {
            return vec![SettleAnswer::Refused; settles.len()];
        }
        let settle_one = |settle: &Settle| {
            let Some(row) = self.job(&settle.key).cloned() else { return SettleAnswer::Gone };
            if row.version != settle.seen {
                return SettleAnswer::Stale(row);
            }
            SettleAnswer::Settled(self.write_state(row, &settle.state))
        };
        settles.iter().map(settle_one).collect()
    }

    pub(crate) fn end(&mut self, ends: &[End]) -> Vec<EndAnswer> {
        ends.iter().map(|end| self.end_one(end)).collect()
    }

    fn open_runs_of(&self, session: SessionId) -> Vec<RunRow> {
        self.open_runs.values().filter(|run| run.session == session).cloned().collect()
    }

    fn claim_one(&mut self, me: &SessionSpec, Claim { run, bid }: &Claim) -> ClaimAnswer {
        let Some(row) = self.job(&bid.key).cloned() else { return ClaimAnswer::Gone };
        if row.version != bid.seen || bid.max_open <= row.n_open {
            return ClaimAnswer::Lost(row);
        }
        if self.now < bid.not_before {
            return ClaimAnswer::NotYet { until: bid.not_before, now: self.now };
        }
        for take in &bid.takes {
            let counter = self.counters.entry(take.counter.clone()).or_default();
            if let Err(until) = counter.check(&take.limit, self.now) {
                return ClaimAnswer::Limited { by: take.counter.clone(), until };
            }
        }
        ClaimAnswer::Granted(self.grant(me, *run, bid, row))
    }

    fn grant(&mut self, me: &SessionSpec, run: RunId, bid: &Bid, mut row: JobRow) -> JobRow {
        row.fence = Fence((row.fence.0 + 1).max(EPOCH.0 << 32));
        row.n_open += 1;
        let owner = Owner { node: me.node.clone(), name: me.name.clone(), tag: run, started_at: self.now };
        row.state = JobState { owner: Some(Box::new(owner)), ..bid.state.clone() };
        let takes: Vec<CounterKey> = bid.takes.iter().map(|take| take.counter.clone()).collect();
        for counter in &takes {
            self.counters.entry(counter.clone()).or_default().take(self.now);
        }
        let opened = RunRow {
            run,
            key: bid.key.clone(),
            due: bid.due.clone(),
            session: me.id,
            fence: row.fence,
            phase: RunPhase::Claimed,
            claimed_at: self.now,
            started_at: None,
            ended: None,
            report: None,
            late: None,
            is_cancel_asked: false,
            takes,
        };
        self.open_runs.insert(run, opened);
        self.write(row)
    }

    fn end_one(&mut self, end: &End) -> EndAnswer {
        let may_end = |run: &&RunRow| match end.by {
            EndBy::Owner(_) | EndBy::Unstarted => run.session == end.me,
            EndBy::Release { .. } => true,
        };
        let run = self.open_runs.get(&end.run).filter(|run| run.fence == end.fence && run.key == end.key);
        let Some(run) = run.filter(may_end) else { return EndAnswer::Late };
        if let EndBy::Release { dead, .. } = end.by
            && (run.session != dead || self.sessions.contains_key(&dead))
        {
            return EndAnswer::Refused;
        }
        let Some(mut row) = self.job(&end.key).cloned() else {
            unreachable!("a job with an open run has a row")
        };
        if row.version != end.seen {
            return EndAnswer::Stale(row);
        }
        let closed = self.open_runs.remove(&end.run);
        for counter in closed.iter().flat_map(|run| &run.takes) {
            self.counters.entry(counter.clone()).or_default().release();
        }
        row.n_open -= 1;
        if matches!(end.by, EndBy::Release { .. }) {
            row.fence.0 += 1;
        }
        if row.n_open == 0 {
            row.state.owner = None;
        }
        EndAnswer::Ended(self.write_state(row, &end.state))
    }

    /// Writes a new memory; the owner stays as it is.
    fn write_state(&mut self, mut row: JobRow, state: &JobState) -> JobRow {
        row.state = JobState { owner: row.state.owner.take(), ..state.clone() };
        self.write(row)
    }

    /// Every change of a row goes through here: its version grows, and the feed shows it.
    fn write(&mut self, mut row: JobRow) -> JobRow {
        row.version = row.version.next(EPOCH);
        self.n_changes += 1;
        let (key, position) = (row.job.key.clone(), self.n_changes);
        let before = self.jobs.insert(key.clone(), StoredJob { row: row.clone(), position });
        if let Some(before) = before {
            self.feed.remove(&before.position);
        }
        self.feed.insert(position, key);
        row
    }
}
