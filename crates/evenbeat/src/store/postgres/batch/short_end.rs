//! How runs end on the [short path](super::short).

use evenbeat_core::ids::{Fence, RunId, SessionId};
use evenbeat_core::job::{Owner, RunEnd};
use evenbeat_core::store::{End, EndAnswer, EndBy, JobRow, Version};
use evenbeat_core::time::Timestamp;
use tokio_postgres::Row;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::job_cache::CachedJob;
use super::short::{Repeat, ask, ask_parts, by_key};
use super::stored_fence;
use crate::store::columns::{MemoryColumns, number, report_to_text, small_number, stored_number};
use crate::store::keyword::Keyword;
use crate::store::postgres::PgStore;
use crate::store::postgres::epoch::timeline;
use crate::store::postgres::error::PgError;
use crate::store::postgres::memory::{
    MemoryArrays, leave_blanks_out, set_state, state_of_arrays, state_types,
};
use crate::store::postgres::transaction::{Param, Statement};

/// Ends runs of jobs that have the expected version. Jobs are locked first, by key, then runs, by id. Everything is
/// rolled back if the caller does not own one of the runs under that lease, or if one holds a counter. That is rare:
/// the end of a run changes its job too, and jobs whose runs hold counters are [not
/// remembered](super::BatchJobs::remember).
static END: Statement = Statement {
    sql: concat!(
        "WITH here AS MATERIALIZED (\
           SELECT e.no AS epoch, now_ms() AS now FROM epoch e WHERE e.no = (SELECT max(no) FROM epoch) \
             AND e.timeline = ",
        timeline!(),
        "), freed AS (\
           UPDATE memory m SET version = greatest(m.version + 1, here.epoch << 32), \
             n_open = greatest(m.n_open - 1, 0), ",
        set_state!(),
        ", owner_run = CASE WHEN 1 < m.n_open THEN m.owner_run END, \
             owner_node = CASE WHEN 1 < m.n_open THEN m.owner_node END, \
             owner_name = CASE WHEN 1 < m.n_open THEN m.owner_name END, \
             owned_since = CASE WHEN 1 < m.n_open THEN m.owned_since END \
           FROM here CROSS JOIN generate_series(1, cardinality($26::uuid[])) AS i(no) CROSS JOIN LATERAL (SELECT ",
        state_of_arrays!(),
        ", ($24::bigint[])[i.no] AS job_id, ($25::bigint[])[i.no] AS seen, ($26::uuid[])[i.no] AS run, \
             ($27::bigint[])[i.no] AS run_fence, ($28::text[])[i.no] AS outcome, ($29::bigint[])[i.no] AS ended_at, \
             ($30::bigint[])[i.no] AS exit_code, ($31::bigint[])[i.no] AS frozen_for, \
             ($32::text[])[i.no] AS report, ($34::bigint[])[i.no] AS begun_at) u \
           WHERE m.job_id = ANY(ARRAY[u.job_id]) AND m.version = u.seen \
           RETURNING i.no, u.run, u.run_fence, u.outcome, u.ended_at, u.exit_code, u.frozen_for, u.report, u.begun_at, \
             m.job_id, m.version, m.fence, m.n_open, m.owner_run, m.owner_node, m.owner_name, m.owned_since, here.now), \
         gone AS (\
           DELETE FROM open_run o USING (\
             SELECT run, run_fence, job_id, outcome, ended_at, exit_code, frozen_for, report, begun_at FROM freed \
             ORDER BY run) f \
           WHERE o.id = ANY(ARRAY[f.run]) AND o.fence = f.run_fence AND o.session_id IS NOT DISTINCT FROM $33 \
             AND o.job_id IS NOT DISTINCT FROM f.job_id AND o.takes IS NULL \
           RETURNING o.*, f.outcome, f.ended_at, f.exit_code, f.frozen_for, f.report, f.begun_at), \
         kept AS (\
           INSERT INTO run (id, job_id, session_id, fence, outcome, due_at, attempt, \"trigger\", serves, extra_id, \
             losses, last_outcome, params, claimed_at, started_at, is_cancel_asked, takes, ended_at, exit_code, \
             frozen_for, report) \
           SELECT id, job_id, session_id, fence, outcome, due_at, attempt, \"trigger\", serves, extra_id, losses, \
             last_outcome, params, claimed_at, least(coalesce(started_at, begun_at), ended_at), is_cancel_asked, takes, \
             ended_at, exit_code, coalesce(frozen_for, 0), report FROM gone), \
         sent AS (DELETE FROM outbox x USING gone WHERE x.run_id = ANY(ARRAY[gone.id])), \
         told AS (INSERT INTO change (position, job_id, changed_at) SELECT pg_current_xact_id(), job_id, now FROM freed) \
         SELECT no, version, fence, n_open, owner_run, owner_node, owner_name, owned_since, \
           1 / ((SELECT count(*) FROM gone) = (SELECT count(*) FROM freed))::int FROM freed"
    ),
    types: state_types!(
        Type::INT8_ARRAY,
        Type::INT8_ARRAY,
        Type::UUID_ARRAY,
        Type::INT8_ARRAY,
        Type::TEXT_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8_ARRAY,
        Type::INT8_ARRAY,
        Type::TEXT_ARRAY,
        Type::UUID,
        Type::INT8_ARRAY,
    ),
};

/// An end that needs nothing but the two compare-and-sets.
struct PlainEnd<'a> {
    place: usize,
    end: &'a End,
    by: RunEnd,
    job: CachedJob,
}

