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
use super::reader::Reader;
use super::rows;
use crate::store::columns::number;

impl Views for Reader<'_> {
    fn job(&self, key: &JobKey) -> Result<Option<JobRow>, StoreDown> {
        self.told(self.find_job(key).map(|it| it.map(|job| job.row)))
    }

    fn jobs(&self, after: Option<&JobKey>, most: usize) -> Result<Vec<JobRow>, StoreDown> {
        self.told(self.find_jobs(after, most))
    }

    fn runs(&self, filter: &RunFilter, before: Option<RunId>, most: usize) -> Result<Vec<RunRow>, StoreDown> {
        self.told(self.find_runs(filter, before, most))
    }

    fn records(
        &self,
        key: &JobKey,
        before: Option<Timestamp>,
        most: usize,
    ) -> Result<Vec<RecordRow>, StoreDown> {
        // Down to the occurrence that the last of so many begins with, if there are so many.
        let sql = "SELECT r.reason, r.first_due_at, r.last_due_at, r.n, r.recorded_at FROM record r
                   WHERE r.job_id = (SELECT id FROM job WHERE key = ?1) AND r.first_due_at < ?2
                     AND coalesce((SELECT e.first_due_at FROM record e
                                   WHERE e.job_id = (SELECT id FROM job WHERE key = ?1) AND e.first_due_at < ?2
                                   ORDER BY e.first_due_at DESC LIMIT 1 OFFSET ?3), ?4) <= r.first_due_at
                   ORDER BY r.first_due_at DESC, r.id DESC";
        let (before, first) = (before.unwrap_or(Timestamp::MAX).as_millis(), Timestamp::MIN.as_millis());
        let params = params![key.as_str(), before, limit(most.max(1) - 1), first];
        self.told(self.many(sql, params, |row| rows::record(row, key)))
    }

    fn sessions(&self) -> Result<Vec<SessionRow>, StoreDown> {
        self.told(self.find_sessions())
    }

    fn owner_pings(&self, runs: &[RunId]) -> Result<Vec<OwnerPing>, StoreDown> {
        self.told(self.find_owner_pings(runs))
    }

    fn counters(&self) -> Result<Vec<CounterRow>, StoreDown> {
        self.told(self.find_counters())
    }

    fn plan(&self, id: PlanId) -> Result<Option<PlanRow>, StoreDown> {
        self.told(self.find_plan(id, self.shared.now()))
    }

    fn audit(&self, most: usize) -> Result<Vec<AuditEntry>, StoreDown> {
        let sql = "SELECT actor, action, detail FROM audit ORDER BY no LIMIT ?1";
        self.told(self.many(sql, [limit(most)], |row| {
            Ok(AuditEntry { actor: row.get(0)?, action: row.get(1)?, detail: row.get(2)? })
        }))
    }
}

impl Reader<'_> {
    /// What a node hears of changes; see [`Store::changes`](evenbeat_core::store::Store::changes).
    pub fn changes(&self, since: Option<Cursor>, most: usize) -> Result<Changes, StoreDown> {
        self.told(self.find_changes(since, most))
    }

    /// What a watcher sees; see [`Store::watch`](evenbeat_core::store::Store::watch).
    pub fn watch(&self, most_runs: usize) -> Result<Watch, StoreDown> {
        self.told(self.find_watch(self.shared.now(), most_runs))
    }

    /// When a session last beat: time had come so far, as the clock was then.
    pub fn latest_beat(&self) -> Result<Option<Timestamp>, StoreDown> {
        let found = self.one("SELECT max(beaten_at) FROM session", [], |row| row.get(0));
        self.told(found.map(|millis: Option<i64>| millis.map(Timestamp::from_millis)))
    }

    /// How many runs are open, by the session that owns them.
    pub fn open_runs_by_session(&self) -> Result<BTreeMap<SessionId, u64>, StoreDown> {
        let sql = "SELECT session_id, count(*) FROM open_run GROUP BY session_id";
        let counted = self.many(sql, [], |row| Ok((SessionId(rows::id(row, 0)?), number(row.get(1)?))));
        self.told(counted.map(|it| it.into_iter().collect()))
    }

    /// Start messages that wait; see [`Store::outbox`](evenbeat_core::store::Store::outbox).
    pub fn outbox(&self, most: usize) -> Result<Vec<OutboxRow>, StoreDown> {
        self.told(self.find_outbox(most))
    }

    pub(super) fn told<T>(&self, answer: Result<T>) -> Result<T, StoreDown> {
        answer.map_err(|error| self.down(&error))
    }
}

impl Views for SqliteStore {
    fn job(&self, key: &JobKey) -> Result<Option<JobRow>, StoreDown> {
        self.look(|reader| reader.job(key))
    }

    fn jobs(&self, after: Option<&JobKey>, most: usize) -> Result<Vec<JobRow>, StoreDown> {
        self.look(|reader| reader.jobs(after, most))
    }

    fn runs(&self, filter: &RunFilter, before: Option<RunId>, most: usize) -> Result<Vec<RunRow>, StoreDown> {
        self.look(|reader| reader.runs(filter, before, most))
    }

    fn records(
        &self,
        key: &JobKey,
        before: Option<Timestamp>,
        most: usize,
    ) -> Result<Vec<RecordRow>, StoreDown> {
        self.look(|reader| reader.records(key, before, most))
    }

    fn sessions(&self) -> Result<Vec<SessionRow>, StoreDown> {
        self.look(|reader| reader.sessions())
    }

    fn owner_pings(&self, runs: &[RunId]) -> Result<Vec<OwnerPing>, StoreDown> {
        self.look(|reader| reader.owner_pings(runs))
    }

    fn counters(&self) -> Result<Vec<CounterRow>, StoreDown> {
        self.look(|reader| reader.counters())
    }

    fn plan(&self, id: PlanId) -> Result<Option<PlanRow>, StoreDown> {
        self.look(|reader| reader.plan(id))
    }

    fn audit(&self, most: usize) -> Result<Vec<AuditEntry>, StoreDown> {
        self.look(|reader| reader.audit(most))
    }
}
