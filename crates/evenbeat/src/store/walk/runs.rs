//! Routes through ended runs.

use evenbeat_core::ids::RunId;
use evenbeat_core::run::Outcome;

use super::{Arg, Conditions, Dialect, ROWS_MAX, Sql, text};
use crate::store::keyword::Keyword;
use crate::store::query::RunQuery;

/// A list of ended runs.
#[derive(Debug)]
pub(in crate::store) struct RunWalk<'a> {
    query: &'a RunQuery,
    /// The page starts before this run, which ended at this instant.
    before: Option<(RunId, i64)>,
    dialect: &'static Dialect,
}

/// When a run ended. No row if it was trimmed.
pub(in crate::store) fn ended_at(run: RunId) -> Sql {
    Sql { text: "SELECT ended_at FROM run WHERE id = {}".to_owned(), args: vec![Arg::Id(run.0)] }
}

impl<'a> RunWalk<'a> {
    pub(in crate::store) fn new(
        query: &'a RunQuery,
        before: Option<(RunId, i64)>,
        dialect: &'static Dialect,
    ) -> RunWalk<'a> {
        RunWalk { query, before, dialect }
    }

    /// Whether the index covers the whole query.
    pub(in crate::store) fn is_straight(&self) -> bool {
        self.rest().is_empty()
    }

    /// The run at which a page must end, and when it ended. No row if the list ends before.
    pub(in crate::store) fn horizon(&self) -> Sql {
        let mut sql = Sql::new(format!("SELECT r.id, {} FROM run r{}", self.end(), self.hint()));
        sql.push_where(self.walked(None));
        sql.push(&format!("{} LIMIT 1 OFFSET {}", self.order(), ROWS_MAX - 1), []);
        sql
    }

    /// The part after `FROM`: the runs of a page as `r` with their jobs as `j`, down to the horizon.
    pub(in crate::store) fn page(&self, horizon: Option<(RunId, i64)>, most: usize) -> Sql {
        let join = self.dialect.join;
        let mut sql = Sql::new(format!("run r{} {join} job j ON j.id = r.job_id", self.hint()));
        let mut conditions = self.walked(horizon);
        conditions.0.extend(self.rest().0);
        sql.push_where(conditions);
        sql.push(&format!("{} LIMIT {most}", self.order()), []);
        sql
    }

    /// The index by job has the id only.
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

    /// The conditions that the index covers.
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
            // A literal, because the planner must see that the partial index has all of them.
            walked.and(&format!("r.outcome = '{}' AND r.outcome <> 'succeeded'", outcome.keyword()), []);
        }
        self.within(&mut walked);
        // Each bound twice: the order has two columns, and the partitions by day are chosen by one.
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

    /// The conditions that it does not cover.
    fn rest(&self) -> Conditions {
        let mut rest = Conditions::default();
        if let Some(outcome) = self.query.outcome.filter(|_| !self.is_by_outcome()) {
            rest.and(&format!("r.outcome = '{}'", outcome.keyword()), []);
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
