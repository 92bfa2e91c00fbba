//! The writer's transaction as a request sees it.

use evenbeat_core::ids::{Fence, RunId, SessionId};
use evenbeat_core::lease::{Epoch, Silent, Timings};
use evenbeat_core::occurrence::Record;
use evenbeat_core::store::{
    ApplyPlan, Beat, Cancelled, Changes, Claim, Claims, CounterRow, Cursor, End, EndAnswer, Fencing, JobRow,
    Joined, Lives, Mark, NewPlan, OutboxRow, PlanAnswer, PutAnswer, PutJob, Retention, RunRow, SessionSpec,
    Settle, SettleAnswer, Store, StoreDown, Trimmed, Watch, WorkerStart,
};
use evenbeat_core::time::Timestamp;
use rusqlite::{Connection, Params, Result, params};

use super::context::StoreContext;
use super::errors::{self, ErrorScope};
use super::read_tx::ReadTx;
use super::rows::Id;
use crate::store::columns::{MemoryColumns, stored_number};
use crate::store::keyword::Keyword;

/// The store as a request sees it. If a request fails, everything that it wrote is undone.
pub struct WriteTx<'c> {
    pub(super) read: ReadTx<'c>,
    /// One instant for the whole request.
    pub(super) now: Timestamp,
    /// The position of the next change. It never decreases, so that no reader misses one after a lost transaction.
    next_position: i64,
    n_changes: usize,
    /// The current epoch, once the request has read it.
    epoch: Option<Epoch>,
    file_error: Option<String>,
    failure: Option<StoreDown>,
}

impl std::fmt::Debug for WriteTx<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WriteTx").field("read", &self.read).field("now", &self.now).finish_non_exhaustive()
    }
}

