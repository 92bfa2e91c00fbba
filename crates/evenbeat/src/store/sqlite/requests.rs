//! Requests for runs (K1), and heartbeats of owners (L2).

use evenbeat_core::ids::{ExtraId, JobKey, RunId};
use evenbeat_core::lease::Silent;
use evenbeat_core::store::{
    IDEMPOTENCY_KEPT_FOR, Idempotency, OwnerPing, PutJob, RunRequest, RunRow, StoreDown,
};
use evenbeat_core::time::Timestamp;
use rusqlite::{OptionalExtension, Result, Row, params};

use super::feed::limit;
use super::read_tx::ReadTx;
use super::recovery::PROBE_BYTES;
use super::rows::{self, Id};
use super::sql::{open_run_sql, run_columns, run_over_columns, run_sql};
use super::write_tx::WriteTx;
use crate::store::columns::stored_number;
use crate::store::query::{RequestRow, RunName, earliest_attempt};

impl WriteTx<'_> {
    /// The earlier request that this one repeats.
    pub(super) fn earlier_request(&self, put: &PutJob) -> Result<Option<RunRequest>> {
        match put.request.and_then(|it| it.idempotency) {
            Some(Idempotency { key, .. }) => self.read.find_request_by_key(key, self.now),
            None => Ok(None),
        }
    }

    pub(super) fn keep_request(
        &self,
        job_id: i64,
        RunRequest { id, idempotency }: &RunRequest,
    ) -> Result<()> {
        self.run(
            "INSERT INTO request (id, job_id, requested_at, key_hash, body_hash) VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (id) DO NOTHING",
            params![
                Id::of(id.0),
                job_id,
                self.now.as_millis(),
                idempotency.map(|it| Id::of(it.key)),
                idempotency.map(|it| Id::of(it.body)),
            ],
        )?;
        Ok(())
    }

    /// Removes requests that can no longer be repeated, except those that still wait for their run.
    pub(super) fn trim_requests(&self, most: usize) -> Result<()> {
        let before = (self.now - IDEMPOTENCY_KEPT_FOR).as_millis();
        self.run(
            "DELETE FROM request WHERE id IN (
                 SELECT q.id FROM request q LEFT JOIN memory m ON m.job_id = q.job_id
                 WHERE q.requested_at < ?1 AND ifnull(instr(m.extras, lower(hex(q.id))), 0) = 0
                 ORDER BY q.requested_at LIMIT ?2)",
            params![before, limit(most)],
        )?;
        Ok(())
    }

    pub(super) fn do_doubt(&self, it: &Silent) -> Result<()> {
        self.run(
            "INSERT INTO doubt (session_id, beat, doubted_at)
             SELECT id, beat, ?3 FROM session WHERE id = ?1 AND beat = ?2
             ON CONFLICT (session_id) DO UPDATE SET beat = excluded.beat, doubted_at = excluded.doubted_at
             WHERE doubt.beat <> excluded.beat",
            params![Id::of(it.session.0), stored_number(it.beat), self.now.as_millis()],
        )?;
        Ok(())
    }

    /// Checks that the file can be written: writes something that needs space, and removes it.
    pub fn probe(&mut self) -> Result<(), StoreDown> {
        let put = "INSERT INTO setting (name, value) VALUES ('write_probe', ?1)
                   ON CONFLICT (name) DO UPDATE SET value = excluded.value";
        let written = self
            .run(put, [" ".repeat(PROBE_BYTES)])
            .and_then(|_| self.run("DELETE FROM setting WHERE name = 'write_probe'", []));
        self.or_down(written.map(|_| ()))
    }
}

