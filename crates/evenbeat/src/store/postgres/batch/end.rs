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

use super::closed::{CLEAR_OUTBOX, CLOSE_RUNS, Closed, FREE_COUNTERS, KEEP_LATE};
use super::records::{WRITE_RECORDS, write_records};
use super::{Jobs, LOCK_JOBS, READ_JOBS, WRITE_JOBS, keys, short_end};
use crate::store::columns::{number, takes_from_text};
use crate::store::postgres::connect::Lane;
use crate::store::postgres::epoch::{REIGN, Reign, reign};
use crate::store::postgres::fail::Fail;
use crate::store::postgres::rows::{by, ids};
use crate::store::postgres::tx::{Query, Tx, transact};
use crate::store::postgres::{Inner, PgStore};

/// Locks the counters that these runs hold, in order. What a run holds never changes, so it may be read before the
/// run is locked.
static LOCK_COUNTERS_OF_RUNS: Query = Query {
    sql: "WITH held AS MATERIALIZED (\
            SELECT DISTINCT pair ->> 0 AS kind, pair ->> 1 AS key FROM open_run o, json_array_elements(o.takes::json) pair \
            WHERE o.id = ANY($1) AND o.takes IS NOT NULL) \
          SELECT c.kind FROM counter c JOIN held ON c.kind = held.kind AND c.key = held.key COLLATE \"C\" \
          ORDER BY c.kind, c.key FOR UPDATE OF c",
    types: &[Type::UUID_ARRAY],
};

static LOCK_RUNS: Query = Query {
    sql: "SELECT id, job_id, session_id, fence, phase, takes FROM open_run WHERE id = ANY($1) \
          ORDER BY id FOR UPDATE",
    types: &[Type::UUID_ARRAY],
};

static DEAD: Query =
    Query { sql: "SELECT id FROM session WHERE id = ANY($1) AND is_dead", types: &[Type::UUID_ARRAY] };

impl PgStore {
    /// Ends runs: by their owner, or because their owner is dead. Frees jobs and counters with it.
    pub async fn end(&self, epoch: Epoch, ends: &[End]) -> Result<Vec<EndAnswer>, StoreDown> {
        // Many steps, each with its own room: not on the stack of whoever asks.
        let asked = Box::pin(async {
            let mut answers = short_end::run(self, ends).await?;
            let rest: Vec<&End> =
                ends.iter().zip(&answers).filter(|(_, it)| it.is_none()).map(|(it, _)| it).collect();
            self.inner.ways.add(ends.len() - rest.len(), rest.len());
            if !rest.is_empty() || ends.is_empty() {
                // Apart, because it is large and seldom needed.
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
        transact!(self, Lane::Pool, |tx| run(&tx, &self.inner, epoch, ends))
    }
}

async fn run(tx: &Tx, store: &Inner, epoch: Epoch, ends: &[&End]) -> Result<Vec<EndAnswer>, Fail> {
    let keys = keys(ends.iter().map(|it| &it.key));
    let runs: Vec<Uuid> = ends.iter().map(|it| Uuid::from_u128(it.run.0)).collect();
    let owners: Vec<Uuid> =
        ends.iter().filter_map(|it| dead_owner(it)).map(|it| Uuid::from_u128(it.0)).collect();
    tx.ready(&[&LOCK_COUNTERS_OF_RUNS, &LOCK_JOBS, &LOCK_RUNS, &READ_JOBS, &DEAD, &REIGN]).await?;
    tx.ready(&[&WRITE_JOBS, &CLOSE_RUNS, &FREE_COUNTERS, &CLEAR_OUTBOX, &KEEP_LATE, &WRITE_RECORDS]).await?;
    let ((), _, _, open, rows, dead, reigning) = tokio::try_join!(
        biased;
        tx.begin(),
        tx.query(&LOCK_COUNTERS_OF_RUNS, [&runs]),
        tx.query(&LOCK_JOBS, [&keys]),
        tx.query(&LOCK_RUNS, [&runs]),
        tx.query(&READ_JOBS, [&keys]),
        tx.query_if(!owners.is_empty(), &DEAD, [&owners]),
        tx.query(&REIGN, []),
    )?;
    let reign = reign(&reigning)?;
    let mut batch = Batch {
        epoch,
        reign,
        jobs: Jobs::read(&store.reader, &rows, &reign)?,
        open: by(&open, open_run)?,
        dead: ids(&dead)?.into_iter().map(SessionId).collect(),
        closed: Closed::default(),
    };
    let is_counted = |end: &&&End| batch.open.get(&end.run).is_some_and(|run| !run.takes.is_empty());
    let counted = ends.iter().filter(is_counted).map(|it| &it.key).collect();
    let answers: Vec<EndAnswer> = ends.iter().map(|end| batch.end_run(end)).collect();
    let changed = batch.jobs.changed();
    tokio::try_join!(
        biased;
        batch.closed.write(tx),
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

/// What of an open run decides about its end.
#[derive(Clone, Debug)]
struct OpenRun {
    job_id: i64,
    session: SessionId,
    fence: Fence,
    is_running: bool,
    takes: Vec<CounterKey>,
}

fn open_run(row: &Row) -> Result<(RunId, OpenRun), Fail> {
    let run = OpenRun {
        job_id: row.try_get(1)?,
        session: SessionId(row.try_get::<_, Uuid>(2)?.as_u128()),
        fence: Fence(number(row.try_get(3)?)),
        is_running: row.try_get::<_, &str>(4)? == "running",
        takes: row.try_get::<_, Option<&str>>(5)?.map(takes_from_text).unwrap_or_default(),
    };
    Ok((RunId(row.try_get::<_, Uuid>(0)?.as_u128()), run))
}

/// All that decides about ends, and what was decided.
struct Batch {
    epoch: Epoch,
    reign: Reign,
    jobs: Jobs,
    open: BTreeMap<RunId, OpenRun>,
    dead: BTreeSet<SessionId>,
    closed: Closed,
}

impl Batch {
    fn end_run(&mut self, end: &End) -> EndAnswer {
        let is_release = matches!(end.by, EndBy::Release { .. });
        let job_id = self.jobs.id(&end.key);
        let held = self.open.get(&end.run).filter(|run| {
            let is_owner = is_release || run.session == end.me;
            is_owner && run.fence == end.fence && Some(run.job_id) == job_id
        });
        let (Some(run), Some(row)) = (held, self.jobs.row(&end.key)) else {
            // While the run is open there is nothing that a result could be too late for. What ends it may be the next
            // of this batch, and these are written last.
            if let EndBy::Owner(it) = end.by
                && !self.open.contains_key(&end.run)
            {
                self.closed.late(end.run, end.fence, &it, end.report.as_deref());
            }
            return EndAnswer::Late;
        };
        let is_allowed = match end.by {
            EndBy::Owner(_) => true,
            // What executes cannot be as if it had never been.
            EndBy::Unstarted => !run.is_running,
            EndBy::Release { dead, .. } => {
                run.session == dead && self.dead.contains(&dead) && self.reign.is_current_and_open(self.epoch)
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
        self.closed.push(end.run, run.fence, ended, end.report.as_deref(), &run.takes);
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
