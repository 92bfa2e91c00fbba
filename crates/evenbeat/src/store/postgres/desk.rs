//! What happens to single runs between their claim and their end: marks, wishes, start messages, workers.

use std::collections::{BTreeMap, BTreeSet};

use evenbeat_core::ids::{Fence, RunId};
use evenbeat_core::run::Outcome;
use evenbeat_core::store::{
    Cancelled, Mark, MarkKind, OutboxRow, RunPhase, RunRow, SessionKind, SessionSpec, StoreDown, WorkerStart,
};
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::PgStore;
use super::connect::Lane;
use super::epoch::{REIGN, reign};
use super::fail::Fail;
use super::rows::{ids, job_key, run_row, select_open_run};
use super::sessions::{KNOW, know};
use super::tx::{Query, Tx, transact};
use crate::store::columns::{number, stored_number};
use crate::store::word::Word;

/// The runs are joined with what is said of them where they are locked, each by its id: a join behind the lock would
/// compare all with all.
static MARK: Query = Query {
    sql: "WITH held AS (\
            SELECT o.id, u.started_at FROM unnest($1::uuid[], $2::bigint[], $3::bigint[]) AS u(id, fence, started_at) \
              JOIN open_run o ON o.id = u.id AND o.fence = u.fence ORDER BY o.id FOR UPDATE OF o) \
          UPDATE open_run o SET phase = 'running', started_at = coalesce(o.started_at, held.started_at) \
          FROM held WHERE o.id = held.id RETURNING o.id, o.fence",
    types: &[Type::UUID_ARRAY, Type::INT8_ARRAY, Type::INT8_ARRAY],
};

static CANCEL: Query = Query {
    sql: "WITH held AS (SELECT id FROM open_run WHERE id = ANY($1) ORDER BY id FOR UPDATE) \
          UPDATE open_run o SET is_cancel_asked = true FROM held WHERE o.id = held.id RETURNING o.id",
    types: &[Type::UUID_ARRAY],
};
static OUTCOMES: Query =
    Query { sql: "SELECT id, outcome FROM run WHERE id = ANY($1)", types: &[Type::UUID_ARRAY] };

static WAITING: Query = Query {
    sql: "SELECT x.run_id, j.key, x.fence FROM outbox x JOIN job j ON j.id = x.job_id ORDER BY x.no LIMIT $1",
    types: &[Type::INT8],
};

static PUBLISHED: Query = Query {
    sql: "WITH held AS (\
            SELECT o.id, o.phase FROM open_run o JOIN unnest($1::uuid[], $2::bigint[]) AS u(id, fence) \
              ON o.id = u.id AND o.fence = u.fence ORDER BY o.id FOR UPDATE OF o), \
          told AS (UPDATE open_run o SET phase = 'published' FROM held WHERE o.id = held.id AND o.phase = 'claimed') \
          DELETE FROM outbox USING held WHERE outbox.run_id = held.id",
    types: &[Type::UUID_ARRAY, Type::INT8_ARRAY],
};

static LOCK_RUN: Query = Query {
    sql: "SELECT id FROM open_run WHERE id = $1 AND fence = $2 FOR UPDATE",
    types: &[Type::UUID, Type::INT8],
};
static RUN: Query = Query {
    sql: concat!(
        "SELECT ",
        select_open_run!(),
        " FROM open_run o JOIN job j ON j.id = o.job_id WHERE o.id = $1 AND o.fence = $2"
    ),
    types: &[Type::UUID, Type::INT8],
};
/// Of which kind the owner is, and whether the worker is dead.
static WHOSE: Query = Query {
    sql: "SELECT s.id, s.kind, s.is_dead FROM session s \
          WHERE s.id = $2 OR s.id = (SELECT session_id FROM open_run WHERE id = $1)",
    types: &[Type::UUID, Type::UUID],
};
static START: Query = Query {
    sql: "WITH sent AS (DELETE FROM outbox WHERE run_id = $1) \
          UPDATE open_run SET session_id = $2, phase = 'running', started_at = coalesce(started_at, $3) WHERE id = $1",
    types: &[Type::UUID, Type::UUID, Type::INT8],
};

impl PgStore {
    /// Takes note of how far runs have come; false for those that are not open with that fence.
    pub async fn mark(&self, marks: &[Mark]) -> Result<Vec<bool>, StoreDown> {
        transact!(self, Lane::Pool, |tx| mark(&tx, marks))
    }

