//! Ways through runs that are over.

use evenbeat_core::ids::RunId;
use evenbeat_core::run::Outcome;

use super::{Arg, Conditions, Dialect, ROWS_MAX, Sql, text};
use crate::store::query::RunQuery;
use crate::store::word::Word;

/// Some runs that somebody looks for.
#[derive(Debug)]
pub(in crate::store) struct Runs<'a> {
    query: &'a RunQuery,
    /// Where the page begins, with when that run ended.
    before: Option<(RunId, i64)>,
    dialect: &'static Dialect,
}

/// When a run ended; no row if it is not there any more.
pub(in crate::store) fn ended_at(run: RunId) -> Sql {
    Sql { text: "SELECT ended_at FROM run WHERE id = {}".to_owned(), args: vec![Arg::Id(run.0)] }
}

impl<'a> Runs<'a> {
    pub(in crate::store) fn new(
        query: &'a RunQuery,
        before: Option<(RunId, i64)>,
        dialect: &'static Dialect,
    ) -> Runs<'a> {
        Runs { query, before, dialect }
    }

    /// Whether the index leads to nothing but what was asked for.
    pub(in crate::store) fn is_straight(&self) -> bool {
        self.rest().is_empty()
    }

    /// The run that is reached, and when it ended, when as much was looked at as may be; no row if all ends before.
    pub(in crate::store) fn horizon(&self) -> Sql {
        let mut sql = Sql::new(format!("SELECT r.id, {} FROM run r{}", self.end(), self.hint()));
        sql.push_where(self.walked(None));
        sql.push(&format!("{} LIMIT 1 OFFSET {}", self.order(), ROWS_MAX - 1), []);
        sql
    }

    /// What follows `FROM`: the runs of a page as `r` with their jobs as `j`, down to a horizon if there is one.
    pub(in crate::store) fn page(&self, horizon: Option<(RunId, i64)>, most: usize) -> Sql {
        let join = self.dialect.join;
        let mut sql = Sql::new(format!("run r{} {join} job j ON j.id = r.job_id", self.hint()));
        let mut conditions = self.walked(horizon);
        conditions.0.extend(self.rest().0);
        sql.push_where(conditions);
        sql.push(&format!("{} LIMIT {most}", self.order()), []);
        sql
    }

    /// The index has no more than the id if it is that of a job.
    fn end(&self) -> &'static str {
        if self.query.key.is_some() { "CAST(0 AS bigint)" } else { "r.ended_at" }
    }

    fn order(&self) -> &'static str {
        match self.query.key {
            Some(_) => " ORDER BY r.id DESC",
            None => " ORDER BY r.ended_at DESC, r.id DESC",
        }
    }

    fn is_by_outcome(&self) -> bool {
        self.query.key.is_none() && self.query.outcome.is_some_and(|it| it != Outcome::Succeeded)
    }

    fn hint(&self) -> String {
        self.dialect.hint(match self.query.key {
            Some(_) => "run_by_job",
            None if self.is_by_outcome() => "run_by_outcome",
            None => "run_by_end",
        })
    }

    /// What the index knows.
    fn walked(&self, horizon: Option<(RunId, i64)>) -> Conditions {
        let mut walked = Conditions::default();
        if let Some(key) = &self.query.key {
            walked.and("r.job_id = (SELECT id FROM job WHERE key = {})", [text(key.as_str())]);
            if let Some((run, _)) = self.before {
                walked.and("r.id < {}", [Arg::Id(run.0)]);
            }
            if let Some((run, _)) = horizon {
                walked.and("{} <= r.id", [Arg::Id(run.0)]);
            }
            return walked;
        }
        if let Some(outcome) = self.query.outcome.filter(|_| self.is_by_outcome()) {
            // Said in the statement itself: else it is not known that the index has all of them.
            walked.and(&format!("r.outcome = '{}' AND r.outcome <> 'succeeded'", outcome.word()), []);
        }
        self.within(&mut walked);
        // Both ends twice: the order is by two columns, the days of history are told by one.
        if let Some((run, ended_at)) = self.before {
            let at = Arg::Number(ended_at);
            walked
                .and("r.ended_at <= {} AND (r.ended_at, r.id) < ({}, {})", [at.clone(), at, Arg::Id(run.0)]);
        }
        if let Some((run, ended_at)) = horizon {
            let at = Arg::Number(ended_at);
            walked
                .and("r.ended_at >= {} AND (r.ended_at, r.id) >= ({}, {})", [at.clone(), at, Arg::Id(run.0)]);
        }
        walked
    }

    /// What it does not know.
    fn rest(&self) -> Conditions {
        let mut rest = Conditions::default();
        if let Some(outcome) = self.query.outcome.filter(|_| !self.is_by_outcome()) {
            rest.and(&format!("r.outcome = '{}'", outcome.word()), []);
        }
        if self.query.key.is_some() {
            self.within(&mut rest);
        }
        rest
    }

    fn within(&self, conditions: &mut Conditions) {
        if let Some(since) = self.query.since {
            conditions.and("{} <= r.ended_at", [Arg::Number(since.as_millis())]);
        }
        if let Some(until) = self.query.until {
            conditions.and("r.ended_at < {}", [Arg::Number(until.as_millis())]);
        }
    }
}
