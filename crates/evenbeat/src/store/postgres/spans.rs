//! When jobs were late or paused, for all nodes.

use std::sync::Arc;

use evenbeat_core::attainment::Span;
use evenbeat_core::ids::JobKey;
use evenbeat_core::store::StoreDown;
use evenbeat_core::time::{Duration, TimeWindow, Timestamp};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::PgStore;
use super::connect::ConnectionUse;
use super::error::PgError;
use super::rows::job_key;
use super::transaction::{Statement, transact};
use super::views::{ask, limit, read};
use crate::store::columns::number;
use crate::store::spans::{GroupBy, GroupSpan, GroupTotal, JobSpan, SpanCursor, SpanKind};

static PUT: Statement = Statement {
    sql: "INSERT INTO job_span (job_id, kind, from_at, to_at) \
          SELECT j.id, c.kind, c.from_at, c.to_at \
          FROM unnest($1::text[], $2::text[], $3::int8[], $4::int8[]) AS c (key, kind, from_at, to_at) \
          JOIN job j ON j.key = c.key \
          ON CONFLICT (job_id, kind, from_at) DO UPDATE SET to_at = excluded.to_at \
          WHERE job_span.to_at IS NULL AND excluded.to_at IS NOT NULL",
    types: &[Type::TEXT_ARRAY, Type::TEXT_ARRAY, Type::INT8_ARRAY, Type::INT8_ARRAY],
};
static TRIM: Statement = Statement {
    sql: "DELETE FROM job_span s WHERE s.to_at < $1 OR s.to_at IS NULL \
            AND NOT EXISTS (SELECT 1 FROM job j WHERE j.id = s.job_id AND NOT j.is_deleted)",
    types: &[Type::INT8],
};
static OPEN: Statement = Statement {
    sql: "SELECT s.kind, s.from_at, s.to_at, j.key FROM job_span s JOIN job j ON j.id = s.job_id \
          WHERE s.to_at IS NULL",
    types: &[],
};
static OF_JOB: Statement = Statement {
    sql: "SELECT kind, from_at, to_at FROM job_span \
          WHERE job_id = (SELECT id FROM job WHERE key = $1) AND coalesce($2 < to_at, true) ORDER BY kind, from_at",
    types: &[Type::TEXT, Type::INT8],
};

macro_rules! totals_sql {
    ($select:literal, $from:literal, $rest:literal) => {
        concat!(
            "SELECT ",
            $select,
            ", count(*), sum(greatest(0, $2 - greatest($1, m.created_at)))::int8 FROM ",
            $from,
            " ",
            $rest
        )
    };
}

static FLEET_TOTAL: Statement = Statement {
    sql: totals_sql!(
        "NULL::text",
        "job j JOIN memory m ON m.job_id = j.id",
        "WHERE NOT j.is_deleted AND $3::text = \'\'"
    ),
    types: &[Type::INT8, Type::INT8, Type::TEXT],
};
static TENANT_TOTALS: Statement = Statement {
    sql: totals_sql!(
        "j.tenant",
        "job j JOIN memory m ON m.job_id = j.id",
        "WHERE NOT j.is_deleted AND $3::text = \'\' GROUP BY j.tenant"
    ),
    types: &[Type::INT8, Type::INT8, Type::TEXT],
};
static LABEL_TOTALS: Statement = Statement {
    sql: totals_sql!(
        "d.value",
        "label d JOIN memory m ON m.job_id = d.job_id",
        "WHERE d.name = $3 GROUP BY d.value"
    ),
    types: &[Type::INT8, Type::INT8, Type::TEXT],
};

static LABELLED: Statement = Statement {
    sql: "SELECT job_id, value FROM label WHERE name = $1 ORDER BY value, key",
    types: &[Type::TEXT],
};
static SPANS: Statement = Statement {
    sql: "SELECT s.job_id, s.kind, s.from_at, s.to_at, j.tenant, m.created_at FROM job_span s \
          JOIN job j ON j.id = s.job_id JOIN memory m ON m.job_id = s.job_id \
          WHERE ($1, $2, $3) < (s.job_id, s.kind, s.from_at) AND coalesce($4 < s.to_at, true) \
            AND s.from_at < $5 AND NOT j.is_deleted \
          ORDER BY s.job_id, s.kind, s.from_at LIMIT $6",
    types: &[Type::INT8, Type::TEXT, Type::INT8, Type::INT8, Type::INT8, Type::INT8],
};

impl PgStore {
    /// Adds spans, and ends those that are there without an end.
    pub async fn put_spans(&self, spans: &[JobSpan]) -> Result<(), StoreDown> {
        let keys: Vec<&str> = spans.iter().map(|it| it.key.as_str()).collect();
        let kinds: Vec<&str> = spans.iter().map(|it| it.kind.as_str()).collect();
        let from: Vec<i64> = spans.iter().map(|it| it.span.from.as_millis()).collect();
        let to: Vec<Option<i64>> = spans.iter().map(|it| it.span.to.map(Timestamp::as_millis)).collect();
        transact!(self, ConnectionUse::Write, |tx| ask(&tx, &PUT, [&keys, &kinds, &from, &to])).map(|_| ())
    }

