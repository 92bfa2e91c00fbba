//! Lists for people: jobs and runs that match a filter, and samples of the score.

use evenbeat_core::ids::{JobKey, RunId};
use evenbeat_core::store::{RunRow, StoreDown};
use evenbeat_core::time::Timestamp;
use rusqlite::types::Value;
use rusqlite::{OptionalExtension, Params, Result, Row, params, params_from_iter};

use super::feed::limit;
use super::read_tx::ReadTx;
use super::rows;
use super::sql::{job_columns, memory_columns, run_columns, run_over_columns};
use super::write_tx::WriteTx;
use crate::store::columns::{number, stored_number};
use crate::store::query::{COUNT_MAX, Count, JobFilter, JobPage, PAGE_MAX, RunPage, RunQuery, ScorePoint};
use crate::store::walk::{Arg, Dialect, JobRoute, JobWalk, RARE_MAX, RunWalk, Sql, ended_at, furthest};

/// Statements name the outer table and the index, because there are no statistics.
static SQLITE: Dialect = Dialect { join: "CROSS JOIN", position: "instr", has_hints: true };

/// From the keys of a page to its rows.
const FETCH: &str =
    ") p CROSS JOIN job j ON j.key = p.key CROSS JOIN memory m ON m.job_id = j.id ORDER BY p.key";

fn values(args: &[Arg]) -> impl Params + use<> {
    params_from_iter(
        args.iter()
            .map(|arg| match arg {
                Arg::Text(text) => Value::Text(text.clone()),
                Arg::Number(number) => Value::Integer(*number),
                Arg::Id(id) => Value::Blob(id.to_be_bytes().to_vec()),
            })
            .collect::<Vec<_>>(),
    )
}

