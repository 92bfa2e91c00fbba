//! How runs are claimed on the [short path](super::short).

use evenbeat_core::ids::{Fence, NodeName, SessionId};
use evenbeat_core::job::Owner;
use evenbeat_core::lease::Epoch;
use evenbeat_core::run::Trigger;
use evenbeat_core::store::{Bid, Claim, ClaimAnswer, JobRow, Revision, Version};
use evenbeat_core::time::Timestamp;
use tokio_postgres::Row;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::history_range::{DRAWN_APART_MAX_MS, HistoryRange, drawn_at, ended_between};
use super::job_cache::CachedJob;
use super::short::{Repeat, ask, ask_parts, by_key};
use crate::store::columns::{DueColumns, MemoryColumns, number, small_number, stored_number};
use crate::store::keyword::{Keyword, ServesKind};
use crate::store::postgres::PgStore;
use crate::store::postgres::epoch::timeline;
use crate::store::postgres::error::PgError;
use crate::store::postgres::memory::{
    MemoryArrays, leave_blanks_out, set_state, state_of_arrays, state_types,
};
use crate::store::postgres::transaction::{Param, Statement};

/// Opens runs of jobs that have the expected version. A cached job is found by its id, and its definition is not read.
/// Nothing is written if the session or the epoch does not allow it. A run id that was used opens no second run: if
/// the first is open, the primary key fails the whole statement, and if one of the batch has ended, nothing is
/// written. Ids start with the time of their creation, so history has few, if any, between the first and the last of
/// a batch.
static CLAIM: Statement = Statement {
    sql: concat!(
        "WITH here AS MATERIALIZED (\
           SELECT s.node, s.name, now_ms() AS now FROM session s CROSS JOIN epoch e \
           WHERE s.id = $37 AND NOT s.is_dead AND NOT s.is_draining AND e.no = $38 AND e.is_open AND e.no = (SELECT max(no) FROM epoch) \
             AND e.timeline = ",
        timeline!(),
        " AND (SELECT r.id FROM run r WHERE $40 <= r.id AND r.id <= $41 AND array_position($26, r.id) IS NOT NULL \
               AND ",
        ended_between!("$42", "$43"),
        " ORDER BY r.id LIMIT 1) IS NULL), \
         held AS (\
           UPDATE memory m SET version = greatest(m.version + 1, $38 << 32), \
             fence = greatest(m.fence + 1, $38 << 32), n_open = m.n_open + 1, ",
        set_state!(),
        ", owner_run = u.run, owner_node = here.node, owner_name = here.name, owned_since = here.now \
           FROM here CROSS JOIN generate_series(1, cardinality($26::uuid[])) AS i(no) CROSS JOIN LATERAL (SELECT ",
        state_of_arrays!(),
        ", ($24::text[])[i.no] AS key, ($25::bigint[])[i.no] AS seen, ($26::uuid[])[i.no] AS run, \
             ($27::bigint[])[i.no] AS max_open, ($28::bigint[])[i.no] AS not_before, \
             ($29::bigint[])[i.no] AS due_at, ($30::bigint[])[i.no] AS due_attempt, \
             ($31::text[])[i.no] AS due_trigger, ($32::text[])[i.no] AS serves, ($33::uuid[])[i.no] AS extra_id, \
             ($34::bigint[])[i.no] AS due_losses, ($35::text[])[i.no] AS due_last_outcome, \
             ($36::text[])[i.no] AS params, ($39::bigint[])[i.no] AS known_id) u LEFT JOIN LATERAL (\
               SELECT id, key, definition, revision, is_deleted FROM job WHERE key >= u.key ORDER BY key LIMIT 1) j \
             ON j.key = u.key \
           WHERE m.job_id = ANY(ARRAY[coalesce(u.known_id, j.id)]) AND m.version = u.seen \
             AND m.n_open < coalesce(u.max_open, 1) AND u.not_before <= here.now AND j.is_deleted IS NOT TRUE \
           RETURNING m.job_id, m.version, m.fence, m.n_open, i.no, u.run, u.due_at, u.due_attempt, u.due_trigger, \
             u.serves, u.extra_id, u.due_losses, u.due_last_outcome, u.params, j.definition, j.revision, here.now, \
             here.node, here.name), \
         opened AS (\
           INSERT INTO open_run (id, job_id, session_id, fence, phase, due_at, attempt, \"trigger\", serves, extra_id, \
             losses, last_outcome, params, claimed_at, is_cancel_asked) \
           SELECT run, job_id, $37, fence, 'claimed', due_at, coalesce(due_attempt, 1), \
             coalesce(due_trigger, 'scheduler'), coalesce(serves, 'pending'), extra_id, coalesce(due_losses, 0), \
             due_last_outcome, params, now, false FROM held), \
         told AS (INSERT INTO change (position, job_id, changed_at) SELECT pg_current_xact_id(), job_id, now FROM held) \
         SELECT no, job_id, version, fence, n_open, revision, definition, now, node, name FROM held"
    ),
    types: state_types!(
        Type::TEXT_ARRAY,
        Type::INT8_ARRAY,
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
        Type::UUID,
        Type::INT8,
        Type::INT8_ARRAY,
        Type::UUID,
        Type::UUID,
        Type::INT8,
        Type::INT8,
    ),
};