impl<'c> WriteTx<'c> {
    pub(super) fn new(conn: &'c Connection, context: &'c StoreContext) -> Result<WriteTx<'c>> {
        let read = ReadTx { conn, context };
        let next_position = read.last_position()? + 1;
        Ok(WriteTx {
            read,
            now: context.now(),
            next_position,
            n_changes: 0,
            epoch: None,
            file_error: None,
            failure: None,
        })
    }

    /// Starts a new request.
    pub(super) fn begin(&mut self) {
        self.now = self.read.context.now();
        self.epoch = None;
        self.failure = None;
    }

    /// The current epoch.
    fn epoch(&mut self) -> Result<Epoch> {
        if let Some(epoch) = self.epoch {
            return Ok(epoch);
        }
        let (epoch, _) = self.read.find_epoch()?;
        self.epoch = Some(epoch);
        Ok(epoch)
    }

    /// Notes that a new epoch has begun.
    pub(super) fn set_epoch(&mut self, epoch: Epoch) {
        self.epoch = Some(epoch);
    }

    /// The error of the last duty of the request that failed.
    pub(super) fn take_failure(&mut self) -> Option<StoreDown> {
        self.failure.take()
    }

    /// The last error of the file since the previous call.
    pub(super) fn take_file_error(&mut self) -> Option<String> {
        self.file_error.take()
    }

    /// The number of changes since the previous call.
    pub(super) fn take_n_changes(&mut self) -> usize {
        std::mem::take(&mut self.n_changes)
    }

    /// Turns an error into one for the caller, and remembers it for the writer.
    pub(super) fn or_down<T>(&mut self, answer: Result<T>) -> Result<T, StoreDown> {
        answer.map_err(|error| {
            let down = self.read.down(&error);
            if errors::scope(&error) == ErrorScope::File {
                self.file_error = Some(down.0.clone());
            }
            self.failure = Some(down.clone());
            down
        })
    }

    pub(super) fn run(&self, sql: &'static str, params: impl Params) -> Result<usize> {
        self.read.prepared(sql)?.execute(params)
    }

    /// Every change of a job goes through here: it raises the version, and writes the feed and the records.
    pub(super) fn write(
        &mut self,
        id: i64,
        row: &mut JobRow,
        records: &[Record],
        how: MemoryWrite,
    ) -> Result<()> {
        row.version = row.version.next(self.epoch()?);
        self.write_memory(id, row, how)?;
        self.run(
            "INSERT INTO change (position, job_id, changed_at) VALUES (?1, ?2, ?3)",
            params![self.next_position, id, self.now.as_millis()],
        )?;
        self.next_position += 1;
        self.n_changes += 1;
        for record in records {
            self.run(
                "INSERT INTO record (job_id, what, reason, first_due_at, last_due_at, n, recorded_at)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                params![
                    id,
                    record.what.what(),
                    record.what.reason(),
                    record.range.first.as_millis(),
                    record.range.last.as_millis(),
                    stored_number(record.range.count),
                    self.now.as_millis(),
                ],
            )?;
        }
        Ok(())
    }

    fn write_memory(&self, id: i64, row: &JobRow, how: MemoryWrite) -> Result<()> {
        let sql = match how {
            MemoryWrite::Insert => {
                "INSERT INTO memory VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17,
                 ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31)"
            }
            MemoryWrite::Update => {
                "UPDATE memory SET version = ?2, fence = ?3, n_open = ?4, created_at = ?5, placed_at = ?6,
                 anchor_at = ?7, choices = ?8, next_run_at = ?9, settled_until = ?10, last_start_at = ?11,
                 last_end_at = ?12, last_good_start_at = ?13, last_good_end_at = ?14, last_exit_code = ?15,
                 failure_count = ?16, attempt = ?17, losses = ?18, attempt_outcome = ?19, last_outcome = ?20,
                 n_served = ?21, estimate_mean = ?22, estimate_variance = ?23, estimate_samples = ?24, extras = ?25,
                 paused_by = ?26, pause_reason = ?27, owner_run = ?28, owner_node = ?29, owner_name = ?30,
                 owned_since = ?31 WHERE job_id = ?1"
            }
        };
        let it = MemoryColumns::of(&row.state);
        self.run(
            sql,
            params![
                id,
                stored_number(row.version.0),
                stored_number(row.fence.0),
                row.n_open,
                it.created_at,
                it.placed_at,
                it.anchor_at,
                it.choices,
                it.next_run_at,
                it.settled_until,
                it.last_start_at,
                it.last_end_at,
                it.last_good_start_at,
                it.last_good_end_at,
                it.last_exit_code,
                it.failure_count,
                it.attempt,
                it.losses,
                it.attempt_outcome.map(Keyword::keyword),
                it.last_outcome.map(Keyword::keyword),
                it.n_served,
                it.estimate_mean,
                it.estimate_variance,
                it.estimate_samples,
                it.extras,
                it.paused_by.map(Keyword::keyword),
                it.pause_reason,
                it.owner_run.map(Id::of),
                it.owner_node,
                it.owner_name,
                it.owned_since,
            ],
        )?;
        Ok(())
    }

    pub(super) fn is_current_and_open(&self, epoch: Epoch) -> Result<bool> {
        Ok(self.read.find_epoch()? == (epoch, true))
    }

    pub(super) fn is_living(&self, session: SessionId) -> Result<bool> {
        Ok(self.read.is_dead(session)? == Some(false))
    }
}

/// How the state of a job is written.
#[derive(Clone, Copy)]
pub(super) enum MemoryWrite {
    Insert,
    Update,
}

