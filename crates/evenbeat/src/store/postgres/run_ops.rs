//! What happens to runs between claim and end: start marks, cancellations, start messages, workers.

use std::collections::{BTreeMap, BTreeSet};

use evenbeat_core::ids::{Fence, RunId};
use evenbeat_core::run::Outcome;
use evenbeat_core::store::{
    Cancelled, Mark, MarkKind, OutboxRow, RunPhase, RunRow, SessionKind, SessionSpec, StoreDown, WorkerStart,
};
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::PgStore;
use super::connect::ConnectionUse;
use super::epoch::{CURRENT_EPOCH, read_epoch};
use super::error::PgError;
use super::rows::{ids, job_key, run_row, select_open_run};
use super::sessions::{KNOW, know};
use super::transaction::{Statement, Transaction, transact};
use crate::store::columns::{number, stored_number};
use crate::store::keyword::Keyword;

/// The rows are joined where the runs are locked, each by its id: a join after the lock would compare all with all.
static MARK: Statement = Statement {
    sql: "WITH held AS (\
            SELECT o.id, u.started_at FROM unnest($1::uuid[], $2::bigint[], $3::bigint[]) AS u(id, fence, started_at) \
              JOIN open_run o ON o.id = u.id AND o.fence = u.fence ORDER BY o.id FOR UPDATE OF o) \
          UPDATE open_run o SET phase = 'running', started_at = coalesce(o.started_at, held.started_at) \
          FROM held WHERE o.id = held.id RETURNING o.id, o.fence",
    types: &[Type::UUID_ARRAY, Type::INT8_ARRAY, Type::INT8_ARRAY],
};

static CANCEL: Statement = Statement {
    sql: "WITH held AS (SELECT id FROM open_run WHERE id = ANY($1) ORDER BY id FOR UPDATE) \
          UPDATE open_run o SET is_cancel_asked = true FROM held WHERE o.id = held.id RETURNING o.id",
    types: &[Type::UUID_ARRAY],
};
static OUTCOMES: Statement =
    Statement { sql: "SELECT id, outcome FROM run WHERE id = ANY($1)", types: &[Type::UUID_ARRAY] };

static WAITING: Statement = Statement {
    sql: "SELECT x.run_id, j.key, x.fence FROM outbox x JOIN job j ON j.id = x.job_id ORDER BY x.no LIMIT $1",
    types: &[Type::INT8],
};

static PUBLISHED: Statement = Statement {
    sql: "WITH held AS (\
            SELECT o.id, o.phase FROM open_run o JOIN unnest($1::uuid[], $2::bigint[]) AS u(id, fence) \
              ON o.id = u.id AND o.fence = u.fence ORDER BY o.id FOR UPDATE OF o), \
          told AS (UPDATE open_run o SET phase = 'published' FROM held WHERE o.id = held.id AND o.phase = 'claimed') \
          DELETE FROM outbox USING held WHERE outbox.run_id = held.id",
    types: &[Type::UUID_ARRAY, Type::INT8_ARRAY],
};

static LOCK_RUN: Statement = Statement {
    sql: "SELECT id FROM open_run WHERE id = $1 AND fence = $2 FOR UPDATE",
    types: &[Type::UUID, Type::INT8],
};
static RUN: Statement = Statement {
    sql: concat!(
        "SELECT ",
        select_open_run!(),
        " FROM open_run o JOIN job j ON j.id = o.job_id WHERE o.id = $1 AND o.fence = $2"
    ),
    types: &[Type::UUID, Type::INT8],
};
/// The kind of the owner, and whether the worker is dead.
static WHOSE: Statement = Statement {
    sql: "SELECT s.id, s.kind, s.is_dead FROM session s \
          WHERE s.id = $2 OR s.id = (SELECT session_id FROM open_run WHERE id = $1)",
    types: &[Type::UUID, Type::UUID],
};
static START: Statement = Statement {
    sql: "WITH sent AS (DELETE FROM outbox WHERE run_id = $1) \
          UPDATE open_run SET session_id = $2, phase = 'running', started_at = coalesce(started_at, $3) WHERE id = $1",
    types: &[Type::UUID, Type::UUID, Type::INT8],
};

