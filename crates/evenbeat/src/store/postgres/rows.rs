//! Turns rows of the server into rows of the contract.

use std::collections::BTreeMap;
use std::sync::Arc;

use evenbeat_core::ids::{Fence, JobKey, NodeName, SessionId};
use evenbeat_core::job::Job;
use evenbeat_core::run::{Outcome, Trigger};
use evenbeat_core::store::{
    CounterKey, CounterRow, JobNews, JobRow, Revision, RunRow, SessionKind, SessionRow, SessionSpec, Version,
};
use evenbeat_core::time::Timestamp;
use tokio_postgres::Row;
use uuid::Uuid;

use super::error::PgError;
use super::memory::memory_columns_of;
use crate::store::columns::{
    DueColumns, EndedColumns, RunColumns, counter_of, number, pools_from_text, small_number,
};
use crate::store::definition::{TermsCache, broken_job, broken_state};
use crate::store::keyword::{Keyword, OpenPhase, ServesKind};
use crate::store::similar::SimilarJobs;

/// Reads definitions, and remembers them.
#[derive(Debug, Default)]
pub(super) struct RowReader {
    terms: TermsCache,
    jobs: SimilarJobs,
}

/// The columns that [`RowReader::job_row`] reads.
macro_rules! select_job {
    () => {
        concat!(
            "j.id, j.key, j.definition, j.revision, j.is_deleted, m.version, m.fence, m.n_open, ",
            $crate::store::postgres::memory::select_memory!()
        )
    };
}

/// The columns that [`RowReader::news`] reads. Values that nearly all jobs have are NULL.
macro_rules! select_news {
    () => {
        concat!(
            "j.id, j.key, j.terms, nullif(j.target, 'command'), nullif(j.is_deleted, false), m.version, \
             nullif(m.n_open, 0), ",
            $crate::store::postgres::memory::select_memory_without_zeros!()
        )
    };
}

/// The columns that [`run_row`] reads of an open run `o` and its job `j`.
macro_rules! select_open_run {
    () => {
        "o.id, j.key, o.session_id, o.fence, o.phase, o.due_at, o.attempt, o.\"trigger\", o.serves, o.extra_id, \
         o.losses, o.last_outcome, o.params, o.claimed_at, o.started_at, o.is_cancel_asked, o.takes, \
         NULL::text AS outcome, NULL::bigint AS ended_at, NULL::bigint AS exit_code, NULL::bigint AS frozen_for, \
         NULL::text AS late_outcome, NULL::bigint AS late_ended_at, NULL::text AS report"
    };
}

/// The columns that [`run_row`] reads of an ended run `r` and its job `j`.
macro_rules! select_run {
    () => {
        "r.id, j.key, r.session_id, r.fence, 'running' AS phase, r.due_at, r.attempt, r.\"trigger\", r.serves, \
         r.extra_id, r.losses, r.last_outcome, r.params, r.claimed_at, r.started_at, r.is_cancel_asked, r.takes, \
         r.outcome, r.ended_at, r.exit_code, r.frozen_for, r.late_outcome, r.late_ended_at, r.report"
    };
}

/// The columns that [`session_row`] reads.
macro_rules! select_session {
    () => {
        "s.id, s.node, s.name, s.boot_id, s.kind, s.pools, s.beat, s.is_dead, s.is_draining, s.home, s.zone_data"
    };
}
pub(super) use {select_job, select_news, select_open_run, select_run, select_session};

impl RowReader {
    /// A job with its state.
    pub(super) fn job_row(&self, row: &Row) -> Result<JobRow, PgError> {
        let key = job_key(row.try_get(1)?)?;
        let state = memory_columns_of(row, 8)?.state();
        let (job, state) = match self.jobs.job(&key, row.try_get(2)?) {
            Ok(job) => (job, state),
            Err(unreadable) => (Arc::new(broken_job(&key)), broken_state(state, unreadable)),
        };
        Ok(JobRow {
            job,
            state,
            revision: Revision(number(row.try_get(3)?)),
            is_deleted: row.try_get(4)?,
            version: Version(number(row.try_get(5)?)),
            fence: Fence(number(row.try_get(6)?)),
            n_open: small_number(row.try_get(7)?),
        })
    }

    /// A job as the feed shows it.
    pub(super) fn news(&self, row: &Row) -> Result<JobNews, PgError> {
        let state = memory_columns_of(row, 7)?.state();
        let (terms, unreadable) = self.terms.terms_or_broken(row.try_get(2)?);
        Ok(JobNews {
            key: job_key(row.try_get(1)?)?,
            terms,
            is_published: row.try_get::<_, Option<&str>>(3)? == Some("queue"),
            state: match unreadable {
                Some(unreadable) => broken_state(state, unreadable),
                None => state,
            },
            is_deleted: row.try_get::<_, Option<bool>>(4)?.unwrap_or_default(),
            version: Version(number(row.try_get(5)?)),
            n_open: small_number(row.try_get::<_, Option<i64>>(6)?.unwrap_or_default()),
        })
    }

