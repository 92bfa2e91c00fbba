//! Sessions, and the runs that they own.

use std::collections::BTreeSet;

use evenbeat_core::ids::SessionId;
use evenbeat_core::lease::{Epoch, Silent, Timings};
use evenbeat_core::store::{Beat, Fencing, Joined, Lives, RunRow, SessionSpec, StoreDown, Watch};
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::PgStore;
use super::connect::ConnectionUse;
use super::epoch::{CURRENT_EPOCH, read_epoch};
use super::error::PgError;
use super::rows::{ids, run_rows, select_open_run, select_session, session_rows};
use super::transaction::{Statement, Transaction, transact};
use crate::store::columns::{number, pools_to_text, stored_number, timings_from_text, timings_to_text};
use crate::store::keyword::Keyword;

/// A session that is alive.
pub(super) static LIVING: Statement = Statement {
    sql: "SELECT node, name, boot_id, home, is_draining FROM session WHERE id = $1 AND NOT is_dead",
    types: &[Type::UUID],
};

/// Adds a session. An existing one stays as it is, dead or not.
pub(super) static KNOW: Statement = Statement {
    sql: "INSERT INTO session (id, node, name, boot_id, kind, pools, home, zone_data, beat, is_dead, is_draining, \
            joined_at, beaten_at) \
          VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 0, false, false, now_ms(), now_ms()) ON CONFLICT DO NOTHING",
    types: &[Type::UUID, Type::TEXT, Type::TEXT, Type::UUID, Type::TEXT, Type::TEXT, Type::UUID, Type::TEXT],
};

static SET_TIMINGS: Statement = Statement {
    sql: "INSERT INTO setting (name, value) VALUES ('timings', $1) ON CONFLICT DO NOTHING",
    types: &[Type::TEXT],
};
static TIMINGS: Statement = Statement { sql: "SELECT value FROM setting WHERE name = 'timings'", types: &[] };

static OPEN_RUNS_OF: Statement = Statement {
    sql: concat!(
        "SELECT ",
        select_open_run!(),
        " FROM open_run o JOIN job j ON j.id = o.job_id WHERE o.session_id = $1 ORDER BY o.id"
    ),
    types: &[Type::UUID],
};

static BEAT: Statement = Statement {
    sql: "UPDATE session SET beat = beat + 1, beaten_at = now_ms() WHERE id = $1 AND NOT is_dead \
          RETURNING is_draining",
    types: &[Type::UUID],
};

/// Marks earlier sessions dead: those of a node, or all.
static FENCE_LIVES: Statement = Statement {
    sql: "UPDATE session SET is_dead = true WHERE NOT is_dead AND id <> $1 AND kind = 'node' \
          AND ($4 OR (node = $2 AND boot_id = $3 AND home = $5)) RETURNING id",
    types: &[Type::UUID, Type::TEXT, Type::UUID, Type::BOOL, Type::UUID],
};
static TAKE_OVER: Statement = Statement {
    sql: "WITH left_behind AS (SELECT id FROM open_run WHERE session_id = ANY($2) ORDER BY id FOR UPDATE) \
          UPDATE open_run o SET session_id = $1 FROM left_behind WHERE o.id = left_behind.id",
    types: &[Type::UUID, Type::UUID_ARRAY],
};

static DRAIN: Statement = Statement {
    sql: "UPDATE session SET is_draining = $2 WHERE id = $1 AND NOT is_dead RETURNING id",
    types: &[Type::UUID, Type::BOOL],
};
static IS_FREE: Statement =
    Statement { sql: "SELECT NOT EXISTS (SELECT FROM open_run WHERE session_id = $1)", types: &[Type::UUID] };
static LEAVE: Statement = Statement {
    sql: "UPDATE session SET is_dead = true WHERE id = $1 AND NOT is_dead \
          AND NOT EXISTS (SELECT FROM open_run WHERE session_id = $1)",
    types: &[Type::UUID],
};

static ALIVE: Statement = Statement {
    sql: concat!("SELECT ", select_session!(), " FROM session s WHERE NOT s.is_dead ORDER BY s.id"),
    types: &[],
};
static ORPHANS: Statement = Statement {
    sql: concat!(
        "SELECT ",
        select_open_run!(),
        " FROM session s JOIN open_run o ON o.session_id = s.id JOIN job j ON j.id = o.job_id \
         WHERE s.is_dead ORDER BY o.id LIMIT $1"
    ),
    types: &[Type::INT8],
};

