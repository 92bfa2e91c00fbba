//! When jobs were late or paused.

use std::sync::Arc;

use evenbeat_core::attainment::Span;
use evenbeat_core::ids::JobKey;
use evenbeat_core::store::StoreDown;
use evenbeat_core::time::{Duration, TimeWindow, Timestamp};
use rusqlite::{Result, Row, params};

use super::feed::limit;
use super::read_tx::ReadTx;
use super::rows;
use super::write_tx::WriteTx;
use crate::store::columns::number;
use crate::store::spans::{GroupBy, GroupSpan, GroupTotal, JobSpan, SpanCursor, SpanKind};

impl WriteTx<'_> {
    /// Adds spans, and ends those that are there without an end.
    pub fn put_spans(&mut self, spans: &[JobSpan]) -> Result<(), StoreDown> {
        let sql = "INSERT INTO job_span (job_id, kind, from_at, to_at)
                   SELECT id, ?2, ?3, ?4 FROM job WHERE key = ?1
                   ON CONFLICT (job_id, kind, from_at) DO UPDATE SET to_at = excluded.to_at
                   WHERE job_span.to_at IS NULL AND excluded.to_at IS NOT NULL";
        let put = |span: &JobSpan| {
            let to = span.span.to.map(Timestamp::as_millis);
            self.run(sql, params![span.key.as_str(), span.kind.as_str(), span.span.from.as_millis(), to])
        };
        let written = spans.iter().map(put).collect::<Result<Vec<_>>>();
        self.or_down(written.map(|_| ()))
    }

    /// Removes spans that ended before an instant, and those of jobs that are gone.
    pub fn trim_spans(&mut self, before: Timestamp) -> Result<(), StoreDown> {
        let ended = self.run("DELETE FROM job_span WHERE to_at < ?1", [before.as_millis()]);
        let gone = "DELETE FROM job_span WHERE to_at IS NULL
                    AND NOT EXISTS (SELECT 1 FROM job WHERE id = job_id AND NOT is_deleted)";
        let trimmed = ended.and_then(|_| self.run(gone, []));
        self.or_down(trimmed.map(|_| ()))
    }
}

impl ReadTx<'_> {
    /// All spans that go on.
    pub fn open_spans(&self) -> Result<Vec<JobSpan>, StoreDown> {
        let sql = "SELECT s.kind, s.from_at, s.to_at, j.key FROM job_span s INDEXED BY job_span_by_end
                   CROSS JOIN job j ON j.id = s.job_id WHERE s.to_at IS NULL";
        self.or_down(self.many(sql, [], |row| {
            Ok(JobSpan { key: rows::key(row, 3)?, kind: kind(row, 0)?, span: span(row, 1)? })
        }))
    }

    /// The spans of a job that go on or ended after an instant.
    pub fn spans_of(&self, key: &JobKey, since: Timestamp) -> Result<Vec<JobSpan>, StoreDown> {
        let sql = "SELECT kind, from_at, to_at FROM job_span
                   WHERE job_id = (SELECT id FROM job WHERE key = ?1) AND coalesce(?2 < to_at, 1)
                   ORDER BY kind, from_at";
        self.or_down(self.many(sql, params![key.as_str(), since.as_millis()], |row| {
            Ok(JobSpan { key: key.clone(), kind: kind(row, 0)?, span: span(row, 1)? })
        }))
    }

    /// The jobs of each group, and how long they were there in a window.
    pub fn group_totals(&self, by: &GroupBy, window: TimeWindow) -> Result<Vec<GroupTotal>, StoreDown> {
        const SUMS: &str = "count(*), sum(max(0, ?2 - max(?1, m.created_at)))";
        let jobs = "job j CROSS JOIN memory m ON m.job_id = j.id WHERE NOT j.is_deleted AND ?3 = ''";
        let sql = match by {
            GroupBy::Fleet => format!("SELECT NULL, {SUMS} FROM {jobs}"),
            GroupBy::Tenant => format!("SELECT j.tenant, {SUMS} FROM {jobs} GROUP BY j.tenant"),
            GroupBy::Label(_) => format!(
                "SELECT d.value, {SUMS} FROM label d CROSS JOIN memory m ON m.job_id = d.job_id
                 WHERE d.name = ?3 GROUP BY d.value"
            ),
        };
        let params = params![window.start().as_millis(), window.end().as_millis(), label_of(by)];
        self.or_down(self.many(&sql, params, |row| {
            let existed = Duration::from_millis(row.get::<_, Option<i64>>(2)?.unwrap_or(0));
            Ok(GroupTotal { name: row.get(0)?, n_jobs: number(row.get(1)?), existed })
        }))
    }

    /// The jobs that have a label, with its value. Jobs with the same value follow each other.
    pub fn labelled_jobs(&self, name: &str) -> Result<Vec<(i64, Arc<str>)>, StoreDown> {
        let mut last: Arc<str> = "".into();
        let sql = "SELECT job_id, value FROM label WHERE name = ?1 ORDER BY value, key";
        self.or_down(self.many(sql, [name], |row| {
            let value = row.get_ref(1)?.as_str()?;
            if *last != *value {
                last = value.into();
            }
            Ok((row.get(0)?, Arc::clone(&last)))
        }))
    }

    /// The spans of all jobs in a window, by job, after one of them.
    pub fn group_spans(
        &self,
        window: TimeWindow,
        after: Option<SpanCursor>,
        most: usize,
    ) -> Result<Vec<GroupSpan>, StoreDown> {
        let sql = "SELECT s.job_id, s.kind, s.from_at, s.to_at, j.tenant, m.created_at FROM job_span s
                   CROSS JOIN job j ON j.id = s.job_id CROSS JOIN memory m ON m.job_id = s.job_id
                   WHERE (?1, ?2, ?3) < (s.job_id, s.kind, s.from_at) AND coalesce(?4 < s.to_at, 1)
                     AND s.from_at < ?5 AND NOT j.is_deleted
                   ORDER BY s.job_id, s.kind, s.from_at LIMIT ?6";
        let (id, kind_of, from) = after.unwrap_or((i64::MIN, SpanKind::Late, Timestamp::MIN));
        let (start, end) = (window.start().as_millis(), window.end().as_millis());
        let params = params![id, kind_of.as_str(), from.as_millis(), start, end, limit(most)];
        self.or_down(self.many(sql, params, |row| {
            Ok(GroupSpan {
                job_id: row.get(0)?,
                kind: kind(row, 1)?,
                span: span(row, 2)?,
                tenant: row.get(4)?,
                created_at: Timestamp::from_millis(row.get(5)?),
            })
        }))
    }
}

fn label_of(by: &GroupBy) -> &str {
    match by {
        GroupBy::Label(name) => name,
        GroupBy::Fleet | GroupBy::Tenant => "",
    }
}

fn kind(row: &Row<'_>, idx: usize) -> Result<SpanKind> {
    Ok(SpanKind::of(row.get_ref(idx)?.as_str()?))
}

fn span(row: &Row<'_>, idx: usize) -> Result<Span> {
    let to: Option<i64> = row.get(idx + 1)?;
    Ok(Span { from: Timestamp::from_millis(row.get(idx)?), to: to.map(Timestamp::from_millis) })
}
