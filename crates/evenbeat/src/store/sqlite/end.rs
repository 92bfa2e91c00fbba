//! How runs start and end. The transaction that ends a run also frees its job and its counters.

use std::collections::{BTreeMap, BTreeSet};

use evenbeat_core::ids::{Fence, RunId, SessionId};
use evenbeat_core::job::RunEnd;
use evenbeat_core::lease::Epoch;
use evenbeat_core::run::Outcome;
use evenbeat_core::store::{
    Cancelled, CounterKey, End, EndAnswer, EndBy, JobRow, Mark, MarkKind, RunPhase, SessionKind, SessionSpec,
    StoreDown, WorkerStart,
};
use evenbeat_core::time::Timestamp;
use rusqlite::types::Value;
use rusqlite::{OptionalExtension, Result, ToSql, params, params_from_iter};

use super::read_tx::JobHead;
use super::rows::{self, Id};
use super::write_tx::{MemoryWrite, WriteTx};
use crate::store::columns::{number, report_to_text, stored_number, takes_from_text};
use crate::store::keyword::{Keyword, OpenPhase};

/// The part of an open run that its end needs.
struct OpenRunRow {
    job_id: i64,
    session: SessionId,
    fence: Fence,
    phase: OpenPhase,
    takes: Vec<CounterKey>,
    /// The columns from `due_at` to `takes`, as they are copied to the history.
    rest: Vec<Value>,
}

/// The number of columns from `due_at` to `takes`.
const N_REST: usize = 12;

/// The index of `started_at` among them.
const STARTED: usize = 9;

impl OpenRunRow {
    /// Applies a mark that was not written to the table.
    fn begin(&mut self, at: Timestamp) {
        self.phase = OpenPhase::Running;
        if let Some(started @ Value::Null) = self.rest.get_mut(STARTED) {
            *started = Value::Integer(at.as_millis());
        }
    }

    /// Limits the start to the end: the clock may have been set back in between.
    fn begin_by(&mut self, ended_at: Timestamp) {
        if let Some(Value::Integer(started)) = self.rest.get_mut(STARTED) {
            *started = (*started).min(ended_at.as_millis());
        }
    }
}

