//! How runs are claimed.

use std::collections::BTreeMap;

use evenbeat_core::ids::{Fence, NodeName, RunId, SessionId};
use evenbeat_core::job::Owner;
use evenbeat_core::lease::Epoch;
use evenbeat_core::store::{Bid, Claim, ClaimAnswer, Claims, CounterKey, JobRow, StoreDown, Take};
use evenbeat_core::time::Timestamp;
use tokio_postgres::Row;
use uuid::Uuid;

use super::counters::{ADD_COUNTERS, CLAIMS_OF_HOUR, Counters, LOCK_COUNTERS, WRITE_CLAIMS, WRITE_COUNTERS};
use super::history_range::{HistoryRange, ended_between};
use super::new_runs::{NewRunColumns, OPEN_RUNS, OUTBOX};
use super::records::{WRITE_RECORDS, write_records};
use super::{BatchJobs, LOCK_JOBS, READ_JOBS, WRITE_JOBS, keys, short_claim};
use crate::store::columns::number;
use crate::store::counter_room::CounterRoom;
use crate::store::postgres::connect::ConnectionUse;
use crate::store::postgres::epoch::{CURRENT_EPOCH, read_epoch};
use crate::store::postgres::error::PgError;
use crate::store::postgres::rows::by;
use crate::store::postgres::sessions::LIVING;
use crate::store::postgres::transaction::{Statement, Transaction, transact};
use crate::store::postgres::{PgStore, PgStoreInner};
use tokio_postgres::types::Type;

/// Run ids that were used before.
static USED_RUN_IDS: Statement = Statement {
    sql: concat!(
        "SELECT id, job_id, session_id, fence FROM open_run WHERE id = ANY($1) \
         UNION ALL SELECT r.id, r.job_id, NULL, r.fence FROM run r WHERE r.id = ANY($1) AND ",
        ended_between!("$2", "$3")
    ),
    types: &[Type::UUID_ARRAY, Type::INT8, Type::INT8],
};

impl PgStore {
    /// Opens runs: each a compare-and-set on its job's version, within the limits of its counters.
    pub async fn claim(&self, me: SessionId, epoch: Epoch, claims: &[Claim]) -> Result<Claims, StoreDown> {
        // Boxed: the future has many steps and would bloat that of every caller.
        let asked = Box::pin(async {
            let mut answers = short_claim::run(self, me, epoch, claims).await?;
            let rest: Vec<&Claim> =
                claims.iter().zip(&answers).filter(|(_, it)| it.is_none()).map(|(it, _)| it).collect();
            self.inner.path_counters.add(claims.len() - rest.len(), rest.len());
            if rest.is_empty() && !claims.is_empty() {
                return Ok(Claims::Answered(answers.into_iter().flatten().collect()));
            }
            // Boxed again, because it is large and rarely needed.
            match Box::pin(self.claim_long(me, epoch, &rest)).await? {
                Claims::Answered(long) => {
                    for (answer, found) in answers.iter_mut().filter(|it| it.is_none()).zip(long) {
                        *answer = Some(found);
                    }
                    Ok(Claims::Answered(answers.into_iter().flatten().collect()))
                }
                // The refusal holds for the whole batch: the session no longer owns what was granted a moment ago.
                refusal @ (Claims::Closed | Claims::SessionDead | Claims::Draining) => Ok(refusal),
            }
        });
        self.within(self.inner.config.deadline, asked).await
    }

    async fn claim_long(&self, me: SessionId, epoch: Epoch, claims: &[&Claim]) -> Result<Claims, StoreDown> {
        transact!(self, ConnectionUse::Write, |tx| run(&tx, &self.inner, me, epoch, claims))
    }
}