impl Store for WriteTx<'_> {
    fn join(&mut self, session: &SessionSpec, timings: &Timings) -> Result<Joined, StoreDown> {
        let answer = self.do_join(session, timings);
        self.or_down(answer)
    }

    fn adopt(&mut self, me: SessionId, lives: Lives) -> Result<Vec<RunRow>, StoreDown> {
        let answer = self.do_adopt(me, lives);
        self.or_down(answer)
    }

    fn beat(&mut self, me: SessionId) -> Result<Beat, StoreDown> {
        let answer = self.do_beat(me);
        self.or_down(answer)
    }

    fn drain(&mut self, session: SessionId, is_draining: bool) -> Result<bool, StoreDown> {
        let answer = self.do_drain(session, is_draining);
        self.or_down(answer)
    }

    fn leave(&mut self, me: SessionId) -> Result<bool, StoreDown> {
        let answer = self.do_leave(me);
        self.or_down(answer)
    }

    fn watch(&mut self, most_runs: usize) -> Result<Watch, StoreDown> {
        let answer = self.read.find_watch(self.now, most_runs);
        self.or_down(answer)
    }

    fn fence(&mut self, epoch: Epoch, silent: &[Silent]) -> Result<Vec<Fencing>, StoreDown> {
        let answer = self.do_fence(epoch, silent);
        self.or_down(answer)
    }

    fn doubt(&mut self, silent: &[Silent]) -> Result<(), StoreDown> {
        let answer = silent.iter().try_for_each(|it| self.do_doubt(it));
        self.or_down(answer)
    }

    fn open_epoch(&mut self, epoch: Epoch) -> Result<bool, StoreDown> {
        let answer = self.do_open_epoch(epoch);
        self.or_down(answer)
    }

    fn claim(&mut self, me: SessionId, epoch: Epoch, claims: &[Claim]) -> Result<Claims, StoreDown> {
        let answer = self.do_claim(me, epoch, claims);
        self.or_down(answer)
    }

    fn mark(&mut self, marks: &[Mark]) -> Result<Vec<bool>, StoreDown> {
        let answer = marks.iter().map(|mark| self.do_mark(mark)).collect();
        self.or_down(answer)
    }

    fn end(&mut self, epoch: Epoch, ends: &[End]) -> Result<Vec<EndAnswer>, StoreDown> {
        let answer = self.do_end(epoch, ends);
        self.or_down(answer)
    }

    fn settle(
        &mut self,
        me: SessionId,
        epoch: Epoch,
        settles: &[Settle],
    ) -> Result<Vec<SettleAnswer>, StoreDown> {
        let answer = self.do_settle(me, epoch, settles);
        self.or_down(answer)
    }

    fn start_on_worker(
        &mut self,
        run: RunId,
        fence: Fence,
        worker: &SessionSpec,
    ) -> Result<WorkerStart, StoreDown> {
        let answer = self.do_start_on_worker(run, fence, worker);
        self.or_down(answer)
    }

    fn put_jobs(&mut self, puts: &[PutJob]) -> Result<Vec<PutAnswer>, StoreDown> {
        let answer = puts.iter().map(|put| self.do_put_job(put)).collect();
        self.or_down(answer)
    }

    fn put_plan(&mut self, plan: &NewPlan) -> Result<(), StoreDown> {
        let answer = self.do_put_plan(plan);
        self.or_down(answer)
    }

    fn apply_plan(&mut self, plan: &ApplyPlan) -> Result<PlanAnswer, StoreDown> {
        let answer = self.do_apply_plan(plan);
        self.or_down(answer)
    }

    fn cancel(&mut self, runs: &[RunId]) -> Result<Vec<Cancelled>, StoreDown> {
        let answer = runs.iter().map(|run| self.do_cancel(*run)).collect();
        self.or_down(answer)
    }

    fn changes(&mut self, since: Option<Cursor>, most: usize) -> Result<Changes, StoreDown> {
        let answer = self.read.find_changes(since, most);
        self.or_down(answer)
    }

    fn recount(&mut self) -> Result<Vec<CounterRow>, StoreDown> {
        let answer = self.do_recount();
        self.or_down(answer)
    }

    fn outbox(&mut self, most: usize) -> Result<Vec<OutboxRow>, StoreDown> {
        let answer = self.read.find_outbox(most);
        self.or_down(answer)
    }

    fn published(&mut self, runs: &[(RunId, Fence)]) -> Result<(), StoreDown> {
        let answer = runs.iter().try_for_each(|(run, fence)| self.do_published(*run, *fence));
        self.or_down(answer)
    }

    fn trim(&mut self, retention: &Retention) -> Result<Trimmed, StoreDown> {
        let answer = self.do_trim(retention);
        self.or_down(answer)
    }
}
