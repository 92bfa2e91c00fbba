//! A blocking version of the store, for tests and tools.

use std::sync::Arc;

use evenbeat_core::ids::{Fence, JobKey, RunId, SessionId};
use evenbeat_core::lease::{Epoch, Silent, Timings};
use evenbeat_core::store::{
    ApplyPlan, AuditEntry, Beat, Cancelled, Changes, Claim, Claims, CounterRow, Cursor, End, EndAnswer,
    Fencing, JobRow, Joined, Lives, Mark, NewPlan, OutboxRow, OwnerPing, PlanAnswer, PlanId, PlanRow,
    PutAnswer, PutJob, RecordRow, Retention, RunFilter, RunRow, SessionRow, SessionSpec, Settle,
    SettleAnswer, Store, StoreDown, Trimmed, Views, Watch, WorkerStart,
};
use evenbeat_core::time::Timestamp;
use tokio::runtime::Runtime;

use super::PgStore;

/// A store whose calls block. Must not be used inside a runtime.
#[derive(Clone, Debug)]
pub struct BlockingStore {
    /// The store.
    pub store: PgStore,
    /// The runtime of its connections.
    pub runtime: Arc<Runtime>,
}

macro_rules! duties {
    ($($name:ident($($arg:ident: $type:ty),*) -> $answer:ty;)*) => {$(
        fn $name(&mut self, $($arg: $type),*) -> Result<$answer, StoreDown> {
            self.runtime.block_on(self.store.$name($($arg),*))
        }
    )*};
}

macro_rules! looks {
    ($($name:ident($($arg:ident: $type:ty),*) -> $answer:ty;)*) => {$(
        fn $name(&self, $($arg: $type),*) -> Result<$answer, StoreDown> {
            self.runtime.block_on(self.store.$name($($arg),*))
        }
    )*};
}

impl Store for BlockingStore {
    duties! {
        join(session: &SessionSpec, timings: &Timings) -> Joined;
        adopt(me: SessionId, lives: Lives) -> Vec<RunRow>;
        beat(me: SessionId) -> Beat;
        drain(session: SessionId, is_draining: bool) -> bool;
        leave(me: SessionId) -> bool;
        watch(most_runs: usize) -> Watch;
        doubt(silent: &[Silent]) -> ();
        fence(epoch: Epoch, silent: &[Silent]) -> Vec<Fencing>;
        open_epoch(epoch: Epoch) -> bool;
        claim(me: SessionId, epoch: Epoch, claims: &[Claim]) -> Claims;
        mark(marks: &[Mark]) -> Vec<bool>;
        end(epoch: Epoch, ends: &[End]) -> Vec<EndAnswer>;
        settle(me: SessionId, epoch: Epoch, settles: &[Settle]) -> Vec<SettleAnswer>;
        start_on_worker(run: RunId, fence: Fence, worker: &SessionSpec) -> WorkerStart;
        put_jobs(puts: &[PutJob]) -> Vec<PutAnswer>;
        put_plan(plan: &NewPlan) -> ();
        apply_plan(plan: &ApplyPlan) -> PlanAnswer;
        cancel(runs: &[RunId]) -> Vec<Cancelled>;
        changes(since: Option<Cursor>, most: usize) -> Changes;
        recount() -> Vec<CounterRow>;
        outbox(most: usize) -> Vec<OutboxRow>;
        published(runs: &[(RunId, Fence)]) -> ();
        trim(retention: &Retention) -> Trimmed;
    }
}

impl Views for BlockingStore {
    looks! {
        job(key: &JobKey) -> Option<JobRow>;
        jobs(after: Option<&JobKey>, most: usize) -> Vec<JobRow>;
        runs(filter: &RunFilter, before: Option<RunId>, most: usize) -> Vec<RunRow>;
        records(key: &JobKey, before: Option<Timestamp>, most: usize) -> Vec<RecordRow>;
        sessions() -> Vec<SessionRow>;
        owner_pings(runs: &[RunId]) -> Vec<OwnerPing>;
        counters() -> Vec<CounterRow>;
        plan(id: PlanId) -> Option<PlanRow>;
        audit(most: usize) -> Vec<AuditEntry>;
    }
}
