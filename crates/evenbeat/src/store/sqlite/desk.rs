//! Where a request is answered: inside the writer's transaction, all of it or nothing.

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

use super::reader::Reader;
use super::rows::Id;
use super::shared::Shared;
use super::trouble::{self, Trouble};
use crate::store::columns::{MemoryColumns, stored_number};
use crate::store::word::Word;

/// One desk: the store as a request sees it. What a request wrote before it failed is taken back.
pub struct Desk<'c> {
    pub(super) look: Reader<'c>,
    /// One instant for the whole request.
    pub(super) now: Timestamp,
    /// Of the next change. It never goes back, so that no reader misses what a lost transaction had in between.
    next_position: i64,
    n_changes: usize,
    /// The current one, once the request has asked for it.
    epoch: Option<Epoch>,
    trouble: Option<String>,
    failure: Option<StoreDown>,
}

impl std::fmt::Debug for Desk<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Desk").field("look", &self.look).field("now", &self.now).finish_non_exhaustive()
    }
}

impl<'c> Desk<'c> {
    pub(super) fn new(conn: &'c Connection, shared: &'c Shared) -> Result<Desk<'c>> {
        let look = Reader { conn, shared };
        let next_position = look.last_position()? + 1;
        Ok(Desk {
            look,
            now: shared.now(),
            next_position,
            n_changes: 0,
            epoch: None,
            trouble: None,
            failure: None,
        })
    }

    /// A new request begins.
    pub(super) fn begin(&mut self) {
        self.now = self.look.shared.now();
        self.epoch = None;
        self.failure = None;
    }

    /// The current epoch.
    fn epoch(&mut self) -> Result<Epoch> {
        if let Some(epoch) = self.epoch {
            return Ok(epoch);
        }
        let (epoch, _) = self.look.find_epoch()?;
        self.epoch = Some(epoch);
        Ok(epoch)
    }

    /// Another one begins.
    pub(super) fn set_epoch(&mut self, epoch: Epoch) {
        self.epoch = Some(epoch);
    }

    /// The last duty of the request that was not done.
    pub(super) fn take_failure(&mut self) -> Option<StoreDown> {
        self.failure.take()
    }

    /// What was wrong with the file since this was last asked.
    pub(super) fn take_trouble(&mut self) -> Option<String> {
        self.trouble.take()
    }

    /// How many changes were written since this was last asked.
    pub(super) fn take_n_changes(&mut self) -> usize {
        std::mem::take(&mut self.n_changes)
    }

    /// An answer for people, and a note for the writer.
    pub(super) fn tell<T>(&mut self, answer: Result<T>) -> Result<T, StoreDown> {
        answer.map_err(|error| {
            let down = self.look.down(&error);
            if trouble::trouble(&error) == Trouble::OfTheFile {
                self.trouble = Some(down.0.clone());
            }
            self.failure = Some(down.clone());
            down
        })
    }

    pub(super) fn run(&self, sql: &'static str, params: impl Params) -> Result<usize> {
        self.look.prepared(sql)?.execute(params)
    }

    /// Every change of a job goes through here: its version grows, the feed shows it, its records are kept.
    pub(super) fn write(&mut self, id: i64, row: &mut JobRow, records: &[Record], how: Write) -> Result<()> {
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

    fn write_memory(&self, id: i64, row: &JobRow, how: Write) -> Result<()> {
        let sql = match how {
            Write::Born => {
                "INSERT INTO memory VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17,
                 ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31)"
            }
            Write::Again => {
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
                it.attempt_outcome.map(Word::word),
                it.last_outcome.map(Word::word),
                it.n_served,
                it.estimate_mean,
                it.estimate_variance,
                it.estimate_samples,
                it.extras,
                it.paused_by.map(Word::word),
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
        Ok(self.look.find_epoch()? == (epoch, true))
    }

    pub(super) fn is_living(&self, session: SessionId) -> Result<bool> {
        Ok(self.look.is_dead(session)? == Some(false))
    }
}

/// Whether a memory is there already.
#[derive(Clone, Copy)]
pub(super) enum Write {
    Born,
    Again,
}

impl Store for Desk<'_> {
    fn join(&mut self, session: &SessionSpec, timings: &Timings) -> Result<Joined, StoreDown> {
        let answer = self.do_join(session, timings);
        self.tell(answer)
    }

    fn adopt(&mut self, me: SessionId, lives: Lives) -> Result<Vec<RunRow>, StoreDown> {
        let answer = self.do_adopt(me, lives);
        self.tell(answer)
    }

    fn beat(&mut self, me: SessionId) -> Result<Beat, StoreDown> {
        let answer = self.do_beat(me);
        self.tell(answer)
    }

    fn drain(&mut self, session: SessionId, is_draining: bool) -> Result<bool, StoreDown> {
        let answer = self.do_drain(session, is_draining);
        self.tell(answer)
    }

    fn leave(&mut self, me: SessionId) -> Result<bool, StoreDown> {
        let answer = self.do_leave(me);
        self.tell(answer)
    }

    fn watch(&mut self, most_runs: usize) -> Result<Watch, StoreDown> {
        let answer = self.look.find_watch(self.now, most_runs);
        self.tell(answer)
    }

    fn fence(&mut self, epoch: Epoch, silent: &[Silent]) -> Result<Vec<Fencing>, StoreDown> {
        let answer = self.do_fence(epoch, silent);
        self.tell(answer)
    }

    fn doubt(&mut self, silent: &[Silent]) -> Result<(), StoreDown> {
        let answer = silent.iter().try_for_each(|it| self.do_doubt(it));
        self.tell(answer)
    }

    fn open_epoch(&mut self, epoch: Epoch) -> Result<bool, StoreDown> {
        let answer = self.do_open_epoch(epoch);
        self.tell(answer)
    }

    fn claim(&mut self, me: SessionId, epoch: Epoch, claims: &[Claim]) -> Result<Claims, StoreDown> {
        let answer = self.do_claim(me, epoch, claims);
        self.tell(answer)
    }

    fn mark(&mut self, marks: &[Mark]) -> Result<Vec<bool>, StoreDown> {
        let answer = marks.iter().map(|mark| self.do_mark(mark)).collect();
        self.tell(answer)
    }

    fn end(&mut self, epoch: Epoch, ends: &[End]) -> Result<Vec<EndAnswer>, StoreDown> {
        let answer = self.do_end(epoch, ends);
        self.tell(answer)
    }

    fn settle(
        &mut self,
        me: SessionId,
        epoch: Epoch,
        settles: &[Settle],
    ) -> Result<Vec<SettleAnswer>, StoreDown> {
        let answer = self.do_settle(me, epoch, settles);
        self.tell(answer)
    }

    fn start_on_worker(
        &mut self,
        run: RunId,
        fence: Fence,
        worker: &SessionSpec,
    ) -> Result<WorkerStart, StoreDown> {
        let answer = self.do_start_on_worker(run, fence, worker);
        self.tell(answer)
    }

    fn put_jobs(&mut self, puts: &[PutJob]) -> Result<Vec<PutAnswer>, StoreDown> {
        let answer = puts.iter().map(|put| self.do_put_job(put)).collect();
        self.tell(answer)
    }

    fn put_plan(&mut self, plan: &NewPlan) -> Result<(), StoreDown> {
        let answer = self.do_put_plan(plan);
        self.tell(answer)
    }

    fn apply_plan(&mut self, plan: &ApplyPlan) -> Result<PlanAnswer, StoreDown> {
        let answer = self.do_apply_plan(plan);
        self.tell(answer)
    }

    fn cancel(&mut self, runs: &[RunId]) -> Result<Vec<Cancelled>, StoreDown> {
        let answer = runs.iter().map(|run| self.do_cancel(*run)).collect();
        self.tell(answer)
    }

    fn changes(&mut self, since: Option<Cursor>, most: usize) -> Result<Changes, StoreDown> {
        let answer = self.look.find_changes(since, most);
        self.tell(answer)
    }

    fn recount(&mut self) -> Result<Vec<CounterRow>, StoreDown> {
        let answer = self.do_recount();
        self.tell(answer)
    }

    fn outbox(&mut self, most: usize) -> Result<Vec<OutboxRow>, StoreDown> {
        let answer = self.look.find_outbox(most);
        self.tell(answer)
    }

    fn published(&mut self, runs: &[(RunId, Fence)]) -> Result<(), StoreDown> {
        let answer = runs.iter().try_for_each(|(run, fence)| self.do_published(*run, *fence));
        self.tell(answer)
    }

    fn trim(&mut self, retention: &Retention) -> Result<Trimmed, StoreDown> {
        let answer = self.do_trim(retention);
        self.tell(answer)
    }
}
