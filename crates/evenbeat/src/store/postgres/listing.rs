//! Lists for people: jobs and runs by what one looks for, and how evenly the fleet was spread.
//!
//! Their statements are put together from what was asked, so that each is planned for just that.

use evenbeat_core::ids::{JobKey, RunId};
use evenbeat_core::store::{RunRow, StoreDown};
use evenbeat_core::time::Timestamp;
use tokio_postgres::types::{ToSql, Type};
use uuid::Uuid;

use super::PgStore;
use super::connect::Lane;
use super::fail::Fail;
use super::rows::{run_row, run_rows, select_job, select_open_run, select_run};
use super::tx::{Query, Tx, transact};
use super::views::{LATEST, ask, limit, read};
use crate::store::columns::{number, stored_number};
use crate::store::query::{JobFilter, JobPage, PAGE_MAX, RunPage, RunQuery, ScorePoint};
use crate::store::word::Word;

/// The conditions of a statement, and its parameters.
#[derive(Default)]
struct Where {
    sql: String,
    params: Vec<(Box<dyn ToSql + Sync + Send>, Type)>,
}

impl Where {
    /// A condition with `{}` for each of its parameters.
    fn and<const N: usize>(&mut self, condition: &str, params: [(Box<dyn ToSql + Sync + Send>, Type); N]) {
        self.sql += if self.sql.is_empty() { " WHERE " } else { " AND " };
        let mut parts = condition.split("{}");
        self.sql += parts.next().unwrap_or_default();
        for (part, param) in parts.zip(params) {
            self.params.push(param);
            self.sql += "$";
            self.sql += &self.params.len().to_string();
            self.sql += part;
        }
    }

    fn and_if(&mut self, is: Option<bool>, condition: &str) {
        match is {
            None => {}
            Some(true) => self.and(condition, []),
            Some(false) => self.and(&format!("NOT ({condition})"), []),
        }
    }
}

fn text(text: &str) -> (Box<dyn ToSql + Sync + Send>, Type) {
    (Box::new(text.to_owned()), Type::TEXT)
}

fn millis(at: Timestamp) -> (Box<dyn ToSql + Sync + Send>, Type) {
    (Box::new(at.as_millis()), Type::INT8)
}

fn jobs_where(filter: &JobFilter) -> Where {
    let mut jobs = Where::default();
    jobs.and("NOT j.is_deleted", []);
    if let Some(prefix) = &filter.key_prefix {
        // Keys are ASCII, so nothing that begins so comes after this.
        jobs.and("{} <= j.key AND j.key < {}", [text(prefix), text(&format!("{prefix}\u{7f}"))]);
    }
    if let Some(part) = &filter.key_text {
        jobs.and("strpos(lower(j.key), {}) <> 0", [text(&part.to_lowercase())]);
    }
    for (name, value) in &filter.labels {
        jobs.and(
            "EXISTS (SELECT FROM label l WHERE l.name = {} AND l.value = {} AND l.job_id = j.id)",
            [text(name), text(value)],
        );
    }
    if let Some(pool) = &filter.pool {
        jobs.and("j.pool = {}", [text(pool.as_str())]);
    }
    if let Some(site) = &filter.site {
        jobs.and("j.site = {}", [text(site.as_str())]);
    }
    if let Some(tenant) = &filter.tenant {
        jobs.and("j.tenant = {}", [text(tenant.as_str())]);
    }
    jobs.and_if(filter.is_paused, "m.paused_by IS NOT NULL");
    jobs.and_if(filter.is_enabled, "j.is_enabled");
    jobs.and_if(filter.is_running, "0 < m.n_open");
    jobs
}

fn runs_where(query: &RunQuery, before: Option<RunId>) -> Where {
    let mut runs = Where::default();
    let before = before.map_or(LATEST, |it| Uuid::from_u128(it.0));
    runs.and("r.id < {}", [(Box::new(before) as _, Type::UUID)]);
    if let Some(key) = &query.key {
        runs.and("r.job_id = (SELECT id FROM job WHERE key = {})", [text(key.as_str())]);
    }
    if let Some(outcome) = query.outcome {
        runs.and("r.outcome = {}", [text(outcome.word())]);
    }
    if let Some(since) = query.since {
        runs.and("{} <= r.ended_at", [millis(since)]);
    }
    if let Some(until) = query.until {
        runs.and("r.ended_at < {}", [millis(until)]);
    }
    runs
}

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
    /// Jobs by key, after one of them, at most so many.
    pub async fn list_jobs(
        &self,
        filter: &JobFilter,
        after: Option<&JobKey>,
        most: usize,
    ) -> Result<JobPage, StoreDown> {
        let most = most.min(PAGE_MAX);
        let mut jobs = jobs_where(filter);
        if let Some(after) = after {
            jobs.and("{} < j.key", [text(after.as_str())]);
        }
        let sql = format!(
            concat!(
                "SELECT ",
                select_job!(),
                " FROM job j JOIN memory m ON m.job_id = j.id{} ORDER BY j.key LIMIT {}"
            ),
            jobs.sql,
            limit(most).saturating_add(1)
        );
        let rows = transact!(self, Lane::Read, |tx| list(&tx, &sql, &jobs))?;
        let mut rows = read(&rows, |row| self.inner.reader.job_row(row))?;
        let is_more = most < rows.len();
        rows.truncate(most);
        let next = rows.last().filter(|_| is_more).map(|row| row.job.key.clone());
        Ok(JobPage { rows, next })
    }

    /// How many jobs there are of those.
    pub async fn count_jobs(&self, filter: &JobFilter) -> Result<u64, StoreDown> {
        let jobs = jobs_where(filter);
        // Half of the work, and every job has one.
        let memory = match (filter.is_paused, filter.is_running) {
            (None, None) => "",
            _ => " JOIN memory m ON m.job_id = j.id",
        };
        let sql = format!("SELECT count(*) FROM job j{memory}{}", jobs.sql);
        let rows = transact!(self, Lane::Read, |tx| list(&tx, &sql, &jobs))?;
        let counts = read(&rows, |row| Ok(number(row.try_get(0)?)))?;
        Ok(counts.first().copied().unwrap_or(0))
    }

    /// Runs that are over, the latest id first, before one of them, at most so many.
    pub async fn list_runs(
        &self,
        query: &RunQuery,
        before: Option<RunId>,
        most: usize,
    ) -> Result<RunPage, StoreDown> {
        let most = most.min(PAGE_MAX);
        let runs = runs_where(query, before);
        let sql = format!(
            concat!(
                "SELECT ",
                select_run!(),
                " FROM run r JOIN job j ON j.id = r.job_id{} ORDER BY r.id DESC LIMIT {}"
            ),
            runs.sql,
            limit(most).saturating_add(1)
        );
        let rows = transact!(self, Lane::Read, |tx| list(&tx, &sql, &runs))?;
        let mut rows = read(&rows, run_row)?;
        let is_more = most < rows.len();
        rows.truncate(most);
        let next = rows.last().filter(|_| is_more).map(|row| row.run);
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

async fn list(tx: &Tx, sql: &str, wanted: &Where) -> Result<Vec<tokio_postgres::Row>, Fail> {
    let params: Vec<(&(dyn ToSql + Sync), Type)> = wanted
        .params
        .iter()
        .map(|(value, its_type)| (&**value as &(dyn ToSql + Sync), its_type.clone()))
        .collect();
    let ((), rows, ()) = tokio::try_join!(biased; tx.begin(), tx.query_once(sql, &params), tx.commit())?;
    Ok(rows)
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
