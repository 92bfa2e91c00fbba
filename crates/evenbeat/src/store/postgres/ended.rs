//! Runs after another one, and how many ended when.

use std::sync::LazyLock;

use evenbeat_core::ids::{JobKey, RunId};
use evenbeat_core::store::{RunRow, StoreDown};
use evenbeat_core::time::Timestamp;
use tokio_postgres::Row;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::PgStore;
use super::connect::ConnectionUse;
use super::error::PgError;
use super::listing::WALK;
use super::rows::{run_rows, select_open_run, select_run};
use super::transaction::{Param, Statement, Transaction, transact};
use super::views::{limit, read};
use crate::store::columns::number;
use crate::store::keyword::Keyword;
use crate::store::query::{EndedCount, EndedWindow, not_good};

static OPEN_AFTER: Statement = Statement {
    sql: concat!(
        "SELECT ",
        select_open_run!(),
        " FROM job j JOIN open_run o ON o.job_id = j.id WHERE $1 < o.id AND j.key = $3 ORDER BY o.id LIMIT $2"
    ),
    types: &[Type::UUID, Type::INT8, Type::TEXT],
};
static OVER_AFTER: Statement = Statement {
    sql: concat!(
        "SELECT ",
        select_run!(),
        " FROM job j JOIN run r ON r.job_id = j.id WHERE $1 < r.id AND j.key = $3 ORDER BY r.id LIMIT $2"
    ),
    types: &[Type::UUID, Type::INT8, Type::TEXT],
};
const HORIZON: &str =
    "SELECT ended_at FROM run WHERE $1 <= ended_at ORDER BY ended_at DESC LIMIT 1 OFFSET $2";
const COUNT: &str = "SELECT (ended_at - $1) / $2, count(*) FROM run \
                     WHERE $1 <= ended_at AND ended_at < $3 GROUP BY 1 ORDER BY 1";
static COUNT_NOT_GOOD: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT (ended_at - $1) / $2, count(*), outcome FROM run \
         WHERE outcome IN ({}) AND outcome <> 'succeeded' AND $1 <= ended_at AND ended_at < $3 \
         GROUP BY 1, 3 ORDER BY 1, 3",
        not_good()
    )
});

impl PgStore {
    /// The runs of a job after one of them, in the order of their claims.
    pub async fn later_runs(
        &self,
        key: &JobKey,
        after: RunId,
        most: usize,
    ) -> Result<Vec<RunRow>, StoreDown> {
        transact!(self, ConnectionUse::Read, |tx| later_runs(&tx, key, after, most))
    }

    /// When the run ended that `most` others came after; none if fewer have ended since then.
    pub async fn ended_horizon(&self, since: Timestamp, most: usize) -> Result<Option<Timestamp>, StoreDown> {
        let (since, most) = (since.as_millis(), limit(most));
        let rows = transact!(self, ConnectionUse::Read, |tx| walked(
            &tx,
            HORIZON,
            &[(&since, Type::INT8), (&most, Type::INT8)]
        ))?;
        Ok(read(&rows, |row| Ok(Timestamp::from_millis(row.try_get(0)?)))?.pop())
    }

    /// How many runs ended in each part of a window, and how many of them not well.
    pub async fn count_ended(&self, window: EndedWindow) -> Result<Vec<EndedCount>, StoreDown> {
        let EndedWindow { since, until, part } = window;
        let (since, part, until) = (since.as_millis(), part.as_millis().max(1), until.as_millis());
        let args: [(Param<'_>, Type); 3] = [(&since, Type::INT8), (&part, Type::INT8), (&until, Type::INT8)];
        let all = transact!(self, ConnectionUse::Read, |tx| walked(&tx, COUNT, &args))?;
        let bad = transact!(self, ConnectionUse::Read, |tx| walked(&tx, &COUNT_NOT_GOOD, &args))?;
        let mut counts = read(&all, |row| count(row, None))?;
        counts.extend(read(&bad, |row| count(row, Some(row.try_get(2)?)))?);
        Ok(counts)
    }
}

fn count(row: &Row, outcome: Option<&str>) -> Result<EndedCount, PgError> {
    let outcome = outcome.and_then(Keyword::from_keyword);
    Ok(EndedCount { part: number(row.try_get(0)?), outcome, n: number(row.try_get(1)?) })
}

/// Asks along an index.
async fn walked(tx: &Transaction, sql: &str, args: &[(Param<'_>, Type)]) -> Result<Vec<Row>, PgError> {
    tokio::try_join!(biased; tx.begin(), tx.execute(WALK))?;
    let (rows, ()) = tokio::try_join!(biased; tx.query_once(sql, args), tx.commit())?;
    Ok(rows)
}

async fn later_runs(
    tx: &Transaction,
    key: &JobKey,
    after: RunId,
    most: usize,
) -> Result<Vec<RunRow>, PgError> {
    let (after, limit, key) = (Uuid::from_u128(after.0), limit(most), key.as_str());
    let args: [Param<'_>; 3] = [&after, &limit, &key];
    tx.ready(&[&OPEN_AFTER, &OVER_AFTER]).await?;
    let ((), open, over, ()) = tokio::try_join!(
        biased;
        tx.begin(),
        tx.query_all(&OPEN_AFTER, &args),
        tx.query_all(&OVER_AFTER, &args),
        tx.commit(),
    )?;
    let mut found = run_rows(&open)?;
    // A run that ended between the two statements is in both results. The ended one is current.
    for run in run_rows(&over)? {
        found.retain(|it| it.run != run.run);
        found.push(run);
    }
    found.sort_by_key(|it| it.run);
    found.truncate(most);
    Ok(found)
}
