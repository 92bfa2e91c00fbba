//! When runs ran: what a time line is drawn from. Bounded by time and by number.

use std::cell::RefCell;

use evenbeat_core::ids::RunId;
use evenbeat_core::run::Outcome;
use evenbeat_core::store::StoreDown;
use evenbeat_core::time::{Duration, TimeWindow, Timestamp};
use rusqlite::{OptionalExtension, Result, Row, params};

use super::feed::limit;
use super::read_tx::ReadTx;
use super::rows;
use crate::store::run_times::{Member, MemberBy, RunOrder, RunTimes, SharedTexts};

macro_rules! ended_sql {
    ($order:literal) => {
        concat!(
            "SELECT r.id, j.key, j.pool, j.site, coalesce(r.started_at, r.claimed_at), r.outcome, r.ended_at, NULL
             FROM run r INDEXED BY run_by_end CROSS JOIN job j ON j.id = r.job_id
             WHERE ?1 <= r.ended_at AND r.ended_at < ?2 ORDER BY r.ended_at ",
            $order,
            ", r.id ",
            $order,
            " LIMIT ?3"
        )
    };
}

const LATEST_FIRST: &str = ended_sql!("DESC");
const EARLIEST_FIRST: &str = ended_sql!("ASC");
const OPEN: &str =
    "SELECT r.id, j.key, j.pool, j.site, coalesce(r.started_at, r.claimed_at), NULL, NULL, m.estimate_mean
     FROM open_run r CROSS JOIN job j ON j.id = r.job_id CROSS JOIN memory m ON m.job_id = r.job_id
     ORDER BY r.id LIMIT ?1";
const OF_SITES: &str = "SELECT key, site FROM job INDEXED BY job_by_site
     WHERE site IS NOT NULL AND NOT is_deleted ORDER BY site, key LIMIT ?1";
const OF_LABEL: &str = "SELECT key, value FROM label WHERE name = ?2 ORDER BY value, key LIMIT ?1";

impl ReadTx<'_> {
    /// Runs that ended in a window, up to `most` of them.
    pub fn ended_run_times(
        &self,
        window: TimeWindow,
        order: RunOrder,
        most: usize,
    ) -> Result<Vec<RunTimes>, StoreDown> {
        let sql = match order {
            RunOrder::LatestEndFirst => LATEST_FIRST,
            RunOrder::EarliestEndFirst => EARLIEST_FIRST,
        };
        let (start, end) = (window.start().as_millis(), window.end().as_millis());
        let texts = RefCell::default();
        self.or_down(self.many(sql, params![start, end, limit(most)], |row| run_times(row, &texts)))
    }

    /// Runs that go on, up to `most` of them.
    pub fn open_run_times(&self, most: usize) -> Result<Vec<RunTimes>, StoreDown> {
        let texts = RefCell::default();
        self.or_down(self.many(OPEN, [limit(most)], |row| run_times(row, &texts)))
    }

    /// Jobs with their group, group after group, up to `most` of them.
    pub fn members(&self, by: &MemberBy, most: usize) -> Result<Vec<Member>, StoreDown> {
        let mut texts = SharedTexts::default();
        let read = |row: &Row<'_>| Ok((rows::key(row, 0)?, texts.get(row.get_ref(1)?.as_str()?)));
        self.or_down(match by {
            MemberBy::Site => self.many(OF_SITES, [limit(most)], read),
            MemberBy::Label(name) => self.many(OF_LABEL, params![limit(most), name], read),
        })
    }

    /// The names of labels that jobs have, up to `most` of them.
    pub fn label_names(&self, most: usize) -> Result<Vec<String>, StoreDown> {
        self.or_down(self.find_label_names(most))
    }

    fn find_label_names(&self, most: usize) -> Result<Vec<String>> {
        let mut names: Vec<String> = Vec::new();
        // One step on the index for each name, however many jobs have it.
        while names.len() < most {
            let last = names.last().map_or("", String::as_str);
            let next = self.one("SELECT min(name) FROM label WHERE ?1 < name", [last], |row| row.get(0));
            match next.optional()?.flatten() {
                Some(name) => names.push(name),
                None => break,
            }
        }
        Ok(names)
    }
}

fn run_times(row: &Row<'_>, texts: &RefCell<SharedTexts>) -> Result<RunTimes> {
    let mut texts = texts.borrow_mut();
    let ended_at: Option<i64> = row.get(6)?;
    // A word of a later version is some end that was not good.
    let outcome = rows::keyword(row, 5)?.unwrap_or(Outcome::Unknown);
    let mean: Option<f64> = row.get(7)?;
    Ok(RunTimes {
        run: RunId(rows::id(row, 0)?),
        key: rows::key(row, 1)?,
        pool: texts.get(row.get_ref(2)?.as_str()?),
        site: row.get_ref(3)?.as_str_or_null()?.map(|it| texts.get(it)),
        started_at: Timestamp::from_millis(row.get(4)?),
        end: ended_at.map(|at| (outcome, Timestamp::from_millis(at))),
        expected: mean.map(Duration::from_millis_f64),
    })
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;

    /// The query plan, a line for each table.
    fn plan(sql: &str) -> Vec<String> {
        let conn = Connection::open_in_memory().unwrap();
        conn.execute_batch(include_str!("migrations/0001_begin.sql")).unwrap();
        let sql = ["?1", "?2", "?3"].iter().fold(sql.to_owned(), |sql, it| sql.replace(it, "1"));
        let mut statement = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let lines = statement.query_map([], |row| row.get(3)).unwrap();
        lines.collect::<Result<_>>().unwrap()
    }

    #[track_caller]
    fn check(sql: &str, walked: &str) {
        let plan = plan(sql);
        assert!(plan.first().is_some_and(|line| line.contains(walked)), "{plan:#?}");
        for line in plan.iter().skip(1) {
            assert!(line.starts_with("SEARCH") && !line.contains("TEMP B-TREE"), "{plan:#?}");
        }
    }

    #[test]
    fn nothing_is_sorted_and_nothing_is_scanned() {
        for sql in [LATEST_FIRST, EARLIEST_FIRST] {
            check(sql, "SEARCH r USING INDEX run_by_end (ended_at>? AND ended_at<?)");
        }
        // There are no more of them than fit on all nodes.
        check(OPEN, "SCAN r");
        check(OF_SITES, "COVERING INDEX job_by_site (site>?)");
        check(OF_LABEL, "SEARCH label USING PRIMARY KEY (name=?)");
    }
}