impl PgStore {
    /// Records that runs have started. False for runs that are not open with that fence.
    pub async fn mark(&self, marks: &[Mark]) -> Result<Vec<bool>, StoreDown> {
        transact!(self, ConnectionUse::Write, |tx| mark(&tx, marks))
    }

    /// The statement that marks runs, for tests of its query plan.
    #[doc(hidden)]
    pub fn mark_statement() -> &'static str {
        MARK.sql
    }

    /// Asks the owners of runs to end them. They see it at their next heartbeat.
    pub async fn cancel(&self, runs: &[RunId]) -> Result<Vec<Cancelled>, StoreDown> {
        transact!(self, ConnectionUse::Write, |tx| cancel(&tx, runs))
    }

    /// Start messages that wait to be published, oldest first.
    pub async fn outbox(&self, most: usize) -> Result<Vec<OutboxRow>, StoreDown> {
        transact!(self, ConnectionUse::Write, |tx| outbox(&tx, most))
    }

    /// Records that start messages were published, so that they are not sent again.
    pub async fn published(&self, runs: &[(RunId, Fence)]) -> Result<(), StoreDown> {
        transact!(self, ConnectionUse::Write, |tx| published(&tx, runs))
    }

    /// A worker wins or loses the start of a run that was published.
    pub async fn start_on_worker(
        &self,
        run: RunId,
        fence: Fence,
        worker: &SessionSpec,
    ) -> Result<WorkerStart, StoreDown> {
        transact!(self, ConnectionUse::Write, |tx| start(&tx, run, fence, worker))
    }
}

async fn mark(tx: &Transaction, marks: &[Mark]) -> Result<Vec<bool>, PgError> {
    // If a run is named twice, the first start counts.
    let mut first: BTreeMap<(RunId, Fence), i64> = BTreeMap::new();
    for Mark { run, fence, kind: MarkKind::Started(at) } in marks {
        first.entry((*run, *fence)).or_insert(at.as_millis());
    }
    let id: Vec<Uuid> = first.keys().map(|(run, _)| Uuid::from_u128(run.0)).collect();
    let fence: Vec<i64> = first.keys().map(|(_, fence)| stored_number(fence.0)).collect();
    let at: Vec<i64> = first.values().copied().collect();
    tx.ready(&[&MARK]).await?;
    let ((), rows, ()) =
        tokio::try_join!(biased; tx.begin(), tx.query(&MARK, [&id, &fence, &at]), tx.commit())?;
    let mut marked = BTreeSet::new();
    for row in &rows {
        marked.insert((RunId(row.try_get::<_, Uuid>(0)?.as_u128()), Fence(number(row.try_get(1)?))));
    }
    Ok(marks.iter().map(|it| marked.contains(&(it.run, it.fence))).collect())
}

async fn cancel(tx: &Transaction, runs: &[RunId]) -> Result<Vec<Cancelled>, PgError> {
    let id: Vec<Uuid> = runs.iter().map(|it| Uuid::from_u128(it.0)).collect();
    tx.ready(&[&CANCEL, &OUTCOMES]).await?;
    let ((), asked, over, ()) = tokio::try_join!(
        biased;
        tx.begin(),
        tx.query(&CANCEL, [&id]),
        tx.query(&OUTCOMES, [&id]),
        tx.commit(),
    )?;
    let asked: BTreeSet<u128> = ids(&asked)?.into_iter().collect();
    let mut outcomes = BTreeMap::new();
    for row in &over {
        let outcome = Outcome::from_keyword(row.try_get(1)?);
        outcomes.insert(row.try_get::<_, Uuid>(0)?.as_u128(), outcome);
    }
    let answer = |run: &RunId| match (asked.contains(&run.0), outcomes.get(&run.0)) {
        (true, _) => Cancelled::Asked,
        (false, Some(Some(outcome))) => Cancelled::Over(*outcome),
        _ => Cancelled::Unknown,
    };
    Ok(runs.iter().map(answer).collect())
}

