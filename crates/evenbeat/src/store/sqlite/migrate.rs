//! Takes a file to today's tables.

use evenbeat_core::time::Timestamp;
use rusqlite::{Connection, Result, Transaction, TransactionBehavior, params};

use crate::store::migrations::{Applied, Migration, MigrationFault, missing};

/// All steps, in order.
pub(super) const MIGRATIONS: [Migration; 5] = [
    Migration { no: 1, name: "begin", sql: include_str!("migrations/0001_begin.sql") },
    Migration {
        no: 2,
        name: "requests_and_doubts",
        sql: include_str!("migrations/0002_requests_and_doubts.sql"),
    },
    Migration { no: 3, name: "retention", sql: include_str!("migrations/0003_retention.sql") },
    Migration { no: 4, name: "rebalance_plan", sql: include_str!("migrations/0004_rebalance_plan.sql") },
    Migration { no: 5, name: "session_home", sql: include_str!("migrations/0005_session_home.sql") },
];

/// Why a file was not taken there.
#[derive(Debug)]
pub(super) enum NotMigrated {
    Fault(MigrationFault),
    Failed(rusqlite::Error),
}

impl From<rusqlite::Error> for NotMigrated {
    fn from(error: rusqlite::Error) -> NotMigrated {
        NotMigrated::Failed(error)
    }
}

/// The steps that a file still needs; looks only.
pub(super) fn needed(conn: &Connection) -> Result<&'static [Migration], NotMigrated> {
    missing(&MIGRATIONS, &applied(conn)?).map_err(NotMigrated::Fault)
}

/// Takes the steps, all or none.
pub(super) fn migrate(conn: &mut Connection, now: Timestamp) -> Result<(), NotMigrated> {
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

fn applied(conn: &Connection) -> Result<Vec<Applied>> {
    let exists = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'migration')";
    if !conn.query_row(exists, [], |row| row.get(0))? {
        return Ok(Vec::new());
    }
    conn.prepare("SELECT no, name, checksum FROM migration ORDER BY no")?
        .query_map([], |row| Ok(Applied { no: row.get(0)?, name: row.get(1)?, checksum: row.get(2)? }))?
        .collect()
}