    /// The statement that marks runs, for whoever wants to see how the server goes about it.
    #[doc(hidden)]
    pub fn mark_statement() -> &'static str {
        MARK.sql
    }

    /// Asks the owners of runs to end them; they hear it at their next beat.
    pub async fn cancel(&self, runs: &[RunId]) -> Result<Vec<Cancelled>, StoreDown> {
        transact!(self, Lane::Pool, |tx| cancel(&tx, runs))
    }

    /// Start messages that wait to be published, oldest first.
    pub async fn outbox(&self, most: usize) -> Result<Vec<OutboxRow>, StoreDown> {
        transact!(self, Lane::Pool, |tx| outbox(&tx, most))
    }

    /// Those messages have been published: their runs are `published`, and they are not sent again.
    pub async fn published(&self, runs: &[(RunId, Fence)]) -> Result<(), StoreDown> {
        transact!(self, Lane::Pool, |tx| published(&tx, runs))
    }

    /// A worker wins or loses the start of a run that was published.
    pub async fn start_on_worker(
        &self,
        run: RunId,
        fence: Fence,
        worker: &SessionSpec,
    ) -> Result<WorkerStart, StoreDown> {
        transact!(self, Lane::Pool, |tx| start(&tx, run, fence, worker))
    }
}

async fn mark(tx: &Tx, marks: &[Mark]) -> Result<Vec<bool>, Fail> {
    // Named twice, the first start counts.
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

async fn cancel(tx: &Tx, runs: &[RunId]) -> Result<Vec<Cancelled>, Fail> {
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
        let outcome = Outcome::of_word(row.try_get(1)?);
        outcomes.insert(row.try_get::<_, Uuid>(0)?.as_u128(), outcome);
    }
    let answer = |run: &RunId| match (asked.contains(&run.0), outcomes.get(&run.0)) {
        (true, _) => Cancelled::Asked,
        (false, Some(Some(outcome))) => Cancelled::Over(*outcome),
        _ => Cancelled::Unknown,
    };
    Ok(runs.iter().map(answer).collect())
}

async fn outbox(tx: &Tx, most: usize) -> Result<Vec<OutboxRow>, Fail> {
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

async fn published(tx: &Tx, runs: &[(RunId, Fence)]) -> Result<(), Fail> {
    let id: Vec<Uuid> = runs.iter().map(|(run, _)| Uuid::from_u128(run.0)).collect();
    let fence: Vec<i64> = runs.iter().map(|(_, fence)| stored_number(fence.0)).collect();
    tx.ready(&[&PUBLISHED]).await?;
    tokio::try_join!(biased; tx.begin(), tx.query(&PUBLISHED, [&id, &fence]), tx.commit())?;
    Ok(())
}

async fn start(tx: &Tx, run: RunId, fence: Fence, worker: &SessionSpec) -> Result<WorkerStart, Fail> {
    let (id, fence) = (Uuid::from_u128(run.0), stored_number(fence.0));
    let worker_id = Uuid::from_u128(worker.id.0);
    tx.ready(&[&LOCK_RUN, &RUN, &WHOSE, &REIGN, &KNOW, &START]).await?;
    let ((), _, found, whose, reigning) = tokio::try_join!(
        biased;
        tx.begin(),
        tx.query(&LOCK_RUN, [&id, &fence]),
        tx.query(&RUN, [&id, &fence]),
        tx.query(&WHOSE, [&id, &worker_id]),
        tx.query(&REIGN, []),
    )?;
    let reign = reign(&reigning)?;
    let Some(found) = found.first() else {
        tx.rollback().await?;
        return Ok(WorkerStart::Taken);
    };
    let found = run_row(found)?;
    let (mut is_at_node, mut is_worker_dead) = (false, false);
    for row in &whose {
        let session: Uuid = row.try_get(0)?;
        let is_node = SessionKind::of_word(row.try_get(1)?) == Some(SessionKind::Node);
        is_at_node |= session.as_u128() == found.session.0 && is_node;
        is_worker_dead |= session == worker_id && row.try_get(2)?;
    }
    let is_again = found.session == worker.id;
    let is_free = is_at_node && found.phase != RunPhase::Running;
    if !is_again && !is_free || is_worker_dead {
        tx.rollback().await?;
        return Ok(WorkerStart::Taken);
    }
    if !is_again && !reign.is_open {
        tx.rollback().await?;
        return Ok(WorkerStart::Closed);
    }
    // A failover may have lost its start and its end, and later leases of the same job.
    if !is_again && fence < stored_number(reign.epoch.0 << 32) {
        tx.rollback().await?;
        return Ok(WorkerStart::Taken);
    }
    let now = reign.now.as_millis();
    tokio::try_join!(
        biased;
        know(tx, worker),
        tx.query(&START, [&id, &worker_id, &now]),
        tx.commit(),
    )?;
    let started_at = found.started_at.or(Some(reign.now));
    let won = RunRow { session: worker.id, phase: RunPhase::Running, started_at, ..found };
    Ok(WorkerStart::Won(Box::new(won)))
}
