//! What the writer does when the file cannot be written: it reports it and tries again. It also keeps the log short.

use std::time::{Duration, Instant};

use evenbeat_core::store::StoreDown;
use rusqlite::{Connection, Result};

use super::Health;
use super::errors::{self, ErrorScope};
use super::writer::WriterLoop;

/// How often writing is tried again.
const PROBE_EVERY: Duration = Duration::from_secs(1);

/// Free space needed before writing continues, so that the disk is not full again at once.
pub(super) const PROBE_BYTES: usize = 64 * 1024;

/// When the log has this many times its normal size, the writer waits for readers so that the log can restart.
const LOG_PATIENCE: i64 = 4;

/// Runs a checkpoint, and returns the number of pages in the log.
pub(super) fn log_pages(conn: &Connection, sql: &'static str) -> Result<i64> {
    conn.prepare_cached(sql)?.query_row([], |row| row.get(1))
}

impl WriterLoop<'_> {
    /// Turns an error into one for the callers, and notes if the file cannot be written.
    pub(super) fn fault(&mut self, error: &rusqlite::Error) -> StoreDown {
        let down = errors::store_down(&self.context.path, error);
        if errors::scope(error) == ErrorScope::File {
            self.degrade(down.0.clone());
        }
        down
    }

    pub(super) fn is_degraded(&self) -> bool {
        matches!(*self.health.borrow(), Health::ReadOnly { .. })
    }

    pub(super) fn degrade(&mut self, why: String) {
        let now = self.context.now();
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

    /// Tries whether the file can be written again.
    pub(super) fn probe(&mut self) {
        self.probed_at = Some(Instant::now());
        // The log may have used up the free space. A checkpoint makes it reusable.
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

    /// Keeps the log short. The group has been answered before, so no caller waits for it.
    pub(super) fn carry_over_log(&self) {
        // If a checkpoint fails, it is tried again after the next group.
        let n_log = log_pages(self.conn, "PRAGMA wal_checkpoint(NOOP)").unwrap_or(0);
        if LOG_PATIENCE * self.log_max_pages <= n_log {
            let _ = log_pages(self.conn, "PRAGMA wal_checkpoint(RESTART)");
        } else if self.log_max_pages <= n_log {
            let _ = log_pages(self.conn, "PRAGMA wal_checkpoint(PASSIVE)");
        }
    }
}
