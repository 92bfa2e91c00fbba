//! Edits of jobs by people.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use evenbeat_core::ids::JobKey;
use evenbeat_core::store::{
    ApplyPlan, AuditEntry, JobRow, PLAN_LIFE, PlanAnswer, PutAnswer, PutJob, Revision, RunRequest, Seen,
    StoreDown,
};
use uuid::Uuid;

use super::definitions::{
    ADD_JOBS, ADD_LABELS, AUDIT, CLEAR_LABELS, DefinitionWrites, WRITE_DEFINITIONS, audit,
};
use super::records::{WRITE_RECORDS, write_records};
use super::{BatchJobs, LOCK_JOBS, READ_JOBS, WRITE_JOBS, keys};
use crate::store::floor::Floor;
use crate::store::postgres::PgStore;
use crate::store::postgres::connect::ConnectionUse;
use crate::store::postgres::epoch::{CURRENT_EPOCH, read_epoch};
use crate::store::postgres::error::PgError;
use crate::store::postgres::housekeeping::{FLOOR, read_floor};
use crate::store::postgres::plans::TAKE;
use crate::store::postgres::requests::{self, KEEP_REQUESTS, REQUESTS_BY_KEY, keep_requests, keys_of};
use crate::store::postgres::rows::RowReader;
use crate::store::postgres::transaction::{Transaction, transact};

impl PgStore {
    /// Writes jobs: new ones, edits, pauses, triggers, moves of a plan, removals.
    pub async fn put_jobs(&self, puts: &[PutJob]) -> Result<Vec<PutAnswer>, StoreDown> {
        transact!(self, ConnectionUse::Write, |tx| run(&tx, &self.inner.reader, puts))
    }

    /// Writes the jobs of a plan, all of them or none, in one transaction. Jobs that a plan moves are not due for a
    /// while, so claims hardly ever wait for it, and heartbeats never do.
    pub async fn apply_plan(&self, plan: &ApplyPlan) -> Result<PlanAnswer, StoreDown> {
        // Boxed: it is large, and a rebalance is rare.
        Box::pin(self.within(PLAN_DEADLINE, async {
            let tx = Transaction::new(self, ConnectionUse::Write).await?;
            let answer = apply(&tx, &self.inner.reader, plan).await?;
            tx.give_back();
            Ok(answer)
        }))
        .await
    }
}

/// Applying the plan of a large fleet takes longer than a normal call.
const PLAN_DEADLINE: Duration = Duration::from_mins(1);

async fn apply(tx: &Transaction, reader: &RowReader, plan: &ApplyPlan) -> Result<PlanAnswer, PgError> {
    let (id, life) = (Uuid::from_u128(plan.id.0), PLAN_LIFE.as_millis());
    let keys = keys(plan.puts.iter().map(|it| &it.job.key));
    tx.ready(&[&TAKE, &LOCK_JOBS, &READ_JOBS, &FLOOR, &CURRENT_EPOCH, &WRITE_JOBS, &ADD_JOBS]).await?;
    tx.ready(&[&WRITE_DEFINITIONS, &CLEAR_LABELS, &ADD_LABELS, &WRITE_RECORDS, &AUDIT]).await?;
    tx.begin().await?;
    tx.execute("SET LOCAL statement_timeout = 60000").await?;
    if tx.query(&TAKE, [&id, &life]).await?.is_empty() {
        tx.rollback().await?;
        return Ok(PlanAnswer::Gone);
    }
    tx.query(&LOCK_JOBS, [&keys]).await?;
    let rows = tx.query(&READ_JOBS, [&keys]).await?;
    let floor = read_floor(&tx.query(&FLOOR, []).await?)?;
    let jobs = BatchJobs::read(reader, &rows, &read_epoch(&tx.query(&CURRENT_EPOCH, []).await?)?)?;
    // Moves of a plan contain no requests.
    let known = BTreeMap::new();
    let mut batch =
        PutBatch { jobs, floor, known, defined: BTreeSet::new(), audit: Vec::new(), requests: Vec::new() };
    let (mut written, mut stale, mut is_whole) = (Vec::new(), Vec::new(), true);
    for put in &plan.puts {
        match batch.put_job(put) {
            PutAnswer::Put(row) => written.push(row),
            PutAnswer::Stale(row) => stale.push(row),
            PutAnswer::Gone | PutAnswer::Repeated(_) => is_whole = false,
        }
    }
    if !is_whole || !stale.is_empty() {
        tx.rollback().await?;
        return Ok(PlanAnswer::Stale(stale));
    }
    batch.write(tx).await?;
    tx.commit().await?;
    Ok(PlanAnswer::Applied(written))
}

