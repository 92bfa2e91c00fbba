//! What claims, ends, edits and settlings have in common: they lock and read the jobs of a batch, decide one by one
//! as the reference store does, and write all of them with one statement per table.
//!
//! A batch may name a job twice, or fill a counter half way through. So decisions are made here, in order, on locked
//! rows, and only the final state is written.

mod claim;
mod counters;
mod definitions;
mod end;
mod ended_runs;
mod history_range;
mod job_cache;
mod new_runs;
mod put;
mod records;
mod settle;
mod short;
mod short_claim;
mod short_end;

pub(super) use job_cache::JobCache;
pub(super) use short::PathCounters;

use std::collections::{BTreeMap, BTreeSet};

use evenbeat_core::ids::{Fence, JobKey};
use evenbeat_core::lease::Epoch;
use evenbeat_core::occurrence::Record;
use evenbeat_core::store::{JobRow, Version};
use evenbeat_core::time::Timestamp;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::epoch::CurrentEpoch;
use super::error::PgError;
use super::memory::{MemoryArrays, memory_types};
use super::rows::{RowReader, select_job};
use super::transaction::{Param, Statement, Transaction};
use crate::store::columns::{MemoryColumns, stored_number};
use job_cache::CachedJob;

/// Locks the jobs of these keys, in order. It locks the rows of `memory`; definitions change under the same lock.
pub(super) static LOCK_JOBS: Statement = Statement {
    sql: "SELECT m.job_id FROM job j JOIN memory m ON m.job_id = j.id WHERE j.key = ANY($1) \
          ORDER BY j.key FOR UPDATE OF m",
    types: &[Type::TEXT_ARRAY],
};

/// Reads them with a new snapshot: more than the locked rows may have changed while the locks were waited for.
pub(super) static READ_JOBS: Statement = Statement {
    sql: concat!(
        "SELECT ",
        select_job!(),
        ", now_ms() FROM job j JOIN memory m ON m.job_id = j.id WHERE j.key = ANY($1)"
    ),
    types: &[Type::TEXT_ARRAY],
};

/// Writes states, and adds them to the feed. Fails if one has changed since it was locked.
static WRITE_JOBS: Statement = Statement {
    sql: "WITH written AS (\
            UPDATE memory m SET version = u.version, fence = u.fence, n_open = u.n_open, \
              created_at = u.created_at, placed_at = u.placed_at, anchor_at = u.anchor_at, choices = u.choices, \
              next_run_at = u.next_run_at, settled_until = u.settled_until, last_start_at = u.last_start_at, \
              last_end_at = u.last_end_at, last_good_start_at = u.last_good_start_at, \
              last_good_end_at = u.last_good_end_at, last_exit_code = u.last_exit_code, \
              failure_count = u.failure_count, attempt = u.attempt, losses = u.losses, \
              attempt_outcome = u.attempt_outcome, last_outcome = u.last_outcome, n_served = u.n_served, \
              estimate_mean = u.estimate_mean, estimate_variance = u.estimate_variance, \
              estimate_samples = u.estimate_samples, extras = u.extras, paused_by = u.paused_by, \
              pause_reason = u.pause_reason, owner_run = u.owner_run, owner_node = u.owner_node, \
              owner_name = u.owner_name, owned_since = u.owned_since \
            FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], \
              $7::bigint[], $8::bigint[], $9::bytea[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[], \
              $14::bigint[], $15::bigint[], $16::bigint[], $17::bigint[], $18::bigint[], $19::bigint[], $20::text[], \
              $21::text[], $22::bigint[], $23::float8[], $24::float8[], $25::bigint[], $26::text[], $27::text[], \
              $28::text[], $29::uuid[], $30::text[], $31::text[], $32::bigint[]) \
              AS u(job_id, seen, version, fence, n_open, created_at, placed_at, anchor_at, choices, next_run_at, \
              settled_until, last_start_at, last_end_at, last_good_start_at, last_good_end_at, last_exit_code, \
              failure_count, attempt, losses, attempt_outcome, last_outcome, n_served, estimate_mean, \
              estimate_variance, estimate_samples, extras, paused_by, pause_reason, owner_run, owner_node, \
              owner_name, owned_since) \
            WHERE m.job_id = u.job_id AND m.version = u.seen RETURNING m.job_id), \
          told AS (\
            INSERT INTO change (position, job_id, changed_at) \
            SELECT pg_current_xact_id(), job_id, now_ms() FROM written) \
          SELECT 1 / (count(*) = cardinality($1::bigint[]))::int FROM written",
    types: memory_types!(
        Type::INT8_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8_ARRAY
    ),
};

