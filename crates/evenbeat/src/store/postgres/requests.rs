//! Requests for runs (K1), and heartbeats of owners (L2).

use std::collections::BTreeMap;

use evenbeat_core::ids::{ExtraId, JobKey, RunId};
use evenbeat_core::lease::Silent;
use evenbeat_core::store::{Idempotency, OwnerPing, PutJob, RunRequest, RunRow, StoreDown};
use evenbeat_core::time::Timestamp;
use tokio_postgres::Row;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::PgStore;
use super::connect::ConnectionUse;
use super::error::PgError;
use super::rows::{job_key, run_row, select_open_run, select_run};
use super::transaction::{Statement, Transaction, transact};
use super::views::{ask, limit, read};
use crate::store::columns::stored_number;
use crate::store::query::{RequestRow, RunName, earliest_attempt};

/// Requests of the last 24 hours, by the server's clock. Repetitions of these are recognised.
pub(super) static REQUESTS_BY_KEY: Statement = Statement {
    sql: "SELECT key_hash, id, body_hash FROM request \
          WHERE key_hash = ANY($1) AND now_ms() - 86400000 < requested_at ORDER BY requested_at",
    types: &[Type::UUID_ARRAY],
};
pub(super) static KEEP_REQUESTS: Statement = Statement {
    sql: "INSERT INTO request (id, job_id, requested_at, key_hash, body_hash) \
          SELECT u.id, j.id, now_ms(), u.key_hash, u.body_hash \
          FROM unnest($1::uuid[], $2::text[], $3::uuid[], $4::uuid[]) AS u(id, key, key_hash, body_hash) \
          JOIN job j ON j.key = u.key COLLATE \"C\" ON CONFLICT (id) DO NOTHING",
    types: &[Type::UUID_ARRAY, Type::TEXT_ARRAY, Type::UUID_ARRAY, Type::UUID_ARRAY],
};
/// Removes requests that can no longer be repeated, except those that still wait for their run.
pub(super) static OLD_REQUESTS: Statement = Statement {
    sql: "DELETE FROM request WHERE id IN (\
            SELECT q.id FROM request q LEFT JOIN memory m ON m.job_id = q.job_id \
            WHERE q.requested_at < now_ms() - 86400000 \
              AND coalesce(strpos(m.extras, replace(q.id::text, '-', '')), 0) = 0 \
            ORDER BY q.requested_at LIMIT $1)",
    types: &[Type::INT8],
};
static REQUEST: Statement = Statement {
    sql: "SELECT j.key, q.requested_at FROM request q JOIN job j ON j.id = q.job_id WHERE q.id = $1",
    types: &[Type::UUID],
};
static OPEN_ATTEMPT: Statement = Statement {
    sql: concat!(
        "SELECT ",
        select_open_run!(),
        " FROM job j JOIN open_run o ON o.job_id = j.id WHERE j.key = $1 AND o.extra_id = $2 \
         ORDER BY o.id DESC LIMIT 1"
    ),
    types: &[Type::TEXT, Type::UUID],
};
static LAST_ATTEMPT: Statement = Statement {
    sql: concat!(
        "SELECT ",
        select_run!(),
        " FROM job j JOIN run r ON r.job_id = j.id WHERE j.key = $1 AND r.extra_id = $2 AND $3 <= r.id \
         ORDER BY r.id DESC LIMIT 1"
    ),
    types: &[Type::TEXT, Type::UUID, Type::UUID],
};
static BETWEEN: Statement = Statement {
    sql: "(SELECT t.id, j.key FROM open_run t JOIN job j ON j.id = t.job_id \
           WHERE $1 <= t.id AND t.id <= $2 ORDER BY t.id DESC LIMIT $3) \
          UNION (SELECT t.id, j.key FROM run t JOIN job j ON j.id = t.job_id \
           WHERE $1 <= t.id AND t.id <= $2 ORDER BY t.id DESC LIMIT $3) \
          UNION (SELECT t.id, j.key FROM request t JOIN job j ON j.id = t.job_id \
           WHERE $1 <= t.id AND t.id <= $2 ORDER BY t.id DESC LIMIT $3)",
    types: &[Type::UUID, Type::UUID, Type::INT8],
};
static PINGS: Statement = Statement {
    sql: "SELECT o.id, s.beaten_at, d.doubted_at FROM open_run o JOIN session s ON s.id = o.session_id \
          LEFT JOIN doubt d ON d.session_id = s.id AND d.beat = s.beat WHERE o.id = ANY($1) ORDER BY o.id",
    types: &[Type::UUID_ARRAY],
};
/// Reads the session without locking it: neither its beat nor a watcher waits for this.
static DOUBT: Statement = Statement {
    sql: "INSERT INTO doubt (session_id, beat, doubted_at) \
          SELECT s.id, s.beat, now_ms() FROM session s \
          JOIN unnest($1::uuid[], $2::bigint[]) AS u(id, beat) ON s.id = u.id AND s.beat = u.beat \
          ON CONFLICT (session_id) DO UPDATE SET beat = excluded.beat, doubted_at = excluded.doubted_at \
          WHERE doubt.beat <> excluded.beat",
    types: &[Type::UUID_ARRAY, Type::INT8_ARRAY],
};
static PROBE: Statement = Statement {
    sql: "INSERT INTO setting (name, value) VALUES ('write_probe', now_ms()::text) \
          ON CONFLICT (name) DO UPDATE SET value = excluded.value",
    types: &[],
};

