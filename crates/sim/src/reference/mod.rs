//! The store as plain maps: the contract of [`evenbeat_core::store`], short enough to be read as its
//! specification. Whatever a real database does differently is a fault of the one or of the other.
//!
//! A real database has a clock of its own and fails over on its own; here both are done from outside.
//! A failover that loses commits is an older clone, put back, that then [fails over](ReferenceStore::fail_over).

mod duties;
mod runs;
mod views;
mod weakness;

use std::collections::BTreeMap;

use evenbeat_core::ids::{Fence, JobKey, RunId, SessionId};
use evenbeat_core::lease::{Epoch, Timings};
use evenbeat_core::occurrence::Record;
use evenbeat_core::store::{
    AuditEntry, CounterKey, CounterRow, IDEMPOTENCY_KEPT_FOR, JobRow, OutboxRow, PLAN_LIFE, PlanId, PlanRow,
    PutAnswer, PutJob, RecordRow, Revision, RunRequest, RunRow, Seen, SessionRow, Version,
};
use evenbeat_core::time::Timestamp;

pub use weakness::Weakness;

/// A store in memory.
#[derive(Clone, Debug)]
pub struct ReferenceStore {
    weakness: Option<Weakness>,
    now: Timestamp,
    epoch: Epoch,
    is_open: bool,
    timings: Option<Timings>,
    sessions: BTreeMap<SessionId, SessionRow>,
    /// When each session last beat, and the doubts about it: after which beat, and since when.
    beaten_at: BTreeMap<SessionId, Timestamp>,
    doubts: BTreeMap<SessionId, (u64, Timestamp)>,
    jobs: BTreeMap<JobKey, StampedRow>,
    /// Which job changed at which position; only its latest change.
    feed: BTreeMap<u64, JobKey>,
    n_changes: u64,
    /// A run moves from here to `over` once, and never back.
    open: BTreeMap<RunId, RunRow>,
    over: BTreeMap<RunId, RunRow>,
    counters: BTreeMap<CounterKey, Counter>,
    records: Vec<RecordRow>,
    outbox: Vec<OutboxRow>,
    /// Oldest first.
    plans: Vec<PlanRow>,
    audit: Vec<(Timestamp, AuditEntry)>,
    /// Requests for runs that can be recognised when they are repeated, and when they were made.
    requests: BTreeMap<(JobKey, u128), (RunRequest, Timestamp)>,
    /// Removed jobs as the last trim found them, and since when they have not changed.
    tombstones: BTreeMap<JobKey, (Version, Timestamp)>,
    /// The greatest fence and version of removed jobs whose rows are gone: a key that returns goes on from there.
    fence_floor: Fence,
    version_floor: Version,
}

#[derive(Clone, Debug)]
struct StampedRow {
    row: JobRow,
    /// Where in the feed its latest change stands.
    position: u64,
}

#[derive(Clone, Debug, Default)]
struct Counter {
    n_open: u32,
    last_claim_at: Option<Timestamp>,
    /// The claims of the last hour, oldest first.
    claimed_at: Vec<Timestamp>,
}

impl Counter {
    fn row(&self, counter: &CounterKey) -> CounterRow {
        CounterRow { counter: counter.clone(), n_open: self.n_open, last_claim_at: self.last_claim_at }
    }
}

impl ReferenceStore {
    /// An empty store whose first epoch is open.
    pub fn new(now: Timestamp) -> ReferenceStore {
        ReferenceStore {
            weakness: None,
            now,
            epoch: Epoch(1),
            is_open: true,
            timings: None,
            sessions: BTreeMap::new(),
            beaten_at: BTreeMap::new(),
            doubts: BTreeMap::new(),
            jobs: BTreeMap::new(),
            feed: BTreeMap::new(),
            n_changes: 0,
            open: BTreeMap::new(),
            over: BTreeMap::new(),
            counters: BTreeMap::new(),
            records: Vec::new(),
            outbox: Vec::new(),
            plans: Vec::new(),
            audit: Vec::new(),
            requests: BTreeMap::new(),
            tombstones: BTreeMap::new(),
            fence_floor: Fence(0),
            version_floor: Version(0),
        }
    }

    /// The same without one of its rules: what only checks that nothing goes wrong must see this go wrong.
    #[must_use]
    pub fn weakened(self, weakness: Weakness) -> ReferenceStore {
        ReferenceStore { weakness: Some(weakness), ..self }
    }

    /// Sets its clock.
    pub fn set_now(&mut self, now: Timestamp) {
        self.now = now;
    }

    /// The current epoch: what a failover must at least exceed, whatever commits it loses.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// A session, dead or not.
    pub fn session(&self, session: SessionId) -> Option<&SessionRow> {
        self.sessions.get(&session)
    }