/// The jobs of a batch.
#[derive(Debug)]
pub(super) struct BatchJobs {
    pub(super) now: Timestamp,
    epoch: Epoch,
    locked: BTreeMap<JobKey, LockedJob>,
    records: Vec<(JobKey, Record)>,
}

#[derive(Debug)]
struct LockedJob {
    /// `None` if the batch creates the job.
    id: Option<i64>,
    row: JobRow,
    /// The version in the table.
    seen: Version,
    is_changed: bool,
}

impl BatchJobs {
    /// Reads the rows of [`READ_JOBS`].
    fn read(reader: &RowReader, rows: &[Row], current: &CurrentEpoch) -> Result<BatchJobs, PgError> {
        let mut locked = BTreeMap::new();
        for found in rows {
            let id: i64 = found.try_get(0)?;
            let row = reader.job_row(found)?;
            let key = super::rows::job_key(found.try_get(1)?)?;
            let seen = row.version;
            locked.insert(key, LockedJob { id: Some(id), row, seen, is_changed: false });
        }
        Ok(BatchJobs { now: current.now, epoch: current.epoch, locked, records: Vec::new() })
    }

    fn row(&self, key: &JobKey) -> Option<JobRow> {
        self.locked.get(key).map(|it| it.row.clone())
    }

    fn id(&self, key: &JobKey) -> Option<i64> {
        self.locked.get(key).and_then(|it| it.id)
    }

    /// Every change of a job goes through here: it raises the version, and the feed will show it.
    fn write(&mut self, key: &JobKey, mut row: JobRow, records: &[Record]) -> JobRow {
        row.version = row.version.next(self.epoch);
        self.records.extend(records.iter().map(|record| (key.clone(), *record)));
        let before = self.locked.get(key);
        let (id, seen) = before.map_or((None, Version(0)), |it| (it.id, it.seen));
        self.locked.insert(key.clone(), LockedJob { id, row: row.clone(), seen, is_changed: true });
        row
    }

    /// Remembers the jobs, except those whose runs hold counters. Must be called after the commit.
    fn remember(&self, cache: &JobCache, counted: &BTreeSet<&JobKey>) {
        let job = |(key, LockedJob { id, row, .. }): (&JobKey, &LockedJob)| {
            if counted.contains(key) {
                return None;
            }
            let JobRow { job, version, revision, is_deleted, .. } = row;
            let (version, revision, is_deleted) = (*version, *revision, *is_deleted);
            Some((key.clone(), CachedJob { id: (*id)?, version, revision, is_deleted, job: job.clone() }))
        };
        cache.remember(self.locked.iter().filter_map(job));
    }

    /// The existing jobs that have changed, column by column.
    fn changed(&self) -> ChangedJobs {
        let mut changed = ChangedJobs::default();
        for it in self.locked.values().filter(|it| it.is_changed) {
            let Some(id) = it.id else { continue };
            changed.job_id.push(id);
            changed.seen.push(stored_number(it.seen.0));
            changed.version.push(stored_number(it.row.version.0));
            changed.fence.push(stored_number(it.row.fence.0));
            changed.n_open.push(it.row.n_open.into());
            changed.memory.push(MemoryColumns::of(&it.row.state));
        }
        changed
    }
}

#[derive(Debug, Default)]
struct ChangedJobs {
    job_id: Vec<i64>,
    seen: Vec<i64>,
    version: Vec<i64>,
    fence: Vec<i64>,
    n_open: Vec<i64>,
    memory: MemoryArrays,
}

impl ChangedJobs {
    async fn write(&self, tx: &Transaction) -> Result<(), PgError> {
        let mut params: Vec<Param<'_>> =
            vec![&self.job_id, &self.seen, &self.version, &self.fence, &self.n_open];
        params.extend(self.memory.params());
        if !self.job_id.is_empty() {
            tx.query_all(&WRITE_JOBS, &params).await?;
        }
        Ok(())
    }
}

/// The distinct keys of a batch, sorted.
fn keys<'a>(them: impl Iterator<Item = &'a JobKey>) -> Vec<&'a str> {
    let mut keys: Vec<&str> = them.map(JobKey::as_str).collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// A fence as it is stored.
fn stored_fence(fence: Fence) -> i64 {
    stored_number(fence.0)
}
