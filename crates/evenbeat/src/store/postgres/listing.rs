//! Lists for people: jobs and runs that match a filter, and samples of the score.
//!
//! Statements are built from the filter, so that each is planned for just that filter.

use evenbeat_core::ids::{JobKey, RunId};
use evenbeat_core::store::{RunRow, StoreDown};
use evenbeat_core::time::Timestamp;
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};
use uuid::Uuid;

use super::PgStore;
use super::connect::ConnectionUse;
use super::error::PgError;
use super::rows::{job_key, run_row, run_rows, select_job, select_open_run, select_run};
use super::transaction::{Param, Statement, Transaction, transact};
use super::views::{ask, limit, read};
use crate::store::columns::{number, stored_number};
use crate::store::query::{COUNT_MAX, Count, JobFilter, JobPage, PAGE_MAX, RunPage, RunQuery, ScorePoint};
use crate::store::walk::{Arg, Dialect, JobRoute, JobWalk, RARE_MAX, RunWalk, Sql, ended_at, furthest};

static POSTGRES: Dialect = Dialect { join: "JOIN", position: "strpos", has_hints: false };

/// Lists walk an index and look up few rows. The server must not read whole tables instead, whatever its statistics
/// say.
pub(super) const WALK: &str = "SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; SET LOCAL enable_hashjoin = off; \
                    SET LOCAL enable_mergejoin = off; SET LOCAL join_collapse_limit = 1; \
                    SET LOCAL max_parallel_workers_per_gather = 0";

static OPEN_RUN: Statement = Statement {
    sql: concat!(
        "SELECT ",
        select_open_run!(),
        " FROM open_run o JOIN job j ON j.id = o.job_id WHERE o.id = $1"
    ),
    types: &[Type::UUID],
};
static RUN: Statement = Statement {
    sql: concat!("SELECT ", select_run!(), " FROM run r JOIN job j ON j.id = r.job_id WHERE r.id = $1"),
    types: &[Type::UUID],
};
static LATEST_RUNS: Statement = Statement {
    sql: concat!(
        "SELECT ",
        select_run!(),
        " FROM job j CROSS JOIN LATERAL \
          (SELECT * FROM run WHERE run.job_id = j.id ORDER BY run.id DESC LIMIT $2) r \
          WHERE j.key = ANY($1)"
    ),
    types: &[Type::TEXT_ARRAY, Type::INT8],
};
static SCORES: Statement = Statement {
    sql: "SELECT at, score, peak, n_jobs FROM score WHERE $1 <= at ORDER BY at LIMIT $2",
    types: &[Type::INT8, Type::INT8],
};
static PUT_SCORE: Statement = Statement {
    sql: "WITH old AS (DELETE FROM score WHERE at < $5) \
          INSERT INTO score (at, score, peak, n_jobs) VALUES ($1, $2, $3, $4) \
          ON CONFLICT (at) DO UPDATE SET score = $2, peak = $3, n_jobs = $4",
    types: &[Type::INT8, Type::FLOAT8, Type::INT8, Type::INT8, Type::INT8],
};

impl PgStore {
    /// Jobs by key, after one of them. A page may be short and still have a `next`, if matching jobs are far apart.
    pub async fn list_jobs(
        &self,
        filter: &JobFilter,
        after: Option<&JobKey>,
        most: usize,
    ) -> Result<JobPage, StoreDown> {
        let most = most.min(PAGE_MAX);
        let jobs = JobWalk::new(filter, after, &POSTGRES);
        let (rows, horizon) = transact!(self, ConnectionUse::Read, |tx| job_page(&tx, &jobs, most))?;
        let mut rows = read(&rows, |row| self.inner.reader.job_row(row))?;
        let is_more = most < rows.len();
        rows.truncate(most);
        let next = match rows.last() {
            Some(last) if is_more => Some(last.job.key.clone()),
            _ => horizon.map(|key| job_key(&key)).transpose().map_err(|fail| fail.down())?,
        };
        Ok(JobPage { rows, next })
    }

    /// Counts matching jobs, as far as that is quick.
    pub async fn count_jobs(&self, filter: &JobFilter) -> Result<Count, StoreDown> {
        let jobs = JobWalk::new(filter, None, &POSTGRES);
        let (n, horizon) = transact!(self, ConnectionUse::Read, |tx| job_count(&tx, &jobs))?;
        Ok(Count { n: n.min(COUNT_MAX), is_more: horizon.is_some() || COUNT_MAX < n })
    }

    /// Ended runs, before one of them. A page may be short and still have a `next`, if matching runs are far apart.
    pub async fn list_runs(
        &self,
        query: &RunQuery,
        before: Option<RunId>,
        most: usize,
    ) -> Result<RunPage, StoreDown> {
        let most = most.min(PAGE_MAX);
        let (rows, horizon) = transact!(self, ConnectionUse::Read, |tx| run_page(&tx, query, before, most))?;
        let mut rows = read(&rows, run_row)?;
        let is_more = most < rows.len();
        rows.truncate(most);
        let next = match rows.last() {
            Some(last) if is_more => Some(last.run),
            _ => horizon,
        };
        Ok(RunPage { rows, next })
    }

