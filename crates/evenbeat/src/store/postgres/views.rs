//! The views of the contract.

use std::collections::{BTreeMap, HashMap};

use evenbeat_core::ids::{JobKey, RunId, SessionId};
use evenbeat_core::missed::RecordRange;
use evenbeat_core::occurrence::{Record, RecordKind};
use evenbeat_core::store::{
    AuditEntry, BATCH_MAX, CounterRow, JobRow, RecordRow, RunFilter, RunRow, SessionRow, StoreDown,
};
use evenbeat_core::time::Timestamp;
use tokio_postgres::Row;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::PgStore;
use super::connect::ConnectionUse;
use super::error::PgError;
use super::rows::{
    counter_row, job_key, run_rows, select_job, select_open_run, select_run, select_session, session_rows,
};
use super::transaction::{Param, Statement, Transaction, transact};
use crate::store::columns::number;
use crate::store::keyword::Keyword;

static JOB: Statement = Statement {
    sql: concat!("SELECT ", select_job!(), " FROM job j JOIN memory m ON m.job_id = j.id WHERE j.key = $1"),
    types: &[Type::TEXT],
};
static JOBS_OF: Statement = Statement {
    sql: concat!(
        "SELECT ",
        select_job!(),
        " FROM job j JOIN memory m ON m.job_id = j.id WHERE j.key = ANY($1)"
    ),
    types: &[Type::TEXT_ARRAY],
};
static JOBS: Statement = Statement {
    sql: concat!(
        "SELECT ",
        select_job!(),
        " FROM job j JOIN memory m ON m.job_id = j.id WHERE NOT j.is_deleted AND j.key > $1 ORDER BY j.key LIMIT $2"
    ),
    types: &[Type::TEXT, Type::INT8],
};
static OPEN_RUNS: Statement = Statement {
    sql: concat!(
        "SELECT ",
        select_open_run!(),
        " FROM open_run o JOIN job j ON j.id = o.job_id WHERE o.id < $1 ORDER BY o.id DESC LIMIT $2"
    ),
    types: &[Type::UUID, Type::INT8],
};
static OPEN_RUNS_OF_JOB: Statement = Statement {
    sql: concat!(
        "SELECT ",
        select_open_run!(),
        " FROM job j JOIN open_run o ON o.job_id = j.id WHERE o.id < $1 AND j.key = $3 ORDER BY o.id DESC LIMIT $2"
    ),
    types: &[Type::UUID, Type::INT8, Type::TEXT],
};
static RUNS: Statement = Statement {
    sql: concat!(
        "SELECT ",
        select_run!(),
        " FROM run r JOIN job j ON j.id = r.job_id WHERE r.id < $1 ORDER BY r.id DESC LIMIT $2"
    ),
    types: &[Type::UUID, Type::INT8],
};
static RUNS_OF_JOB: Statement = Statement {
    sql: concat!(
        "SELECT ",
        select_run!(),
        " FROM job j JOIN run r ON r.job_id = j.id WHERE r.id < $1 AND j.key = $3 ORDER BY r.id DESC LIMIT $2"
    ),
    types: &[Type::UUID, Type::INT8, Type::TEXT],
};
/// Records that begin with the same occurrence as the last one of the page belong to it too.
static RECORDS: Statement = Statement {
    sql: "SELECT r.reason, r.first_due_at, r.last_due_at, r.n, r.recorded_at \
          FROM record r WHERE r.job_id = (SELECT id FROM job WHERE key = $1) AND r.first_due_at < $2 \
            AND coalesce((SELECT e.first_due_at FROM record e \
                          WHERE e.job_id = (SELECT id FROM job WHERE key = $1) AND e.first_due_at < $2 \
                          ORDER BY e.first_due_at DESC LIMIT 1 OFFSET $3), $4) <= r.first_due_at \
          ORDER BY r.first_due_at DESC, r.id DESC",
    types: &[Type::TEXT, Type::INT8, Type::INT8, Type::INT8],
};
static SESSIONS: Statement =
    Statement { sql: concat!("SELECT ", select_session!(), " FROM session s ORDER BY s.id"), types: &[] };
