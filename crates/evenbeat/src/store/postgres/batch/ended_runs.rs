//! The runs that a batch ends, and results that came too late.

use std::collections::BTreeMap;

use evenbeat_core::ids::{Fence, RunId};
use evenbeat_core::job::RunEnd;
use evenbeat_core::run::RunReport;
use evenbeat_core::store::CounterKey;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::stored_fence;
use crate::store::columns::report_to_text;
use crate::store::keyword::Keyword;
use crate::store::postgres::error::PgError;
use crate::store::postgres::transaction::{Statement, Transaction};

/// Moves runs from `open_run` to `run`. A run without an outcome is only removed. The removal is the compare-and-set:
/// it fails if a run is not open under that lease.
pub(super) static CLOSE_RUNS: Statement = Statement {
    sql: "WITH gone AS (\
            DELETE FROM open_run o USING unnest($1::uuid[], $2::bigint[], $3::text[], $4::bigint[], $5::bigint[], \
              $6::bigint[], $7::text[], $8::bigint[]) \
              AS u(id, fence, outcome, ended_at, exit_code, frozen_for, report, begun_at) \
            WHERE o.id = u.id AND o.fence = u.fence \
            RETURNING o.*, u.outcome, u.ended_at, u.exit_code, u.frozen_for, u.report, u.begun_at), \
          kept AS (\
            INSERT INTO run (id, job_id, session_id, fence, outcome, due_at, attempt, \"trigger\", serves, extra_id, \
              losses, last_outcome, params, claimed_at, started_at, is_cancel_asked, takes, ended_at, exit_code, \
              frozen_for, report) \
            SELECT id, job_id, session_id, fence, outcome, due_at, attempt, \"trigger\", serves, extra_id, losses, \
              last_outcome, params, claimed_at, least(coalesce(started_at, begun_at), ended_at), is_cancel_asked, takes, \
              ended_at, exit_code, frozen_for, report \
            FROM gone WHERE outcome IS NOT NULL) \
          SELECT 1 / (count(*) = cardinality($1::uuid[]))::int FROM gone",
    types: &[
        Type::UUID_ARRAY,
        Type::INT8_ARRAY,
        Type::TEXT_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8_ARRAY,
        Type::TEXT_ARRAY,
        Type::INT8_ARRAY,
    ],
};

pub(super) static FREE_COUNTERS: Statement = Statement {
    sql: "UPDATE counter c SET n_open = greatest(c.n_open - u.n, 0) \
          FROM unnest($1::text[], $2::text[], $3::bigint[]) AS u(kind, key, n) \
          WHERE c.kind = u.kind AND c.key = u.key COLLATE \"C\"",
    types: &[Type::TEXT_ARRAY, Type::TEXT_ARRAY, Type::INT8_ARRAY],
};

pub(super) static CLEAR_OUTBOX: Statement =
    Statement { sql: "DELETE FROM outbox WHERE run_id = ANY($1)", types: &[Type::UUID_ARRAY] };

/// The first result that comes after its run was given up is kept with the run.
pub(super) static KEEP_LATE: Statement = Statement {
    sql: "UPDATE run r SET outcome = 'superseded', late_outcome = u.outcome, late_ended_at = u.ended_at, \
            exit_code = u.exit_code, report = u.report \
          FROM unnest($1::uuid[], $2::bigint[], $3::text[], $4::bigint[], $5::bigint[], $6::text[]) \
            AS u(id, fence, outcome, ended_at, exit_code, report) \
          WHERE r.id = u.id AND r.fence = u.fence AND r.outcome = 'lost'",
    types: &[
        Type::UUID_ARRAY,
        Type::INT8_ARRAY,
        Type::TEXT_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8_ARRAY,
        Type::TEXT_ARRAY,
    ],
};

/// Ended runs, column by column.
#[derive(Debug, Default)]
pub(super) struct EndedRunColumns {
    id: Vec<Uuid>,
    fence: Vec<i64>,
    outcome: Vec<Option<&'static str>>,
    ended_at: Vec<Option<i64>>,
    exit_code: Vec<Option<i64>>,
    frozen_for: Vec<Option<i64>>,
    report: Vec<Option<String>>,
    /// For runs whose start was not marked.
    begun_at: Vec<Option<i64>>,
    freed: BTreeMap<CounterKey, i64>,
    /// Only the first late result of a run counts.
    late: BTreeMap<(RunId, Fence), LateRow>,
}

#[derive(Debug)]
struct LateRow {
    outcome: &'static str,
    ended_at: i64,
    exit_code: Option<i64>,
    report: Option<String>,
}

impl EndedRunColumns {
    pub(super) fn push(
        &mut self,
        run: RunId,
        fence: Fence,
        end: Option<RunEnd>,
        report: Option<&RunReport>,
        takes: &[CounterKey],
    ) {
        self.id.push(Uuid::from_u128(run.0));
        self.fence.push(stored_fence(fence));
        self.outcome.push(end.map(|it| it.outcome.keyword()));
        self.ended_at.push(end.map(|it| it.ended_at.as_millis()));
        self.exit_code.push(end.and_then(|it| it.exit_code).map(i64::from));
        self.frozen_for.push(end.map(|it| it.frozen_for.as_millis()));
        self.report.push(report_to_text(report));
        self.begun_at.push(end.map(|it| it.started_at.as_millis()));
        for counter in takes {
            *self.freed.entry(counter.clone()).or_default() += 1;
        }
    }

    pub(super) fn late(&mut self, run: RunId, fence: Fence, end: &RunEnd, report: Option<&RunReport>) {
        self.late.entry((run, fence)).or_insert_with(|| LateRow {
            outcome: end.outcome.keyword(),
            ended_at: end.ended_at.as_millis(),
            exit_code: end.exit_code.map(i64::from),
            report: report_to_text(report),
        });
    }

    pub(super) async fn write(&self, tx: &Transaction) -> Result<(), PgError> {
        let kind: Vec<&str> = self.freed.keys().map(CounterKey::kind).collect();
        let key: Vec<&str> = self.freed.keys().map(CounterKey::key).collect();
        let n: Vec<i64> = self.freed.values().copied().collect();
        let late_id: Vec<Uuid> = self.late.keys().map(|(run, _)| Uuid::from_u128(run.0)).collect();
        let late_fence: Vec<i64> = self.late.keys().map(|(_, fence)| stored_fence(*fence)).collect();
        let late_outcome: Vec<&str> = self.late.values().map(|it| it.outcome).collect();
        let late_ended_at: Vec<i64> = self.late.values().map(|it| it.ended_at).collect();
        let late_exit_code: Vec<Option<i64>> = self.late.values().map(|it| it.exit_code).collect();
        let late_report: Vec<Option<&str>> = self.late.values().map(|it| it.report.as_deref()).collect();
        let is_any = !self.id.is_empty();
        tokio::try_join!(
            biased;
            tx.query_if(!kind.is_empty(), &FREE_COUNTERS, [&kind, &key, &n]),
            tx.query_if(
                is_any,
                &CLOSE_RUNS,
                [
                    &self.id,
                    &self.fence,
                    &self.outcome,
                    &self.ended_at,
                    &self.exit_code,
                    &self.frozen_for,
                    &self.report,
                    &self.begun_at,
                ],
            ),
            tx.query_if(is_any, &CLEAR_OUTBOX, [&self.id]),
            tx.query_if(
                !late_id.is_empty(),
                &KEEP_LATE,
                [&late_id, &late_fence, &late_outcome, &late_ended_at, &late_exit_code, &late_report],
            ),
        )?;
        Ok(())
    }
}
