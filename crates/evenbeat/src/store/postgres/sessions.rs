//! Sessions: who lives, and whose runs are whose.

use std::collections::BTreeSet;

use evenbeat_core::ids::SessionId;
use evenbeat_core::lease::{Epoch, Silent, Timings};
use evenbeat_core::store::{Beat, Fencing, Joined, Lives, RunRow, SessionSpec, StoreDown, Watch};
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::PgStore;
use super::connect::Lane;
use super::epoch::{REIGN, reign};
use super::fail::Fail;
use super::rows::{ids, run_rows, select_open_run, select_session, session_rows};
use super::tx::{Query, Tx, transact};
use crate::store::columns::{number, pools_to_text, stored_number, timings_from_text, timings_to_text};
use crate::store::word::Word;

/// Who a session is, if it lives.
pub(super) static LIVING: Query = Query {
    sql: "SELECT node, name, boot_id, home, is_draining FROM session WHERE id = $1 AND NOT is_dead",
    types: &[Type::UUID],
};

/// Takes a session in; one that is known stays as it is, dead or not.
pub(super) static KNOW: Query = Query {
    sql: "INSERT INTO session (id, node, name, boot_id, kind, pools, home, zone_data, beat, is_dead, is_draining, \
            joined_at, beaten_at) \
          VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 0, false, false, now_ms(), now_ms()) ON CONFLICT DO NOTHING",
    types: &[Type::UUID, Type::TEXT, Type::TEXT, Type::UUID, Type::TEXT, Type::TEXT, Type::UUID, Type::TEXT],
};

static SET_TIMINGS: Query = Query {
    sql: "INSERT INTO setting (name, value) VALUES ('timings', $1) ON CONFLICT DO NOTHING",
    types: &[Type::TEXT],
};
static TIMINGS: Query = Query { sql: "SELECT value FROM setting WHERE name = 'timings'", types: &[] };

static OPEN_RUNS_OF: Query = Query {
    sql: concat!(
        "SELECT ",
        select_open_run!(),
        " FROM open_run o JOIN job j ON j.id = o.job_id WHERE o.session_id = $1 ORDER BY o.id"
    ),
    types: &[Type::UUID],
};

static BEAT: Query = Query {
    sql: "UPDATE session SET beat = beat + 1, beaten_at = now_ms() WHERE id = $1 AND NOT is_dead \
          RETURNING is_draining",
    types: &[Type::UUID],
};

/// The earlier lives of a node, or of all, that are over.
static FENCE_LIVES: Query = Query {
    sql: "UPDATE session SET is_dead = true WHERE NOT is_dead AND id <> $1 AND kind = 'node' \
          AND ($4 OR (node = $2 AND boot_id = $3 AND home = $5)) RETURNING id",
    types: &[Type::UUID, Type::TEXT, Type::UUID, Type::BOOL, Type::UUID],
};
static TAKE_OVER: Query = Query {
    sql: "WITH left_behind AS (SELECT id FROM open_run WHERE session_id = ANY($2) ORDER BY id FOR UPDATE) \
          UPDATE open_run o SET session_id = $1 FROM left_behind WHERE o.id = left_behind.id",
    types: &[Type::UUID, Type::UUID_ARRAY],
};

static DRAIN: Query = Query {
    sql: "UPDATE session SET is_draining = $2 WHERE id = $1 AND NOT is_dead RETURNING id",
    types: &[Type::UUID, Type::BOOL],
};
static IS_FREE: Query =
    Query { sql: "SELECT NOT EXISTS (SELECT FROM open_run WHERE session_id = $1)", types: &[Type::UUID] };
static LEAVE: Query = Query {
    sql: "UPDATE session SET is_dead = true WHERE id = $1 AND NOT is_dead \
          AND NOT EXISTS (SELECT FROM open_run WHERE session_id = $1)",
    types: &[Type::UUID],
};

static ALIVE: Query = Query {
    sql: concat!("SELECT ", select_session!(), " FROM session s WHERE NOT s.is_dead ORDER BY s.id"),
    types: &[],
};
static ORPHANS: Query = Query {
    sql: concat!(
        "SELECT ",
        select_open_run!(),
        " FROM session s JOIN open_run o ON o.session_id = s.id JOIN job j ON j.id = o.job_id \
         WHERE s.is_dead ORDER BY o.id LIMIT $1"
    ),
    types: &[Type::INT8],
};

/// The one race of a watcher with the beat, on the beat's own row.
static FENCE: Query = Query {
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
        transact!(self, Lane::Pool, |tx| join(&tx, session, timings))
    }

    /// A node that was restarted takes over what earlier lives left behind. Returns all open runs of the session.
    pub async fn adopt(&self, me: SessionId, lives: Lives) -> Result<Vec<RunRow>, StoreDown> {
        transact!(self, Lane::Pool, |tx| adopt(&tx, me, lives))
    }

    /// Raises the session's beat unless it is dead, and then reads its open runs; on a connection of its own.
    pub async fn beat(&self, me: SessionId) -> Result<Beat, StoreDown> {
        transact!(self, Lane::Beat, |tx| beat(&tx, me))
    }

    /// Says whether a session still takes new runs.
    pub async fn drain(&self, session: SessionId, is_draining: bool) -> Result<bool, StoreDown> {
        transact!(self, Lane::Pool, |tx| drain(&tx, session, is_draining))
    }

    /// Ends a session that has no open runs; false if it has some.
    pub async fn leave(&self, me: SessionId) -> Result<bool, StoreDown> {
        transact!(self, Lane::Pool, |tx| leave(&tx, me))
    }

    /// Reads all living sessions, the epoch, and open runs of dead sessions, at most so many.
    pub async fn watch(&self, most_runs: usize) -> Result<Watch, StoreDown> {
        transact!(self, Lane::Watch, |tx| watch(&tx, most_runs))
    }

    /// Marks sessions dead whose beat is still the one that was seen; only in the open epoch.
    pub async fn fence(&self, epoch: Epoch, silent: &[Silent]) -> Result<Vec<Fencing>, StoreDown> {
        transact!(self, Lane::Watch, |tx| fence(&tx, epoch, silent))
    }
}