/// The answers of the short path, each at the position of its end.
pub(super) async fn run(store: &PgStore, ends: &[End]) -> Result<Vec<Option<EndAnswer>>, PgError> {
    let plain = plain(store, ends);
    let mut answers = vec![None; ends.len()];
    for (place, row) in ask_parts(&plain, |part| ask_part(store, part)).await? {
        if let Some(answer) = answers.get_mut(place) {
            *answer = Some(EndAnswer::Ended(row));
        }
    }
    Ok(answers)
}

/// The freed jobs, with the positions of their ends.
async fn ask_part(store: &PgStore, plain: &[PlainEnd<'_>]) -> Result<Vec<(usize, JobRow)>, PgError> {
    let Some(me) = plain.first().map(|it| it.end.me) else { return Ok(Vec::new()) };
    let memory = MemoryArrays::with_capacity(plain.len());
    let mut columns = EndColumns { memory, ..EndColumns::default() };
    for it in plain {
        columns.push(it);
    }
    let Some(rows) = columns.ask(store, me).await? else { return Ok(Vec::new()) };
    let mut freed = Vec::with_capacity(rows.len());
    let mut remembered = Vec::with_capacity(rows.len());
    for row in &rows {
        let no = usize::try_from(row.try_get::<_, i32>(0)? - 1).unwrap_or(usize::MAX);
        let Some(PlainEnd { place, end, job, .. }) = plain.get(no) else {
            return Err(PgError::Text("unexpected answer to the end of a run".to_owned()));
        };
        let row = free(end, job, row)?;
        remembered.push((end.key.clone(), CachedJob { version: row.version, ..job.clone() }));
        freed.push((*place, row));
    }
    store.inner.job_cache.remember(remembered.into_iter());
    Ok(freed)
}

/// The ends that need nothing but the compare-and-sets. All are of one session; others take the long path.
fn plain<'a>(store: &PgStore, ends: &'a [End]) -> Vec<PlainEnd<'a>> {
    let Some(me) = ends.first().map(|it| it.me) else { return Vec::new() };
    let ends: Vec<(usize, &End)> = by_key(ends, |it| &it.key, |it| it.run).collect();
    let known = store.inner.job_cache.at_versions(ends.iter().map(|(_, it)| (&it.key, it.seen)));
    let mut plain = Vec::with_capacity(ends.len());
    for ((place, end), job) in ends.into_iter().zip(known) {
        if let (EndBy::Owner(by), Some(job)) = (end.by, job)
            && end.me == me
            && end.records.is_empty()
        {
            plain.push(PlainEnd { place, end, by, job });
        }
    }
    plain
}

/// The job after an end: the state of the end, and the owner, which only the store knows.
fn free(end: &End, known: &CachedJob, row: &Row) -> Result<JobRow, PgError> {
    let mut state = end.state.clone();
    state.owner = owner(row)?;
    Ok(JobRow {
        job: known.job.clone(),
        state,
        revision: known.revision,
        version: Version(number(row.try_get(1)?)),
        fence: Fence(number(row.try_get(2)?)),
        n_open: small_number(row.try_get(3)?),
        is_deleted: known.is_deleted,
    })
}

/// Another run of the job may still be open.
fn owner(row: &Row) -> Result<Option<Box<Owner>>, PgError> {
    let Some(run) = row.try_get::<_, Option<Uuid>>(4)? else { return Ok(None) };
    let (node, name): (Option<&str>, Option<String>) = (row.try_get(5)?, row.try_get(6)?);
    let (Some(node), Some(name), Some(since)) = (node, name, row.try_get::<_, Option<i64>>(7)?) else {
        return Ok(None);
    };
    let started_at = Timestamp::from_millis(since);
    let owner = |node| Owner { node, name, tag: RunId(run.as_u128()), started_at };
    Ok(node.parse().ok().map(|node| Box::new(owner(node))))
}

/// Ends, column by column. Values that most ends have are left out.
#[derive(Debug, Default)]
struct EndColumns {
    memory: MemoryArrays,
    job_id: Vec<i64>,
    seen: Vec<i64>,
    run: Vec<Uuid>,
    fence: Vec<i64>,
    outcome: Vec<&'static str>,
    ended_at: Vec<i64>,
    exit_code: Vec<Option<i64>>,
    frozen_for: Vec<i64>,
    report: Vec<Option<String>>,
    /// For runs whose start was not marked.
    begun_at: Vec<i64>,
}

impl EndColumns {
    fn push(&mut self, PlainEnd { end, by, job, .. }: &PlainEnd<'_>) {
        self.memory.push(MemoryColumns::of(&end.state));
        self.job_id.push(job.id);
        self.seen.push(stored_number(end.seen.0));
        self.run.push(Uuid::from_u128(end.run.0));
        self.fence.push(stored_fence(end.fence));
        self.outcome.push(by.outcome.keyword());
        self.ended_at.push(by.ended_at.as_millis());
        self.exit_code.push(by.exit_code.map(i64::from));
        self.frozen_for.push(by.frozen_for.as_millis());
        self.report.push(report_to_text(end.report.as_deref()));
        self.begun_at.push(by.started_at.as_millis());
    }

    async fn ask(mut self, store: &PgStore, me: SessionId) -> Result<Option<Vec<Row>>, PgError> {
        self.memory.leave_blanks_out();
        leave_blanks_out(&mut self.exit_code);
        leave_blanks_out(&mut self.frozen_for);
        leave_blanks_out(&mut self.report);
        let session = Uuid::from_u128(me.0);
        let mut params: Vec<Param<'_>> = self.memory.state_params().collect();
        params.extend([
            &self.job_id as Param<'_>,
            &self.seen,
            &self.run,
            &self.fence,
            &self.outcome,
            &self.ended_at,
            &self.exit_code,
            &self.frozen_for,
            &self.report,
            &session,
            &self.begun_at,
        ]);
        ask(store, Repeat::Never, &END, &params).await
    }
}
