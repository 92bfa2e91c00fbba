//! Removes old rows, a few at a time.

use evenbeat_core::store::{Retention, Trimmed};
use evenbeat_core::time::Duration;
use rusqlite::{OptionalExtension, Result, params};

use super::feed::{CHANGES_KEPT_FOR, limit};
use super::read_tx::ReadTx;
use super::write_tx::WriteTx;
use crate::store::floor::Floor;

impl WriteTx<'_> {
    pub(super) fn do_trim(&mut self, retention: &Retention) -> Result<Trimmed> {
        let Retention { runs, records, audit, tombstones, most } = *retention;
        let before = |keep_for: Duration| (self.now - keep_for).as_millis();
        let n_runs = self.run(
            "DELETE FROM run WHERE id IN (SELECT id FROM run WHERE ended_at < ?1 ORDER BY ended_at, id LIMIT ?2)",
            params![before(runs), limit(most)],
        )?;
        let n_records = self.run(
            "DELETE FROM record WHERE id IN
             (SELECT id FROM record WHERE recorded_at < ?1 ORDER BY recorded_at, id LIMIT ?2)",
            params![before(records), limit(most)],
        )?;
        let n_audit = self.trim_audit(self.now - audit, most)?;
        let n_tombstones = self.trim_tombstones(before(tombstones), most)?;
        let n_sessions = self.run(
            "DELETE FROM session WHERE id IN (SELECT id FROM session s WHERE is_dead = 1
             AND NOT EXISTS (SELECT 1 FROM open_run WHERE session_id = s.id)
             AND NOT EXISTS (SELECT 1 FROM run WHERE session_id = s.id) ORDER BY id LIMIT ?1)",
            [limit(most)],
        )?;
        self.forget_plans()?;
        self.run("DELETE FROM doubt WHERE session_id NOT IN (SELECT id FROM session)", [])?;
        self.trim_requests(most)?;
        self.forget_changes(most)?;
        Ok(Trimmed { n_runs, n_records, n_audit, n_tombstones, n_sessions })
    }

    /// Removes the rows of jobs that were found deleted before an instant, have not changed since, and have no
    /// history left. The floor keeps their fences and versions from being used again.
    fn trim_tombstones(&mut self, before: i64, most: usize) -> Result<usize> {
        self.run(
            "INSERT INTO tombstone (job_id, version, seen_at)
             SELECT j.id, m.version, ?1 FROM job j JOIN memory m ON m.job_id = j.id WHERE j.is_deleted = 1
             ON CONFLICT (job_id) DO UPDATE SET version = excluded.version, seen_at = excluded.seen_at
             WHERE version <> excluded.version",
            [self.now.as_millis()],
        )?;
        self.run(
            "DELETE FROM tombstone WHERE NOT EXISTS (SELECT 1 FROM job WHERE id = job_id AND is_deleted = 1)",
            [],
        )?;
        let old: Vec<(i64, i64, i64)> = self.read.many(
            "SELECT t.job_id, m.fence, m.version FROM tombstone t
             JOIN memory m ON m.job_id = t.job_id JOIN job j ON j.id = t.job_id
             WHERE t.seen_at < ?1 AND m.n_open = 0
             AND NOT EXISTS (SELECT 1 FROM open_run WHERE job_id = t.job_id)
             AND NOT EXISTS (SELECT 1 FROM run WHERE job_id = t.job_id)
             AND NOT EXISTS (SELECT 1 FROM record WHERE job_id = t.job_id)
             ORDER BY t.seen_at, j.key LIMIT ?2",
            params![before, limit(most)],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
        )?;
        let greatest = |of: fn(&(i64, i64, i64)) -> i64| old.iter().map(of).max();
        if let (Some(fence), Some(version)) = (greatest(|it| it.1), greatest(|it| it.2)) {
            let floor = self.read.floor()?.raised(&Floor::of_stored(fence, version));
            self.run(
                "INSERT INTO setting (name, value) VALUES (?1, ?2)
                 ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                params![Floor::SETTING, floor.to_text()],
            )?;
        }
        for (id, ..) in &old {
            self.run("DELETE FROM tombstone WHERE job_id = ?1", [id])?;
            self.run("DELETE FROM memory WHERE job_id = ?1", [id])?;
            self.run("DELETE FROM label WHERE job_id = ?1", [id])?;
            self.run("DELETE FROM job WHERE id = ?1", [id])?;
        }
        Ok(old.len())
    }

    /// Removes about `most` old changes. The last change always stays, because it is the position of the feed.
    pub(super) fn forget_changes(&mut self, most: usize) -> Result<()> {
        let sql = "SELECT position, changed_at FROM change ORDER BY position LIMIT 1 OFFSET ?1";
        let found = self.read.one(sql, [limit(most)], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        let Some((position, changed_at)): Option<(i64, i64)> = found else { return Ok(()) };
        if changed_at < (self.now - CHANGES_KEPT_FOR).as_millis() {
            self.run("DELETE FROM change WHERE position < ?1", [position])?;
        }
        Ok(())
    }
}

impl ReadTx<'_> {
    /// The fence and version that every new job starts with.
    pub(super) fn floor(&self) -> Result<Floor> {
        let sql = "SELECT value FROM setting WHERE name = ?1";
        let found: Option<String> = self.one(sql, [Floor::SETTING], |row| row.get(0)).optional()?;
        Ok(found.as_deref().map(Floor::from_text).unwrap_or_default())
    }
}