async fn join(tx: &Tx, session: &SessionSpec, timings: &Timings) -> Result<Joined, Fail> {
    tx.ready(&[&REIGN, &SET_TIMINGS, &TIMINGS, &KNOW]).await?;
    let text = timings_to_text(timings);
    let ((), reigning, _, said) = tokio::try_join!(
        biased;
        tx.begin(),
        tx.query(&REIGN, []),
        tx.query(&SET_TIMINGS, [&text]),
        tx.query(&TIMINGS, []),
    )?;
    let reign = reign(&reigning)?;
    let said: &str = said.first().ok_or(Fail::Again)?.try_get(0)?;
    let Some(cluster) = timings_from_text(said) else {
        return Err(Fail::Told(format!("the cluster's timings cannot be read: `{said}`")));
    };
    if cluster != *timings {
        tx.rollback().await?;
        return Ok(Joined::OtherTimings(cluster));
    }
    know(tx, session).await?;
    tx.commit().await?;
    Ok(Joined::Welcome { epoch: reign.epoch, is_open: reign.is_open, now: reign.now })
}

pub(super) async fn know(tx: &Tx, session: &SessionSpec) -> Result<(), Fail> {
    let (id, boot_id) = (Uuid::from_u128(session.id.0), Uuid::from_u128(session.boot_id));
    let pools = pools_to_text(&session.pools);
    let (node, kind) = (session.node.as_str(), session.kind.word());
    let home = Uuid::from_u128(session.home);
    tx.query(&KNOW, [&id, &node, &session.name, &boot_id, &kind, &pools, &home, &session.zone_data]).await?;
    Ok(())
}

async fn adopt(tx: &Tx, me: SessionId, lives: Lives) -> Result<Vec<RunRow>, Fail> {
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

async fn beat(tx: &Tx, me: SessionId) -> Result<Beat, Fail> {
    let id = Uuid::from_u128(me.0);
    tx.ready(&[&REIGN, &BEAT, &OPEN_RUNS_OF]).await?;
    // The runs are read by a statement of its own, whose look is later than the wait for the session's row: who
    // waited for that row must not see runs as they were before.
    let ((), beaten, runs, reigning, ()) = tokio::try_join!(
        biased;
        tx.begin(),
        tx.query(&BEAT, [&id]),
        tx.query(&OPEN_RUNS_OF, [&id]),
        tx.query(&REIGN, []),
        tx.commit(),
    )?;
    let reign = reign(&reigning)?;
    let Some(beaten) = beaten.first() else { return Ok(Beat::Dead) };
    let is_draining = beaten.try_get(0)?;
    let runs = run_rows(&runs)?;
    Ok(Beat::Alive { epoch: reign.epoch, is_open: reign.is_open, now: reign.now, is_draining, runs })
}

async fn drain(tx: &Tx, session: SessionId, is_draining: bool) -> Result<bool, Fail> {
    let id = Uuid::from_u128(session.0);
    tx.ready(&[&DRAIN]).await?;
    let ((), found, ()) =
        tokio::try_join!(biased; tx.begin(), tx.query(&DRAIN, [&id, &is_draining]), tx.commit())?;
    Ok(!found.is_empty())
}

async fn leave(tx: &Tx, me: SessionId) -> Result<bool, Fail> {
    let id = Uuid::from_u128(me.0);
    tx.ready(&[&LEAVE, &IS_FREE]).await?;
    let ((), _, free, ()) = tokio::try_join!(
        biased;
        tx.begin(),
        tx.query(&LEAVE, [&id]),
        tx.query(&IS_FREE, [&id]),
        tx.commit(),
    )?;
    Ok(free.first().ok_or(Fail::Again)?.try_get(0)?)
}

async fn watch(tx: &Tx, most_runs: usize) -> Result<Watch, Fail> {
    let most = i64::try_from(most_runs).unwrap_or(i64::MAX);
    tx.ready(&[&REIGN, &ALIVE, &ORPHANS]).await?;
    let ((), sessions, orphans, reigning, ()) = tokio::try_join!(
        biased;
        tx.begin(),
        tx.query(&ALIVE, []),
        tx.query(&ORPHANS, [&most]),
        tx.query(&REIGN, []),
        tx.commit(),
    )?;
    let reign = reign(&reigning)?;
    let (sessions, orphans) = (session_rows(&sessions)?, run_rows(&orphans)?);
    Ok(Watch { epoch: reign.epoch, is_open: reign.is_open, now: reign.now, sessions, orphans })
}

async fn fence(tx: &Tx, epoch: Epoch, silent: &[Silent]) -> Result<Vec<Fencing>, Fail> {
    tx.ready(&[&REIGN, &FENCE]).await?;
    let ((), reigning) = tokio::try_join!(biased; tx.begin(), tx.query(&REIGN, []))?;
    if !reign(&reigning)?.is_current_and_open(epoch) {
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
    // Named twice, a session dies once.
    let answer = |it: &Silent| {
        if fenced.remove(&(it.session.0, it.beat)) { Fencing::Fenced } else { Fencing::NotAsSeen }
    };
    Ok(silent.iter().map(answer).collect())
}