/// The answers of the short path, each at the position of its claim.
pub(super) async fn run(
    store: &PgStore,
    me: SessionId,
    epoch: Epoch,
    claims: &[Claim],
) -> Result<Vec<Option<ClaimAnswer>>, PgError> {
    let plain = plain(claims);
    let mut answers = vec![None; claims.len()];
    for (place, row) in ask_parts(&plain, |part| ask_part(store, me, epoch, part)).await? {
        if let Some(answer) = answers.get_mut(place) {
            *answer = Some(ClaimAnswer::Granted(row));
        }
    }
    Ok(answers)
}

/// The granted jobs, with the positions of their claims.
async fn ask_part(
    store: &PgStore,
    me: SessionId,
    epoch: Epoch,
    plain: &[(usize, &Claim)],
) -> Result<Vec<(usize, JobRow)>, PgError> {
    if plain.is_empty() {
        return Ok(Vec::new());
    }
    let mut known = store.inner.job_cache.at_versions(plain.iter().map(|(_, it)| (&it.bid.key, it.bid.seen)));
    for it in &mut known {
        // Only the server knows whether it is still removed.
        *it = it.take().filter(|job| !job.is_deleted);
    }
    let memory = MemoryArrays::with_capacity(plain.len());
    let mut columns = ClaimColumns { memory, ..ClaimColumns::default() };
    for ((_, claim), known) in plain.iter().zip(&known) {
        columns.push(claim, known.as_ref());
    }
    let (session, no) = (Uuid::from_u128(me.0), stored_number(epoch.0));
    let Some(rows) = columns.ask(store, &session, &no).await? else { return Ok(Vec::new()) };
    let mut granted = Vec::with_capacity(rows.len());
    let mut remembered = Vec::with_capacity(rows.len());
    let mut node: Option<NodeName> = None;
    for row in &rows {
        let no = usize::try_from(row.try_get::<_, i32>(0)? - 1).unwrap_or(usize::MAX);
        let (Some((place, claim)), Some(known)) = (plain.get(no), known.get(no)) else {
            return Err(PgError::Text("unexpected answer to a claim".to_owned()));
        };
        let node = match &node {
            Some(node) => node.clone(),
            None => node.insert(session_node(row)?).clone(),
        };
        let (job, row) = grant(store, claim, known.as_ref(), row, node)?;
        remembered.push((claim.bid.key.clone(), job));
        granted.push((*place, row));
    }
    store.inner.job_cache.remember(remembered.into_iter());
    Ok(granted)
}

/// The claims that need nothing but the compare-and-set, with their positions.
fn plain(claims: &[Claim]) -> Vec<(usize, &Claim)> {
    let drawn_at = |claim: &Claim| drawn_at(Uuid::from_u128(claim.run.0)).unwrap_or(i64::MIN);
    let latest = claims.iter().map(drawn_at).max().unwrap_or(i64::MIN);
    let is_plain = |(_, claim): &(usize, &Claim)| {
        let Bid { takes, records, is_published, .. } = &claim.bid;
        let is_recent = latest.saturating_sub(DRAWN_APART_MAX_MS) <= drawn_at(claim);
        takes.is_empty() && records.is_empty() && !is_published && is_recent
    };
    by_key(claims, |it| &it.bid.key, |it| it.run).filter(is_plain).collect()
}

fn session_node(row: &Row) -> Result<NodeName, PgError> {
    let node: &str = row.try_get(8)?;
    node.parse().map_err(|error| PgError::Text(format!("the session's node is wrong: {error}")))
}

