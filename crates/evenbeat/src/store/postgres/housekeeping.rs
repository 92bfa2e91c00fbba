//! Recounts counters, and removes old rows.

use std::time::Duration;

use evenbeat_core::store::{CounterRow, PLAN_LIFE, Retention, StoreDown, Trimmed};
use evenbeat_core::time::{CLOCK_SLACK, Timestamp};
use tokio_postgres::types::Type;

use super::PgStore;
use super::audit::trim_audit;
use super::connect::ConnectionUse;
use super::error::PgError;
use super::requests::OLD_REQUESTS;
use super::rows::counter_row;
use super::transaction::{Statement, Transaction, transact};
use crate::store::floor::Floor;

/// Runs in the background, so it may take longer than a normal call.
const DEADLINE: Duration = Duration::from_mins(1);

static LOCK_ALL: Statement =
    Statement { sql: "SELECT kind FROM counter ORDER BY kind, key FOR UPDATE", types: &[] };

/// Wrong counters. Runs after all are locked, so that no run that holds one can be claimed or ended meanwhile.
static WRONG: Statement = Statement {
    sql: "SELECT c.kind, c.key, c.n_open, c.last_claim_at, coalesce(n.n_open, 0) FROM counter c LEFT JOIN (\
            SELECT pair ->> 0 AS kind, pair ->> 1 AS key, count(*) AS n_open \
            FROM open_run o, json_array_elements(o.takes::json) pair WHERE o.takes IS NOT NULL GROUP BY 1, 2) n \
          ON n.kind = c.kind AND n.key = c.key COLLATE \"C\" \
          WHERE c.n_open <> coalesce(n.n_open, 0) ORDER BY c.kind, c.key",
    types: &[],
};
static RIGHT: Statement = Statement {
    sql: "UPDATE counter c SET n_open = u.n_open FROM unnest($1::text[], $2::text[], $3::bigint[]) \
          AS u(kind, key, n_open) WHERE c.kind = u.kind AND c.key = u.key COLLATE \"C\"",
    types: &[Type::TEXT_ARRAY, Type::TEXT_ARRAY, Type::INT8_ARRAY],
};

/// Moves claims of the future, written by a wrong clock, to now.
static CLAIMS_OF_NOW: Statement = Statement {
    sql: "WITH claims AS (UPDATE counter_claim SET claimed_at = now_ms() WHERE now_ms() + $1 < claimed_at) \
          UPDATE counter SET last_claim_at = now_ms() WHERE now_ms() + $1 < last_claim_at",
    types: &[Type::INT8],
};

static OLD_RUNS: Statement = Statement {
    sql: "WITH gone AS (DELETE FROM run r USING (\
            SELECT ended_at, id FROM run WHERE ended_at < $1 ORDER BY ended_at, id LIMIT $2) old \
            WHERE r.ended_at = old.ended_at AND r.id = old.id RETURNING 1) SELECT count(*) FROM gone",
    types: &[Type::INT8, Type::INT8],
};
static OLD_RECORDS: Statement = Statement {
    sql: "WITH gone AS (DELETE FROM record WHERE id IN (\
            SELECT id FROM record WHERE recorded_at < $1 ORDER BY recorded_at, id LIMIT $2) RETURNING 1) \
          SELECT count(*) FROM gone",
    types: &[Type::INT8, Type::INT8],
};
static STAMP_TOMBSTONES: Statement = Statement {
    sql: "INSERT INTO tombstone AS t (job_id, version, seen_at) \
          SELECT j.id, m.version, $1 FROM job j JOIN memory m ON m.job_id = j.id WHERE j.is_deleted \
          ON CONFLICT (job_id) DO UPDATE SET version = excluded.version, seen_at = excluded.seen_at \
          WHERE t.version <> excluded.version",
    types: &[Type::INT8],
};
static CLEAR_TOMBSTONES: Statement = Statement {
    sql: "DELETE FROM tombstone t WHERE NOT EXISTS (SELECT FROM job j WHERE j.id = t.job_id AND j.is_deleted)",
    types: &[],
};
/// Locks deleted jobs that can be removed, by key as edits do: one of them may be about to be created again.
static LOCK_TOMBSTONES: Statement = Statement {
    sql: "SELECT j.id FROM job j JOIN memory m ON m.job_id = j.id WHERE j.id IN (\
            SELECT t.job_id FROM tombstone t JOIN job o ON o.id = t.job_id WHERE t.seen_at < $1 \
              AND NOT EXISTS (SELECT FROM open_run r WHERE r.job_id = t.job_id) \
              AND NOT EXISTS (SELECT FROM run r WHERE r.job_id = t.job_id) \
              AND NOT EXISTS (SELECT FROM record r WHERE r.job_id = t.job_id) \
            ORDER BY t.seen_at, o.key LIMIT $2) \
          ORDER BY j.key FOR UPDATE OF m",
    types: &[Type::INT8, Type::INT8],
};
/// Removes those that have not changed, as seen after the locks, and returns their fences and versions.
static DROP_TOMBSTONES: Statement = Statement {
    sql: "WITH old AS (\
            SELECT t.job_id FROM tombstone t JOIN job j ON j.id = t.job_id JOIN memory m ON m.job_id = t.job_id \
            WHERE t.job_id = ANY($1) AND j.is_deleted AND m.version = t.version AND m.n_open = 0), \
          stamps AS (DELETE FROM tombstone t USING old WHERE t.job_id = old.job_id), \
          labels AS (DELETE FROM label l USING old WHERE l.job_id = old.job_id), \
          jobs AS (DELETE FROM job j USING old WHERE j.id = old.job_id) \
          DELETE FROM memory m USING old WHERE m.job_id = old.job_id RETURNING m.fence, m.version",
    types: &[Type::INT8_ARRAY],
};
static SET_FLOOR: Statement = Statement {
    sql: "INSERT INTO setting (name, value) VALUES ($1, $2) \
          ON CONFLICT (name) DO UPDATE SET value = excluded.value",
    types: &[Type::TEXT, Type::TEXT],
};
/// The fence and version that every new job starts with.
pub(super) static FLOOR: Statement =
    Statement { sql: "SELECT value FROM setting WHERE name = 'job_floor'", types: &[] };
