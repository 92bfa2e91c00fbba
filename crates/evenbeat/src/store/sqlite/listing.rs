//! Lists for people: jobs and runs by what one looks for, and how evenly the fleet was spread.

use evenbeat_core::ids::{JobKey, RunId};
use evenbeat_core::store::{RunRow, StoreDown};
use evenbeat_core::time::Timestamp;
use rusqlite::types::Value;
use rusqlite::{Result, params, params_from_iter};

use super::desk::Desk;
use super::feed::limit;
use super::reader::Reader;
use super::rows;
use super::sql::{job_sql, memory_columns, run_columns, run_sql};
use crate::store::columns::{number, stored_number};
use crate::store::query::{JobFilter, JobPage, PAGE_MAX, RunPage, RunQuery, ScorePoint};
use crate::store::word::Word;

/// The conditions of a query, and what stands for their question marks.
#[derive(Default)]
struct Where {
    sql: String,
    args: Vec<Value>,
}

impl Where {
    fn and(&mut self, condition: &str, args: impl IntoIterator<Item = Value>) {
        self.sql += if self.sql.is_empty() { "WHERE " } else { " AND " };
        self.sql += condition;
        self.args.extend(args);
    }

    fn and_if(&mut self, is: Option<bool>, condition: &str) {
        match is {
            None => {}
            Some(true) => self.and(condition, []),
            Some(false) => self.and(&format!("NOT ({condition})"), []),
        }
    }
}

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

fn jobs_where(filter: &JobFilter) -> Where {
    let mut jobs = Where::default();
    jobs.and("j.is_deleted = 0", []);
    if let Some(prefix) = &filter.key_prefix {
        // Keys are ASCII, so nothing that begins so comes after this.
        jobs.and("? <= j.key AND j.key < ?", [text(prefix), text(&format!("{prefix}\u{7f}"))]);
    }
    if let Some(part) = &filter.key_text {
        jobs.and("instr(lower(j.key), ?) <> 0", [text(&part.to_lowercase())]);
    }
    for (name, value) in &filter.labels {
        jobs.and(
            "EXISTS (SELECT 1 FROM label l WHERE l.name = ? AND l.value = ? AND l.job_id = j.id)",
            [text(name), text(value)],
        );
    }
    if let Some(pool) = &filter.pool {
        jobs.and("j.pool = ?", [text(pool.as_str())]);
    }
    if let Some(site) = &filter.site {
        jobs.and("j.site = ?", [text(site.as_str())]);
    }
    if let Some(tenant) = &filter.tenant {
        jobs.and("j.tenant = ?", [text(tenant.as_str())]);
    }
    jobs.and_if(filter.is_paused, "m.paused_by IS NOT NULL");
    jobs.and_if(filter.is_enabled, "j.is_enabled");
    jobs.and_if(filter.is_running, "0 < m.n_open");
    jobs
}