    /// Whose a run is, while it is open.
    pub fn owner_of(&self, run: RunId) -> Option<SessionId> {
        self.open.get(&run).map(|it| it.session)
    }

    /// Another primary takes over: its epoch is a later one, at least this, and closed.
    pub fn fail_over(&mut self, at_least: Epoch) {
        self.epoch = at_least.max(Epoch(self.epoch.0 + 1));
        self.is_open = self.is(Weakness::EpochBornOpen);
    }

    fn is(&self, weakness: Weakness) -> bool {
        self.weakness == Some(weakness)
    }

    /// Whether claims, fencing and releases go through under this epoch.
    fn is_current_and_open(&self, epoch: Epoch) -> bool {
        self.epoch == epoch && self.is_open || self.is(Weakness::NoEpochCheck)
    }

    fn is_as_seen(&self, row: &JobRow, seen: Version) -> bool {
        row.version == seen || self.is(Weakness::NoCompareAndSet)
    }

    /// The session, if it is known and not dead.
    fn living(&mut self, session: SessionId) -> Option<&mut SessionRow> {
        self.sessions.get_mut(&session).filter(|it| !it.is_dead)
    }

    fn is_dead(&self, session: SessionId) -> bool {
        self.sessions.get(&session).is_some_and(|it| it.is_dead)
    }

    fn row(&self, key: &JobKey) -> Option<JobRow> {
        self.jobs.get(key).map(|it| it.row.clone())
    }

    /// Every change of a row goes through here: its version grows, and the feed shows it.
    fn write(&mut self, mut row: JobRow, records: &[Record]) -> JobRow {
        row.version = if self.is(Weakness::VersionsRepeat) {
            Version(row.version.0 + 1)
        } else {
            row.version.next(self.epoch)
        };
        self.n_changes += 1;
        let (key, position) = (row.job.key.clone(), self.n_changes);
        let before = self.jobs.insert(key.clone(), StampedRow { row: row.clone(), position });
        if let Some(before) = before {
            self.feed.remove(&before.position);
        }
        self.feed.insert(position, key.clone());
        let recorded_at = self.now;
        self.records.extend(records.iter().map(|record| RecordRow {
            key: key.clone(),
            record: *record,
            recorded_at,
        }));
        row
    }

    /// A plan that can still be applied.
    fn live_plan(&self, id: PlanId) -> Option<&PlanRow> {
        self.plans.iter().find(|it| it.id == id && self.now < it.made_at + PLAN_LIFE)
    }

    fn put_job(&mut self, put: &PutJob) -> PutAnswer {
        if let Some(earlier) = self.earlier_request(put) {
            return PutAnswer::Repeated(earlier);
        }
        let before = self.row(&put.job.key);
        match (&before, put.seen) {
            (None, Seen::Version(_)) => return PutAnswer::Gone,
            (Some(row), Seen::Version(seen)) if !self.is_as_seen(row, seen) => {
                return PutAnswer::Stale(row.clone());
            }
            (Some(row), Seen::Nothing) if !row.is_deleted => return PutAnswer::Stale(row.clone()),
            _ => {}
        }
        let is_born = before.as_ref().is_none_or(|row| row.is_deleted);
        let mut row = before.unwrap_or_else(|| JobRow {
            job: put.job.clone(),
            state: put.state.clone(),
            revision: Revision(0),
            version: self.version_floor,
            fence: self.fence_floor,
            n_open: 0,
            is_deleted: false,
        });
        if row.is_deleted && self.is(Weakness::TombstoneForgetsFence) {
            row.fence = Fence(0);
        }
        row.job = put.job.clone();
        // Whose the job is, runs decide, not people.
        let owner = row.state.owner.take().filter(|_| 0 < row.n_open);
        row.state = put.state.clone();
        row.state.owner = owner;
        row.revision.0 += u64::from(put.is_revision || is_born);
        row.is_deleted = put.is_deleted;
        self.audit.extend(put.audit.clone().map(|it| (self.now, it)));
        if let Some(request) = put.request
            && let Some(idempotency) = request.idempotency
        {
            self.requests.insert((put.job.key.clone(), idempotency.key), (request, self.now));
        }
        PutAnswer::Put(self.write(row, &put.records))
    }

    /// The request that this one repeats.
    fn earlier_request(&self, put: &PutJob) -> Option<RunRequest> {
        let key = put.request?.idempotency?.key;
        let (request, requested_at) = self.requests.get(&(put.job.key.clone(), key))?;
        (self.now < *requested_at + IDEMPOTENCY_KEPT_FOR).then_some(*request)
    }
}
