//! The reading side of the contract.

use std::collections::BTreeMap;

use evenbeat_core::ids::{JobKey, RunId, SessionId};
use evenbeat_core::store::{
    AuditEntry, Changes, CounterRow, Cursor, JobRow, OutboxRow, OwnerPing, PlanId, PlanRow, RecordRow,
    RunFilter, RunRow, SessionRow, StoreDown, Views, Watch,
};
use evenbeat_core::time::Timestamp;
use rusqlite::{Result, params};

use super::SqliteStore;
use super::feed::limit;
use super::read_tx::ReadTx;
use super::rows;
use crate::store::columns::number;

impl Views for ReadTx<'_> {
    fn job(&self, key: &JobKey) -> Result<Option<JobRow>, StoreDown> {
        self.or_down(self.find_job(key).map(|it| it.map(|job| job.row)))
    }

    fn jobs(&self, after: Option<&JobKey>, most: usize) -> Result<Vec<JobRow>, StoreDown> {
        self.or_down(self.find_jobs(after, most))
    }

    fn runs(&self, filter: &RunFilter, before: Option<RunId>, most: usize) -> Result<Vec<RunRow>, StoreDown> {
        self.or_down(self.find_runs(filter, before, most))
    }

    fn records(
        &self,
        key: &JobKey,
        before: Option<Timestamp>,
        most: usize,
    ) -> Result<Vec<RecordRow>, StoreDown> {
        // Records that begin with the same occurrence as the last one of the page belong to it too.
        let sql = "SELECT r.reason, r.first_due_at, r.last_due_at, r.n, r.recorded_at FROM record r
                   WHERE r.job_id = (SELECT id FROM job WHERE key = ?1) AND r.first_due_at < ?2
                     AND coalesce((SELECT e.first_due_at FROM record e
                                   WHERE e.job_id = (SELECT id FROM job WHERE key = ?1) AND e.first_due_at < ?2
                                   ORDER BY e.first_due_at DESC LIMIT 1 OFFSET ?3), ?4) <= r.first_due_at
                   ORDER BY r.first_due_at DESC, r.id DESC";
        let (before, first) = (before.unwrap_or(Timestamp::MAX).as_millis(), Timestamp::MIN.as_millis());
        let params = params![key.as_str(), before, limit(most.max(1) - 1), first];
        self.or_down(self.many(sql, params, |row| rows::record(row, key)))
    }

    fn sessions(&self) -> Result<Vec<SessionRow>, StoreDown> {
        self.or_down(self.find_sessions())
    }

    fn owner_pings(&self, runs: &[RunId]) -> Result<Vec<OwnerPing>, StoreDown> {
        self.or_down(self.find_owner_pings(runs))
    }

    fn counters(&self) -> Result<Vec<CounterRow>, StoreDown> {
        self.or_down(self.find_counters())
    }

    fn plan(&self, id: PlanId) -> Result<Option<PlanRow>, StoreDown> {
        self.or_down(self.find_plan(id, self.context.now()))
    }

    fn audit(&self, most: usize) -> Result<Vec<AuditEntry>, StoreDown> {
        let sql =
            "SELECT actor, action, subject, detail, before_json, after_json FROM audit ORDER BY no LIMIT ?1";
        self.or_down(self.many(sql, [limit(most)], |row| {
            Ok(AuditEntry {
                actor: row.get(0)?,
                action: row.get(1)?,
                subject: row.get(2)?,
                detail: row.get(3)?,
                before: row.get(4)?,
                after: row.get(5)?,
            })
        }))
    }
}

impl ReadTx<'_> {
    /// What a node hears of changes; see [`Store::changes`](evenbeat_core::store::Store::changes).
    pub fn changes(&self, since: Option<Cursor>, most: usize) -> Result<Changes, StoreDown> {
        self.or_down(self.find_changes(since, most))
    }

    /// What a watcher sees; see [`Store::watch`](evenbeat_core::store::Store::watch).
    pub fn watch(&self, most_runs: usize) -> Result<Watch, StoreDown> {
        self.or_down(self.find_watch(self.context.now(), most_runs))
    }

    /// The latest heartbeat of any session, by the clock of that time.
    pub fn latest_beat(&self) -> Result<Option<Timestamp>, StoreDown> {
        let found = self.one("SELECT max(beaten_at) FROM session", [], |row| row.get(0));
        self.or_down(found.map(|millis: Option<i64>| millis.map(Timestamp::from_millis)))
    }

    /// The number of open runs of each session that has any.
    pub fn open_runs_by_session(&self) -> Result<BTreeMap<SessionId, u64>, StoreDown> {
        let sql = "SELECT session_id, count(*) FROM open_run GROUP BY session_id";
        let counted = self.many(sql, [], |row| Ok((SessionId(rows::id(row, 0)?), number(row.get(1)?))));
        self.or_down(counted.map(|it| it.into_iter().collect()))
    }

    /// Start messages that wait to be published; see [`Store::outbox`](evenbeat_core::store::Store::outbox).
    pub fn outbox(&self, most: usize) -> Result<Vec<OutboxRow>, StoreDown> {
        self.or_down(self.find_outbox(most))
    }

    pub(super) fn or_down<T>(&self, answer: Result<T>) -> Result<T, StoreDown> {
        answer.map_err(|error| self.down(&error))
    }
}

impl Views for SqliteStore {
    fn job(&self, key: &JobKey) -> Result<Option<JobRow>, StoreDown> {
        self.look(|tx| tx.job(key))
    }

    fn jobs(&self, after: Option<&JobKey>, most: usize) -> Result<Vec<JobRow>, StoreDown> {
        self.look(|tx| tx.jobs(after, most))
    }

    fn runs(&self, filter: &RunFilter, before: Option<RunId>, most: usize) -> Result<Vec<RunRow>, StoreDown> {
        self.look(|tx| tx.runs(filter, before, most))
    }

    fn records(
        &self,
        key: &JobKey,
        before: Option<Timestamp>,
        most: usize,
    ) -> Result<Vec<RecordRow>, StoreDown> {
        self.look(|tx| tx.records(key, before, most))
    }

    fn sessions(&self) -> Result<Vec<SessionRow>, StoreDown> {
        self.look(|tx| tx.sessions())
    }

    fn owner_pings(&self, runs: &[RunId]) -> Result<Vec<OwnerPing>, StoreDown> {
        self.look(|tx| tx.owner_pings(runs))
    }

    fn counters(&self) -> Result<Vec<CounterRow>, StoreDown> {
        self.look(|tx| tx.counters())
    }

    fn plan(&self, id: PlanId) -> Result<Option<PlanRow>, StoreDown> {
        self.look(|tx| tx.plan(id))
    }

    fn audit(&self, most: usize) -> Result<Vec<AuditEntry>, StoreDown> {
        self.look(|tx| tx.audit(most))
    }
}