async fn outbox(tx: &Transaction, most: usize) -> Result<Vec<OutboxRow>, PgError> {
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    tx.ready(&[&WAITING]).await?;
    let ((), rows, ()) = tokio::try_join!(biased; tx.begin(), tx.query(&WAITING, [&most]), tx.commit())?;
    let message = |row: &tokio_postgres::Row| {
        Ok(OutboxRow {
            run: RunId(row.try_get::<_, Uuid>(0)?.as_u128()),
            key: job_key(row.try_get(1)?)?,
            fence: Fence(number(row.try_get(2)?)),
        })
    };
    rows.iter().map(message).collect()
}

async fn published(tx: &Transaction, runs: &[(RunId, Fence)]) -> Result<(), PgError> {
    let id: Vec<Uuid> = runs.iter().map(|(run, _)| Uuid::from_u128(run.0)).collect();
    let fence: Vec<i64> = runs.iter().map(|(_, fence)| stored_number(fence.0)).collect();
    tx.ready(&[&PUBLISHED]).await?;
    tokio::try_join!(biased; tx.begin(), tx.query(&PUBLISHED, [&id, &fence]), tx.commit())?;
    Ok(())
}

async fn start(
    tx: &Transaction,
    run: RunId,
    fence: Fence,
    worker: &SessionSpec,
) -> Result<WorkerStart, PgError> {
    let (id, fence) = (Uuid::from_u128(run.0), stored_number(fence.0));
    let worker_id = Uuid::from_u128(worker.id.0);
    tx.ready(&[&LOCK_RUN, &RUN, &WHOSE, &CURRENT_EPOCH, &KNOW, &START]).await?;
    let ((), _, found, whose, epoch_rows) = tokio::try_join!(
        biased;
        tx.begin(),
        tx.query(&LOCK_RUN, [&id, &fence]),
        tx.query(&RUN, [&id, &fence]),
        tx.query(&WHOSE, [&id, &worker_id]),
        tx.query(&CURRENT_EPOCH, []),
    )?;
    let current = read_epoch(&epoch_rows)?;
    let Some(found) = found.first() else {
        tx.rollback().await?;
        return Ok(WorkerStart::Taken);
    };
    let found = run_row(found)?;
    let (mut is_at_node, mut is_worker_dead) = (false, false);
    for row in &whose {
        let session: Uuid = row.try_get(0)?;
        let is_node = SessionKind::from_keyword(row.try_get(1)?) == Some(SessionKind::Node);
        is_at_node |= session.as_u128() == found.session.0 && is_node;
        is_worker_dead |= session == worker_id && row.try_get(2)?;
    }
    let is_again = found.session == worker.id;
    let is_free = is_at_node && found.phase != RunPhase::Running;
    if !is_again && !is_free || is_worker_dead {
        tx.rollback().await?;
        return Ok(WorkerStart::Taken);
    }
    if !is_again && !current.is_open {
        tx.rollback().await?;
        return Ok(WorkerStart::Closed);
    }
    // A failover may have lost its start, its end and later leases of the job.
    if !is_again && fence < stored_number(current.epoch.0 << 32) {
        tx.rollback().await?;
        return Ok(WorkerStart::Taken);
    }
    let now = current.now.as_millis();
    tokio::try_join!(
        biased;
        know(tx, worker),
        tx.query(&START, [&id, &worker_id, &now]),
        tx.commit(),
    )?;
    let started_at = found.started_at.or(Some(current.now));
    let won = RunRow { session: worker.id, phase: RunPhase::Running, started_at, ..found };
    Ok(WorkerStart::Won(Box::new(won)))
}