/// Counters without a claim were created only to be locked.
static COUNTERS: Statement = Statement {
    sql: "SELECT kind, key, n_open, last_claim_at FROM counter WHERE last_claim_at IS NOT NULL ORDER BY kind, key",
    types: &[],
};
static OPEN_RUNS_BY_SESSION: Statement =
    Statement { sql: "SELECT session_id, count(*) FROM open_run GROUP BY session_id", types: &[] };
static AUDIT: Statement = Statement {
    sql: "SELECT actor, action, subject, detail, before_json, after_json FROM audit ORDER BY no LIMIT $1",
    types: &[Type::INT8],
};

/// The largest id, for pages that start with the latest run.
pub(super) const LATEST: Uuid = Uuid::max();

pub(super) fn limit(most: usize) -> i64 {
    i64::try_from(most).unwrap_or(i64::MAX)
}

impl PgStore {
    /// One job; also a removed one, as long as its row is there.
    pub async fn job(&self, key: &JobKey) -> Result<Option<JobRow>, StoreDown> {
        let rows = transact!(self, ConnectionUse::Read, |tx| ask(&tx, &JOB, [&key.as_str()]))?;
        rows.first().map(|row| self.inner.reader.job_row(row).map_err(|fail| fail.down())).transpose()
    }

    /// Several jobs, in the order of these keys; those that are not there are left out.
    pub async fn jobs_of(&self, keys: &[JobKey]) -> Result<Vec<JobRow>, StoreDown> {
        let mut found = HashMap::with_capacity(keys.len());
        for keys in keys.chunks(BATCH_MAX) {
            let keys: Vec<&str> = keys.iter().map(JobKey::as_str).collect();
            let rows = transact!(self, ConnectionUse::Read, |tx| ask(&tx, &JOBS_OF, [&keys]))?;
            let rows = read(&rows, |row| Ok((job_key(row.try_get(1)?)?, self.inner.reader.job_row(row)?)))?;
            found.extend(rows);
        }
        Ok(keys.iter().filter_map(|key| found.get(key).cloned()).collect())
    }

    /// Jobs by key, after one of them, without removed ones.
    pub async fn jobs(&self, after: Option<&JobKey>, most: usize) -> Result<Vec<JobRow>, StoreDown> {
        let after = after.map_or("", JobKey::as_str);
        let rows = transact!(self, ConnectionUse::Read, |tx| ask(&tx, &JOBS, [&after, &limit(most)]))?;
        read(&rows, |row| self.inner.reader.job_row(row))
    }

    /// Runs, the latest id first, before one of them.
    pub async fn runs(
        &self,
        filter: &RunFilter,
        before: Option<RunId>,
        most: usize,
    ) -> Result<Vec<RunRow>, StoreDown> {
        transact!(self, ConnectionUse::Read, |tx| runs(&tx, filter, before, most))
    }

    /// The records of a job that begin before an instant, the latest first.
    pub async fn records(
        &self,
        key: &JobKey,
        before: Option<Timestamp>,
        most: usize,
    ) -> Result<Vec<RecordRow>, StoreDown> {
        let (before, first) = (before.unwrap_or(Timestamp::MAX).as_millis(), Timestamp::MIN.as_millis());
        let rows = transact!(self, ConnectionUse::Read, |tx| ask(
            &tx,
            &RECORDS,
            [&key.as_str(), &before, &limit(most.max(1) - 1), &first]
        ))?;
        read(&rows, |row| record(key, row))
    }

    /// All sessions, dead ones too.
    pub async fn sessions(&self) -> Result<Vec<SessionRow>, StoreDown> {
        let rows = transact!(self, ConnectionUse::Read, |tx| ask(&tx, &SESSIONS, []))?;
        session_rows(&rows).map_err(|fail| fail.down())
    }

    /// All counters that were ever used.
    pub async fn counters(&self) -> Result<Vec<CounterRow>, StoreDown> {
        let rows = transact!(self, ConnectionUse::Read, |tx| ask(&tx, &COUNTERS, []))?;
        read(&rows, counter_row)
    }