async fn run(
    tx: &Transaction,
    store: &PgStoreInner,
    me: SessionId,
    epoch: Epoch,
    claims: &[&Claim],
) -> Result<Claims, PgError> {
    let keys = keys(claims.iter().map(|it| &it.bid.key));
    let runs: Vec<Uuid> = claims.iter().map(|it| Uuid::from_u128(it.run.0)).collect();
    let HistoryRange { since, until, .. } = HistoryRange::of(runs.iter().copied());
    let requested = Counters::requested(claims.iter().flat_map(|it| &it.bid.takes));
    let (kinds, names, most) = requested.columns();
    let (takes_any, is_hourly) = (!kinds.is_empty(), most.iter().any(Option::is_some));
    let id = Uuid::from_u128(me.0);
    tx.ready(&[&CURRENT_EPOCH, &LIVING, &LOCK_JOBS, &READ_JOBS, &USED_RUN_IDS, &WRITE_JOBS, &OPEN_RUNS])
        .await?;
    if takes_any {
        tx.ready(&[&ADD_COUNTERS, &LOCK_COUNTERS, &CLAIMS_OF_HOUR, &WRITE_COUNTERS, &WRITE_CLAIMS]).await?;
    }
    tx.ready(&[&OUTBOX, &WRITE_RECORDS]).await?;
    let ((), living, _, counted, _, known, rows, hourly, epoch_rows) = tokio::try_join!(
        biased;
        tx.begin(),
        tx.query(&LIVING, [&id]),
        tx.query_if(takes_any, &ADD_COUNTERS, [&kinds, &names]),
        tx.query_if(takes_any, &LOCK_COUNTERS, [&kinds, &names]),
        tx.query(&LOCK_JOBS, [&keys]),
        tx.query(&USED_RUN_IDS, [&runs, &since, &until]),
        tx.query(&READ_JOBS, [&keys]),
        tx.query_if(is_hourly, &CLAIMS_OF_HOUR, [&kinds, &names, &most]),
        // Last, because it also reads the time: the gap between claims is measured after the counter was locked.
        tx.query(&CURRENT_EPOCH, []),
    )?;
    let current = read_epoch(&epoch_rows)?;
    let refusal = match living.first() {
        _ if !current.is_current_and_open(epoch) => Err(Claims::Closed),
        None => Err(Claims::SessionDead),
        Some(session) if session.try_get("is_draining")? => Err(Claims::Draining),
        Some(session) => Ok(session),
    };
    let session = match refusal {
        Ok(session) => session,
        Err(answer) => {
            tx.rollback().await?;
            return Ok(answer);
        }
    };
    let node: &str = session.try_get(0)?;
    let mut batch = ClaimBatch {
        me,
        node: node.parse().map_err(|error| PgError::Text(format!("the session's node is wrong: {error}")))?,
        name: session.try_get(1)?,
        epoch,
        now: current.now,
        jobs: BatchJobs::read(&store.reader, &rows, &current)?,
        known: by(&known, used_run_id)?,
        counters: Counters::read(&counted, &hourly, current.now)?,
        new_runs: NewRunColumns::default(),
    };
    let answers = claims.iter().map(|claim| batch.open_run(claim)).collect();
    let changed = batch.jobs.changed();
    tokio::try_join!(
        biased;
        batch.counters.write(tx),
        changed.write(tx),
        batch.new_runs.write(tx, &batch.jobs),
        write_records(tx, &batch.jobs),
        tx.commit(),
    )?;
    let counted = claims.iter().filter(|it| !it.bid.takes.is_empty()).map(|it| &it.bid.key).collect();
    batch.jobs.remember(&store.job_cache, &counted);
    Ok(Claims::Answered(answers))
}

/// A run whose id was used before.
#[derive(Clone, Copy, Debug)]
struct UsedRunId {
    job_id: i64,
    /// `None` if the run has ended.
    session: Option<SessionId>,
    fence: Fence,
}

fn used_run_id(row: &Row) -> Result<(RunId, UsedRunId), PgError> {
    let session = row.try_get::<_, Option<Uuid>>(2)?.map(|it| SessionId(it.as_u128()));
    let known = UsedRunId { job_id: row.try_get(1)?, session, fence: Fence(number(row.try_get(3)?)) };
    Ok((RunId(row.try_get::<_, Uuid>(0)?.as_u128()), known))
}

/// What decides about claims, and the decisions.
struct ClaimBatch {
    me: SessionId,
    node: NodeName,
    name: String,
    epoch: Epoch,
    now: Timestamp,
    jobs: BatchJobs,
    known: BTreeMap<RunId, UsedRunId>,
    counters: Counters,
    new_runs: NewRunColumns,
}

impl ClaimBatch {
    fn open_run(&mut self, Claim { run, bid }: &Claim) -> ClaimAnswer {
        let Some(row) = self.jobs.row(&bid.key) else { return ClaimAnswer::Gone };
        if let Some(known) = self.known.get(run) {
            // A repeated claim. The job must still have the fence of the run, because the answer grants its lease.
            let is_mine = known.session == Some(self.me) && self.jobs.id(&bid.key) == Some(known.job_id);
            return if is_mine && known.fence == row.fence {
                ClaimAnswer::Granted(row)
            } else {
                ClaimAnswer::Lost(row)
            };
        }
        if row.version != bid.seen || row.is_deleted || bid.max_open <= row.n_open {
            return ClaimAnswer::Lost(row);
        }
        if self.now < bid.not_before {
            return ClaimAnswer::NotYet { until: bid.not_before, now: self.now };
        }
        for take in &bid.takes {
            let by = take.counter.clone();
            match self.counters.room(take) {
                CounterRoom::Now => {}
                CounterRoom::From(at) => return ClaimAnswer::Limited { by, until: Some(at) },
                CounterRoom::NotByTime => return ClaimAnswer::Limited { by, until: None },
            }
        }
        ClaimAnswer::Granted(self.grant(*run, bid, row))
    }

    fn grant(&mut self, run: RunId, bid: &Bid, mut row: JobRow) -> JobRow {
        // At least the epoch, shifted: greater than any fence that a failover has lost.
        row.fence = Fence((row.fence.0 + 1).max(self.epoch.0 << 32));
        row.n_open += 1;
        row.state = bid.state.clone();
        row.state.owner = Some(Box::new(Owner {
            node: self.node.clone(),
            name: self.name.clone(),
            tag: run,
            started_at: self.now,
        }));
        let takes: Vec<CounterKey> = bid.takes.iter().map(|Take { counter, .. }| counter.clone()).collect();
        for counter in &takes {
            self.counters.take(counter, run);
        }
        if let Some(job_id) = self.jobs.id(&bid.key) {
            let known = UsedRunId { job_id, session: Some(self.me), fence: row.fence };
            self.known.insert(run, known);
            self.new_runs.push(run, job_id, self.me, row.fence, bid, &takes);
        }
        self.jobs.write(&bid.key, row, &bid.records)
    }
}