impl WriteTx<'_> {
    pub(super) fn do_mark(&mut self, mark: &Mark) -> Result<bool> {
        let MarkKind::Started(at) = mark.kind;
        let n_marked = self.run(
            "UPDATE open_run SET phase = ?3, started_at = ifnull(started_at, ?4) WHERE id = ?1 AND fence = ?2",
            params![
                Id::of(mark.run.0),
                stored_number(mark.fence.0),
                OpenPhase::Running.keyword(),
                at.as_millis()
            ],
        )?;
        Ok(n_marked == 1)
    }

    /// Records which runs had started, and ends runs.
    pub fn end_marked(
        &mut self,
        epoch: Epoch,
        marks: &[Mark],
        ends: &[End],
    ) -> Result<Vec<EndAnswer>, StoreDown> {
        let answer = self.do_end_marked(epoch, marks, ends);
        self.or_down(answer)
    }

    pub(super) fn do_end(&mut self, epoch: Epoch, ends: &[End]) -> Result<Vec<EndAnswer>> {
        self.do_end_marked(epoch, &[], ends)
    }

    /// The mark of a run that ends here is written with its end.
    fn do_end_marked(&mut self, epoch: Epoch, marks: &[Mark], ends: &[End]) -> Result<Vec<EndAnswer>> {
        let is_open = self.is_current_and_open(epoch)?;
        let ending: BTreeSet<(RunId, Fence)> = ends.iter().map(|end| (end.run, end.fence)).collect();
        let (of_ending, others): (Vec<&Mark>, _) =
            marks.iter().partition(|mark| ending.contains(&(mark.run, mark.fence)));
        for mark in others {
            self.do_mark(mark)?;
        }
        let marks: BTreeMap<(RunId, Fence), &Mark> =
            of_ending.into_iter().map(|mark| ((mark.run, mark.fence), mark)).collect();
        let end_one = |end: &End| {
            let mark = marks.get(&(end.run, end.fence));
            let answer = self.end_run(is_open, end, mark.map(|it| it.kind))?;
            if let (Some(mark), false) = (mark, matches!(answer, EndAnswer::Ended(_))) {
                self.do_mark(mark)?;
            }
            Ok(answer)
        };
        ends.iter().map(end_one).collect()
    }

    fn end_run(&mut self, is_open: bool, end: &End, mark: Option<MarkKind>) -> Result<EndAnswer> {
        let is_release = matches!(end.by, EndBy::Release { .. });
        let held = |run: &OpenRunRow| (is_release || run.session == end.me) && run.fence == end.fence;
        let mut open = self.open(end.run)?.filter(held);
        if let (Some(run), Some(MarkKind::Started(at))) = (&mut open, mark) {
            run.begin(at);
        }
        let job = match open {
            Some(_) => self.read.find_head(&end.key)?,
            None => None,
        };
        let (Some(mut run), Some(job)) = (open, job) else { return self.late(end) };
        if run.job_id != job.id {
            return self.late(end);
        }
        let is_allowed = match end.by {
            EndBy::Owner(_) => true,
            // A run that executes cannot be undone.
            EndBy::Unstarted => run.phase != OpenPhase::Running,
            EndBy::Release { dead, .. } => {
                is_open && run.session == dead && self.read.is_dead(dead)? == Some(true)
            }
        };
        if !is_allowed {
            return Ok(EndAnswer::Refused);
        }
        if job.version != end.seen {
            let job = self.read.find_job(&end.key)?;
            return Ok(job.map_or(EndAnswer::Late, |job| EndAnswer::Stale(job.row)));
        }
        self.close(end, &mut run)?;
        Ok(EndAnswer::Ended(self.free(end, job)?))
    }

    fn open(&self, run: RunId) -> Result<Option<OpenRunRow>> {
        let sql = "SELECT job_id, session_id, fence, phase, takes, due_at, attempt, \"trigger\", serves, extra_id, losses,
                   last_outcome, params, claimed_at, started_at, is_cancel_asked, takes FROM open_run WHERE id = ?1";
        let open = self.read.one(sql, [Id::of(run.0)], |row| {
            Ok(OpenRunRow {
                rest: (5..5 + N_REST).map(|idx| row.get(idx)).collect::<Result<_>>()?,
                job_id: row.get(0)?,
                session: SessionId(rows::id(row, 1)?),
                fence: Fence(number(row.get(2)?)),
                phase: rows::keyword(row, 3)?.unwrap_or(OpenPhase::Running),
                takes: row.get_ref(4)?.as_str_or_null()?.map(takes_from_text).unwrap_or_default(),
            })
        });
        open.optional()
    }

    /// The one place where a run leaves the open phases.
    fn close(&mut self, end: &End, run: &mut OpenRunRow) -> Result<()> {
        let id = Id::of(end.run.0);
        self.run("DELETE FROM outbox WHERE run_id = ?1", [id])?;
        for counter in &run.takes {
            self.free_counter(counter)?;
        }
        let ended = match end.by {
            EndBy::Unstarted => None,
            EndBy::Owner(end) => Some((end.outcome, end)),
            EndBy::Release { end, .. } => Some((Outcome::Lost, end)),
        };
        if let Some((outcome, RunEnd { started_at, ended_at, exit_code, frozen_for, .. })) = ended {
            run.begin_by(ended_at);
            // Not by `INSERT … SELECT`: that would open a statement journal for every run.
            let mut insert = self.read.prepared(
                "INSERT INTO run VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18,
                 ?19, ?20, NULL, NULL, ?21)",
            )?;
            let head: [&dyn ToSql; 5] =
                [&id, &run.job_id, &Id::of(run.session.0), &stored_number(run.fence.0), &outcome.keyword()];
            let report = report_to_text(end.report.as_deref());
            let tail: [&dyn ToSql; 4] = [&ended_at.as_millis(), &exit_code, &frozen_for.as_millis(), &report];
            let mut rest = run.rest.clone();
            // A run that ended has started, even if its start was not marked.
            if let Some(started @ Value::Null) = rest.get_mut(STARTED) {
                *started = Value::Integer(started_at.min(ended_at).as_millis());
            }
            let rest = rest.iter().map(|it| it as &dyn ToSql);
            insert.execute(params_from_iter(head.into_iter().chain(rest).chain(tail)))?;
        }
        self.run("DELETE FROM open_run WHERE id = ?1", [id])?;
        Ok(())
    }

    fn free(&mut self, end: &End, head: JobHead) -> Result<JobRow> {
        let id = head.id;
        let is_last = head.n_open <= 1;
        let others = if is_last { None } else { self.read.find_job(&end.key)? };
        let owner = others.and_then(|job| job.row.state.owner);
        let mut row = head.with(end.state.clone());
        row.state.owner = owner;
        row.n_open = row.n_open.saturating_sub(1);
        if matches!(end.by, EndBy::Release { .. }) {
            row.fence.0 += 1;
        }
        self.write(id, &mut row, &end.records, MemoryWrite::Update)?;
        Ok(row)
    }

    /// The first result that comes after its run was given up is kept with the run.
    fn late(&mut self, end: &End) -> Result<EndAnswer> {
        if let EndBy::Owner(RunEnd { outcome, ended_at, exit_code, .. }) = end.by {
            self.run(
                "UPDATE run SET late_outcome = ?3, late_ended_at = ?4, outcome = ?5, exit_code = ?7, report = ?8
                 WHERE id = ?1 AND fence = ?2 AND outcome = ?6",
                params![
                    Id::of(end.run.0),
                    stored_number(end.fence.0),
                    outcome.keyword(),
                    ended_at.as_millis(),
                    Outcome::Superseded.keyword(),
                    Outcome::Lost.keyword(),
                    exit_code,
                    report_to_text(end.report.as_deref()),
                ],
            )?;
        }
        Ok(EndAnswer::Late)
    }

    pub(super) fn do_cancel(&mut self, run: RunId) -> Result<Cancelled> {
        if self.run("UPDATE open_run SET is_cancel_asked = 1 WHERE id = ?1", [Id::of(run.0)])? == 1 {
            return Ok(Cancelled::Asked);
        }
        let sql = "SELECT outcome FROM run WHERE id = ?1";
        let outcome = self.read.one(sql, [Id::of(run.0)], |row| rows::keyword(row, 0)).optional()?;
        Ok(match outcome {
            Some(outcome) => Cancelled::Over(outcome.unwrap_or(Outcome::Unknown)),
            None => Cancelled::Unknown,
        })
    }

    // Runs that go through a broker.

    pub(super) fn do_published(&mut self, run: RunId, fence: Fence) -> Result<()> {
        let n_held = self.run(
            "UPDATE open_run SET phase = CASE phase WHEN ?3 THEN ?4 ELSE phase END WHERE id = ?1 AND fence = ?2",
            params![
                Id::of(run.0),
                stored_number(fence.0),
                OpenPhase::Claimed.keyword(),
                OpenPhase::Published.keyword()
            ],
        )?;
        if n_held == 1 {
            self.run("DELETE FROM outbox WHERE run_id = ?1", [Id::of(run.0)])?;
        }
        Ok(())
    }

    pub(super) fn do_start_on_worker(
        &mut self,
        run: RunId,
        fence: Fence,
        worker: &SessionSpec,
    ) -> Result<WorkerStart> {
        let Some(mut found) = self.read.find_open_run(run)?.filter(|it| it.fence == fence) else {
            return Ok(WorkerStart::Taken);
        };
        let is_again = found.session == worker.id;
        let owner = self.read.find_session(found.session)?;
        let is_at_node = owner.is_some_and(|it| it.spec.kind == SessionKind::Node);
        let is_free = is_at_node && found.phase != RunPhase::Running;
        if !is_again && !is_free || self.read.is_dead(worker.id)? == Some(true) {
            return Ok(WorkerStart::Taken);
        }
        let (Epoch(no), is_open) = self.read.find_epoch()?;
        if !is_again && !is_open {
            return Ok(WorkerStart::Closed);
        }
        // A failover may have lost its start, its end and later leases of the job.
        if !is_again && fence.0 < no << 32 {
            return Ok(WorkerStart::Taken);
        }
        self.know(worker)?;
        self.run("DELETE FROM outbox WHERE run_id = ?1", [Id::of(run.0)])?;
        self.run(
            "UPDATE open_run SET session_id = ?2, phase = ?3, started_at = ifnull(started_at, ?4) WHERE id = ?1",
            params![Id::of(run.0), Id::of(worker.id.0), OpenPhase::Running.keyword(), self.now.as_millis()],
        )?;
        found.started_at.get_or_insert(self.now);
        found.session = worker.id;
        found.phase = RunPhase::Running;
        Ok(WorkerStart::Won(Box::new(found)))
    }
}
