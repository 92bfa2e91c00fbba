//! How runs end.

use std::collections::{BTreeMap, BTreeSet};

use evenbeat_core::ids::{Fence, RunId, SessionId};
use evenbeat_core::job::RunEnd;
use evenbeat_core::lease::Epoch;
use evenbeat_core::run::Outcome;
use evenbeat_core::store::{CounterKey, End, EndAnswer, EndBy, JobRow, StoreDown};
use tokio_postgres::Row;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::ended_runs::{CLEAR_OUTBOX, CLOSE_RUNS, EndedRunColumns, FREE_COUNTERS, KEEP_LATE};
use super::records::{WRITE_RECORDS, write_records};
use super::{BatchJobs, LOCK_JOBS, READ_JOBS, WRITE_JOBS, keys, short_end};
use crate::store::columns::{number, takes_from_text};
use crate::store::postgres::connect::ConnectionUse;
use crate::store::postgres::epoch::{CURRENT_EPOCH, CurrentEpoch, read_epoch};
use crate::store::postgres::error::PgError;
use crate::store::postgres::rows::{by, ids};
use crate::store::postgres::transaction::{Statement, Transaction, transact};
use crate::store::postgres::{PgStore, PgStoreInner};

/// Locks the counters that these runs hold, in order. The counters of a run never change, so they can be read before
/// the run is locked.
static LOCK_COUNTERS_OF_RUNS: Statement = Statement {
    sql: "WITH held AS MATERIALIZED (\
            SELECT DISTINCT pair ->> 0 AS kind, pair ->> 1 AS key FROM open_run o, json_array_elements(o.takes::json) pair \
            WHERE o.id = ANY($1) AND o.takes IS NOT NULL) \
          SELECT c.kind FROM counter c JOIN held ON c.kind = held.kind AND c.key = held.key COLLATE \"C\" \
          ORDER BY c.kind, c.key FOR UPDATE OF c",
    types: &[Type::UUID_ARRAY],
};

static LOCK_RUNS: Statement = Statement {
    sql: "SELECT id, job_id, session_id, fence, phase, takes FROM open_run WHERE id = ANY($1) \
          ORDER BY id FOR UPDATE",
    types: &[Type::UUID_ARRAY],
};

static DEAD: Statement =
    Statement { sql: "SELECT id FROM session WHERE id = ANY($1) AND is_dead", types: &[Type::UUID_ARRAY] };

impl PgStore {
    /// Ends runs: by their owner, or because their owner is dead. Frees jobs and counters with it.
    pub async fn end(&self, epoch: Epoch, ends: &[End]) -> Result<Vec<EndAnswer>, StoreDown> {
        // Boxed: the future has many steps and would bloat that of every caller.
        let asked = Box::pin(async {
            let mut answers = short_end::run(self, ends).await?;
            let rest: Vec<&End> =
                ends.iter().zip(&answers).filter(|(_, it)| it.is_none()).map(|(it, _)| it).collect();
            self.inner.path_counters.add(ends.len() - rest.len(), rest.len());
            if !rest.is_empty() || ends.is_empty() {
                // Boxed again, because it is large and rarely needed.
                let long = Box::pin(self.end_long(epoch, &rest)).await?;
                for (answer, found) in answers.iter_mut().filter(|it| it.is_none()).zip(long) {
                    *answer = Some(found);
                }
            }
            Ok(answers.into_iter().flatten().collect())
        });
        self.within(self.inner.config.deadline, asked).await
    }

    async fn end_long(&self, epoch: Epoch, ends: &[&End]) -> Result<Vec<EndAnswer>, StoreDown> {
        transact!(self, ConnectionUse::Write, |tx| run(&tx, &self.inner, epoch, ends))
    }
}