    /// The job of a definition. If it cannot be read: a job that does nothing.
    pub(super) fn job_or_broken(&self, key: &JobKey, text: &str) -> Arc<Job> {
        self.jobs.job(key, text).unwrap_or_else(|_| Arc::new(broken_job(key)))
    }
}

pub(super) fn job_key(text: &str) -> Result<JobKey, PgError> {
    text.parse().map_err(|error| PgError::Text(format!("the database holds a job `{text}`: {error}")))
}

fn keyword<W: Keyword>(what: &str, text: &str) -> Result<W, PgError> {
    W::from_keyword(text)
        .ok_or_else(|| PgError::Text(format!("the database holds {what} that cannot be: `{text}`")))
}

pub(super) fn run_row(row: &Row) -> Result<RunRow, PgError> {
    let outcome = |idx: usize| -> Result<Option<Outcome>, PgError> {
        Ok(row.try_get::<_, Option<&str>>(idx)?.and_then(Outcome::from_keyword))
    };
    let ended = match outcome(17)? {
        Some(outcome_of_run) => Some(EndedColumns {
            outcome: outcome_of_run,
            ended_at: row.try_get(18)?,
            exit_code: row.try_get(19)?,
            frozen_for: row.try_get(20)?,
            late_outcome: outcome(21)?,
            late_ended_at: row.try_get(22)?,
        }),
        None => None,
    };
    let columns = RunColumns {
        id: row.try_get::<_, Uuid>(0)?.as_u128(),
        key: job_key(row.try_get(1)?)?,
        session_id: row.try_get::<_, Uuid>(2)?.as_u128(),
        fence: row.try_get(3)?,
        phase: keyword::<OpenPhase>("a phase of a run", row.try_get(4)?)?,
        due: DueColumns {
            due_at: row.try_get(5)?,
            attempt: row.try_get(6)?,
            trigger: keyword::<Trigger>("a trigger of a run", row.try_get(7)?)?,
            serves: keyword::<ServesKind>("what a run serves", row.try_get(8)?)?,
            extra_id: row.try_get::<_, Option<Uuid>>(9)?.map(|it| it.as_u128()),
            losses: row.try_get(10)?,
            last_outcome: outcome(11)?,
            params: row.try_get(12)?,
        },
        claimed_at: row.try_get(13)?,
        started_at: row.try_get(14)?,
        is_cancel_asked: row.try_get(15)?,
        takes: row.try_get(16)?,
        ended,
        report: row.try_get(23)?,
    };
    Ok(columns.row())
}

pub(super) fn run_rows(rows: &[Row]) -> Result<Vec<RunRow>, PgError> {
    rows.iter().map(run_row).collect()
}

pub(super) fn session_row(row: &Row) -> Result<SessionRow, PgError> {
    let node: &str = row.try_get(1)?;
    let node: NodeName = node
        .parse()
        .map_err(|error| PgError::Text(format!("the database holds a node `{node}`: {error}")))?;
    Ok(SessionRow {
        spec: SessionSpec {
            id: SessionId(row.try_get::<_, Uuid>(0)?.as_u128()),
            node,
            name: row.try_get(2)?,
            boot_id: row.try_get::<_, Uuid>(3)?.as_u128(),
            home: row.try_get::<_, Uuid>(9)?.as_u128(),
            kind: keyword::<SessionKind>("a kind of session", row.try_get(4)?)?,
            pools: pools_from_text(row.try_get(5)?),
            zone_data: row.try_get(10)?,
        },
        beat: number(row.try_get(6)?),
        is_dead: row.try_get(7)?,
        is_draining: row.try_get(8)?,
    })
}

pub(super) fn session_rows(rows: &[Row]) -> Result<Vec<SessionRow>, PgError> {
    rows.iter().map(session_row).collect()
}

/// Reads `kind, key, n_open, last_claim_at`.
pub(super) fn counter_row(row: &Row) -> Result<CounterRow, PgError> {
    Ok(CounterRow {
        counter: counter_key(row)?,
        n_open: small_number(row.try_get(2)?),
        last_claim_at: row.try_get::<_, Option<i64>>(3)?.map(Timestamp::from_millis),
    })
}

/// Reads `kind, key`.
pub(super) fn counter_key(row: &Row) -> Result<CounterKey, PgError> {
    let (kind, key): (&str, &str) = (row.try_get(0)?, row.try_get(1)?);
    counter_of(kind, key)
        .ok_or_else(|| PgError::Text(format!("the database holds a counter that cannot be: `{kind} {key}`")))
}

/// The ids in the first column.
pub(super) fn ids(rows: &[Row]) -> Result<Vec<u128>, PgError> {
    rows.iter().map(|row| Ok(row.try_get::<_, Uuid>(0)?.as_u128())).collect()
}

/// Rows as a map.
pub(super) fn by<K: Ord, V>(
    rows: &[Row],
    read: impl Fn(&Row) -> Result<(K, V), PgError>,
) -> Result<BTreeMap<K, V>, PgError> {
    rows.iter().map(read).collect()
}
