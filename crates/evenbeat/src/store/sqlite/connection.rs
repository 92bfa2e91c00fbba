//! Connections to the file, for the writer and for readers.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, Result};

use crate::store::columns::stored_number;

/// Only this process has the file, so locks are held for a moment only.
const BUSY_FOR: Duration = Duration::from_secs(2);

/// The log file is truncated to this size when it restarts.
const LOG_BYTES_MAX: u32 = 64 * 1024 * 1024;

/// The page size of files that this program creates.
pub(super) const PAGE_BYTES: u64 = 4_096;

const STATEMENTS_MAX: usize = 128;

/// The connection that writes. The writer checkpoints the log itself, after it has answered.
pub(super) fn writing(path: &Path, size_max_bytes: Option<u64>) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags)?;
    set_up(&conn, 64 * 1024)?;
    conn.pragma_update(None, "page_size", stored_number(PAGE_BYTES))?;
    conn.pragma_update(None, "journal_mode", "WAL")?;
    conn.pragma_update(None, "synchronous", "FULL")?;
    conn.pragma_update(None, "wal_autocheckpoint", 0)?;
    conn.pragma_update(None, "journal_size_limit", LOG_BYTES_MAX)?;
    if let Some(bytes) = size_max_bytes {
        let n_pages = i64::try_from(bytes / PAGE_BYTES).unwrap_or(i64::MAX).max(1);
        conn.query_row(&format!("PRAGMA max_page_count = {n_pages}"), [], |_| Ok(()))?;
    }
    Ok(conn)
}

/// A connection that only reads.
pub(super) fn reading(path: &Path) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags)?;
    set_up(&conn, 16 * 1024)?;
    Ok(conn)
}

fn set_up(conn: &Connection, cache_kib: i32) -> Result<()> {
    conn.busy_timeout(BUSY_FOR)?;
    conn.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    // Otherwise a statement is planned again for new arguments, which costs more than running it.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    conn.pragma_update(None, "foreign_keys", true)?;
    conn.pragma_update(None, "cache_size", -cache_kib)?;
    // A page that cannot be read is an error; with a mapped file it would be a signal that ends the process.
    conn.pragma_update(None, "mmap_size", 0)?;
    conn.pragma_update(None, "temp_store", "MEMORY")
}
