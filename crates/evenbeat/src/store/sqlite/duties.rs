//! The duties of the contract as blocking calls, for tests and the command line.

use evenbeat_core::ids::{Fence, RunId, SessionId};
use evenbeat_core::lease::{Epoch, Silent, Timings};
use evenbeat_core::store::{
    ApplyPlan, Beat, Cancelled, Changes, Claim, Claims, CounterRow, Cursor, End, EndAnswer, Fencing, Joined,
    Lives, Mark, NewPlan, OutboxRow, PlanAnswer, PutAnswer, PutJob, Retention, RunRow, SessionSpec, Settle,
    SettleAnswer, Store, StoreDown, Trimmed, Watch, WorkerStart,
};

use super::SqliteStore;

impl Store for SqliteStore {
    fn join(&mut self, session: &SessionSpec, timings: &Timings) -> Result<Joined, StoreDown> {
        let (session, timings) = (session.clone(), *timings);
        self.ask_and_wait(move |tx| tx.join(&session, &timings))
    }

    fn adopt(&mut self, me: SessionId, lives: Lives) -> Result<Vec<RunRow>, StoreDown> {
        self.ask_and_wait(move |tx| tx.adopt(me, lives))
    }

    fn beat(&mut self, me: SessionId) -> Result<Beat, StoreDown> {
        self.ask_and_wait(move |tx| tx.beat(me))
    }

    fn drain(&mut self, session: SessionId, is_draining: bool) -> Result<bool, StoreDown> {
        self.ask_and_wait(move |tx| tx.drain(session, is_draining))
    }

    fn leave(&mut self, me: SessionId) -> Result<bool, StoreDown> {
        self.ask_and_wait(move |tx| tx.leave(me))
    }

    fn watch(&mut self, most_runs: usize) -> Result<Watch, StoreDown> {
        self.look(|tx| tx.watch(most_runs))
    }

    fn fence(&mut self, epoch: Epoch, silent: &[Silent]) -> Result<Vec<Fencing>, StoreDown> {
        let silent = silent.to_vec();
        self.ask_and_wait(move |tx| tx.fence(epoch, &silent))
    }

    fn doubt(&mut self, silent: &[Silent]) -> Result<(), StoreDown> {
        let silent = silent.to_vec();
        self.ask_and_wait(move |tx| tx.doubt(&silent))
    }

    fn open_epoch(&mut self, epoch: Epoch) -> Result<bool, StoreDown> {
        self.ask_and_wait(move |tx| tx.open_epoch(epoch))
    }

    fn claim(&mut self, me: SessionId, epoch: Epoch, claims: &[Claim]) -> Result<Claims, StoreDown> {
        let claims = claims.to_vec();
        self.ask_and_wait(move |tx| tx.claim(me, epoch, &claims))
    }

    fn mark(&mut self, marks: &[Mark]) -> Result<Vec<bool>, StoreDown> {
        let marks = marks.to_vec();
        self.ask_and_wait(move |tx| tx.mark(&marks))
    }

    fn end(&mut self, epoch: Epoch, ends: &[End]) -> Result<Vec<EndAnswer>, StoreDown> {
        let ends = ends.to_vec();
        self.ask_and_wait(move |tx| tx.end(epoch, &ends))
    }

    fn settle(
        &mut self,
        me: SessionId,
        epoch: Epoch,
        settles: &[Settle],
    ) -> Result<Vec<SettleAnswer>, StoreDown> {
        let settles = settles.to_vec();
        self.ask_and_wait(move |tx| tx.settle(me, epoch, &settles))
    }

    fn start_on_worker(
        &mut self,
        run: RunId,
        fence: Fence,
        worker: &SessionSpec,
    ) -> Result<WorkerStart, StoreDown> {
        let worker = worker.clone();
        self.ask_and_wait(move |tx| tx.start_on_worker(run, fence, &worker))
    }

    fn put_jobs(&mut self, puts: &[PutJob]) -> Result<Vec<PutAnswer>, StoreDown> {
        let puts = puts.to_vec();
        self.ask_and_wait(move |tx| tx.put_jobs(&puts))
    }

    fn put_plan(&mut self, plan: &NewPlan) -> Result<(), StoreDown> {
        let plan = plan.clone();
        self.ask_and_wait(move |tx| tx.put_plan(&plan))
    }

    fn apply_plan(&mut self, plan: &ApplyPlan) -> Result<PlanAnswer, StoreDown> {
        let plan = plan.clone();
        self.ask_and_wait(move |tx| tx.apply_plan(&plan))
    }

    fn cancel(&mut self, runs: &[RunId]) -> Result<Vec<Cancelled>, StoreDown> {
        let runs = runs.to_vec();
        self.ask_and_wait(move |tx| tx.cancel(&runs))
    }

    fn changes(&mut self, since: Option<Cursor>, most: usize) -> Result<Changes, StoreDown> {
        self.look(|tx| tx.changes(since, most))
    }

    fn recount(&mut self) -> Result<Vec<CounterRow>, StoreDown> {
        self.ask_and_wait(|tx| tx.recount())
    }

    fn outbox(&mut self, most: usize) -> Result<Vec<OutboxRow>, StoreDown> {
        self.look(|tx| tx.outbox(most))
    }

    fn published(&mut self, runs: &[(RunId, Fence)]) -> Result<(), StoreDown> {
        let runs = runs.to_vec();
        self.ask_and_wait(move |tx| tx.published(&runs))
    }

    fn trim(&mut self, retention: &Retention) -> Result<Trimmed, StoreDown> {
        let retention = *retention;
        self.ask_and_wait(move |tx| tx.trim(&retention))
    }
}
