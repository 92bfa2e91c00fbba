//! What need not be kept for ever goes, a little at a time.

use evenbeat_core::store::{Retention, Trimmed};
use rusqlite::{OptionalExtension, Result, params};

use super::desk::Desk;
use super::feed::{CHANGES_KEPT_FOR, limit};

impl Desk<'_> {
    pub(super) fn do_trim(&mut self, retention: &Retention) -> Result<Trimmed> {
        let Retention { runs_before, records_before, most } = *retention;
        let n_runs = self.run(
            "DELETE FROM run WHERE id IN (SELECT id FROM run WHERE ended_at < ?1 ORDER BY ended_at, id LIMIT ?2)",
            params![runs_before.as_millis(), limit(most)],
        )?;
        let n_records = self.run(
            "DELETE FROM record WHERE id IN
             (SELECT id FROM record WHERE recorded_at < ?1 ORDER BY recorded_at, id LIMIT ?2)",
            params![records_before.as_millis(), limit(most)],
        )?;
        let n_sessions = self.run(
            "DELETE FROM session WHERE id IN (SELECT id FROM session s WHERE is_dead = 1
             AND NOT EXISTS (SELECT 1 FROM open_run WHERE session_id = s.id)
             AND NOT EXISTS (SELECT 1 FROM run WHERE session_id = s.id) ORDER BY id LIMIT ?1)",
            [limit(most)],
        )?;
        self.run("DELETE FROM doubt WHERE session_id NOT IN (SELECT id FROM session)", [])?;
        self.trim_requests(most)?;
        self.forget_changes(most)?;
        Ok(Trimmed { n_runs, n_records, n_sessions })
    }

    /// Drops about so many changes that no reader can need any more. The last one always stays: it says where the
    /// feed stands.
    pub(super) fn forget_changes(&mut self, most: usize) -> Result<()> {
        let sql = "SELECT position, changed_at FROM change ORDER BY position LIMIT 1 OFFSET ?1";
        let found = self.look.one(sql, [limit(most)], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        let Some((position, changed_at)): Option<(i64, i64)> = found else { return Ok(()) };
        if changed_at < (self.now - CHANGES_KEPT_FOR).as_millis() {
            self.run("DELETE FROM change WHERE position < ?1", [position])?;
        }
        Ok(())
    }
}
