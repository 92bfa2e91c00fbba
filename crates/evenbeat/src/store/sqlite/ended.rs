//! Runs after another one, and how many ended when.

use evenbeat_core::ids::{JobKey, RunId};
use evenbeat_core::store::{RunRow, StoreDown};
use evenbeat_core::time::Timestamp;
use rusqlite::{OptionalExtension, Result, Row, params};

use super::feed::limit;
use super::read_tx::ReadTx;
use super::rows::{self, Id};
use super::sql::{open_run_sql, run_columns, run_over_columns, run_sql};
use crate::store::columns::number;
use crate::store::keyword::Keyword;
use crate::store::query::{EndedCount, EndedWindow, not_good};

const OPEN_AFTER: &str = open_run_sql!("WHERE j.key = ?1 AND ?2 < r.id ORDER BY r.id LIMIT ?3");
const OVER_AFTER: &str = run_sql!("WHERE j.key = ?1 AND ?2 < r.id ORDER BY r.id LIMIT ?3");
const HORIZON: &str = "SELECT ended_at FROM run INDEXED BY run_by_end WHERE ?1 <= ended_at
                       ORDER BY ended_at DESC LIMIT 1 OFFSET ?2";
const COUNT: &str = "SELECT (ended_at - ?1) / ?2, count(*) FROM run INDEXED BY run_by_end
                     WHERE ?1 <= ended_at AND ended_at < ?3 GROUP BY 1 ORDER BY 1";

fn count_not_good() -> String {
    format!(
        "SELECT (ended_at - ?1) / ?2, count(*), outcome FROM run INDEXED BY run_by_outcome
         WHERE outcome IN ({}) AND outcome <> 'succeeded' AND ?1 <= ended_at AND ended_at < ?3
         GROUP BY 1, 3 ORDER BY 1, 3",
        not_good()
    )
}

impl ReadTx<'_> {
    /// The runs of a job after one of them, in the order of their claims.
    pub fn later_runs(&self, key: &JobKey, after: RunId, most: usize) -> Result<Vec<RunRow>, StoreDown> {
        let args = params![key.as_str(), Id::of(after.0), limit(most)];
        let found = self.many(OVER_AFTER, args, rows::run).and_then(|mut found| {
            found.extend(self.many(OPEN_AFTER, args, rows::open_run)?);
            found.sort_by_key(|it| it.run);
            found.truncate(most);
            Ok(found)
        });
        self.or_down(found)
    }

    /// When the run ended that `most` others came after; none if fewer have ended since then.
    pub fn ended_horizon(&self, since: Timestamp, most: usize) -> Result<Option<Timestamp>, StoreDown> {
        let args = params![since.as_millis(), limit(most)];
        let found = self.one(HORIZON, args, |row| Ok(Timestamp::from_millis(row.get(0)?)));
        self.or_down(found.optional())
    }

    /// How many runs ended in each part of a window, and how many of them not well.
    pub fn count_ended(&self, window: EndedWindow) -> Result<Vec<EndedCount>, StoreDown> {
        let EndedWindow { since, until, part } = window;
        let args = params![since.as_millis(), part.as_millis().max(1), until.as_millis()];
        let all = |row: &Row<'_>| {
            Ok(EndedCount { part: number(row.get(0)?), outcome: None, n: number(row.get(1)?) })
        };
        let one = |row: &Row<'_>| {
            let outcome = Keyword::from_keyword(row.get_ref(2)?.as_str()?);
            Ok(EndedCount { outcome, ..all(row)? })
        };
        let counted = self.many(COUNT, args, all).and_then(|mut counts| {
            counts.extend(self.many(&count_not_good(), args, one)?);
            Ok(counts)
        });
        self.or_down(counted)
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;

    fn plan(connection: &Connection, sql: &str) -> Vec<String> {
        let mut explained = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let n_args = explained.parameter_count();
        let args = rusqlite::params_from_iter(vec![1_i64; n_args]);
        let lines = explained.query_map(args, |row| row.get(3)).unwrap();
        lines.collect::<Result<_>>().unwrap()
    }

    #[test]
    fn history_is_never_walked() {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(include_str!("migrations/0001_begin.sql")).unwrap();
        for (sql, found) in [
            (OVER_AFTER, "SEARCH r USING INDEX run_by_job (job_id=? AND id>?)"),
            (OPEN_AFTER, "SEARCH r USING INDEX open_run_by_job (job_id=? AND id>?)"),
            (HORIZON, "SEARCH run USING COVERING INDEX run_by_end (ended_at>?)"),
            (COUNT, "SEARCH run USING COVERING INDEX run_by_end (ended_at>? AND ended_at<?)"),
            (
                &count_not_good(),
                "SEARCH run USING COVERING INDEX run_by_outcome (outcome=? AND ended_at>? AND ended_at<?)",
            ),
        ] {
            let plan = plan(&connection, sql);
            assert!(plan.iter().any(|line| line == found), "{sql}: {plan:#?}");
            assert!(!plan.iter().any(|line| line.starts_with("SCAN")), "{sql}: {plan:#?}");
        }
    }
}
