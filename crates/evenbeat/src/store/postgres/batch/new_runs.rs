//! The runs that a batch of claims opens.

use evenbeat_core::ids::{Fence, RunId, SessionId};
use evenbeat_core::store::{Bid, CounterKey};
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::{BatchJobs, stored_fence};
use crate::store::columns::{DueColumns, takes_to_text};
use crate::store::keyword::Keyword;
use crate::store::postgres::error::PgError;
use crate::store::postgres::transaction::{Statement, Transaction};

pub(super) static OPEN_RUNS: Statement = Statement {
    sql: "INSERT INTO open_run (id, job_id, session_id, fence, phase, due_at, attempt, \"trigger\", serves, \
            extra_id, losses, last_outcome, params, claimed_at, is_cancel_asked, takes) \
          SELECT u.id, u.job_id, $13, u.fence, 'claimed', u.due_at, u.attempt, u.trig, u.serves, u.extra_id, \
            u.losses, u.last_outcome, u.params, $14, false, u.takes \
          FROM unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::text[], $7::text[], \
            $8::uuid[], $9::bigint[], $10::text[], $11::text[], $12::text[]) \
            AS u(id, job_id, fence, due_at, attempt, trig, serves, extra_id, losses, last_outcome, params, takes)",
    types: &[
        Type::UUID_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8_ARRAY,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::UUID_ARRAY,
        Type::INT8_ARRAY,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::UUID,
        Type::INT8,
    ],
};

pub(super) static OUTBOX: Statement = Statement {
    sql: "INSERT INTO outbox (run_id, job_id, fence) \
          SELECT u.run_id, u.job_id, u.fence FROM unnest($1::uuid[], $2::bigint[], $3::bigint[]) \
            WITH ORDINALITY AS u(run_id, job_id, fence, idx) ORDER BY u.idx",
    types: &[Type::UUID_ARRAY, Type::INT8_ARRAY, Type::INT8_ARRAY],
};

/// New runs, column by column.
#[derive(Debug, Default)]
pub(super) struct NewRunColumns {
    session: Option<SessionId>,
    id: Vec<Uuid>,
    job_id: Vec<i64>,
    fence: Vec<i64>,
    due_at: Vec<i64>,
    attempt: Vec<i64>,
    trigger: Vec<&'static str>,
    serves: Vec<&'static str>,
    extra_id: Vec<Option<Uuid>>,
    losses: Vec<i64>,
    last_outcome: Vec<Option<&'static str>>,
    params: Vec<Option<String>>,
    takes: Vec<Option<String>>,
    outbox: OutboxColumns,
}

#[derive(Debug, Default)]
struct OutboxColumns {
    run_id: Vec<Uuid>,
    job_id: Vec<i64>,
    fence: Vec<i64>,
}

impl NewRunColumns {
    pub(super) fn push(
        &mut self,
        run: RunId,
        job_id: i64,
        session: SessionId,
        fence: Fence,
        bid: &Bid,
        takes: &[CounterKey],
    ) {
        let due = DueColumns::of(&bid.due);
        self.session = Some(session);
        self.id.push(Uuid::from_u128(run.0));
        self.job_id.push(job_id);
        self.fence.push(stored_fence(fence));
        self.due_at.push(due.due_at);
        self.attempt.push(due.attempt);
        self.trigger.push(due.trigger.keyword());
        self.serves.push(due.serves.keyword());
        self.extra_id.push(due.extra_id.map(Uuid::from_u128));
        self.losses.push(due.losses);
        self.last_outcome.push(due.last_outcome.map(Keyword::keyword));
        self.params.push(due.params);
        self.takes.push(takes_to_text(takes));
        if bid.is_published {
            self.outbox.run_id.push(Uuid::from_u128(run.0));
            self.outbox.job_id.push(job_id);
            self.outbox.fence.push(stored_fence(fence));
        }
    }

    pub(super) async fn write(&self, tx: &Transaction, jobs: &BatchJobs) -> Result<(), PgError> {
        let Some(session) = self.session.map(|it| Uuid::from_u128(it.0)) else { return Ok(()) };
        let claimed_at = jobs.now.as_millis();
        let OutboxColumns { run_id, job_id, fence } = &self.outbox;
        tokio::try_join!(
            biased;
            tx.query(
                &OPEN_RUNS,
                [
                    &self.id,
                    &self.job_id,
                    &self.fence,
                    &self.due_at,
                    &self.attempt,
                    &self.trigger,
                    &self.serves,
                    &self.extra_id,
                    &self.losses,
                    &self.last_outcome,
                    &self.params,
                    &self.takes,
                    &session,
                    &claimed_at,
                ],
            ),
            tx.query_if(!run_id.is_empty(), &OUTBOX, [run_id, job_id, fence]),
        )?;
        Ok(())
    }
}