/// Races with the heartbeat of the session, on the same row.
static FENCE: Statement = Statement {
    sql: "WITH silent AS (\
            SELECT s.id, s.beat FROM session s JOIN unnest($1::uuid[], $2::bigint[]) AS u(id, beat) \
              ON s.id = u.id AND s.beat = u.beat WHERE NOT s.is_dead ORDER BY s.id FOR UPDATE OF s) \
          UPDATE session s SET is_dead = true FROM silent \
          WHERE s.id = silent.id AND s.beat = silent.beat AND NOT s.is_dead RETURNING s.id, s.beat",
    types: &[Type::UUID_ARRAY, Type::INT8_ARRAY],
};

impl PgStore {
    /// Begins a session. Refused if the cluster runs by other timings.
    pub async fn join(&self, session: &SessionSpec, timings: &Timings) -> Result<Joined, StoreDown> {
        transact!(self, ConnectionUse::Write, |tx| join(&tx, session, timings))
    }

    /// Takes over the open runs of earlier sessions, after a restart. Returns all open runs of the session.
    pub async fn adopt(&self, me: SessionId, lives: Lives) -> Result<Vec<RunRow>, StoreDown> {
        transact!(self, ConnectionUse::Write, |tx| adopt(&tx, me, lives))
    }

    /// Sends the heartbeat of a session that is alive, and then reads its open runs. Uses a reserved connection.
    pub async fn beat(&self, me: SessionId) -> Result<Beat, StoreDown> {
        transact!(self, ConnectionUse::Beat, |tx| beat(&tx, me))
    }

    /// Sets whether a session takes new runs.
    pub async fn drain(&self, session: SessionId, is_draining: bool) -> Result<bool, StoreDown> {
        transact!(self, ConnectionUse::Write, |tx| drain(&tx, session, is_draining))
    }

    /// Ends a session that has no open runs. False if it has some.
    pub async fn leave(&self, me: SessionId) -> Result<bool, StoreDown> {
        transact!(self, ConnectionUse::Write, |tx| leave(&tx, me))
    }

    /// Reads all living sessions, the epoch, and at most `most_runs` open runs of dead sessions.
    pub async fn watch(&self, most_runs: usize) -> Result<Watch, StoreDown> {
        transact!(self, ConnectionUse::Watch, |tx| watch(&tx, most_runs))
    }

    /// Marks sessions dead whose beat has not changed. Only in the open epoch.
    pub async fn fence(&self, epoch: Epoch, silent: &[Silent]) -> Result<Vec<Fencing>, StoreDown> {
        transact!(self, ConnectionUse::Watch, |tx| fence(&tx, epoch, silent))
    }
}

async fn join(tx: &Transaction, session: &SessionSpec, timings: &Timings) -> Result<Joined, PgError> {
    tx.ready(&[&CURRENT_EPOCH, &SET_TIMINGS, &TIMINGS, &KNOW]).await?;
    let text = timings_to_text(timings);
    let ((), epoch_rows, _, said) = tokio::try_join!(
        biased;
        tx.begin(),
        tx.query(&CURRENT_EPOCH, []),
        tx.query(&SET_TIMINGS, [&text]),
        tx.query(&TIMINGS, []),
    )?;
    let current = read_epoch(&epoch_rows)?;
    let said: &str = said.first().ok_or(PgError::Retry)?.try_get(0)?;
    let Some(cluster) = timings_from_text(said) else {
        return Err(PgError::Text(format!("the cluster's timings cannot be read: `{said}`")));
    };
    if cluster != *timings {
        tx.rollback().await?;
        return Ok(Joined::OtherTimings(cluster));
    }
    know(tx, session).await?;
    tx.commit().await?;
    Ok(Joined::Welcome { epoch: current.epoch, is_open: current.is_open, now: current.now })
}

pub(super) async fn know(tx: &Transaction, session: &SessionSpec) -> Result<(), PgError> {
    let (id, boot_id) = (Uuid::from_u128(session.id.0), Uuid::from_u128(session.boot_id));
    let pools = pools_to_text(&session.pools);
    let (node, kind) = (session.node.as_str(), session.kind.keyword());
    let home = Uuid::from_u128(session.home);
    tx.query(&KNOW, [&id, &node, &session.name, &boot_id, &kind, &pools, &home, &session.zone_data]).await?;
    Ok(())
}

async fn adopt(tx: &Transaction, me: SessionId, lives: Lives) -> Result<Vec<RunRow>, PgError> {
    let id = Uuid::from_u128(me.0);
    tx.ready(&[&LIVING, &FENCE_LIVES, &TAKE_OVER, &OPEN_RUNS_OF]).await?;
    let ((), living) = tokio::try_join!(biased; tx.begin(), tx.query(&LIVING, [&id]))?;
    let Some(mine) = living.first() else {
        tx.rollback().await?;
        return Ok(Vec::new());
    };
    let (node, boot_id, home): (&str, Uuid, Uuid) = (mine.try_get(0)?, mine.try_get(2)?, mine.try_get(3)?);
    let are_all = lives == Lives::OfAllNodes;
    let dead = tx.query(&FENCE_LIVES, [&id, &node, &boot_id, &are_all, &home]).await?;
    let dead: Vec<Uuid> = ids(&dead)?.into_iter().map(Uuid::from_u128).collect();
    let (_, runs, ()) = tokio::try_join!(
        biased;
        tx.query(&TAKE_OVER, [&id, &dead]),
        tx.query(&OPEN_RUNS_OF, [&id]),
        tx.commit(),
    )?;
    run_rows(&runs)
}

