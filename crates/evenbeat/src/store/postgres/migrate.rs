//! The tables, brought up to what this program knows.

use std::time::Duration;

use evenbeat_core::store::StoreDown;
use tokio_postgres::types::Type;

use super::PgStore;
use super::connect::Lane;
use super::fail::Fail;
use super::tx::{Query, Tx};
use crate::store::migrations::{Applied, Migration, missing};

/// All steps, in order.
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
];

/// Tables of a large fleet are not altered within a heartbeat.
const DEADLINE: Duration = Duration::from_mins(10);

/// Two nodes that start at once: one migrates, the other waits. Held for the transaction only.
const LOCK: &str = "SELECT pg_advisory_xact_lock(7310597164892484)";
const TABLE: &str = "CREATE TABLE IF NOT EXISTS migration (no bigint NOT NULL PRIMARY KEY, name text NOT NULL, \
     checksum text NOT NULL, applied_at bigint NOT NULL)";

static APPLIED: Query = Query { sql: "SELECT no, name, checksum FROM migration ORDER BY no", types: &[] };
static APPLY: Query = Query {
    sql: "INSERT INTO migration (no, name, checksum, applied_at) VALUES ($1, $2, $3, now_ms())",
    types: &[Type::INT8, Type::TEXT, Type::TEXT],
};

impl PgStore {
    /// Brings the tables up to date. Tables of a later program are refused, and so are tables that were made by
    /// other steps than this program's. Returns how many steps were taken.
    pub async fn migrate(&self) -> Result<usize, StoreDown> {
        self.within(DEADLINE, async {
            let tx = Tx::new(self, Lane::Pool).await?;
            let n_steps = migrate(&tx).await?;
            tx.give_back();
            self.make_partitions().await?;
            Ok(n_steps)
        })
        .await
    }
}

async fn migrate(tx: &Tx) -> Result<usize, Fail> {
    tx.begin().await?;
    tx.execute(&format!("SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0; {LOCK}")).await?;
    tx.execute(TABLE).await?;
    let mut applied = Vec::new();
    for row in tx.query(&APPLIED, []).await? {
        applied.push(Applied { no: row.try_get(0)?, name: row.try_get(1)?, checksum: row.try_get(2)? });
    }
    let missing = missing(MIGRATIONS, &applied).map_err(|fault| Fail::Told(fault.to_string()))?;
    for step in missing {
        tx.execute(step.sql).await?;
        tx.query(&APPLY, [&step.no, &step.name, &step.checksum()]).await?;
    }
    tx.commit().await?;
    Ok(missing.len())
}
