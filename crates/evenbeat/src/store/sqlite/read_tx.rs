//! Everything that is read from the file. The writer reads in the same way what it is about to change.

use std::sync::Arc;

use evenbeat_core::ids::{Fence, JobKey, RunId, SessionId};
use evenbeat_core::job::{Job, JobState};
use evenbeat_core::lease::Epoch;
use evenbeat_core::store::{
    CounterKey, CounterRow, JobRow, OutboxRow, Revision, RunFilter, RunRow, SessionRow, StoreDown, Version,
    Watch,
};
use evenbeat_core::time::Timestamp;
use rusqlite::{CachedStatement, Connection, OptionalExtension, Params, Result, Row, params};

use super::context::StoreContext;
use super::feed::limit;
use super::rows::{self, Id};
use super::sql::{
    job_columns, job_sql, memory_columns, open_run_sql, run_columns, run_over_columns, run_sql, session_sql,
};
use crate::store::columns::{counter_of, number, small_number};
use crate::store::definition::broken_state;

/// Reads one snapshot of the store.
pub struct ReadTx<'c> {
    pub(super) conn: &'c Connection,
    pub(super) context: &'c StoreContext,
}

impl std::fmt::Debug for ReadTx<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReadTx").field("path", &self.context.path).finish_non_exhaustive()
    }
}

/// A job with its id.
pub(super) struct StoredJob {
    pub(super) id: i64,
    pub(super) row: JobRow,
}

/// A job without its state, which a claim or an end replaces completely.
pub(super) struct JobHead {
    pub(super) id: i64,
    pub(super) version: Version,
    pub(super) fence: Fence,
    pub(super) n_open: u32,
    pub(super) is_deleted: bool,
    job: Arc<Job>,
    revision: Revision,
}

impl JobHead {
    /// The job with its new state.
    pub(super) fn with(self, state: JobState) -> JobRow {
        let JobHead { job, revision, version, fence, n_open, is_deleted, .. } = self;
        JobRow { job, state, revision, version, fence, n_open, is_deleted }
    }
}