    /// Removes spans that ended before an instant, and those of jobs that are gone.
    pub async fn trim_spans(&self, before: Timestamp) -> Result<(), StoreDown> {
        let before = before.as_millis();
        transact!(self, ConnectionUse::Write, |tx| ask(&tx, &TRIM, [&before])).map(|_| ())
    }

    /// All spans that go on.
    pub async fn open_spans(&self) -> Result<Vec<JobSpan>, StoreDown> {
        let rows = transact!(self, ConnectionUse::Read, |tx| ask(&tx, &OPEN, []))?;
        read(&rows, |row| {
            Ok(JobSpan { key: job_key(row.try_get(3)?)?, kind: kind(row, 0)?, span: span(row, 1)? })
        })
    }

    /// The spans of a job that go on or ended after an instant.
    pub async fn spans_of(&self, key: &JobKey, since: Timestamp) -> Result<Vec<JobSpan>, StoreDown> {
        let since = since.as_millis();
        let rows = transact!(self, ConnectionUse::Read, |tx| ask(&tx, &OF_JOB, [&key.as_str(), &since]))?;
        read(&rows, |row| Ok(JobSpan { key: key.clone(), kind: kind(row, 0)?, span: span(row, 1)? }))
    }

    /// The jobs of each group, and how long they were there in a window.
    pub async fn group_totals(&self, by: &GroupBy, window: TimeWindow) -> Result<Vec<GroupTotal>, StoreDown> {
        let (statement, label) = match by {
            GroupBy::Fleet => (&FLEET_TOTAL, ""),
            GroupBy::Tenant => (&TENANT_TOTALS, ""),
            GroupBy::Label(name) => (&LABEL_TOTALS, name.as_str()),
        };
        let (start, end) = (window.start().as_millis(), window.end().as_millis());
        let rows = transact!(self, ConnectionUse::Read, |tx| ask(&tx, statement, [&start, &end, &label]))?;
        read(&rows, |row| {
            let existed = Duration::from_millis(row.try_get::<_, Option<i64>>(2)?.unwrap_or(0));
            Ok(GroupTotal { name: row.try_get(0)?, n_jobs: number(row.try_get(1)?), existed })
        })
    }

    /// The jobs that have a label, with its value. Jobs with the same value follow each other.
    pub async fn labelled_jobs(&self, name: &str) -> Result<Vec<(i64, Arc<str>)>, StoreDown> {
        let rows = transact!(self, ConnectionUse::Read, |tx| ask(&tx, &LABELLED, [&name]))?;
        let found: Vec<(i64, String)> = read(&rows, |row| Ok((row.try_get(0)?, row.try_get(1)?)))?;
        let groups = found.chunk_by(|(_, one), (_, next)| one == next);
        let shared = groups.flat_map(|group| {
            let value: Option<Arc<str>> = group.first().map(|(_, value)| value.as_str().into());
            group.iter().filter_map(move |(id, _)| Some((*id, value.clone()?)))
        });
        Ok(shared.collect())
    }

    /// The spans of all jobs in a window, by job, after one of them.
    pub async fn group_spans(
        &self,
        window: TimeWindow,
        after: Option<SpanCursor>,
        most: usize,
    ) -> Result<Vec<GroupSpan>, StoreDown> {
        let (id, kind_of, from) = after.unwrap_or((i64::MIN, SpanKind::Late, Timestamp::MIN));
        let (kind_of, from) = (kind_of.as_str(), from.as_millis());
        let (start, end, most) = (window.start().as_millis(), window.end().as_millis(), limit(most));
        let rows = transact!(self, ConnectionUse::Read, |tx| ask(
            &tx,
            &SPANS,
            [&id, &kind_of, &from, &start, &end, &most]
        ))?;
        read(&rows, |row| {
            Ok(GroupSpan {
                job_id: row.try_get(0)?,
                kind: kind(row, 1)?,
                span: span(row, 2)?,
                tenant: row.try_get(4)?,
                created_at: Timestamp::from_millis(row.try_get(5)?),
            })
        })
    }
}

fn kind(row: &Row, idx: usize) -> Result<SpanKind, PgError> {
    Ok(SpanKind::of(row.try_get(idx)?))
}

fn span(row: &Row, idx: usize) -> Result<Span, PgError> {
    let to: Option<i64> = row.try_get(idx + 1)?;
    Ok(Span { from: Timestamp::from_millis(row.try_get(idx)?), to: to.map(Timestamp::from_millis) })
}