async fn run(tx: &Transaction, reader: &RowReader, puts: &[PutJob]) -> Result<Vec<PutAnswer>, PgError> {
    let keys = keys(puts.iter().map(|it| &it.job.key));
    tx.ready(&[&LOCK_JOBS, &READ_JOBS, &CURRENT_EPOCH, &WRITE_JOBS, &ADD_JOBS, &WRITE_DEFINITIONS]).await?;
    tx.ready(&[&CLEAR_LABELS, &ADD_LABELS, &WRITE_RECORDS, &AUDIT, &FLOOR]).await?;
    let (by_key, is_request) = (keys_of(puts), puts.iter().any(|it| it.request.is_some()));
    if is_request {
        tx.ready(&[&REQUESTS_BY_KEY, &KEEP_REQUESTS]).await?;
    }
    let ((), _, rows, requests, floor, epoch_rows) = tokio::try_join!(
        biased;
        tx.begin(),
        tx.query(&LOCK_JOBS, [&keys]),
        tx.query(&READ_JOBS, [&keys]),
        // After the job is locked, so that the second of two requests with one key finds the first.
        tx.query_if(!by_key.is_empty(), &REQUESTS_BY_KEY, [&by_key]),
        // After the jobs are locked: a trim may have removed one of them meanwhile.
        tx.query(&FLOOR, []),
        tx.query(&CURRENT_EPOCH, []),
    )?;
    let jobs = BatchJobs::read(reader, &rows, &read_epoch(&epoch_rows)?)?;
    let mut batch = PutBatch {
        jobs,
        floor: read_floor(&floor)?,
        known: requests::by_key(&requests)?,
        defined: BTreeSet::new(),
        audit: Vec::new(),
        requests: Vec::new(),
    };
    let answers = puts.iter().map(|put| batch.put_job(put)).collect();
    tokio::try_join!(biased; batch.write(tx), tx.commit())?;
    Ok(answers)
}

struct PutBatch {
    jobs: BatchJobs,
    floor: Floor,
    /// The jobs whose definition is written. A move or a pause does not change it.
    defined: BTreeSet<JobKey>,
    audit: Vec<AuditEntry>,
    /// Earlier requests by their idempotency keys.
    known: BTreeMap<u128, RunRequest>,
    /// New requests.
    requests: Vec<(JobKey, RunRequest)>,
}

impl PutBatch {
    async fn write(&self, tx: &Transaction) -> Result<(), PgError> {
        let changed = self.jobs.changed();
        let written =
            DefinitionWrites::of(self.jobs.locked.iter().filter(|(key, _)| self.defined.contains(*key)));
        tokio::try_join!(
            biased;
            written.write(tx),
            changed.write(tx),
            write_records(tx, &self.jobs),
            audit(tx, &self.audit, self.jobs.now),
            keep_requests(tx, &self.requests),
        )?;
        Ok(())
    }

    fn put_job(&mut self, put: &PutJob) -> PutAnswer {
        let key = &put.job.key;
        let idempotency = put.request.and_then(|it| it.idempotency);
        if let Some(earlier) = idempotency.and_then(|it| self.known.get(&it.key)) {
            return PutAnswer::Repeated(*earlier);
        }
        let before = self.jobs.row(key);
        match (&before, put.seen) {
            (None, Seen::Version(_)) => return PutAnswer::Gone,
            (Some(row), Seen::Version(seen)) if row.version != seen => return PutAnswer::Stale(row.clone()),
            (Some(row), Seen::Nothing) if !row.is_deleted => return PutAnswer::Stale(row.clone()),
            _ => {}
        }
        let is_born = before.as_ref().is_none_or(|row| row.is_deleted);
        let is_same = before.as_ref().is_some_and(|row| {
            row.job == put.job && row.is_deleted == put.is_deleted && !is_born && !put.is_revision
        });
        if !is_same {
            self.defined.insert(key.clone());
        }
        let mut row = before.unwrap_or_else(|| JobRow {
            job: put.job.clone(),
            state: put.state.clone(),
            revision: Revision(0),
            version: self.floor.version,
            fence: self.floor.fence,
            n_open: 0,
            is_deleted: false,
        });
        row.job = put.job.clone();
        // Runs decide who owns the job, not edits.
        let owner = row.state.owner.take().filter(|_| 0 < row.n_open);
        row.state = put.state.clone();
        row.state.owner = owner;
        row.revision.0 += u64::from(put.is_revision || is_born);
        row.is_deleted = put.is_deleted;
        self.audit.extend(put.audit.clone());
        if let Some(request) = put.request {
            self.requests.push((key.clone(), request));
            self.known.extend(request.idempotency.map(|it| (it.key, request)));
        }
        PutAnswer::Put(self.jobs.write(key, row, &put.records))
    }
}
