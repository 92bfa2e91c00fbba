//! How runs are opened: a compare-and-set on the job's version, within the limits of its counters.

use evenbeat_core::ids::RunId;
use evenbeat_core::ids::{Fence, SessionId};
use evenbeat_core::job::Owner;
use evenbeat_core::lease::Epoch;
use evenbeat_core::store::{Bid, Claim, ClaimAnswer, Claims, CounterKey, JobRow, SessionSpec};
use rusqlite::{OptionalExtension, Result, params};

use super::read_tx::JobHead;
use super::rows::{self, Id};
use super::write_tx::{MemoryWrite, WriteTx};
use crate::store::columns::{DueColumns, number, stored_number, takes_to_text};
use crate::store::counter_room::CounterRoom;
use crate::store::keyword::{Keyword, OpenPhase};

/// The session and the epoch of a batch of claims.
struct Claimer {
    me: SessionSpec,
    epoch: Epoch,
}

impl WriteTx<'_> {
    pub(super) fn do_claim(&mut self, me: SessionId, epoch: Epoch, claims: &[Claim]) -> Result<Claims> {
        if !self.is_current_and_open(epoch)? {
            return Ok(Claims::Closed);
        }
        let Some(me) = self.read.find_session(me)?.filter(|it| !it.is_dead) else {
            return Ok(Claims::SessionDead);
        };
        if me.is_draining {
            return Ok(Claims::Draining);
        }
        let claimer = Claimer { me: me.spec, epoch };
        let answers: Result<_> = claims.iter().map(|claim| self.open_run(&claimer, claim)).collect();
        answers.map(Claims::Answered)
    }

    fn open_run(&mut self, claimer: &Claimer, Claim { run, bid }: &Claim) -> Result<ClaimAnswer> {
        let Some(head) = self.read.find_head(&bid.key)? else { return Ok(ClaimAnswer::Gone) };
        if let Some(is_mine) = self.is_known_and_mine(*run, claimer.me.id, &head)? {
            // A repeated claim. The job must still have the fence of the run, because the answer grants its lease.
            return self.as_it_is(bid, if is_mine { ClaimAnswer::Granted } else { ClaimAnswer::Lost });
        }
        if head.version != bid.seen || head.is_deleted || bid.max_open <= head.n_open {
            return self.as_it_is(bid, ClaimAnswer::Lost);
        }
        if self.now < bid.not_before {
            return Ok(ClaimAnswer::NotYet { until: bid.not_before, now: self.now });
        }
        for take in &bid.takes {
            let by = take.counter.clone();
            match self.room(take)? {
                CounterRoom::Now => {}
                CounterRoom::From(at) => return Ok(ClaimAnswer::Limited { by, until: Some(at) }),
                CounterRoom::NotByTime => return Ok(ClaimAnswer::Limited { by, until: None }),
            }
        }
        Ok(ClaimAnswer::Granted(self.grant(claimer, *run, bid, head)?))
    }

    /// An answer with the stored job.
    fn as_it_is(&self, bid: &Bid, answer: fn(JobRow) -> ClaimAnswer) -> Result<ClaimAnswer> {
        let job = self.read.find_job(&bid.key)?;
        Ok(job.map_or(ClaimAnswer::Gone, |job| answer(job.row)))
    }

    /// `None` if the run id is new. Otherwise whether the run is open, owned by the caller, and under the job's last lease.
    fn is_known_and_mine(&self, run: RunId, me: SessionId, head: &JobHead) -> Result<Option<bool>> {
        let sql = "SELECT session_id, job_id, fence FROM open_run WHERE id = ?1";
        let open = self.read.one(sql, [Id::of(run.0)], |row| {
            let (session, fence) = (SessionId(rows::id(row, 0)?), Fence(number(row.get(2)?)));
            Ok(session == me && row.get::<_, i64>(1)? == head.id && fence == head.fence)
        });
        if let Some(is_mine) = open.optional()? {
            return Ok(Some(is_mine));
        }
        let over = self.read.one("SELECT 1 FROM run WHERE id = ?1", [Id::of(run.0)], |_| Ok(false));
        over.optional()
    }

    fn grant(&mut self, claimer: &Claimer, run: RunId, bid: &Bid, head: JobHead) -> Result<JobRow> {
        let id = head.id;
        let mut row = head.with(bid.state.clone());
        // At least the epoch, shifted: greater than any fence that a failover has lost.
        row.fence = Fence((row.fence.0 + 1).max(claimer.epoch.0 << 32));
        row.n_open += 1;
        row.state.owner = Some(Box::new(Owner {
            node: claimer.me.node.clone(),
            name: claimer.me.name.clone(),
            tag: run,
            started_at: self.now,
        }));
        let takes: Vec<CounterKey> = bid.takes.iter().map(|take| take.counter.clone()).collect();
        for counter in &takes {
            self.take(counter, run)?;
        }
        let fence = stored_number(row.fence.0);
        if bid.is_published {
            let sql = "INSERT INTO outbox (run_id, job_id, fence) VALUES (?1, ?2, ?3)";
            self.run(sql, params![Id::of(run.0), id, fence])?;
        }
        let due = DueColumns::of(&bid.due);
        self.run(
            "INSERT INTO open_run (id, job_id, session_id, fence, phase, due_at, attempt, \"trigger\", serves, extra_id,
             losses, last_outcome, params, claimed_at, started_at, is_cancel_asked, takes)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, NULL, 0, ?15)",
            params![
                Id::of(run.0),
                id,
                Id::of(claimer.me.id.0),
                fence,
                OpenPhase::Claimed.keyword(),
                due.due_at,
                due.attempt,
                due.trigger.keyword(),
                due.serves.keyword(),
                due.extra_id.map(Id::of),
                due.losses,
                due.last_outcome.map(Keyword::keyword),
                due.params,
                self.now.as_millis(),
                takes_to_text(&takes),
            ],
        )?;
        self.write(id, &mut row, &bid.records, MemoryWrite::Update)?;
        Ok(row)
    }
}