impl<'c> ReadTx<'c> {
    pub(super) fn prepared(&self, sql: &str) -> Result<CachedStatement<'c>> {
        self.conn.prepare_cached(sql)
    }

    pub(super) fn one<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> Result<T>,
    ) -> Result<T> {
        self.prepared(sql)?.query_row(params, read)
    }

    pub(super) fn many<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnMut(&Row<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        self.prepared(sql)?.query_map(params, read)?.collect()
    }

    pub(super) fn down(&self, error: &rusqlite::Error) -> StoreDown {
        super::errors::store_down(&self.context.path, error)
    }

    // Epoch and sessions.

    /// The current epoch, and whether it is open.
    pub(super) fn find_epoch(&self) -> Result<(Epoch, bool)> {
        let sql = "SELECT no, is_open FROM epoch ORDER BY no DESC LIMIT 1";
        let found = self.one(sql, [], |row| Ok((Epoch(number(row.get(0)?)), row.get(1)?))).optional()?;
        Ok(found.unwrap_or((Epoch(0), false)))
    }

    pub(super) fn find_sessions(&self) -> Result<Vec<SessionRow>> {
        self.many(session_sql!("ORDER BY id"), [], rows::session)
    }

    pub(super) fn find_session(&self, session: SessionId) -> Result<Option<SessionRow>> {
        self.one(session_sql!("WHERE id = ?1"), [Id::of(session.0)], rows::session).optional()
    }

    /// Whether a session takes no new runs.
    pub(super) fn is_draining(&self, session: SessionId) -> Result<bool> {
        self.one("SELECT is_draining FROM session WHERE id = ?1", [Id::of(session.0)], |row| row.get(0))
    }

    pub(super) fn is_dead(&self, session: SessionId) -> Result<Option<bool>> {
        self.one("SELECT is_dead FROM session WHERE id = ?1", [Id::of(session.0)], |row| row.get(0))
            .optional()
    }

    pub(super) fn find_watch(&self, now: Timestamp, most_runs: usize) -> Result<Watch> {
        let (epoch, is_open) = self.find_epoch()?;
        let sessions = self.many(session_sql!("WHERE is_dead = 0 ORDER BY id"), [], rows::session)?;
        let orphans =
            open_run_sql!("JOIN session s ON s.id = r.session_id WHERE s.is_dead = 1 ORDER BY r.id LIMIT ?1");
        let orphans = self.many(orphans, [limit(most_runs)], rows::open_run)?;
        Ok(Watch { epoch, is_open, now, sessions, orphans })
    }

    // Jobs.

    pub(super) fn find_job(&self, key: &JobKey) -> Result<Option<StoredJob>> {
        let sql = job_sql!("WHERE j.key = ?1");
        self.one(sql, [key.as_str()], |row| self.stored_job(row)).optional()
    }

    pub(super) fn find_head(&self, key: &JobKey) -> Result<Option<JobHead>> {
        let sql = "SELECT j.id, j.definition, j.is_deleted, j.revision, m.version, m.fence, m.n_open
                   FROM job j JOIN memory m ON m.job_id = j.id WHERE j.key = ?1";
        let head = self.one(sql, [key.as_str()], |row| {
            let id = row.get(0)?;
            let (job, _) = self.context.definitions.job_or_broken(id, key, row.get_ref(1)?.as_str()?);
            Ok(JobHead {
                id,
                job,
                is_deleted: row.get(2)?,
                revision: Revision(number(row.get(3)?)),
                version: Version(number(row.get(4)?)),
                fence: Fence(number(row.get(5)?)),
                n_open: small_number(row.get(6)?),
            })
        });
        head.optional()
    }

    pub(super) fn find_jobs(&self, after: Option<&JobKey>, most: usize) -> Result<Vec<JobRow>> {
        let sql = job_sql!("WHERE ?1 < j.key AND j.is_deleted = 0 ORDER BY j.key LIMIT ?2");
        let after = after.map_or("", JobKey::as_str);
        self.many(sql, params![after, limit(most)], |row| Ok(self.stored_job(row)?.row))
    }

    /// A row of [`job_sql!`].
    pub(super) fn stored_job(&self, row: &Row<'_>) -> Result<StoredJob> {
        let (id, key) = (row.get(0)?, rows::key(row, 1)?);
        let (job, unreadable) = self.context.definitions.job_or_broken(id, &key, row.get_ref(2)?.as_str()?);
        let state = rows::memory(row, 8)?;
        let row = JobRow {
            job,
            state: match unreadable {
                None => state,
                Some(unreadable) => broken_state(state, unreadable),
            },
            revision: Revision(number(row.get(4)?)),
            version: Version(number(row.get(5)?)),
            fence: Fence(number(row.get(6)?)),
            n_open: small_number(row.get(7)?),
            is_deleted: row.get(3)?,
        };
        Ok(StoredJob { id, row })
    }

    // Runs.

    pub(super) fn find_open_run(&self, run: RunId) -> Result<Option<RunRow>> {
        self.one(open_run_sql!("WHERE r.id = ?1"), [Id::of(run.0)], rows::open_run).optional()
    }

    pub(super) fn find_run_over(&self, run: RunId) -> Result<Option<RunRow>> {
        self.one(run_sql!("WHERE r.id = ?1"), [Id::of(run.0)], rows::run).optional()
    }

    pub(super) fn open_runs_of(&self, session: SessionId) -> Result<Vec<RunRow>> {
        let sql = open_run_sql!("WHERE r.session_id = ?1 ORDER BY r.id");
        self.many(sql, [Id::of(session.0)], rows::open_run)
    }

    /// The latest id first.
    pub(super) fn find_runs(
        &self,
        filter: &RunFilter,
        before: Option<RunId>,
        most: usize,
    ) -> Result<Vec<RunRow>> {
        let before = rows::before_or_all(before.map(|it| it.0));
        let (open, over) = match &filter.key {
            None => (
                open_run_sql!("WHERE ?1 IS NULL AND r.id < ?2 ORDER BY r.id DESC LIMIT ?3"),
                run_sql!("WHERE ?1 IS NULL AND r.id < ?2 ORDER BY r.id DESC LIMIT ?3"),
            ),
            Some(_) => (
                open_run_sql!("WHERE j.key = ?1 AND r.id < ?2 ORDER BY r.id DESC LIMIT ?3"),
                run_sql!("WHERE j.key = ?1 AND r.id < ?2 ORDER BY r.id DESC LIMIT ?3"),
            ),
        };
        let args = params![filter.key.as_ref().map(JobKey::as_str), before, limit(most)];
        let mut runs = self.many(open, args, rows::open_run)?;
        if !filter.is_open {
            runs.extend(self.many(over, args, rows::run)?);
            runs.sort_by_key(|it| std::cmp::Reverse(it.run));
            runs.truncate(most);
        }
        Ok(runs)
    }

    // Counters and messages.

    pub(super) fn find_counters(&self) -> Result<Vec<CounterRow>> {
        let sql = "SELECT kind, key, n_open, last_claim_at FROM counter ORDER BY kind, key";
        let row = |row: &Row<'_>| {
            let Some(counter) = counter_of(row.get_ref(0)?.as_str()?, row.get_ref(1)?.as_str()?) else {
                return Ok(None);
            };
            let last_claim_at: Option<i64> = row.get(3)?;
            let last_claim_at = last_claim_at.map(Timestamp::from_millis);
            Ok(Some(CounterRow { counter, n_open: small_number(row.get(2)?), last_claim_at }))
        };
        Ok(self.many(sql, [], row)?.into_iter().flatten().collect())
    }

    /// The counters that open runs hold. A counter is repeated for each run that holds it.
    pub(super) fn held_counters(&self) -> Result<Vec<CounterKey>> {
        let sql = "SELECT takes FROM open_run WHERE takes IS NOT NULL";
        let held =
            self.many(sql, [], |row| Ok(crate::store::columns::takes_from_text(row.get_ref(0)?.as_str()?)))?;
        Ok(held.into_iter().flatten().collect())
    }

    pub(super) fn find_outbox(&self, most: usize) -> Result<Vec<OutboxRow>> {
        let sql = "SELECT o.run_id, j.key, o.fence FROM outbox o JOIN job j ON j.id = o.job_id ORDER BY o.no LIMIT ?1";
        self.many(sql, [limit(most)], |row| {
            let (run, fence) = (RunId(rows::id(row, 0)?), Fence(number(row.get(2)?)));
            Ok(OutboxRow { run, key: rows::key(row, 1)?, fence })
        })
    }
}
