//! Lists for people: jobs and runs by what one looks for, and how evenly the fleet was spread.

use evenbeat_core::ids::{JobKey, RunId};
use evenbeat_core::store::{RunRow, StoreDown};
use evenbeat_core::time::Timestamp;
use rusqlite::types::Value;
use rusqlite::{OptionalExtension, Params, Result, Row, params, params_from_iter};

use super::desk::Desk;
use super::feed::limit;
use super::reader::Reader;
use super::rows;
use super::sql::{job_columns, memory_columns, run_columns, run_over_columns};
use crate::store::columns::{number, stored_number};
use crate::store::query::{COUNT_MAX, Count, JobFilter, JobPage, PAGE_MAX, RunPage, RunQuery, ScorePoint};
use crate::store::walk::{Arg, Dialect, Jobs, JobsWay, RARE_MAX, Runs, Sql, ended_at, furthest};

/// Which table is outside is said by the statement, and which index it means: there are no statistics to go by.
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

impl Reader<'_> {
    /// Jobs by key, after one of them, at most so many; fewer, with a `next`, if those that were asked for lie too far
    /// apart.
    pub fn list_jobs(
        &self,
        filter: &JobFilter,
        after: Option<&JobKey>,
        most: usize,
    ) -> Result<JobPage, StoreDown> {
        self.told(self.find_job_page(filter, after, most.min(PAGE_MAX)))
    }

    fn find_job_page(&self, filter: &JobFilter, after: Option<&JobKey>, most: usize) -> Result<JobPage> {
        let jobs = Jobs::new(filter, after, &SQLITE);
        let (way, horizon) = self.way(&jobs)?;
        let keys = jobs.keys(way, horizon.as_deref(), most + 1);
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

    /// How many jobs there are of those, as far as that can be told soon.
    pub fn count_jobs(&self, filter: &JobFilter) -> Result<Count, StoreDown> {
        self.told(self.find_count(filter))
    }

    fn find_count(&self, filter: &JobFilter) -> Result<Count> {
        let jobs = Jobs::new(filter, None, &SQLITE);
        let (way, horizon) = self.way(&jobs)?;
        let n = self.first(&jobs.count(way, horizon.as_deref()), |row| Ok(number(row.get(0)?)))?.unwrap_or(0);
        Ok(Count { n: n.min(COUNT_MAX), is_more: horizon.is_some() || COUNT_MAX < n })
    }

    /// Which way to go, and how far it comes.
    fn way(&self, jobs: &Jobs<'_>) -> Result<(JobsWay, Option<String>)> {
        for way in jobs.rare_ways() {
            let n_rare = self.first(&jobs.n_rare(way), |row| row.get::<_, i64>(0))?;
            if n_rare.is_some_and(|n| n <= limit(RARE_MAX)) {
                return Ok((way, None));
            }
        }
        let ways = jobs.ways();
        if let Some(way) = ways.iter().find(|way| jobs.is_straight(**way)) {
            return Ok((*way, None));
        }
        let horizon = |way: JobsWay| Ok((way, self.first(&jobs.horizon(way), |row| row.get(0))?));
        Ok(furthest(ways.into_iter().map(horizon).collect::<Result<Vec<_>>>()?))
    }

    /// Runs that are over, before one of them, at most so many; fewer, with a `next`, if those that were asked for lie
    /// too far apart.
    pub fn list_runs(
        &self,
        query: &RunQuery,
        before: Option<RunId>,
        most: usize,
    ) -> Result<RunPage, StoreDown> {
        self.told(self.find_run_page(query, before, most.min(PAGE_MAX)))
    }

    fn find_run_page(&self, query: &RunQuery, before: Option<RunId>, most: usize) -> Result<RunPage> {
        let before = match before {
            None => None,
            Some(run) => match self.first(&ended_at(run), |row| row.get(0))? {
                Some(ended_at) => Some((run, ended_at)),
                // It was old enough to go, and so is whatever comes behind it.
                None => return Ok(RunPage { rows: Vec::new(), next: None }),
            },
        };
        let runs = Runs::new(query, before, &SQLITE);
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

#[cfg(test)]
mod tests {
    use evenbeat_core::run::Outcome;
    use rusqlite::Connection;

    use super::*;

    /// How SQLite would go about it, a line for each table.
    fn plan(sql: &Sql) -> Vec<String> {
        let conn = Connection::open_in_memory().unwrap();
        conn.execute_batch(include_str!("migrations/0001_begin.sql")).unwrap();
        let text = format!("EXPLAIN QUERY PLAN {}", sql.with_placeholders(|_| "?".to_owned()));
        let mut statement = conn.prepare(&text).unwrap();
        let lines = statement.query_map(values(&sql.args), |row| row.get(3)).unwrap();
        lines.collect::<Result<_>>().unwrap()
    }

    /// All that is read is what a search in an index finds, but for the index that is walked; and nothing is sorted.
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
    fn check_jobs(change: impl FnOnce(&mut JobFilter), way: JobsWay, walked: &str) {
        let mut filter = JobFilter::default();
        change(&mut filter);
        let after = "m".parse().unwrap();
        let jobs = Jobs::new(&filter, Some(&after), &SQLITE);
        assert!([jobs.rare_ways(), jobs.ways()].concat().contains(&way), "{filter:?}");
        check(&jobs.horizon(way), walked);
        check(&jobs.keys(way, Some("z"), 50), walked);
        check(&jobs.count(way, Some("z")), walked);
    }

    #[test]
    fn jobs_are_found_by_index_and_in_its_order() {
        let label = |it: &mut JobFilter, name: &str| it.labels.push((name.to_owned(), "x".to_owned()));
        let of_label = "SEARCH d USING PRIMARY KEY (name=? AND value=? AND key>?";
        check_jobs(|_| {}, JobsWay::Key, "SEARCH j USING COVERING INDEX job_by_key (key>?");
        check_jobs(
            |it| it.key_text = Some("x".to_owned()),
            JobsWay::Key,
            "SEARCH j USING COVERING INDEX job_by_key (key>?",
        );
        check_jobs(|it| label(it, "a"), JobsWay::Label(0), of_label);
        check_jobs(
            |it| {
                label(it, "a");
                label(it, "b");
                it.is_paused = Some(false);
                it.is_enabled = Some(true);
            },
            JobsWay::Label(1),
            of_label,
        );
        check_jobs(
            |it| it.pool = Some("p".parse().unwrap()),
            JobsWay::Pool,
            "COVERING INDEX job_by_pool (pool=? AND key>?",
        );
        check_jobs(
            |it| it.site = Some("s".parse().unwrap()),
            JobsWay::Site,
            "COVERING INDEX job_by_site (site=? AND key>?",
        );
        check_jobs(
            |it| {
                it.tenant = Some("t".parse().unwrap());
                it.is_running = Some(false);
                label(it, "a");
            },
            JobsWay::Tenant,
            "INDEX job_by_tenant (tenant=? AND key>?",
        );
        check_jobs(|it| it.is_enabled = Some(false), JobsWay::Disabled, "COVERING INDEX job_disabled (key>?");
    }

    #[test]
    fn what_is_rare_is_found_by_itself() {
        let (running, paused) =
            (|it: &mut JobFilter| it.is_running = Some(true), |it: &mut JobFilter| it.is_paused = Some(true));
        let lines = |change: &dyn Fn(&mut JobFilter), way: JobsWay| {
            let mut filter = JobFilter::default();
            change(&mut filter);
            let jobs = Jobs::new(&filter, None, &SQLITE);
            [jobs.n_rare(way), jobs.keys(way, None, 50)].iter().flat_map(plan).collect::<Vec<_>>().join("\n")
        };
        let running = lines(&running, JobsWay::Running);
        for found in ["SCAN open_run USING COVERING INDEX", "SEARCH j USING INTEGER PRIMARY KEY (rowid=?)"] {
            assert!(running.contains(found), "{running}");
        }
        let paused = lines(&paused, JobsWay::Paused);
        assert!(paused.contains("SCAN m USING COVERING INDEX memory_paused"), "{paused}");
        for lines in [running, paused] {
            assert!(!lines.contains("SCAN j") && !lines.contains("SCAN memory"), "{lines}");
        }
    }

    #[test]
    fn the_rows_of_a_page_are_looked_up_one_by_one() {
        let filter = JobFilter::default();
        let keys = Jobs::new(&filter, None, &SQLITE).keys(JobsWay::Key, None, 50);
        let plan = plan(&keys.within("SELECT j.id, m.version FROM (", FETCH));
        for found in ["SEARCH j USING COVERING INDEX", "SEARCH m USING INTEGER PRIMARY KEY (rowid=?)"] {
            assert!(plan.iter().any(|line| line.starts_with(found)), "`{found}` is not in {plan:#?}");
        }
    }

    #[track_caller]
    #[expect(clippy::needless_pass_by_value, reason = "a table of values reads better")]
    fn check_runs(query: RunQuery, walked: &str) {
        let at = Some((RunId(5), 1_000));
        let runs = Runs::new(&query, at, &SQLITE);
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
