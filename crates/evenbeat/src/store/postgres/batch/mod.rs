//! What claims, ends, edits and settlings have in common: the jobs of a batch, locked and read, decided about one by
//! one as the reference store does, and written by one statement each.
//!
//! A batch may name a job twice, or fill a counter half way through. So decisions are made here, in order, on rows
//! that are locked, and what is written is only how things stand at the end.

mod claim;
mod closed;
mod counters;
mod end;
mod job_cache;
mod opened;
mod over;
mod put;
mod records;
mod settle;
mod short;
mod short_claim;
mod short_end;
mod written;

pub(super) use job_cache::JobCache;
pub use short::Ways;
pub(super) use short::WaysCounted;

use std::collections::{BTreeMap, BTreeSet};

use evenbeat_core::ids::{Fence, JobKey};
use evenbeat_core::lease::Epoch;
use evenbeat_core::occurrence::Record;
use evenbeat_core::store::{JobRow, Version};
use evenbeat_core::time::Timestamp;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::epoch::Reign;
use super::fail::Fail;
use super::memory::{MemoryArrays, memory_types};
use super::rows::{Reader, select_job};
use super::tx::{Param, Query, Tx};
use crate::store::columns::{MemoryColumns, stored_number};
use job_cache::CachedJob;

/// Locks the jobs of these keys, in order. Only their memories: definitions change under the same lock.
pub(super) static LOCK_JOBS: Query = Query {
    sql: "SELECT m.job_id FROM job j JOIN memory m ON m.job_id = j.id WHERE j.key = ANY($1) \
          ORDER BY j.key FOR UPDATE OF m",
    types: &[Type::TEXT_ARRAY],
};

/// Reads them, by a later look: while the locks were waited for, more than the locked rows may have changed.
pub(super) static READ_JOBS: Query = Query {
    sql: concat!(
        "SELECT ",
        select_job!(),
        ", now_ms() FROM job j JOIN memory m ON m.job_id = j.id WHERE j.key = ANY($1)"
    ),
    types: &[Type::TEXT_ARRAY],
};

/// Writes memories and says that they changed. Fails if one is not as it was when it was locked.
static WRITE_JOBS: Query = Query {
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
pub(super) struct Jobs {
    pub(super) now: Timestamp,
    epoch: Epoch,
    held: BTreeMap<JobKey, HeldJob>,
    records: Vec<(JobKey, Record)>,
}

#[derive(Debug)]
struct HeldJob {
    /// None if the batch makes it.
    id: Option<i64>,
    row: JobRow,
    /// The version in the table.
    seen: Version,
    is_changed: bool,
}

impl Jobs {
    /// From the answer to [`READ_JOBS`].
    fn read(reader: &Reader, rows: &[Row], reign: &Reign) -> Result<Jobs, Fail> {
        let mut held = BTreeMap::new();
        for found in rows {
            let id: i64 = found.try_get(0)?;
            let row = reader.job_row(found)?;
            let key = super::rows::job_key(found.try_get(1)?)?;
            let seen = row.version;
            held.insert(key, HeldJob { id: Some(id), row, seen, is_changed: false });
        }
        Ok(Jobs { now: reign.now, epoch: reign.epoch, held, records: Vec::new() })
    }

    fn row(&self, key: &JobKey) -> Option<JobRow> {
        self.held.get(key).map(|it| it.row.clone())
    }

    fn id(&self, key: &JobKey) -> Option<i64> {
        self.held.get(key).and_then(|it| it.id)
    }

    /// Every change of a row goes through here: its version grows, and the feed will show it.
    fn write(&mut self, key: &JobKey, mut row: JobRow, records: &[Record]) -> JobRow {
        row.version = row.version.next(self.epoch);
        self.records.extend(records.iter().map(|record| (key.clone(), *record)));
        let before = self.held.get(key);
        let (id, seen) = before.map_or((None, Version(0)), |it| (it.id, it.seen));
        self.held.insert(key.clone(), HeldJob { id, row: row.clone(), seen, is_changed: true });
        row
    }

    /// Remembers jobs as they are now, but those with runs that hold counters; to be called when all is committed.
    fn remember(&self, known: &JobCache, counted: &BTreeSet<&JobKey>) {
        let job = |(key, HeldJob { id, row, .. }): (&JobKey, &HeldJob)| {
            if counted.contains(key) {
                return None;
            }
            let JobRow { job, version, revision, is_deleted, .. } = row;
            let (version, revision, is_deleted) = (*version, *revision, *is_deleted);
            Some((key.clone(), CachedJob { id: (*id)?, version, revision, is_deleted, job: job.clone() }))
        };
        known.remember(self.held.iter().filter_map(job));
    }

    /// Those that were there before and have changed, column by column.
    fn changed(&self) -> ChangedJobs {
        let mut changed = ChangedJobs::default();
        for it in self.held.values().filter(|it| it.is_changed) {
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
    async fn write(&self, tx: &Tx) -> Result<(), Fail> {
        let mut params: Vec<Param<'_>> =
            vec![&self.job_id, &self.seen, &self.version, &self.fence, &self.n_open];
        params.extend(self.memory.params());
        if !self.job_id.is_empty() {
            tx.query_all(&WRITE_JOBS, &params).await?;
        }
        Ok(())
    }
}

/// The keys of a batch, each once.
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