impl ReadTx<'_> {
    /// Jobs by key, after one of them. A page may be short and still have a `next`, if matching jobs are far apart.
    pub fn list_jobs(
        &self,
        filter: &JobFilter,
        after: Option<&JobKey>,
        most: usize,
    ) -> Result<JobPage, StoreDown> {
        self.or_down(self.find_job_page(filter, after, most.min(PAGE_MAX)))
    }

    fn find_job_page(&self, filter: &JobFilter, after: Option<&JobKey>, most: usize) -> Result<JobPage> {
        let jobs = JobWalk::new(filter, after, &SQLITE);
        let (route, horizon) = self.route(&jobs)?;
        let keys = jobs.keys(route, horizon.as_deref(), most + 1);
        let sql = keys.within(concat!("SELECT ", job_columns!(), " FROM ("), FETCH);
        let mut rows = self.listed(&sql, |row| Ok(self.stored_job(row)?.row))?;
        let is_more = most < rows.len();
        rows.truncate(most);
        let next = match rows.last() {
            Some(last) if is_more => Some(last.job.key.clone()),
            _ => horizon.map(|key| rows::parsed_key(&key, 0)).transpose()?,
        };
        Ok(JobPage { rows, next })
    }

    /// Counts matching jobs, as far as that is quick.
    pub fn count_jobs(&self, filter: &JobFilter) -> Result<Count, StoreDown> {
        self.or_down(self.find_count(filter))
    }

    fn find_count(&self, filter: &JobFilter) -> Result<Count> {
        let jobs = JobWalk::new(filter, None, &SQLITE);
        let (route, horizon) = self.route(&jobs)?;
        let n =
            self.first(&jobs.count(route, horizon.as_deref()), |row| Ok(number(row.get(0)?)))?.unwrap_or(0);
        Ok(Count { n: n.min(COUNT_MAX), is_more: horizon.is_some() || COUNT_MAX < n })
    }

    /// The route to take, and its horizon.
    fn route(&self, jobs: &JobWalk<'_>) -> Result<(JobRoute, Option<String>)> {
        for route in jobs.rare_routes() {
            let n_rare = self.first(&jobs.n_rare(route), |row| row.get::<_, i64>(0))?;
            if n_rare.is_some_and(|n| n <= limit(RARE_MAX)) {
                return Ok((route, None));
            }
        }
        let routes = jobs.routes();
        if let Some(route) = routes.iter().find(|route| jobs.is_straight(**route)) {
            return Ok((*route, None));
        }
        let horizon = |route: JobRoute| Ok((route, self.first(&jobs.horizon(route), |row| row.get(0))?));
        Ok(furthest(routes.into_iter().map(horizon).collect::<Result<Vec<_>>>()?))
    }

    /// Ended runs, before one of them. A page may be short and still have a `next`, if matching runs are far apart.
    pub fn list_runs(
        &self,
        query: &RunQuery,
        before: Option<RunId>,
        most: usize,
    ) -> Result<RunPage, StoreDown> {
        self.or_down(self.find_run_page(query, before, most.min(PAGE_MAX)))
    }

    fn find_run_page(&self, query: &RunQuery, before: Option<RunId>, most: usize) -> Result<RunPage> {
        let before = match before {
            None => None,
            Some(run) => match self.first(&ended_at(run), |row| row.get(0))? {
                Some(ended_at) => Some((run, ended_at)),
                // It was trimmed, and so were all runs after it.
                None => return Ok(RunPage { rows: Vec::new(), next: None }),
            },
        };
        let runs = RunWalk::new(query, before, &SQLITE);
        let horizon = if runs.is_straight() {
            None
        } else {
            self.first(&runs.horizon(), |row| Ok((RunId(rows::id(row, 0)?), row.get(1)?)))?
        };
        let select = concat!("SELECT ", run_columns!(), run_over_columns!(), " FROM ");
        let mut rows = self.listed(&runs.page(horizon, most + 1).within(select, ""), rows::run)?;
        let is_more = most < rows.len();
        rows.truncate(most);
        let next = match rows.last() {
            Some(last) if is_more => Some(last.run),
            _ => horizon.map(|(run, _)| run),
        };
        Ok(RunPage { rows, next })
    }

    fn listed<T>(&self, sql: &Sql, read: impl FnMut(&Row<'_>) -> Result<T>) -> Result<Vec<T>> {
        self.many(&sql.with_placeholders(|_| "?".to_owned()), values(&sql.args), read)
    }

    fn first<T>(&self, sql: &Sql, read: impl FnOnce(&Row<'_>) -> Result<T>) -> Result<Option<T>> {
        self.one(&sql.with_placeholders(|_| "?".to_owned()), values(&sql.args), read).optional()
    }

    /// One run, open or ended.
    pub fn run(&self, run: RunId) -> Result<Option<RunRow>, StoreDown> {
        let found = self.find_open_run(run).and_then(|open| match open {
            Some(open) => Ok(Some(open)),
            None => self.find_run_over(run),
        });
        self.or_down(found)
    }

    /// The latest ended runs of several jobs, at most `most` of each.
    pub fn latest_runs(&self, keys: &[JobKey], most: usize) -> Result<Vec<RunRow>, StoreDown> {
        let sql = concat!(
            "SELECT ",
            run_columns!(),
            run_over_columns!(),
            " FROM job j CROSS JOIN run r INDEXED BY run_by_job ON r.job_id = j.id \
             WHERE j.key = ?1 ORDER BY r.id DESC LIMIT ?2"
        );
        let mut found = Vec::new();
        for key in keys {
            found.extend(self.or_down(self.many(sql, params![key.as_str(), limit(most)], rows::run))?);
        }
        Ok(found)
    }

    /// The samples of the score since an instant, oldest first.
    pub fn scores(&self, since: Timestamp, most: usize) -> Result<Vec<ScorePoint>, StoreDown> {
        let sql = "SELECT at, score, peak, n_jobs FROM score WHERE ?1 <= at ORDER BY at LIMIT ?2";
        self.or_down(self.many(sql, params![since.as_millis(), limit(most)], |row| {
            Ok(ScorePoint {
                at: Timestamp::from_millis(row.get(0)?),
                score: row.get(1)?,
                peak: number(row.get(2)?),
                n_jobs: number(row.get(3)?),
            })
        }))
    }
}

impl WriteTx<'_> {
    /// Stores a sample of the score, and removes older ones than `keep_since`.
    pub fn put_score(&mut self, point: &ScorePoint, keep_since: Timestamp) -> Result<(), StoreDown> {
        let put = "INSERT INTO score (at, score, peak, n_jobs) VALUES (?1, ?2, ?3, ?4)
                   ON CONFLICT (at) DO UPDATE SET score = ?2, peak = ?3, n_jobs = ?4";
        let (peak, n_jobs) = (stored_number(point.peak), stored_number(point.n_jobs));
        let written = self
            .run(put, params![point.at.as_millis(), point.score, peak, n_jobs])
            .and_then(|_| self.run("DELETE FROM score WHERE at < ?1", [keep_since.as_millis()]));
        self.or_down(written).map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use evenbeat_core::run::Outcome;
    use rusqlite::Connection;

    use super::*;

    /// The query plan, a line for each table.
    fn plan(sql: &Sql) -> Vec<String> {
        let conn = Connection::open_in_memory().unwrap();
        conn.execute_batch(include_str!("migrations/0001_begin.sql")).unwrap();
        let text = format!("EXPLAIN QUERY PLAN {}", sql.with_placeholders(|_| "?".to_owned()));
        let mut statement = conn.prepare(&text).unwrap();
        let lines = statement.query_map(values(&sql.args), |row| row.get(3)).unwrap();
        lines.collect::<Result<_>>().unwrap()
    }

    /// Everything except the walked index is found by searching an index, and nothing is sorted.
    #[track_caller]
    fn check(sql: &Sql, walked: &str) {
        let plan = plan(sql);
        assert!(plan.iter().any(|line| line.contains(walked)), "`{walked}` is not in {plan:#?}");
        for line in plan.iter().filter(|line| !line.contains(walked)) {
            assert!(!line.starts_with("SCAN") || *line == "SCAN c", "{line}: {plan:#?}");
            assert!(!line.contains("TEMP B-TREE"), "{line}: {plan:#?}");
        }
    }

    #[track_caller]
    fn check_jobs(change: impl FnOnce(&mut JobFilter), route: JobRoute, walked: &str) {
        let mut filter = JobFilter::default();
        change(&mut filter);
        let after = "m".parse().unwrap();
        let jobs = JobWalk::new(&filter, Some(&after), &SQLITE);
        assert!([jobs.rare_routes(), jobs.routes()].concat().contains(&route), "{filter:?}");
        check(&jobs.horizon(route), walked);
        check(&jobs.keys(route, Some("z"), 50), walked);
        check(&jobs.count(route, Some("z")), walked);
    }

    #[test]
    fn jobs_are_found_by_index_and_in_its_order() {
        let label = |it: &mut JobFilter, name: &str| it.labels.push((name.to_owned(), "x".to_owned()));
        let of_label = "SEARCH d USING PRIMARY KEY (name=? AND value=? AND key>?";
        check_jobs(|_| {}, JobRoute::Key, "SEARCH j USING COVERING INDEX job_by_key (key>?");
        check_jobs(
            |it| it.key_text = Some("x".to_owned()),
            JobRoute::Key,
            "SEARCH j USING COVERING INDEX job_by_key (key>?",
        );
        check_jobs(|it| label(it, "a"), JobRoute::Label(0), of_label);
        check_jobs(
            |it| {
                label(it, "a");
                label(it, "b");
                it.is_paused = Some(false);
                it.is_enabled = Some(true);
            },
            JobRoute::Label(1),
            of_label,
        );
        check_jobs(
            |it| it.pool = Some("p".parse().unwrap()),
            JobRoute::Pool,
            "COVERING INDEX job_by_pool (pool=? AND key>?",
        );
        check_jobs(
            |it| it.site = Some("s".parse().unwrap()),
            JobRoute::Site,
            "COVERING INDEX job_by_site (site=? AND key>?",
        );
        check_jobs(
            |it| {
                it.tenant = Some("t".parse().unwrap());
                it.is_running = Some(false);
                label(it, "a");
            },
            JobRoute::Tenant,
            "INDEX job_by_tenant (tenant=? AND key>?",
        );
        check_jobs(
            |it| it.is_enabled = Some(false),
            JobRoute::Disabled,
            "COVERING INDEX job_disabled (key>?",
        );
    }

    #[test]
    fn what_is_rare_is_found_by_itself() {
        let (running, paused) =
            (|it: &mut JobFilter| it.is_running = Some(true), |it: &mut JobFilter| it.is_paused = Some(true));
        let lines = |change: &dyn Fn(&mut JobFilter), route: JobRoute| {
            let mut filter = JobFilter::default();
            change(&mut filter);
            let jobs = JobWalk::new(&filter, None, &SQLITE);
            [jobs.n_rare(route), jobs.keys(route, None, 50)]
                .iter()
                .flat_map(plan)
                .collect::<Vec<_>>()
                .join("\n")
        };
        let running = lines(&running, JobRoute::Running);
        for found in ["SCAN open_run USING COVERING INDEX", "SEARCH j USING INTEGER PRIMARY KEY (rowid=?)"] {
            assert!(running.contains(found), "{running}");
        }
        let paused = lines(&paused, JobRoute::Paused);
        assert!(paused.contains("SCAN m USING COVERING INDEX memory_paused"), "{paused}");
        for lines in [running, paused] {
            assert!(!lines.contains("SCAN j") && !lines.contains("SCAN memory"), "{lines}");
        }
    }

    #[test]
    fn the_rows_of_a_page_are_looked_up_one_by_one() {
        let filter = JobFilter::default();
        let keys = JobWalk::new(&filter, None, &SQLITE).keys(JobRoute::Key, None, 50);
        let plan = plan(&keys.within("SELECT j.id, m.version FROM (", FETCH));
        for found in ["SEARCH j USING COVERING INDEX", "SEARCH m USING INTEGER PRIMARY KEY (rowid=?)"] {
            assert!(plan.iter().any(|line| line.starts_with(found)), "`{found}` is not in {plan:#?}");
        }
    }

    #[track_caller]
    #[expect(clippy::needless_pass_by_value, reason = "a table of values reads better")]
    fn check_runs(query: RunQuery, walked: &str) {
        let at = Some((RunId(5), 1_000));
        let runs = RunWalk::new(&query, at, &SQLITE);
        check(&runs.horizon(), walked);
        check(&runs.page(at, 50).within("SELECT r.id, j.key FROM ", ""), walked);
    }

    #[test]
    fn runs_are_found_by_index_and_in_its_order() {
        let (any, at) = (RunQuery::default, Timestamp::from_millis);
        let hour = || RunQuery { since: Some(at(500)), until: Some(at(900)), ..any() };
        let key: Option<JobKey> = Some("a".parse().unwrap());
        check_runs(any(), "INDEX run_by_end (ended_at");
        check_runs(hour(), "INDEX run_by_end (ended_at");
        let succeeded = Some(Outcome::Succeeded);
        check_runs(RunQuery { outcome: succeeded, ..hour() }, "INDEX run_by_end (ended_at");
        let by_outcome = "INDEX run_by_outcome (outcome=? AND ended_at";
        check_runs(RunQuery { outcome: Some(Outcome::Lost), ..hour() }, by_outcome);
        check_runs(RunQuery { outcome: Some(Outcome::Lost), ..any() }, by_outcome);
        check_runs(
            RunQuery { key, outcome: Some(Outcome::Lost), ..hour() },
            "INDEX run_by_job (job_id=? AND id",
        );
    }
}