impl ReadTx<'_> {
    fn find_request_by_key(&self, key: u128, now: Timestamp) -> Result<Option<RunRequest>> {
        let since = (now - IDEMPOTENCY_KEPT_FOR).as_millis();
        let sql = "SELECT id, body_hash FROM request WHERE key_hash = ?1 AND ?2 < requested_at
                   ORDER BY requested_at DESC LIMIT 1";
        let request = |row: &Row<'_>| {
            let idempotency = Some(Idempotency { key, body: rows::id(row, 1)? });
            Ok(RunRequest { id: ExtraId(rows::id(row, 0)?), idempotency })
        };
        self.one(sql, params![Id::of(key), since], request).optional()
    }

    /// The request with this idempotency key, while it is kept.
    pub fn request_by_key(&self, key: u128) -> Result<Option<RunRequest>, StoreDown> {
        self.or_down(self.find_request_by_key(key, self.context.now()))
    }

    /// A request for a run, while it is kept.
    pub fn request(&self, id: ExtraId) -> Result<Option<RequestRow>, StoreDown> {
        let sql = "SELECT j.key, q.requested_at FROM request q JOIN job j ON j.id = q.job_id WHERE q.id = ?1";
        let found = self.one(sql, [Id::of(id.0)], |row| {
            let requested_at = Timestamp::from_millis(row.get(1)?);
            Ok(RequestRow { id, key: rows::key(row, 0)?, requested_at })
        });
        self.or_down(found.optional())
    }

    /// The latest run of a request.
    pub fn latest_attempt(&self, key: &JobKey, id: ExtraId) -> Result<Option<RunRow>, StoreDown> {
        let since = Id::of(earliest_attempt(id).0);
        let args = params![key.as_str(), Id::of(id.0), since];
        let open =
            open_run_sql!("WHERE j.key = ?1 AND r.extra_id = ?2 AND ?3 <= r.id ORDER BY r.id DESC LIMIT 1");
        let over = run_sql!("WHERE j.key = ?1 AND r.extra_id = ?2 AND ?3 <= r.id ORDER BY r.id DESC LIMIT 1");
        let found = self.one(open, args, rows::open_run).optional().and_then(|open| match open {
            Some(open) => Ok(Some(open)),
            None => self.one(over, args, rows::run).optional(),
        });
        self.or_down(found)
    }

    /// Runs and requests with ids from `from` to `to`, both included: at most `most` of each kind.
    pub fn runs_between(&self, from: RunId, to: RunId, most: usize) -> Result<Vec<RunName>, StoreDown> {
        let name = |row: &Row<'_>| Ok(RunName { id: RunId(rows::id(row, 0)?), key: rows::key(row, 1)? });
        let mut found = Vec::new();
        for sql in [
            "SELECT t.id, j.key FROM open_run t JOIN job j ON j.id = t.job_id
             WHERE ?1 <= t.id AND t.id <= ?2 ORDER BY t.id DESC LIMIT ?3",
            "SELECT t.id, j.key FROM run t JOIN job j ON j.id = t.job_id
             WHERE ?1 <= t.id AND t.id <= ?2 ORDER BY t.id DESC LIMIT ?3",
            "SELECT t.id, j.key FROM request t JOIN job j ON j.id = t.job_id
             WHERE ?1 <= t.id AND t.id <= ?2 ORDER BY t.id DESC LIMIT ?3",
        ] {
            found.extend(self.or_down(self.many(
                sql,
                params![Id::of(from.0), Id::of(to.0), limit(most)],
                name,
            ))?);
        }
        Ok(found)
    }

    pub(super) fn find_owner_pings(&self, runs: &[RunId]) -> Result<Vec<OwnerPing>> {
        let sql = "SELECT s.beaten_at, d.doubted_at FROM open_run o JOIN session s ON s.id = o.session_id
                   LEFT JOIN doubt d ON d.session_id = s.id AND d.beat = s.beat WHERE o.id = ?1";
        let mut pings = Vec::new();
        for run in runs {
            let ping = |row: &Row<'_>| {
                let doubted_at: Option<i64> = row.get(1)?;
                let last_ping_at = Timestamp::from_millis(row.get(0)?);
                Ok(OwnerPing { run: *run, last_ping_at, doubted_at: doubted_at.map(Timestamp::from_millis) })
            };
            pings.extend(self.one(sql, [Id::of(run.0)], ping).optional()?);
        }
        pings.sort_by_key(|it| it.run);
        Ok(pings)
    }
}