static OLD_PLANS: Statement =
    Statement { sql: "DELETE FROM rebalance_plan WHERE made_at <= $1", types: &[Type::INT8] };
static OLD_SESSIONS: Statement = Statement {
    sql: "WITH gone AS (DELETE FROM session WHERE id IN (\
            SELECT s.id FROM session s WHERE s.is_dead \
              AND NOT EXISTS (SELECT FROM open_run o WHERE o.session_id = s.id) \
              AND NOT EXISTS (SELECT FROM run r WHERE r.session_id = s.id) ORDER BY s.id LIMIT $1) RETURNING 1) \
          SELECT count(*) FROM gone",
    types: &[Type::INT8],
};
static OLD_DOUBTS: Statement = Statement {
    sql: "DELETE FROM doubt d WHERE NOT EXISTS (SELECT FROM session s WHERE s.id = d.session_id)",
    types: &[],
};
/// Removes changes that readers of the feed have read; readers that were away for longer start over. The last removed
/// position is stored, because a clock may jump and then the changes were not old at all. Changes that an unfinished
/// transaction may still write are kept.
static OLD_CHANGES: Statement = Statement {
    sql: "WITH gone AS (DELETE FROM change c USING (\
            SELECT ctid FROM change ORDER BY position LIMIT $1) old \
            WHERE c.ctid = old.ctid AND c.changed_at < now_ms() - 3600000 \
              AND c.position < pg_snapshot_xmin(pg_current_snapshot())::text::xid8 \
            RETURNING c.position), \
          noted AS (INSERT INTO setting AS s (name, value) \
            SELECT 'changes_trimmed_to', max(position)::text FROM gone HAVING 0 < count(*) \
            ON CONFLICT (name) DO UPDATE SET value = greatest(s.value::xid8, excluded.value::xid8)::text) \
          SELECT count(*) FROM gone",
    types: &[Type::INT8],
};
const CHANGES_MAX: i64 = 50_000;

impl PgStore {
    /// Recounts counters from the open runs. Returns those that were wrong, with their wrong values.
    pub async fn recount(&self) -> Result<Vec<CounterRow>, StoreDown> {
        transact!(self, ConnectionUse::Write, |tx| recount(&tx))
    }

    /// Removes what is older than the retention says, by the server's clock, and creates partitions for the next days.
    pub async fn trim(&self, retention: &Retention) -> Result<Trimmed, StoreDown> {
        self.within(DEADLINE, async {
            let now = self.clock().await?;
            let n_dropped = self.drop_partitions(now, now - retention.runs).await?;
            let tx = Transaction::new(self, ConnectionUse::Write).await?;
            let mut trimmed = trim(&tx, now, retention).await?;
            trimmed.n_runs += n_dropped;
            trimmed.n_audit = trim_audit(&tx, now - retention.audit, retention.most).await?;
            let before = now - retention.tombstones;
            trimmed.n_tombstones = trim_tombstones(&tx, now, before, retention.most).await?;
            tx.give_back();
            while !self.trim_changes().await? {}
            self.make_partitions().await?;
            Ok(trimmed)
        })
        .await
    }

