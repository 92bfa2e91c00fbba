//! Migrates the database to the current tables.

use std::time::Duration;

use evenbeat_core::store::StoreDown;
use tokio_postgres::types::Type;

use super::PgStore;
use super::connect::ConnectionUse;
use super::error::PgError;
use super::transaction::{Statement, Transaction};
use crate::store::migrations::{AppliedMigration, Migration, missing};

/// All migrations, in order.
pub(super) const MIGRATIONS: &[Migration] = &[
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

/// Altering the tables of a large fleet takes longer than a normal call.
const DEADLINE: Duration = Duration::from_mins(10);

/// If two nodes start at once, one migrates and the other waits. Held for the transaction only.
const LOCK: &str = "SELECT pg_advisory_xact_lock(7310597164892484)";
const TABLE: &str = "CREATE TABLE IF NOT EXISTS migration (no bigint NOT NULL PRIMARY KEY, name text NOT NULL, \
     checksum text NOT NULL, applied_at bigint NOT NULL)";

static APPLIED: Statement =
    Statement { sql: "SELECT no, name, checksum FROM migration ORDER BY no", types: &[] };
static APPLY: Statement = Statement {
    sql: "INSERT INTO migration (no, name, checksum, applied_at) VALUES ($1, $2, $3, now_ms())",
    types: &[Type::INT8, Type::TEXT, Type::TEXT],
};

impl PgStore {
    /// Migrates the tables, and returns the number of migrations that were applied. Tables of a later version, or with
    /// other migrations, are refused.
    pub async fn migrate(&self) -> Result<usize, StoreDown> {
        self.within(DEADLINE, async {
            let tx = Transaction::new(self, ConnectionUse::Write).await?;
            let n_steps = migrate(&tx).await?;
            tx.give_back();
            self.make_partitions().await?;
            Ok(n_steps)
        })
        .await
    }
}

async fn migrate(tx: &Transaction) -> Result<usize, PgError> {
    tx.begin().await?;
    tx.execute(&format!("SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0; {LOCK}")).await?;
    tx.execute(TABLE).await?;
    let mut applied = Vec::new();
    for row in tx.query(&APPLIED, []).await? {
        applied.push(AppliedMigration {
            no: row.try_get(0)?,
            name: row.try_get(1)?,
            checksum: row.try_get(2)?,
        });
    }
    let missing = missing(MIGRATIONS, &applied).map_err(|fault| PgError::Text(fault.to_string()))?;
    for step in missing {
        tx.execute(step.sql).await?;
        tx.query(&APPLY, [&step.no, &step.name, &step.checksum()]).await?;
    }
    tx.commit().await?;
    Ok(missing.len())
}