async fn run(
    tx: &Transaction,
    store: &PgStoreInner,
    epoch: Epoch,
    ends: &[&End],
) -> Result<Vec<EndAnswer>, PgError> {
    let keys = keys(ends.iter().map(|it| &it.key));
    let runs: Vec<Uuid> = ends.iter().map(|it| Uuid::from_u128(it.run.0)).collect();
    let owners: Vec<Uuid> =
        ends.iter().filter_map(|it| dead_owner(it)).map(|it| Uuid::from_u128(it.0)).collect();
    tx.ready(&[&LOCK_COUNTERS_OF_RUNS, &LOCK_JOBS, &LOCK_RUNS, &READ_JOBS, &DEAD, &CURRENT_EPOCH]).await?;
    tx.ready(&[&WRITE_JOBS, &CLOSE_RUNS, &FREE_COUNTERS, &CLEAR_OUTBOX, &KEEP_LATE, &WRITE_RECORDS]).await?;
    let ((), _, _, open, rows, dead, epoch_rows) = tokio::try_join!(
        biased;
        tx.begin(),
        tx.query(&LOCK_COUNTERS_OF_RUNS, [&runs]),
        tx.query(&LOCK_JOBS, [&keys]),
        tx.query(&LOCK_RUNS, [&runs]),
        tx.query(&READ_JOBS, [&keys]),
        tx.query_if(!owners.is_empty(), &DEAD, [&owners]),
        tx.query(&CURRENT_EPOCH, []),
    )?;
    let current = read_epoch(&epoch_rows)?;
    let mut batch = EndBatch {
        epoch,
        current,
        jobs: BatchJobs::read(&store.reader, &rows, &current)?,
        open: by(&open, open_run)?,
        dead: ids(&dead)?.into_iter().map(SessionId).collect(),
        ended_runs: EndedRunColumns::default(),
    };
    let is_counted = |end: &&&End| batch.open.get(&end.run).is_some_and(|run| !run.takes.is_empty());
    let counted = ends.iter().filter(is_counted).map(|it| &it.key).collect();
    let answers: Vec<EndAnswer> = ends.iter().map(|end| batch.end_run(end)).collect();
    let changed = batch.jobs.changed();
    tokio::try_join!(
        biased;
        batch.ended_runs.write(tx),
        changed.write(tx),
        write_records(tx, &batch.jobs),
        tx.commit(),
    )?;
    batch.jobs.remember(&store.job_cache, &counted);
    Ok(answers)
}

fn dead_owner(end: &End) -> Option<SessionId> {
    match end.by {
        EndBy::Release { dead, .. } => Some(dead),
        EndBy::Owner(_) | EndBy::Unstarted => None,
    }
}

/// The part of an open run that decides about its end.
#[derive(Clone, Debug)]
struct OpenRun {
    job_id: i64,
    session: SessionId,
    fence: Fence,
    is_running: bool,
    takes: Vec<CounterKey>,
}

fn open_run(row: &Row) -> Result<(RunId, OpenRun), PgError> {
    let run = OpenRun {
        job_id: row.try_get(1)?,
        session: SessionId(row.try_get::<_, Uuid>(2)?.as_u128()),
        fence: Fence(number(row.try_get(3)?)),
        is_running: row.try_get::<_, &str>(4)? == "running",
        takes: row.try_get::<_, Option<&str>>(5)?.map(takes_from_text).unwrap_or_default(),
    };
    Ok((RunId(row.try_get::<_, Uuid>(0)?.as_u128()), run))
}

/// What decides about ends, and the decisions.
struct EndBatch {
    epoch: Epoch,
    current: CurrentEpoch,
    jobs: BatchJobs,
    open: BTreeMap<RunId, OpenRun>,
    dead: BTreeSet<SessionId>,
    ended_runs: EndedRunColumns,
}

impl EndBatch {
    fn end_run(&mut self, end: &End) -> EndAnswer {
        let is_release = matches!(end.by, EndBy::Release { .. });
        let job_id = self.jobs.id(&end.key);
        let held = self.open.get(&end.run).filter(|run| {
            let is_owner = is_release || run.session == end.me;
            is_owner && run.fence == end.fence && Some(run.job_id) == job_id
        });
        let (Some(run), Some(row)) = (held, self.jobs.row(&end.key)) else {
            // A result cannot be too late while the run is open. The next end of this batch may end it, and late
            // results are written last.
            if let EndBy::Owner(it) = end.by
                && !self.open.contains_key(&end.run)
            {
                self.ended_runs.late(end.run, end.fence, &it, end.report.as_deref());
            }
            return EndAnswer::Late;
        };
        let is_allowed = match end.by {
            EndBy::Owner(_) => true,
            // A run that executes cannot be undone.
            EndBy::Unstarted => !run.is_running,
            EndBy::Release { dead, .. } => {
                run.session == dead
                    && self.dead.contains(&dead)
                    && self.current.is_current_and_open(self.epoch)
            }
        };
        if !is_allowed {
            return EndAnswer::Refused;
        }
        if row.version != end.seen {
            return EndAnswer::Stale(row);
        }
        self.close(end);
        EndAnswer::Ended(self.free(end, row))
    }

    /// The one place where a run leaves the open phases.
    fn close(&mut self, end: &End) {
        let Some(run) = self.open.remove(&end.run) else { return };
        let ended = match end.by {
            EndBy::Unstarted => None,
            EndBy::Owner(end) => Some(end),
            EndBy::Release { end, .. } => Some(RunEnd { outcome: Outcome::Lost, ..end }),
        };
        self.ended_runs.push(end.run, run.fence, ended, end.report.as_deref(), &run.takes);
    }

    fn free(&mut self, end: &End, mut row: JobRow) -> JobRow {
        row.n_open = row.n_open.saturating_sub(1);
        if matches!(end.by, EndBy::Release { .. }) {
            row.fence.0 += 1;
        }
        let owner = row.state.owner.take().filter(|_| 0 < row.n_open);
        row.state = end.state.clone();
        row.state.owner = owner;
        self.jobs.write(&end.key, row, &end.records)
    }
}