impl Reader<'_> {
    /// Jobs by key, after one of them, at most so many.
    pub fn list_jobs(
        &self,
        filter: &JobFilter,
        after: Option<&JobKey>,
        most: usize,
    ) -> Result<JobPage, StoreDown> {
        self.told(self.find_job_page(filter, after, most.min(PAGE_MAX)))
    }

    fn find_job_page(&self, filter: &JobFilter, after: Option<&JobKey>, most: usize) -> Result<JobPage> {
        let mut jobs = jobs_where(filter);
        if let Some(after) = after {
            jobs.and("? < j.key", [text(after.as_str())]);
        }
        let sql = format!("{}{} ORDER BY j.key LIMIT {}", job_sql!(""), jobs.sql, limit(most) + 1);
        let mut rows = self.many(&sql, params_from_iter(jobs.args), |row| Ok(self.stored_job(row)?.row))?;
        let is_more = most < rows.len();
        rows.truncate(most);
        let next = rows.last().filter(|_| is_more).map(|row| row.job.key.clone());
        Ok(JobPage { rows, next })
    }

    /// How many jobs there are of those.
    pub fn count_jobs(&self, filter: &JobFilter) -> Result<u64, StoreDown> {
        let jobs = jobs_where(filter);
        // Half of the work, and every job has one.
        let memory = match (filter.is_paused, filter.is_running) {
            (None, None) => "",
            _ => "JOIN memory m ON m.job_id = j.id",
        };
        let sql = format!("SELECT count(*) FROM job j {memory} {}", jobs.sql);
        self.told(self.one(&sql, params_from_iter(jobs.args), |row| Ok(number(row.get(0)?))))
    }

    /// Runs that are over, the latest id first, before one of them, at most so many.
    pub fn list_runs(
        &self,
        query: &RunQuery,
        before: Option<RunId>,
        most: usize,
    ) -> Result<RunPage, StoreDown> {
        self.told(self.find_run_page(query, before, most.min(PAGE_MAX)))
    }

    fn find_run_page(&self, query: &RunQuery, before: Option<RunId>, most: usize) -> Result<RunPage> {
        let mut runs = Where::default();
        runs.and("r.id < ?", [Value::Blob(rows::before_or_all(before.map(|it| it.0)))]);
        if let Some(key) = &query.key {
            runs.and("r.job_id = (SELECT id FROM job WHERE key = ?)", [text(key.as_str())]);
        }
        if let Some(outcome) = query.outcome {
            runs.and("r.outcome = ?", [text(outcome.word())]);
        }
        if let Some(since) = query.since {
            runs.and("? <= r.ended_at", [Value::Integer(since.as_millis())]);
        }
        if let Some(until) = query.until {
            runs.and("r.ended_at < ?", [Value::Integer(until.as_millis())]);
        }
        let sql = format!("{}{} ORDER BY r.id DESC LIMIT {}", run_sql!(""), runs.sql, limit(most) + 1);
        let mut rows = self.many(&sql, params_from_iter(runs.args), rows::run)?;
        let is_more = most < rows.len();
        rows.truncate(most);
        let next = rows.last().filter(|_| is_more).map(|row| row.run);
        Ok(RunPage { rows, next })
    }

    /// One run, open or over.
    pub fn run(&self, run: RunId) -> Result<Option<RunRow>, StoreDown> {
        let found = self.find_open_run(run).and_then(|open| match open {
            Some(open) => Ok(Some(open)),
            None => self.find_run_over(run),
        });
        self.told(found)
    }

    /// How evenly the fleet was spread from an instant on, oldest first, at most so many.
    pub fn scores(&self, since: Timestamp, most: usize) -> Result<Vec<ScorePoint>, StoreDown> {
        let sql = "SELECT at, score, peak, n_jobs FROM score WHERE ?1 <= at ORDER BY at LIMIT ?2";
        self.told(self.many(sql, params![since.as_millis(), limit(most)], |row| {
            Ok(ScorePoint {
                at: Timestamp::from_millis(row.get(0)?),
                score: row.get(1)?,
                peak: number(row.get(2)?),
                n_jobs: number(row.get(3)?),
            })
        }))
    }
}

impl Desk<'_> {
    /// Writes down how evenly the fleet is spread, and drops what is older than need be.
    pub fn put_score(&mut self, point: &ScorePoint, keep_since: Timestamp) -> Result<(), StoreDown> {
        let put = "INSERT INTO score (at, score, peak, n_jobs) VALUES (?1, ?2, ?3, ?4)
                   ON CONFLICT (at) DO UPDATE SET score = ?2, peak = ?3, n_jobs = ?4";
        let (peak, n_jobs) = (stored_number(point.peak), stored_number(point.n_jobs));
        let written = self
            .run(put, params![point.at.as_millis(), point.score, peak, n_jobs])
            .and_then(|_| self.run("DELETE FROM score WHERE at < ?1", [keep_since.as_millis()]));
        self.tell(written).map(|_| ())
    }
}