    /// Removes some old changes. Returns whether those were all.
    async fn trim_changes(&self) -> Result<bool, PgError> {
        let tx = Transaction::new(self, ConnectionUse::Write).await?;
        tx.ready(&[&OLD_CHANGES]).await?;
        let ((), rows, ()) =
            tokio::try_join!(biased; tx.begin(), tx.query(&OLD_CHANGES, [&CHANGES_MAX]), tx.commit())?;
        tx.give_back();
        let n_gone: i64 = rows.first().ok_or(PgError::Retry)?.try_get(0)?;
        Ok(n_gone < CHANGES_MAX)
    }
}

async fn recount(tx: &Transaction) -> Result<Vec<CounterRow>, PgError> {
    tx.ready(&[&LOCK_ALL, &WRONG, &RIGHT, &CLAIMS_OF_NOW]).await?;
    let ((), _, rows) = tokio::try_join!(biased; tx.begin(), tx.query(&LOCK_ALL, []), tx.query(&WRONG, []))?;
    let wrong: Vec<CounterRow> = rows.iter().map(counter_row).collect::<Result<_, _>>()?;
    let mut n_open: Vec<i64> = Vec::new();
    for row in &rows {
        n_open.push(row.try_get(4)?);
    }
    let kind: Vec<&str> = wrong.iter().map(|it| it.counter.kind()).collect();
    let key: Vec<&str> = wrong.iter().map(|it| it.counter.key()).collect();
    let slack = CLOCK_SLACK.as_millis();
    tokio::try_join!(
        biased;
        tx.query_if(!wrong.is_empty(), &RIGHT, [&kind, &key, &n_open]),
        tx.query(&CLAIMS_OF_NOW, [&slack]),
        tx.commit(),
    )?;
    Ok(wrong)
}

async fn trim(tx: &Transaction, now: Timestamp, retention: &Retention) -> Result<Trimmed, PgError> {
    let most = i64::try_from(retention.most).unwrap_or(i64::MAX);
    let before = |keep_for: evenbeat_core::time::Duration| (now - keep_for).as_millis();
    tx.begin().await?;
    tx.execute("SET LOCAL statement_timeout = 60000").await?;
    let runs = tx.query(&OLD_RUNS, [&before(retention.runs), &most]).await?;
    let records = tx.query(&OLD_RECORDS, [&before(retention.records), &most]).await?;
    let sessions = tx.query(&OLD_SESSIONS, [&most]).await?;
    tx.query(&OLD_PLANS, [&before(PLAN_LIFE)]).await?;
    tx.query(&OLD_DOUBTS, []).await?;
    tx.query(&OLD_REQUESTS, [&most]).await?;
    tx.commit().await?;
    let n = |rows: &[tokio_postgres::Row]| -> Result<usize, PgError> {
        let n: i64 = rows.first().ok_or(PgError::Retry)?.try_get(0)?;
        Ok(usize::try_from(n).unwrap_or(0))
    };
    Ok(Trimmed {
        n_runs: n(&runs)?,
        n_records: n(&records)?,
        n_audit: 0,
        n_tombstones: 0,
        n_sessions: n(&sessions)?,
    })
}

/// Runs in its own transaction, because it locks jobs as edits do and nothing else may be locked before.
async fn trim_tombstones(
    tx: &Transaction,
    now: Timestamp,
    before: Timestamp,
    most: usize,
) -> Result<usize, PgError> {
    let (now, before, most) = (now.as_millis(), before.as_millis(), i64::try_from(most).unwrap_or(i64::MAX));
    tx.begin().await?;
    tx.execute("SET LOCAL statement_timeout = 60000").await?;
    // Two nodes that trim at once would lock the same rows in different orders.
    tx.execute("SELECT pg_advisory_xact_lock(7310597164892486)").await?;
    tx.query(&STAMP_TOMBSTONES, [&now]).await?;
    tx.query(&CLEAR_TOMBSTONES, []).await?;
    let locked = tx.query(&LOCK_TOMBSTONES, [&before, &most]).await?;
    let ids: Vec<i64> = locked.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?;
    let gone = if ids.is_empty() { Vec::new() } else { tx.query(&DROP_TOMBSTONES, [&ids]).await? };
    if !gone.is_empty() {
        let mut floor = read_floor(&tx.query(&FLOOR, []).await?)?;
        for row in &gone {
            floor = floor.raised(&Floor::of_stored(row.try_get(0)?, row.try_get(1)?));
        }
        tx.query(&SET_FLOOR, [&Floor::SETTING, &floor.to_text()]).await?;
    }
    tx.commit().await?;
    Ok(gone.len())
}

pub(super) fn read_floor(rows: &[tokio_postgres::Row]) -> Result<Floor, PgError> {
    let text: Option<&str> = rows.first().map(|row| row.try_get(0)).transpose()?;
    Ok(text.map(Floor::from_text).unwrap_or_default())
}
