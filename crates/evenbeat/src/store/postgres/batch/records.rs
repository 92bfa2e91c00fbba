//! Records of occurrences without a run, written together with the decision.

use tokio_postgres::types::Type;

use super::BatchJobs;
use crate::store::columns::stored_number;
use crate::store::postgres::error::PgError;
use crate::store::postgres::transaction::{Statement, Transaction};

pub(super) static WRITE_RECORDS: Statement = Statement {
    sql: "INSERT INTO record (job_id, what, reason, first_due_at, last_due_at, n, recorded_at) \
          SELECT j.id, u.what, u.reason, u.first_due_at, u.last_due_at, u.n, $7 \
          FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[]) \
            WITH ORDINALITY AS u(key, what, reason, first_due_at, last_due_at, n, idx) \
          JOIN job j ON j.key = u.key ORDER BY u.idx",
    types: &[
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8,
    ],
};

pub(super) async fn write_records(tx: &Transaction, jobs: &BatchJobs) -> Result<(), PgError> {
    let records = &jobs.records;
    let key: Vec<&str> = records.iter().map(|(key, _)| key.as_str()).collect();
    let what: Vec<&str> = records.iter().map(|(_, it)| it.what.what()).collect();
    let reason: Vec<&str> = records.iter().map(|(_, it)| it.what.reason()).collect();
    let first: Vec<i64> = records.iter().map(|(_, it)| it.range.first.as_millis()).collect();
    let last: Vec<i64> = records.iter().map(|(_, it)| it.range.last.as_millis()).collect();
    let n: Vec<i64> = records.iter().map(|(_, it)| stored_number(it.range.count)).collect();
    let at = jobs.now.as_millis();
    tx.query_if(!records.is_empty(), &WRITE_RECORDS, [&key, &what, &reason, &first, &last, &n, &at]).await?;
    Ok(())
}
