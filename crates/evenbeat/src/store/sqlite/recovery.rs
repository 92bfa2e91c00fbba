//! What the writer does when the file takes nothing, and so that it does not come to that: it says so, tries again by
//! itself, and keeps the log short.

use std::time::{Duration, Instant};

use evenbeat_core::store::StoreDown;
use rusqlite::{Connection, Result};

use super::Health;
use super::trouble::{self, Trouble};
use super::writer::Office;

/// So often a file that takes nothing is tried again.
const PROBE_EVERY: Duration = Duration::from_secs(1);

/// What must fit into a file that is to be written again: enough that it is not full again at once.
pub(super) const PROBE_BYTES: usize = 64 * 1024;

/// How much longer than it should be the log may get before readers are waited for, so that it can begin anew.
const LOG_PATIENCE: i64 = 4;

/// Carries the log over, as far as the statement says, and tells how many pages it has.
pub(super) fn log_pages(conn: &Connection, sql: &'static str) -> Result<i64> {
    conn.prepare_cached(sql)?.query_row([], |row| row.get(1))
}

impl Office<'_> {
    /// What an error means for those who asked, and for the store.
    pub(super) fn fault(&mut self, error: &rusqlite::Error) -> StoreDown {
        let down = trouble::store_down(&self.shared.path, error);
        if trouble::trouble(error) == Trouble::OfTheFile {
            self.degrade(down.0.clone());
        }
        down
    }

    pub(super) fn is_degraded(&self) -> bool {
        matches!(*self.health.borrow(), Health::ReadOnly { .. })
    }

    pub(super) fn degrade(&mut self, why: String) {
        let now = self.shared.now();
        self.probed_at.get_or_insert_with(Instant::now);
        self.health.send_if_modified(|health| {
            let is_new = matches!(health, Health::Ok);
            if is_new {
                *health = Health::ReadOnly { since: now, why };
            }
            is_new
        });
    }

    pub(super) fn next_probe_at(&self) -> Instant {
        self.probed_at.map_or_else(Instant::now, |at| at + PROBE_EVERY)
    }

    /// Tries whether the file takes something again.
    pub(super) fn probe(&mut self) {
        self.probed_at = Some(Instant::now());
        // The log may have grown into the room that there was; what the file takes of it is room again.
        let _ = log_pages(self.conn, "PRAGMA wal_checkpoint(PASSIVE)");
        let room = " ".repeat(PROBE_BYTES);
        let put = "INSERT INTO setting (name, value) VALUES ('probe', ?1)
                   ON CONFLICT (name) DO UPDATE SET value = excluded.value";
        let tried = self
            .conn
            .execute(put, [room])
            .and_then(|_| self.conn.execute("DELETE FROM setting WHERE name = 'probe'", []));
        if tried.is_ok() {
            self.probed_at = None;
            self.health.send_replace(Health::Ok);
        }
    }

    /// Keeps the log short. Nobody waits for it: the group was answered before.
    pub(super) fn carry_over_log(&self) {
        // What cannot be carried over now stays in the log, and is tried again after the next group.
        let n_log = log_pages(self.conn, "PRAGMA wal_checkpoint(NOOP)").unwrap_or(0);
        if LOG_PATIENCE * self.log_max_pages <= n_log {
            let _ = log_pages(self.conn, "PRAGMA wal_checkpoint(RESTART)");
        } else if self.log_max_pages <= n_log {
            let _ = log_pages(self.conn, "PRAGMA wal_checkpoint(PASSIVE)");
        }
    }
}
