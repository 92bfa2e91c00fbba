//! The history of runs by days: made ahead, and dropped whole when all of a day is old.

use evenbeat_core::time::Timestamp;
use tokio_postgres::types::Type;

use super::PgStore;
use super::connect::Lane;
use super::fail::Fail;
use super::tx::{Query, Tx};

const DAY_MS: i64 = 86_400_000;
/// So many days are made ahead, and how many back: a run may have ended before it is written.
const N_AHEAD: i64 = 7;
const N_BACK: i64 = 1;

/// Whoever waits for a table makes everybody behind wait too.
const IMPATIENT: &str = "SET LOCAL lock_timeout = 500";

static NOW: Query = Query { sql: "SELECT now_ms()", types: &[] };

/// All days there are, by the names of their tables.
static DAYS: Query = Query {
    sql: "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid \
          WHERE i.inhparent = 'run'::regclass AND c.relname LIKE 'run\\_day\\_%' ORDER BY c.relname",
    types: &[],
};

/// What ended on a day for which nothing was made in time stays where it is.
static IS_USED: Query = Query {
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

async fn days(tx: &Tx) -> Result<Vec<i64>, Fail> {
    let mut days = Vec::new();
    for row in tx.query(&DAYS, []).await? {
        let name: &str = row.try_get(0)?;
        days.extend(name.strip_prefix("run_day_").and_then(|it| it.parse::<i64>().ok()));
    }
    Ok(days)
}

impl PgStore {
    /// What time it is for everybody who uses this database.
    pub(super) async fn clock(&self) -> Result<Timestamp, Fail> {
        let tx = Tx::new(self, Lane::Pool).await?;
        let now = tx.query(&NOW, []).await?;
        tx.give_back();
        Ok(Timestamp::from_millis(now.first().ok_or(Fail::Again)?.try_get(0)?))
    }

    /// Makes tables for the days to come. Each by itself and without insisting: who cannot get the lock at once comes
    /// back later, and until then runs go where other days go.
    pub(super) async fn make_partitions(&self) -> Result<(), Fail> {
        let today = day_of(self.clock().await?);
        let tx = Tx::new(self, Lane::Pool).await?;
        let there = days(&tx).await?;
        tx.give_back();
        for day in (today - N_BACK..=today + N_AHEAD).filter(|day| !there.contains(day)) {
            let tx = Tx::new(self, Lane::Pool).await?;
            match make(&tx, day).await {
                Err(fail) if !fail.is_lock_refused() => return Err(fail),
                Err(_) => {}
                Ok(()) => tx.give_back(),
            }
        }
        Ok(())
    }

    /// Drops days that are wholly older, and says how many runs went with them. Yesterday and later always stays:
    /// runs are still written there. Who is in the way is left alone until the next time.
    pub(super) async fn drop_partitions(&self, now: Timestamp, before: Timestamp) -> Result<usize, Fail> {
        let tx = Tx::new(self, Lane::Pool).await?;
        let there = days(&tx).await?;
        tx.give_back();
        let last = day_of(before).min(day_of(now) - N_BACK);
        let mut n_runs = 0;
        for day in there.into_iter().filter(|day| *day < last) {
            let tx = Tx::new(self, Lane::Pool).await?;
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

async fn make(tx: &Tx, day: i64) -> Result<(), Fail> {
    let (name, first) = (table(day), day * DAY_MS);
    let last = first + DAY_MS;
    tx.begin().await?;
    // Two nodes that do this at once: the second finds it done.
    tx.execute(&format!("{IMPATIENT}; SELECT pg_advisory_xact_lock(7310597164892485)")).await?;
    let is_used = tx.query(&IS_USED, [&first, &last]).await?;
    let is_there = days(tx).await?.contains(&day);
    if is_there || is_used.first().ok_or(Fail::Again)?.try_get(0)? {
        return tx.rollback().await;
    }
    tx.execute(&format!(
        "CREATE TABLE {name} (LIKE run INCLUDING DEFAULTS INCLUDING CONSTRAINTS); \
         ALTER TABLE run ATTACH PARTITION {name} FOR VALUES FROM ({first}) TO ({last})"
    ))
    .await?;
    tx.commit().await
}

/// Takes one day away, and says how many runs went with it.
async fn drop_day(tx: &Tx, day: i64) -> Result<usize, Fail> {
    let name = table(day);
    tx.begin().await?;
    tx.execute("SET LOCAL statement_timeout = 60000").await?;
    let n_runs = tx.count(&format!("SELECT count(*) FROM {name}")).await?;
    tx.execute(&format!("{IMPATIENT}; ALTER TABLE run DETACH PARTITION {name}; DROP TABLE {name}")).await?;
    tx.commit().await?;
    Ok(usize::try_from(n_runs).unwrap_or(0))
}
