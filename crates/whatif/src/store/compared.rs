//! The store of a simulated fleet beside the reference store: both are asked, and must answer alike.

use std::fmt;
use std::sync::Arc;

use evenbeat_core::ids::{JobKey, SessionId};
use evenbeat_core::job::{Job, JobState};
use evenbeat_core::lease::{Silent, Timings};
use evenbeat_core::store::{
    Beat, Changes, Claim, Claims, Cursor, End, EndAnswer, Fencing, JobRow, Joined, Lives, PutJob, RunRow,
    Seen, SessionSpec, Settle, SettleAnswer, Store, StoreDown, Views, Watch,
};
use evenbeat_core::time::Timestamp;
use evenbeat_sim::reference::ReferenceStore;

use super::{EPOCH, MemoryStore};

pub(crate) struct ComparedStore {
    ours: MemoryStore,
    reference: ReferenceStore,
}

impl ComparedStore {
    pub(crate) fn new(now: Timestamp, jobs: &[(Job, JobState)]) -> ComparedStore {
        let mut reference = ReferenceStore::new(now);
        let put = |(job, state): &(Job, JobState)| PutJob {
            job: Arc::new(job.clone()),
            state: state.clone(),
            seen: Seen::Nothing,
            is_revision: true,
            is_deleted: false,
            records: Vec::new(),
            audit: None,
            request: None,
        };
        reference.put_jobs(&jobs.iter().map(put).collect::<Vec<_>>()).unwrap();
        ComparedStore { ours: MemoryStore::new(now, jobs), reference }
    }

    pub(crate) fn set_now(&mut self, now: Timestamp) {
        self.ours.set_now(now);
        self.reference.set_now(now);
    }

    pub(crate) fn job(&self, key: &JobKey) -> Option<&JobRow> {
        let ours = self.ours.job(key);
        alike(ours.cloned(), self.reference.job(key));
        ours
    }

    pub(crate) fn join(&mut self, spec: &SessionSpec) {
        let welcome = Joined::Welcome { epoch: EPOCH, is_open: true, now: self.ours.now };
        alike(welcome, self.reference.join(spec, &Timings::default()));
        self.ours.join(spec);
    }

    pub(crate) fn adopt(&mut self, me: &SessionSpec, lives: Lives) -> Vec<RunRow> {
        alike(self.ours.adopt(me, lives), self.reference.adopt(me.id, lives))
    }

    pub(crate) fn beat(&mut self, me: SessionId) -> Beat {
        alike(self.ours.beat(me), self.reference.beat(me))
    }

    pub(crate) fn watch(&mut self, most_runs: usize) -> Watch {
        alike(self.ours.watch(most_runs), self.reference.watch(most_runs))
    }

    pub(crate) fn fence(&mut self, silent: &[Silent]) -> Vec<Fencing> {
        alike(self.ours.fence(silent), self.reference.fence(EPOCH, silent))
    }

    pub(crate) fn changes(&mut self, since: Option<Cursor>, most: usize) -> Changes {
        alike(self.ours.changes(since, most), self.reference.changes(since, most))
    }

    pub(crate) fn claim(&mut self, me: SessionId, claims: &[Claim]) -> Claims {
        alike(self.ours.claim(me, claims), self.reference.claim(me, EPOCH, claims))
    }

    pub(crate) fn settle(&mut self, me: SessionId, settles: &[Settle]) -> Vec<SettleAnswer> {
        alike(self.ours.settle(me, settles), self.reference.settle(me, EPOCH, settles))
    }

    pub(crate) fn end(&mut self, ends: &[End]) -> Vec<EndAnswer> {
        alike(self.ours.end(ends), self.reference.end(EPOCH, ends))
    }
}

#[track_caller]
fn alike<T: PartialEq + fmt::Debug>(ours: T, reference: Result<T, StoreDown>) -> T {
    assert_eq!(ours, reference.unwrap(), "ours, and the reference store's");
    ours
}
