//! The history of runs has a partition per day. Partitions are created in advance, and dropped when their day is old.

use evenbeat_core::time::Timestamp;
use tokio_postgres::types::Type;

use super::PgStore;
use super::connect::ConnectionUse;
use super::error::PgError;
use super::transaction::{Statement, Transaction};

const DAY_MS: i64 = 86_400_000;
/// How many days are created in advance, and how many in the past: a run may end a day before its end is written.
const N_AHEAD: i64 = 7;
const N_BACK: i64 = 1;

/// Waiting long for the lock of a table would make all later transactions wait too.
const IMPATIENT: &str = "SET LOCAL lock_timeout = 500";

static NOW: Statement = Statement { sql: "SELECT now_ms()", types: &[] };

/// The partitions of all days.
static DAYS: Statement = Statement {
    sql: "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid \
          WHERE i.inhparent = 'run'::regclass AND c.relname LIKE 'run\\_day\\_%' ORDER BY c.relname",
    types: &[],
};

/// Whether the default partition has runs of a day. Then the day gets no partition.
static IS_USED: Statement = Statement {
    sql: "SELECT EXISTS (SELECT FROM run_of_other_days WHERE $1 <= ended_at AND ended_at < $2)",
    types: &[Type::INT8, Type::INT8],
};

/// The table of a day, counted from 1970.
fn table(day: i64) -> String {
    format!("run_day_{day:06}")
}

fn day_of(at: Timestamp) -> i64 {
    at.as_millis().div_euclid(DAY_MS)
}

async fn days(tx: &Transaction) -> Result<Vec<i64>, PgError> {
    let mut days = Vec::new();
    for row in tx.query(&DAYS, []).await? {
        let name: &str = row.try_get(0)?;
        days.extend(name.strip_prefix("run_day_").and_then(|it| it.parse::<i64>().ok()));
    }
    Ok(days)
}

impl PgStore {
    /// The server's time.
    pub(super) async fn clock(&self) -> Result<Timestamp, PgError> {
        let tx = Transaction::new(self, ConnectionUse::Write).await?;
        let now = tx.query(&NOW, []).await?;
        tx.give_back();
        Ok(Timestamp::from_millis(now.first().ok_or(PgError::Retry)?.try_get(0)?))
    }

    /// Creates partitions for the next days, each in its own transaction. A day whose lock is not available is tried
    /// again later; until then its runs go to the default partition.
    pub(super) async fn make_partitions(&self) -> Result<(), PgError> {
        let today = day_of(self.clock().await?);
        let tx = Transaction::new(self, ConnectionUse::Write).await?;
        let there = days(&tx).await?;
        tx.give_back();
        for day in (today - N_BACK..=today + N_AHEAD).filter(|day| !there.contains(day)) {
            let tx = Transaction::new(self, ConnectionUse::Write).await?;
            match make(&tx, day).await {
                Err(fail) if !fail.is_lock_refused() => return Err(fail),
                Err(_) => {}
                Ok(()) => tx.give_back(),
            }
        }
        Ok(())
    }

    /// Drops the partitions of old days, and returns the number of their runs. Yesterday and later days always stay,
    /// because runs are still written there. A day whose lock is not available is tried again later.
    pub(super) async fn drop_partitions(&self, now: Timestamp, before: Timestamp) -> Result<usize, PgError> {
        let tx = Transaction::new(self, ConnectionUse::Write).await?;
        let there = days(&tx).await?;
        tx.give_back();
        let last = day_of(before).min(day_of(now) - N_BACK);
        let mut n_runs = 0;
        for day in there.into_iter().filter(|day| *day < last) {
            let tx = Transaction::new(self, ConnectionUse::Write).await?;
            match drop_day(&tx, day).await {
                Err(fail) if !fail.is_lock_refused() => return Err(fail),
                Err(_) => {}
                Ok(n) => {
                    n_runs += n;
                    tx.give_back();
                }
            }
        }
        Ok(n_runs)
    }
}

async fn make(tx: &Transaction, day: i64) -> Result<(), PgError> {
    let (name, first) = (table(day), day * DAY_MS);
    let last = first + DAY_MS;
    tx.begin().await?;
    // If two nodes do this at once, the second finds it done.
    tx.execute(&format!("{IMPATIENT}; SELECT pg_advisory_xact_lock(7310597164892485)")).await?;
    let is_used = tx.query(&IS_USED, [&first, &last]).await?;
    let is_there = days(tx).await?.contains(&day);
    if is_there || is_used.first().ok_or(PgError::Retry)?.try_get(0)? {
        return tx.rollback().await;
    }
    tx.execute(&format!(
        "CREATE TABLE {name} (LIKE run INCLUDING DEFAULTS INCLUDING CONSTRAINTS); \
         ALTER TABLE run ATTACH PARTITION {name} FOR VALUES FROM ({first}) TO ({last})"
    ))
    .await?;
    tx.commit().await
}

/// Drops the partition of a day, and returns the number of its runs.
async fn drop_day(tx: &Transaction, day: i64) -> Result<usize, PgError> {
    let name = table(day);
    tx.begin().await?;
    tx.execute("SET LOCAL statement_timeout = 60000").await?;
    let n_runs = tx.count(&format!("SELECT count(*) FROM {name}")).await?;
    tx.execute(&format!("{IMPATIENT}; ALTER TABLE run DETACH PARTITION {name}; DROP TABLE {name}")).await?;
    tx.commit().await?;
    Ok(usize::try_from(n_runs).unwrap_or(0))
}