/// The job after a claim: the state of the bid, and what only the store knows.
fn grant(
    store: &PgStore,
    Claim { run, bid }: &Claim,
    known: Option<&CachedJob>,
    row: &Row,
    node: NodeName,
) -> Result<(CachedJob, JobRow), PgError> {
    let (job, revision) = match known {
        Some(known) => (known.job.clone(), known.revision),
        None => {
            let job = store.inner.reader.job_or_broken(&bid.key, row.try_get(6)?);
            (job, Revision(number(row.try_get(5)?)))
        }
    };
    let version = Version(number(row.try_get(2)?));
    let now = Timestamp::from_millis(row.try_get(7)?);
    let mut state = bid.state.clone();
    state.owner = Some(Box::new(Owner { node, name: row.try_get(9)?, tag: *run, started_at: now }));
    let known = CachedJob { id: row.try_get(1)?, version, revision, is_deleted: false, job: job.clone() };
    let fence = Fence(number(row.try_get(3)?));
    let n_open = small_number(row.try_get(4)?);
    Ok((known, JobRow { job, state, revision, version, fence, n_open, is_deleted: false }))
}

/// Claims, column by column. Values that most claims have are left out.
#[derive(Debug, Default)]
struct ClaimColumns<'a> {
    memory: MemoryArrays,
    /// `None` for a cached job.
    key: Vec<Option<&'a str>>,
    known_id: Vec<Option<i64>>,
    seen: Vec<i64>,
    run: Vec<Uuid>,
    max_open: Vec<Option<i64>>,
    not_before: Vec<i64>,
    due_at: Vec<i64>,
    attempt: Vec<Option<i64>>,
    trigger: Vec<Option<&'static str>>,
    serves: Vec<Option<&'static str>>,
    extra_id: Vec<Option<Uuid>>,
    losses: Vec<i64>,
    last_outcome: Vec<Option<&'static str>>,
    params: Vec<Option<String>>,
}

impl<'a> ClaimColumns<'a> {
    fn push(&mut self, Claim { run, bid }: &'a Claim, known: Option<&CachedJob>) {
        let due = DueColumns::of(&bid.due);
        self.memory.push(MemoryColumns::of(&bid.state));
        self.key.push(known.is_none().then(|| bid.key.as_str()));
        self.known_id.push(known.map(|it| it.id));
        self.seen.push(stored_number(bid.seen.0));
        self.run.push(Uuid::from_u128(run.0));
        self.max_open.push(Some(bid.max_open.into()).filter(|most| *most != 1));
        self.not_before.push(bid.not_before.as_millis());
        self.due_at.push(due.due_at);
        self.attempt.push(Some(due.attempt).filter(|attempt| *attempt != 1));
        self.trigger.push((due.trigger != Trigger::Scheduler).then(|| due.trigger.keyword()));
        self.serves.push((due.serves != ServesKind::Pending).then(|| due.serves.keyword()));
        self.extra_id.push(due.extra_id.map(Uuid::from_u128));
        self.losses.push(due.losses);
        self.last_outcome.push(due.last_outcome.map(Keyword::keyword));
        self.params.push(due.params);
    }

    async fn ask(
        mut self,
        store: &PgStore,
        session: &Uuid,
        epoch: &i64,
    ) -> Result<Option<Vec<Row>>, PgError> {
        self.memory.leave_blanks_out();
        leave_blanks_out(&mut self.key);
        leave_blanks_out(&mut self.known_id);
        leave_blanks_out(&mut self.max_open);
        leave_blanks_out(&mut self.attempt);
        leave_blanks_out(&mut self.trigger);
        leave_blanks_out(&mut self.serves);
        leave_blanks_out(&mut self.extra_id);
        leave_blanks_out(&mut self.losses);
        leave_blanks_out(&mut self.last_outcome);
        leave_blanks_out(&mut self.params);
        let over = HistoryRange::of(self.run.iter().copied());
        let mut params: Vec<Param<'_>> = self.memory.state_params().collect();
        params.extend([
            &self.key as Param<'_>,
            &self.seen,
            &self.run,
            &self.max_open,
            &self.not_before,
            &self.due_at,
            &self.attempt,
            &self.trigger,
            &self.serves,
            &self.extra_id,
            &self.losses,
            &self.last_outcome,
            &self.params,
            session,
            epoch,
            &self.known_id,
            &over.first,
            &over.last,
            &over.since,
            &over.until,
        ]);
        ask(store, Repeat::Harmless, &CLAIM, &params).await
    }
}
