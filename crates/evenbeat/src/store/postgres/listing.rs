//! Lists for people: jobs and runs by what one looks for, and how evenly the fleet was spread.
//!
//! Their statements are put together from what was asked, so that each is planned for just that.

use evenbeat_core::ids::{JobKey, RunId};
use evenbeat_core::store::{RunRow, StoreDown};
use evenbeat_core::time::Timestamp;
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};
use uuid::Uuid;

use super::PgStore;
use super::connect::Lane;
use super::fail::Fail;
use super::rows::{job_key, run_row, run_rows, select_job, select_open_run, select_run};
use super::tx::{Param, Query, Tx, transact};
use super::views::{ask, limit, read};
use crate::store::columns::{number, stored_number};
use crate::store::query::{COUNT_MAX, Count, JobFilter, JobPage, PAGE_MAX, RunPage, RunQuery, ScorePoint};
use crate::store::walk::{Arg, Dialect, Jobs, JobsWay, RARE_MAX, Runs, Sql, ended_at, furthest};

static POSTGRES: Dialect = Dialect { join: "JOIN", position: "strpos", has_hints: false };

/// Lists walk an index from somewhere on, and look up little of what they pass. The server must not think of reading
/// whole tables instead, whatever it believes to know of them.
const WALK: &str = "SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; SET LOCAL enable_hashjoin = off; \
                    SET LOCAL enable_mergejoin = off; SET LOCAL join_collapse_limit = 1; \
                    SET LOCAL max_parallel_workers_per_gather = 0";

static OPEN_RUN: Query = Query {
    sql: concat!(
        "SELECT ",
        select_open_run!(),
        " FROM open_run o JOIN job j ON j.id = o.job_id WHERE o.id = $1"
    ),
    types: &[Type::UUID],
};
static RUN: Query = Query {
    sql: concat!("SELECT ", select_run!(), " FROM run r JOIN job j ON j.id = r.job_id WHERE r.id = $1"),
    types: &[Type::UUID],
};
static SCORES: Query = Query {
    sql: "SELECT at, score, peak, n_jobs FROM score WHERE $1 <= at ORDER BY at LIMIT $2",
    types: &[Type::INT8, Type::INT8],
};
static PUT_SCORE: Query = Query {
    sql: "WITH old AS (DELETE FROM score WHERE at < $5) \
          INSERT INTO score (at, score, peak, n_jobs) VALUES ($1, $2, $3, $4) \
          ON CONFLICT (at) DO UPDATE SET score = $2, peak = $3, n_jobs = $4",
    types: &[Type::INT8, Type::FLOAT8, Type::INT8, Type::INT8, Type::INT8],
};

impl PgStore {
    /// Jobs by key, after one of them, at most so many; fewer, with a `next`, if those that were asked for lie too far
    /// apart.
    pub async fn list_jobs(
        &self,
        filter: &JobFilter,
        after: Option<&JobKey>,
        most: usize,
    ) -> Result<JobPage, StoreDown> {
        let most = most.min(PAGE_MAX);
        let jobs = Jobs::new(filter, after, &POSTGRES);
        let (rows, horizon) = transact!(self, Lane::Read, |tx| job_page(&tx, &jobs, most))?;
        let mut rows = read(&rows, |row| self.inner.reader.job_row(row))?;
        let is_more = most < rows.len();
        rows.truncate(most);
        let next = match rows.last() {
            Some(last) if is_more => Some(last.job.key.clone()),
            _ => horizon.map(|key| job_key(&key)).transpose().map_err(|fail| fail.down())?,
        };
        Ok(JobPage { rows, next })
    }

    /// How many jobs there are of those, as far as that can be told soon.
    pub async fn count_jobs(&self, filter: &JobFilter) -> Result<Count, StoreDown> {
        let jobs = Jobs::new(filter, None, &POSTGRES);
        let (n, horizon) = transact!(self, Lane::Read, |tx| job_count(&tx, &jobs))?;
        Ok(Count { n: n.min(COUNT_MAX), is_more: horizon.is_some() || COUNT_MAX < n })
    }

    /// Runs that are over, before one of them, at most so many; fewer, with a `next`, if those that were asked for lie
    /// too far apart.
    pub async fn list_runs(
        &self,
        query: &RunQuery,
        before: Option<RunId>,
        most: usize,
    ) -> Result<RunPage, StoreDown> {
        let most = most.min(PAGE_MAX);
        let (rows, horizon) = transact!(self, Lane::Read, |tx| run_page(&tx, query, before, most))?;
        let mut rows = read(&rows, run_row)?;
        let is_more = most < rows.len();
        rows.truncate(most);
        let next = match rows.last() {
            Some(last) if is_more => Some(last.run),
            _ => horizon,
        };
        Ok(RunPage { rows, next })
    }

    /// One run, open or over.
    pub async fn run(&self, run: RunId) -> Result<Option<RunRow>, StoreDown> {
        transact!(self, Lane::Read, |tx| one_run(&tx, run))
    }

    /// How evenly the fleet was spread from an instant on, oldest first, at most so many.
    pub async fn scores(&self, since: Timestamp, most: usize) -> Result<Vec<ScorePoint>, StoreDown> {
        let since = since.as_millis();
        let rows = transact!(self, Lane::Read, |tx| ask(&tx, &SCORES, [&since, &limit(most)]))?;
        read(&rows, |row| {
            Ok(ScorePoint {
                at: Timestamp::from_millis(row.try_get(0)?),
                score: row.try_get(1)?,
                peak: number(row.try_get(2)?),
                n_jobs: number(row.try_get(3)?),
            })
        })
    }