    /// The number of open runs of each session that has any.
    pub async fn open_runs_by_session(&self) -> Result<BTreeMap<SessionId, u64>, StoreDown> {
        let rows = transact!(self, ConnectionUse::Read, |tx| ask(&tx, &OPEN_RUNS_BY_SESSION, []))?;
        let counted = read(&rows, |row| {
            let session: Uuid = row.try_get(0)?;
            Ok((SessionId(session.as_u128()), number(row.try_get(1)?)))
        });
        counted.map(|it| it.into_iter().collect())
    }

    /// The audit entries, oldest first.
    pub async fn audit(&self, most: usize) -> Result<Vec<AuditEntry>, StoreDown> {
        let rows = transact!(self, ConnectionUse::Read, |tx| ask(&tx, &AUDIT, [&limit(most)]))?;
        read(&rows, |row| {
            Ok(AuditEntry {
                actor: row.try_get(0)?,
                action: row.try_get(1)?,
                subject: row.try_get(2)?,
                detail: row.try_get(3)?,
                before: row.try_get(4)?,
                after: row.try_get(5)?,
            })
        })
    }
}

/// A transaction with one statement.
pub(super) async fn ask<const N: usize>(
    tx: &Transaction,
    query: &Statement,
    params: [Param<'_>; N],
) -> Result<Vec<Row>, PgError> {
    tx.ready(&[query]).await?;
    let ((), rows, ()) = tokio::try_join!(biased; tx.begin(), tx.query(query, params), tx.commit())?;
    Ok(rows)
}

pub(super) fn read<T>(rows: &[Row], one: impl Fn(&Row) -> Result<T, PgError>) -> Result<Vec<T>, StoreDown> {
    rows.iter().map(one).collect::<Result<_, _>>().map_err(|fail| fail.down())
}

async fn runs(
    tx: &Transaction,
    filter: &RunFilter,
    before: Option<RunId>,
    most: usize,
) -> Result<Vec<RunRow>, PgError> {
    let before = before.map_or(LATEST, |it| Uuid::from_u128(it.0));
    let limit = limit(most);
    let key = filter.key.as_ref().map(JobKey::as_str);
    let (open, over) = match key {
        Some(_) => (&OPEN_RUNS_OF_JOB, &RUNS_OF_JOB),
        None => (&OPEN_RUNS, &RUNS),
    };
    let mut params: Vec<Param<'_>> = vec![&before, &limit];
    if let Some(key) = &key {
        params.push(key);
    }
    tx.ready(&[open, over]).await?;
    let ((), open, over, ()) = tokio::try_join!(
        biased;
        tx.begin(),
        tx.query_all(open, &params),
        over_runs(tx, filter.is_open, over, &params),
        tx.commit(),
    )?;
    let mut found = run_rows(&open)?;
    // A run that ended between the two statements is in both results. The ended one is current.
    for run in run_rows(&over)? {
        found.retain(|it| it.run != run.run);
        found.push(run);
    }
    found.sort_by_key(|it| std::cmp::Reverse(it.run));
    found.truncate(most);
    Ok(found)
}

async fn over_runs(
    tx: &Transaction,
    are_left_out: bool,
    query: &Statement,
    params: &[Param<'_>],
) -> Result<Vec<Row>, PgError> {
    if are_left_out { Ok(Vec::new()) } else { tx.query_all(query, params).await }
}

fn record(key: &JobKey, row: &Row) -> Result<RecordRow, PgError> {
    let reason: &str = row.try_get(0)?;
    let what = RecordKind::from_keyword(reason)
        .ok_or_else(|| PgError::Text(format!("the database holds a record that cannot be: `{reason}`")))?;
    let range = RecordRange {
        first: Timestamp::from_millis(row.try_get(1)?),
        last: Timestamp::from_millis(row.try_get(2)?),
        count: number(row.try_get(3)?),
    };
    let recorded_at = Timestamp::from_millis(row.try_get(4)?);
    Ok(RecordRow { key: key.clone(), record: Record { range, what }, recorded_at })
}
