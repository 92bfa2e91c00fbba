//! Migrates a file to the current tables.

use evenbeat_core::time::Timestamp;
use rusqlite::{Connection, Result, Transaction, TransactionBehavior, params};

use crate::store::migrations::{AppliedMigration, Migration, MigrationFault, missing};

/// All migrations, in order.
pub(super) const MIGRATIONS: [Migration; 10] = [
    Migration { no: 1, name: "begin", sql: include_str!("migrations/0001_begin.sql") },
    Migration {
        no: 2,
        name: "requests_and_doubts",
        sql: include_str!("migrations/0002_requests_and_doubts.sql"),
    },
    Migration { no: 3, name: "retention", sql: include_str!("migrations/0003_retention.sql") },
    Migration { no: 4, name: "rebalance_plan", sql: include_str!("migrations/0004_rebalance_plan.sql") },
    Migration { no: 5, name: "session_home", sql: include_str!("migrations/0005_session_home.sql") },
    Migration { no: 6, name: "access", sql: include_str!("migrations/0006_access.sql") },
    Migration { no: 7, name: "audit_chain", sql: include_str!("migrations/0007_audit_chain.sql") },
    Migration { no: 8, name: "pause_end", sql: include_str!("migrations/0008_pause_end.sql") },
    Migration { no: 9, name: "job_span", sql: include_str!("migrations/0009_job_span.sql") },
    Migration { no: 10, name: "alerts", sql: include_str!("migrations/0010_alerts.sql") },
];

/// Why a file was not migrated.
#[derive(Debug)]
pub(super) enum MigrateError {
    Fault(MigrationFault),
    Failed(rusqlite::Error),
}

impl From<rusqlite::Error> for MigrateError {
    fn from(error: rusqlite::Error) -> MigrateError {
        MigrateError::Failed(error)
    }
}

/// The migrations that a file still needs. Changes nothing.
pub(super) fn needed(conn: &Connection) -> Result<&'static [Migration], MigrateError> {
    missing(&MIGRATIONS, &applied(conn)?).map_err(MigrateError::Fault)
}

/// Applies them, all or none.
pub(super) fn migrate(conn: &mut Connection, now: Timestamp) -> Result<(), MigrateError> {
    if needed(conn)?.is_empty() {
        return Ok(());
    }
    let transaction = Transaction::new(conn, TransactionBehavior::Immediate)?;
    transaction.execute_batch(
        "CREATE TABLE IF NOT EXISTS migration (
             no INTEGER NOT NULL PRIMARY KEY,
             name TEXT NOT NULL,
             checksum TEXT NOT NULL,
             applied_at INTEGER NOT NULL
         ) STRICT",
    )?;
    for step in needed(&transaction)? {
        transaction.execute_batch(step.sql)?;
        transaction.execute(
            "INSERT INTO migration (no, name, checksum, applied_at) VALUES (?1, ?2, ?3, ?4)",
            params![step.no, step.name, step.checksum(), now.as_millis()],
        )?;
    }
    transaction.execute(
        "INSERT INTO epoch (no, timeline, is_open, begun_at)
         SELECT 1, 'file', 1, ?1 WHERE NOT EXISTS (SELECT 1 FROM epoch)",
        [now.as_millis()],
    )?;
    transaction.commit()?;
    Ok(())
}

fn applied(conn: &Connection) -> Result<Vec<AppliedMigration>> {
    let exists = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'migration')";
    if !conn.query_row(exists, [], |row| row.get(0))? {
        return Ok(Vec::new());
    }
    conn.prepare("SELECT no, name, checksum FROM migration ORDER BY no")?
        .query_map([], |row| {
            Ok(AppliedMigration { no: row.get(0)?, name: row.get(1)?, checksum: row.get(2)? })
        })?
        .collect()
}