impl PgStore {
    /// The request with this idempotency key, while it is kept.
    pub async fn request_by_key(&self, key: u128) -> Result<Option<RunRequest>, StoreDown> {
        let keys = vec![Uuid::from_u128(key)];
        let rows = transact!(self, ConnectionUse::Read, |tx| ask(&tx, &REQUESTS_BY_KEY, [&keys]))?;
        Ok(by_key(&rows).map_err(|fail| fail.down())?.remove(&key))
    }

    /// A request for a run, while it is kept.
    pub async fn request(&self, id: ExtraId) -> Result<Option<RequestRow>, StoreDown> {
        let rows = transact!(self, ConnectionUse::Read, |tx| ask(&tx, &REQUEST, [&Uuid::from_u128(id.0)]))?;
        let request = |row: &Row| {
            let requested_at = Timestamp::from_millis(row.try_get(1)?);
            Ok(RequestRow { id, key: job_key(row.try_get(0)?)?, requested_at })
        };
        Ok(read(&rows, request)?.pop())
    }

    /// The latest run of a request.
    pub async fn latest_attempt(&self, key: &JobKey, id: ExtraId) -> Result<Option<RunRow>, StoreDown> {
        let (key, id, since) = (key.as_str(), Uuid::from_u128(id.0), Uuid::from_u128(earliest_attempt(id).0));
        let open = transact!(self, ConnectionUse::Read, |tx| ask(&tx, &OPEN_ATTEMPT, [&key, &id]))?;
        if let Some(open) = read(&open, run_row)?.pop() {
            return Ok(Some(open));
        }
        let over = transact!(self, ConnectionUse::Read, |tx| ask(&tx, &LAST_ATTEMPT, [&key, &id, &since]))?;
        Ok(read(&over, run_row)?.pop())
    }

    /// Runs and requests with ids from `from` to `to`, both included: at most `most` of each kind.
    pub async fn runs_between(&self, from: RunId, to: RunId, most: usize) -> Result<Vec<RunName>, StoreDown> {
        let (from, to) = (Uuid::from_u128(from.0), Uuid::from_u128(to.0));
        let rows = transact!(self, ConnectionUse::Read, |tx| ask(&tx, &BETWEEN, [&from, &to, &limit(most)]))?;
        read(&rows, |row| {
            let id = RunId(row.try_get::<_, Uuid>(0)?.as_u128());
            Ok(RunName { id, key: job_key(row.try_get(1)?)? })
        })
    }

    /// The last heartbeats of the owners of open runs, by run.
    pub async fn owner_pings(&self, runs: &[RunId]) -> Result<Vec<OwnerPing>, StoreDown> {
        let ids: Vec<Uuid> = runs.iter().map(|it| Uuid::from_u128(it.0)).collect();
        let rows = transact!(self, ConnectionUse::Read, |tx| ask(&tx, &PINGS, [&ids]))?;
        read(&rows, |row| {
            Ok(OwnerPing {
                run: RunId(row.try_get::<_, Uuid>(0)?.as_u128()),
                last_ping_at: Timestamp::from_millis(row.try_get(1)?),
                doubted_at: row.try_get::<_, Option<i64>>(2)?.map(Timestamp::from_millis),
            })
        })
    }

    /// Records since when sessions have been silent.
    pub async fn doubt(&self, silent: &[Silent]) -> Result<(), StoreDown> {
        let id: Vec<Uuid> = silent.iter().map(|it| Uuid::from_u128(it.session.0)).collect();
        let beat: Vec<i64> = silent.iter().map(|it| stored_number(it.beat)).collect();
        transact!(self, ConnectionUse::Write, |tx| ask(&tx, &DOUBT, [&id, &beat]))?;
        Ok(())
    }

    /// Checks that the store accepts writes.
    pub async fn probe(&self) -> Result<(), StoreDown> {
        transact!(self, ConnectionUse::Write, |tx| ask(&tx, &PROBE, []))?;
        Ok(())
    }
}

/// Reads the rows of [`REQUESTS_BY_KEY`]: the latest request of each key.
pub(super) fn by_key(rows: &[Row]) -> Result<BTreeMap<u128, RunRequest>, PgError> {
    let mut found = BTreeMap::new();
    for row in rows {
        let key = row.try_get::<_, Uuid>(0)?.as_u128();
        let id = ExtraId(row.try_get::<_, Uuid>(1)?.as_u128());
        let body = row.try_get::<_, Option<Uuid>>(2)?.map_or(0, |it| it.as_u128());
        found.insert(key, RunRequest { id, idempotency: Some(Idempotency { key, body }) });
    }
    Ok(found)
}

/// The idempotency keys of a batch.
pub(super) fn keys_of(puts: &[PutJob]) -> Vec<Uuid> {
    puts.iter().filter_map(|it| it.request?.idempotency).map(|it| Uuid::from_u128(it.key)).collect()
}

pub(super) async fn keep_requests(
    tx: &Transaction,
    requests: &[(JobKey, RunRequest)],
) -> Result<(), PgError> {
    let id: Vec<Uuid> = requests.iter().map(|(_, it)| Uuid::from_u128(it.id.0)).collect();
    let key: Vec<&str> = requests.iter().map(|(key, _)| key.as_str()).collect();
    let hash = |of: fn(Idempotency) -> u128| -> Vec<Option<Uuid>> {
        requests.iter().map(|(_, it)| it.idempotency.map(of).map(Uuid::from_u128)).collect()
    };
    let (key_hash, body_hash) = (hash(|it| it.key), hash(|it| it.body));
    tx.query_if(!requests.is_empty(), &KEEP_REQUESTS, [&id, &key, &key_hash, &body_hash]).await?;
    Ok(())
}