    /// Writes down how evenly the fleet is spread, and drops what is older than need be.
    pub async fn put_score(&self, point: &ScorePoint, keep_since: Timestamp) -> Result<(), StoreDown> {
        let (at, keep_since) = (point.at.as_millis(), keep_since.as_millis());
        let (peak, n_jobs) = (stored_number(point.peak), stored_number(point.n_jobs));
        transact!(self, Lane::Pool, |tx| ask(
            &tx,
            &PUT_SCORE,
            [&at, &point.score, &peak, &n_jobs, &keep_since]
        ))?;
        Ok(())
    }
}

async fn job_page(tx: &Tx, jobs: &Jobs<'_>, most: usize) -> Result<(Vec<Row>, Option<String>), Fail> {
    tokio::try_join!(biased; tx.begin(), tx.execute(WALK))?;
    let (way, horizon) = way(tx, jobs).await?;
    let sql = jobs.keys(way, horizon.as_deref(), most.saturating_add(1)).within(
        concat!("SELECT ", select_job!(), " FROM ("),
        ") p JOIN job j ON j.key = p.key JOIN memory m ON m.job_id = j.id ORDER BY p.key",
    );
    let (rows, ()) = tokio::try_join!(biased; list(tx, &sql), tx.commit())?;
    Ok((rows, horizon))
}

async fn job_count(tx: &Tx, jobs: &Jobs<'_>) -> Result<(u64, Option<String>), Fail> {
    tokio::try_join!(biased; tx.begin(), tx.execute(WALK))?;
    let (way, horizon) = way(tx, jobs).await?;
    let count = jobs.count(way, horizon.as_deref());
    let (rows, ()) = tokio::try_join!(biased; list(tx, &count), tx.commit())?;
    Ok((number(rows.first().ok_or(Fail::Again)?.try_get(0)?), horizon))
}

/// Which way to go, and how far it comes.
async fn way(tx: &Tx, jobs: &Jobs<'_>) -> Result<(JobsWay, Option<String>), Fail> {
    for way in jobs.rare_ways() {
        let rows = list(tx, &jobs.n_rare(way)).await?;
        let n: i64 = rows.first().ok_or(Fail::Again)?.try_get(0)?;
        if n <= limit(RARE_MAX) {
            return Ok((way, None));
        }
    }
    let ways = jobs.ways();
    if let Some(way) = ways.iter().find(|way| jobs.is_straight(**way)) {
        return Ok((*way, None));
    }
    let mut horizons = Vec::new();
    for way in ways {
        let rows = list(tx, &jobs.horizon(way)).await?;
        horizons.push((way, rows.first().map(|row| row.try_get(0)).transpose()?));
    }
    Ok(furthest(horizons))
}

async fn run_page(
    tx: &Tx,
    query: &RunQuery,
    before: Option<RunId>,
    most: usize,
) -> Result<(Vec<Row>, Option<RunId>), Fail> {
    tokio::try_join!(biased; tx.begin(), tx.execute(WALK))?;
    let before = match before {
        None => None,
        Some(run) => match list(tx, &ended_at(run)).await?.first() {
            Some(row) => Some((run, row.try_get(0)?)),
            // It was old enough to go, and so is whatever comes behind it.
            None => {
                tx.commit().await?;
                return Ok((Vec::new(), None));
            }
        },
    };
    let runs = Runs::new(query, before, &POSTGRES);
    let mut horizon = None;
    if !runs.is_straight()
        && let Some(row) = list(tx, &runs.horizon()).await?.first()
    {
        horizon = Some((RunId(row.try_get::<_, Uuid>(0)?.as_u128()), row.try_get(1)?));
    }
    let sql =
        runs.page(horizon, most.saturating_add(1)).within(concat!("SELECT ", select_run!(), " FROM "), "");
    let (rows, ()) = tokio::try_join!(biased; list(tx, &sql), tx.commit())?;
    Ok((rows, horizon.map(|(run, _)| run)))
}

async fn list(tx: &Tx, sql: &Sql) -> Result<Vec<Row>, Fail> {
    let values: Vec<(Box<dyn ToSql + Sync + Send>, Type)> = sql.args.iter().map(value).collect();
    let params: Vec<(Param<'_>, Type)> =
        values.iter().map(|(value, its_type)| (&**value as Param<'_>, its_type.clone())).collect();
    tx.query_once(&sql.with_placeholders(|no| format!("${no}")), &params).await
}

fn value(arg: &Arg) -> (Box<dyn ToSql + Sync + Send>, Type) {
    match arg {
        Arg::Text(text) => (Box::new(text.clone()), Type::TEXT),
        Arg::Number(number) => (Box::new(*number), Type::INT8),
        Arg::Id(id) => (Box::new(Uuid::from_u128(*id)), Type::UUID),
    }
}

async fn one_run(tx: &Tx, run: RunId) -> Result<Option<RunRow>, Fail> {
    let id = Uuid::from_u128(run.0);
    tx.ready(&[&OPEN_RUN, &RUN]).await?;
    let ((), open, over, ()) = tokio::try_join!(
        biased;
        tx.begin(),
        tx.query(&OPEN_RUN, [&id]),
        tx.query(&RUN, [&id]),
        tx.commit(),
    )?;
    // One that ended between the two looks is in both: as it is now.
    let mut runs = run_rows(&over)?;
    runs.extend(run_rows(&open)?);
    Ok(runs.into_iter().next())
}