async fn beat(tx: &Transaction, me: SessionId) -> Result<Beat, PgError> {
    let id = Uuid::from_u128(me.0);
    tx.ready(&[&CURRENT_EPOCH, &BEAT, &OPEN_RUNS_OF]).await?;
    // The runs are read by a separate statement, after the lock on the session. One statement would see them as they
    // were before it waited for the lock.
    let ((), beaten, runs, epoch_rows, ()) = tokio::try_join!(
        biased;
        tx.begin(),
        tx.query(&BEAT, [&id]),
        tx.query(&OPEN_RUNS_OF, [&id]),
        tx.query(&CURRENT_EPOCH, []),
        tx.commit(),
    )?;
    let current = read_epoch(&epoch_rows)?;
    let Some(beaten) = beaten.first() else { return Ok(Beat::Dead) };
    let is_draining = beaten.try_get(0)?;
    let runs = run_rows(&runs)?;
    Ok(Beat::Alive { epoch: current.epoch, is_open: current.is_open, now: current.now, is_draining, runs })
}

async fn drain(tx: &Transaction, session: SessionId, is_draining: bool) -> Result<bool, PgError> {
    let id = Uuid::from_u128(session.0);
    tx.ready(&[&DRAIN]).await?;
    let ((), found, ()) =
        tokio::try_join!(biased; tx.begin(), tx.query(&DRAIN, [&id, &is_draining]), tx.commit())?;
    Ok(!found.is_empty())
}

async fn leave(tx: &Transaction, me: SessionId) -> Result<bool, PgError> {
    let id = Uuid::from_u128(me.0);
    tx.ready(&[&LEAVE, &IS_FREE]).await?;
    let ((), _, free, ()) = tokio::try_join!(
        biased;
        tx.begin(),
        tx.query(&LEAVE, [&id]),
        tx.query(&IS_FREE, [&id]),
        tx.commit(),
    )?;
    Ok(free.first().ok_or(PgError::Retry)?.try_get(0)?)
}

async fn watch(tx: &Transaction, most_runs: usize) -> Result<Watch, PgError> {
    let most = i64::try_from(most_runs).unwrap_or(i64::MAX);
    tx.ready(&[&CURRENT_EPOCH, &ALIVE, &ORPHANS]).await?;
    let ((), sessions, orphans, epoch_rows, ()) = tokio::try_join!(
        biased;
        tx.begin(),
        tx.query(&ALIVE, []),
        tx.query(&ORPHANS, [&most]),
        tx.query(&CURRENT_EPOCH, []),
        tx.commit(),
    )?;
    let current = read_epoch(&epoch_rows)?;
    let (sessions, orphans) = (session_rows(&sessions)?, run_rows(&orphans)?);
    Ok(Watch { epoch: current.epoch, is_open: current.is_open, now: current.now, sessions, orphans })
}

async fn fence(tx: &Transaction, epoch: Epoch, silent: &[Silent]) -> Result<Vec<Fencing>, PgError> {
    tx.ready(&[&CURRENT_EPOCH, &FENCE]).await?;
    let ((), epoch_rows) = tokio::try_join!(biased; tx.begin(), tx.query(&CURRENT_EPOCH, []))?;
    if !read_epoch(&epoch_rows)?.is_current_and_open(epoch) {
        tx.rollback().await?;
        return Ok(vec![Fencing::Closed; silent.len()]);
    }
    let id: Vec<Uuid> = silent.iter().map(|it| Uuid::from_u128(it.session.0)).collect();
    let beat: Vec<i64> = silent.iter().map(|it| stored_number(it.beat)).collect();
    let (rows, ()) = tokio::try_join!(biased; tx.query(&FENCE, [&id, &beat]), tx.commit())?;
    let mut fenced = BTreeSet::new();
    for row in &rows {
        fenced.insert((row.try_get::<_, Uuid>(0)?.as_u128(), number(row.try_get(1)?)));
    }
    // If a session is named twice, only the first is fenced.
    let answer = |it: &Silent| {
        if fenced.remove(&(it.session.0, it.beat)) { Fencing::Fenced } else { Fencing::NotAsSeen }
    };
    Ok(silent.iter().map(answer).collect())
}