    /// The latest ended runs of several jobs, at most `most` of each.
    pub async fn latest_runs(&self, keys: &[JobKey], most: usize) -> Result<Vec<RunRow>, StoreDown> {
        let keys: Vec<&str> = keys.iter().map(JobKey::as_str).collect();
        let rows = transact!(self, ConnectionUse::Read, |tx| ask(&tx, &LATEST_RUNS, [&keys, &limit(most)]))?;
        read(&rows, run_row)
    }

    /// One run, open or ended.
    pub async fn run(&self, run: RunId) -> Result<Option<RunRow>, StoreDown> {
        transact!(self, ConnectionUse::Read, |tx| one_run(&tx, run))
    }

    /// The samples of the score since an instant, oldest first.
    pub async fn scores(&self, since: Timestamp, most: usize) -> Result<Vec<ScorePoint>, StoreDown> {
        let since = since.as_millis();
        let rows = transact!(self, ConnectionUse::Read, |tx| ask(&tx, &SCORES, [&since, &limit(most)]))?;
        read(&rows, |row| {
            Ok(ScorePoint {
                at: Timestamp::from_millis(row.try_get(0)?),
                score: row.try_get(1)?,
                peak: number(row.try_get(2)?),
                n_jobs: number(row.try_get(3)?),
            })
        })
    }

    /// Stores a sample of the score, and removes older ones than `keep_since`.
    pub async fn put_score(&self, point: &ScorePoint, keep_since: Timestamp) -> Result<(), StoreDown> {
        let (at, keep_since) = (point.at.as_millis(), keep_since.as_millis());
        let (peak, n_jobs) = (stored_number(point.peak), stored_number(point.n_jobs));
        transact!(self, ConnectionUse::Write, |tx| ask(
            &tx,
            &PUT_SCORE,
            [&at, &point.score, &peak, &n_jobs, &keep_since]
        ))?;
        Ok(())
    }
}

async fn job_page(
    tx: &Transaction,
    jobs: &JobWalk<'_>,
    most: usize,
) -> Result<(Vec<Row>, Option<String>), PgError> {
    tokio::try_join!(biased; tx.begin(), tx.execute(WALK))?;
    let (route, horizon) = route(tx, jobs).await?;
    let sql = jobs.keys(route, horizon.as_deref(), most.saturating_add(1)).within(
        concat!("SELECT ", select_job!(), " FROM ("),
        ") p JOIN job j ON j.key = p.key JOIN memory m ON m.job_id = j.id ORDER BY p.key",
    );
    let (rows, ()) = tokio::try_join!(biased; list(tx, &sql), tx.commit())?;
    Ok((rows, horizon))
}

async fn job_count(tx: &Transaction, jobs: &JobWalk<'_>) -> Result<(u64, Option<String>), PgError> {
    tokio::try_join!(biased; tx.begin(), tx.execute(WALK))?;
    let (route, horizon) = route(tx, jobs).await?;
    let count = jobs.count(route, horizon.as_deref());
    let (rows, ()) = tokio::try_join!(biased; list(tx, &count), tx.commit())?;
    Ok((number(rows.first().ok_or(PgError::Retry)?.try_get(0)?), horizon))
}

/// The route to take, and its horizon.
async fn route(tx: &Transaction, jobs: &JobWalk<'_>) -> Result<(JobRoute, Option<String>), PgError> {
    for route in jobs.rare_routes() {
        let rows = list(tx, &jobs.n_rare(route)).await?;
        let n: i64 = rows.first().ok_or(PgError::Retry)?.try_get(0)?;
        if n <= limit(RARE_MAX) {
            return Ok((route, None));
        }
    }
    let routes = jobs.routes();
    if let Some(route) = routes.iter().find(|route| jobs.is_straight(**route)) {
        return Ok((*route, None));
    }
    let mut horizons = Vec::new();
    for route in routes {
        let rows = list(tx, &jobs.horizon(route)).await?;
        horizons.push((route, rows.first().map(|row| row.try_get(0)).transpose()?));
    }
    Ok(furthest(horizons))
}

async fn run_page(
    tx: &Transaction,
    query: &RunQuery,
    before: Option<RunId>,
    most: usize,
) -> Result<(Vec<Row>, Option<RunId>), PgError> {
    tokio::try_join!(biased; tx.begin(), tx.execute(WALK))?;
    let before = match before {
        None => None,
        Some(run) => match list(tx, &ended_at(run)).await?.first() {
            Some(row) => Some((run, row.try_get(0)?)),
            // It was trimmed, and so were all runs after it.
            None => {
                tx.commit().await?;
                return Ok((Vec::new(), None));
            }
        },
    };
    let runs = RunWalk::new(query, before, &POSTGRES);
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

async fn list(tx: &Transaction, sql: &Sql) -> Result<Vec<Row>, PgError> {
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

async fn one_run(tx: &Transaction, run: RunId) -> Result<Option<RunRow>, PgError> {
    let id = Uuid::from_u128(run.0);
    tx.ready(&[&OPEN_RUN, &RUN]).await?;
    let ((), open, over, ()) = tokio::try_join!(
        biased;
        tx.begin(),
        tx.query(&OPEN_RUN, [&id]),
        tx.query(&RUN, [&id]),
        tx.commit(),
    )?;
    // A run that ended between the two statements is in both results. The ended one is current.
    let mut runs = run_rows(&over)?;
    runs.extend(run_rows(&open)?);
    Ok(runs.into_iter().next())
}
