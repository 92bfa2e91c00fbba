//! When pauses end automatically.

use std::collections::BTreeMap;

use evenbeat_core::ids::JobKey;
use evenbeat_core::store::{Revision, StoreDown};
use evenbeat_core::time::Timestamp;
use rusqlite::{OptionalExtension, params};

use super::feed::limit;
use super::read_tx::ReadTx;
use super::rows;
use super::write_tx::WriteTx;
use crate::store::columns::stored_number;

impl WriteTx<'_> {
    /// Sets when the pause of a job ends, if the job is still the one with this revision.
    pub fn set_pause_end(
        &mut self,
        key: &JobKey,
        revision: Revision,
        ends_at: Timestamp,
    ) -> Result<bool, StoreDown> {
        let written = self.run(
            "INSERT INTO pause_end (key, ends_at)
             SELECT key, ?3 FROM job WHERE key = ?1 AND revision = ?2 AND NOT is_deleted
             ON CONFLICT (key) DO UPDATE SET ends_at = excluded.ends_at",
            params![key.as_str(), stored_number(revision.0), ends_at.as_millis()],
        );
        self.or_down(written.map(|n| 0 < n))
    }

    /// Forgets when the pause of a job ends, if it ends then or earlier.
    pub fn clear_pause_end(&mut self, key: &JobKey, up_to: Timestamp) -> Result<(), StoreDown> {
        let sql = "DELETE FROM pause_end WHERE key = ?1 AND ends_at <= ?2";
        let written = self.run(sql, params![key.as_str(), up_to.as_millis()]);
        self.or_down(written.map(|_| ()))
    }
}

impl ReadTx<'_> {
    /// Jobs whose pause has ended, the earliest first.
    pub fn ended_pauses(&self, most: usize) -> Result<Vec<JobKey>, StoreDown> {
        let sql = "SELECT key FROM pause_end WHERE ends_at <= ?1 ORDER BY ends_at, key LIMIT ?2";
        let now = self.context.now().as_millis();
        self.or_down(self.many(sql, params![now, limit(most)], |row| rows::key(row, 0)))
    }

    /// When the pauses of these jobs end, where they do.
    pub fn pause_ends(&self, keys: &[JobKey]) -> Result<BTreeMap<JobKey, Timestamp>, StoreDown> {
        let sql = "SELECT ends_at FROM pause_end WHERE key = ?1";
        let mut ends = BTreeMap::new();
        for key in keys {
            let end = self.one(sql, [key.as_str()], |row| Ok(Timestamp::from_millis(row.get(0)?)));
            ends.extend(self.or_down(end.optional())?.map(|at| (key.clone(), at)));
        }
        Ok(ends)
    }
}
