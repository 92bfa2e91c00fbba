//! Incidents, messages and mutes on a server.

use evenbeat_core::alert::{Incident, Mute};
use evenbeat_core::store::StoreDown;
use evenbeat_core::time::{Duration, Timestamp};
use tokio_postgres::Row;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::PgStore;
use super::connect::ConnectionUse;
use super::error::PgError;
use super::transaction::{Param, Statement, Transaction, transact};
use super::views::{limit, read};
use crate::store::alert_rows::{
    self, ALERT_LEASE, AlertLease, AttemptResult, DeliveryColumns, DeliveryRow, IncidentWrite, NewDelivery,
};
use crate::store::columns::number;

static LOOKED_AT: Statement = Statement { sql: "SELECT looked_at FROM alert_lease WHERE no = 1", types: &[] };
static TAKE_LEASE: Statement = Statement {
    sql: "INSERT INTO alert_lease AS l (no, holder, held_until, looked_at) VALUES (1, $1, now_ms() + $2, now_ms()) \
          ON CONFLICT (no) DO UPDATE SET holder = excluded.holder, held_until = excluded.held_until, \
          looked_at = excluded.looked_at WHERE l.holder = excluded.holder OR l.held_until <= excluded.looked_at \
          RETURNING no",
    types: &[Type::UUID, Type::INT8],
};
static HOLD_LEASE: Statement = Statement {
    sql: "SELECT no FROM alert_lease WHERE no = 1 AND holder = $1 AND now_ms() < held_until FOR UPDATE",
    types: &[Type::UUID],
};
static PUT_INCIDENTS: Statement = Statement {
    sql: "INSERT INTO incident (subject, opened_at, cause, severity, closed_at, is_settled, detail) \
          SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[], $4::text[], $5::bigint[], $6::boolean[], $7::text[]) \
          ON CONFLICT (subject, opened_at) DO UPDATE SET cause = excluded.cause, severity = excluded.severity, \
          closed_at = excluded.closed_at, is_settled = excluded.is_settled, detail = excluded.detail",
    types: &[
        Type::TEXT_ARRAY,
        Type::INT8_ARRAY,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::INT8_ARRAY,
        Type::BOOL_ARRAY,
        Type::TEXT_ARRAY,
    ],
};
static PUT_DELIVERIES: Statement = Statement {
    sql: "INSERT INTO alert_delivery \
          (id, channel, created_at, payload, state, attempts, next_try_at, claimed_until) \
          SELECT u.id, u.channel, now_ms(), u.payload, 'pending', 0, now_ms(), 0 \
          FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS u(id, channel, payload, turn) \
          ORDER BY u.turn ON CONFLICT (channel, id) DO NOTHING",
    types: &[Type::TEXT_ARRAY, Type::TEXT_ARRAY, Type::TEXT_ARRAY],
};

macro_rules! delivery_columns {
    () => {
        "no, id, channel, created_at, payload, state, attempts, next_try_at, last_try_at, answer, done_at"
    };
}

/// Of two nodes that ask at once, the second waits for the first and then finds the messages taken.
static CLAIM: Statement = Statement {
    sql: concat!(
        "UPDATE alert_delivery SET attempts = attempts + 1, claimed_by = $1, claimed_until = now_ms() + $2, \
         last_try_at = now_ms() WHERE no IN \
         (SELECT min(no) FROM alert_delivery WHERE state = 'pending' GROUP BY channel) \
         AND state = 'pending' AND next_try_at <= now_ms() AND claimed_until <= now_ms() RETURNING ",
        delivery_columns!()
    ),
    types: &[Type::UUID, Type::INT8],
};
static FINISH: Statement = Statement {
    sql: "UPDATE alert_delivery SET state = $3, next_try_at = now_ms() + $4, claimed_until = 0, answer = $5, \
          done_at = CASE WHEN $3 = 'pending' THEN NULL ELSE now_ms() END \
          WHERE no = $1 AND attempts = $2 AND state = 'pending' RETURNING no",
    types: &[Type::INT8, Type::INT8, Type::TEXT, Type::INT8, Type::TEXT],
};
static RELEASE: Statement = Statement {
    sql: "UPDATE alert_delivery SET claimed_until = 0 WHERE state = 'pending' AND claimed_by = $1",
    types: &[Type::UUID],
};
static UNSETTLED: Statement = Statement {
    sql: "SELECT subject, opened_at, cause, severity, detail FROM incident WHERE NOT is_settled \
          ORDER BY subject, opened_at LIMIT $1",
    types: &[Type::INT8],
};
static N_OPEN_INCIDENTS: Statement = Statement {
    sql: "SELECT count(*) FROM (SELECT 1 FROM incident WHERE NOT is_settled AND closed_at IS NULL LIMIT $1) AS open",
    types: &[Type::INT8],
};
static INCIDENTS: Statement = Statement {
    sql: "SELECT subject, opened_at, cause, severity, detail FROM incident \
          WHERE (closed_at IS NULL) = $1 AND (opened_at, subject) < ($2, $3 COLLATE \"C\") \
          ORDER BY opened_at DESC, subject DESC LIMIT $4",
    types: &[Type::BOOL, Type::INT8, Type::TEXT, Type::INT8],
};
static DELIVERIES: Statement = Statement {
    sql: concat!(
        "SELECT ",
        delivery_columns!(),
        " FROM alert_delivery WHERE no < $1 ORDER BY no DESC LIMIT $2"
    ),
    types: &[Type::INT8, Type::INT8],
};
static RECENT: Statement = Statement {
    sql: "SELECT channel, created_at FROM alert_delivery WHERE $1 <= created_at ORDER BY created_at DESC LIMIT $2",
    types: &[Type::INT8, Type::INT8],
};
static PUT_MUTE: Statement = Statement {
    sql: "INSERT INTO mute (id, scope, value, starts_at, ends_at, reason, actor) VALUES ($1, $2, $3, $4, $5, $6, $7)",
    types: &[Type::UUID, Type::TEXT, Type::TEXT, Type::INT8, Type::INT8, Type::TEXT, Type::TEXT],
};
static REMOVE_MUTE: Statement =
    Statement { sql: "DELETE FROM mute WHERE id = $1 RETURNING id", types: &[Type::UUID] };
static MUTES: Statement = Statement {
    sql: "SELECT id, scope, value, starts_at, ends_at, reason, actor FROM mute ORDER BY ends_at DESC, id LIMIT $1",
    types: &[Type::INT8],
};
static TRIM: Statement = Statement {
    sql: "WITH deliveries AS (DELETE FROM alert_delivery WHERE no IN (SELECT no FROM alert_delivery \
            WHERE created_at < now_ms() - $1 AND state <> 'pending' ORDER BY created_at LIMIT $2) RETURNING 1), \
          incidents AS (DELETE FROM incident WHERE (subject, opened_at) IN (SELECT subject, opened_at FROM incident \
            WHERE is_settled AND closed_at < now_ms() - $1 ORDER BY opened_at LIMIT $2) RETURNING 1), \
          mutes AS (DELETE FROM mute WHERE ends_at < now_ms() - $1 RETURNING 1) \
          SELECT greatest((SELECT count(*) FROM deliveries), (SELECT count(*) FROM incidents), \
          (SELECT count(*) FROM mutes))",
    types: &[Type::INT8, Type::INT8],
};

fn delivery(row: &Row) -> Result<DeliveryRow, PgError> {
    let columns = DeliveryColumns {
        no: row.try_get(0)?,
        id: row.try_get(1)?,
        channel: row.try_get(2)?,
        created_at: row.try_get(3)?,
        payload: row.try_get(4)?,
        state: row.try_get(5)?,
        attempts: row.try_get(6)?,
        next_try_at: row.try_get(7)?,
        last_try_at: row.try_get(8)?,
        answer: row.try_get(9)?,
        done_at: row.try_get(10)?,
    };
    Ok(columns.into())
}

fn incident(row: &Row) -> Result<Option<Incident>, PgError> {
    let (subject, opened_at, cause): (&str, i64, &str) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
    let (severity, detail): (&str, &str) = (row.try_get(3)?, row.try_get(4)?);
    Ok(alert_rows::incident(subject, opened_at, cause, severity, detail))
}

fn mute(row: &Row) -> Result<Option<Mute>, PgError> {
    let id: Uuid = row.try_get(0)?;
    let (scope, value): (&str, &str) = (row.try_get(1)?, row.try_get(2)?);
    let (times, about) = ((row.try_get(3)?, row.try_get(4)?), (row.try_get(5)?, row.try_get(6)?));
    Ok(alert_rows::mute(id.as_u128(), (scope, value), times, about))
}

/// Runs one statement as a transaction.
async fn ask(tx: &Transaction, statement: &Statement, params: &[Param<'_>]) -> Result<Vec<Row>, PgError> {
    tx.ready(&[statement]).await?;
    let ((), rows, ()) = tokio::try_join!(biased; tx.begin(), tx.query_all(statement, params), tx.commit())?;
    Ok(rows)
}

impl PgStore {
    /// Takes or keeps the right to alert, and notes that someone looks.
    pub async fn take_alert_lease(&self, me: u128) -> Result<AlertLease, StoreDown> {
        let (me, length) = (Uuid::from_u128(me), ALERT_LEASE.as_millis());
        let (before, taken) = transact!(self, ConnectionUse::Write, |tx| async {
            tx.ready(&[&LOOKED_AT, &TAKE_LEASE]).await?;
            let ((), before, taken, ()) = tokio::try_join!(
                biased;
                tx.begin(),
                tx.query(&LOOKED_AT, []),
                tx.query(&TAKE_LEASE, [&me, &length]),
                tx.commit(),
            )?;
            Ok((before, taken))
        })?;
        let looked_at = read(&before, |row| Ok(Timestamp::from_millis(row.try_get(0)?)))?;
        Ok(AlertLease { is_mine: !taken.is_empty(), looked_at: looked_at.first().copied() })
    }

    /// Stores incidents and messages, all or none. `me` must hold the lease, unless the messages are about events.
    pub async fn put_alerts(
        &self,
        me: Option<u128>,
        incidents: &[IncidentWrite],
        deliveries: &[NewDelivery],
    ) -> Result<bool, StoreDown> {
        transact!(self, ConnectionUse::Write, |tx| put_alerts(&tx, me, incidents, deliveries))
    }

    /// Takes the next message of each channel that is due, for a while. No other node gets it meanwhile.
    pub async fn claim_deliveries(
        &self,
        me: u128,
        keep_for: Duration,
    ) -> Result<Vec<DeliveryRow>, StoreDown> {
        let (me, length) = (Uuid::from_u128(me), keep_for.as_millis());
        let rows = transact!(self, ConnectionUse::Write, |tx| ask(&tx, &CLAIM, &[&me, &length]))?;
        let mut claimed = read(&rows, delivery)?;
        claimed.sort_by_key(|it| it.no);
        Ok(claimed)
    }

    /// Notes what came of an attempt. False if another node has taken the message meanwhile.
    pub async fn finish_delivery(
        &self,
        no: i64,
        attempt: u32,
        result: &AttemptResult,
        answer: &str,
    ) -> Result<bool, StoreDown> {
        let (attempt, pause) = (i64::from(attempt), result.pause_ms());
        let (state, answer) = (result.state().as_str(), alert_rows::stored_answer(answer));
        let params: [Param<'_>; 5] = [&no, &attempt, &state, &pause, &answer];
        let rows = transact!(self, ConnectionUse::Write, |tx| ask(&tx, &FINISH, &params))?;
        Ok(!rows.is_empty())
    }

    /// Gives back what an earlier process of this node had taken.
    pub async fn release_deliveries(&self, me: u128) -> Result<(), StoreDown> {
        let me = Uuid::from_u128(me);
        transact!(self, ConnectionUse::Write, |tx| ask(&tx, &RELEASE, &[&me])).map(drop)
    }

    /// Incidents that are not settled.
    pub async fn unsettled_incidents(&self, most: usize) -> Result<Vec<Incident>, StoreDown> {
        let most = limit(most);
        let rows = transact!(self, ConnectionUse::Read, |tx| ask(&tx, &UNSETTLED, &[&most]))?;
        Ok(read(&rows, incident)?.into_iter().flatten().collect())
    }

    /// The number of open incidents, counted up to `most`. What is open is not settled, and an index has what is not.
    pub async fn n_open_incidents(&self, most: usize) -> Result<u64, StoreDown> {
        let most = limit(most);
        let rows = transact!(self, ConnectionUse::Read, |tx| ask(&tx, &N_OPEN_INCIDENTS, &[&most]))?;
        let counts = read(&rows, |row| Ok(number(row.try_get(0)?)))?;
        Ok(counts.into_iter().sum())
    }

    /// Open or ended incidents before a place in the list, the latest first.
    pub async fn incidents(
        &self,
        is_open: bool,
        before: Option<&(Timestamp, String)>,
        most: usize,
    ) -> Result<Vec<Incident>, StoreDown> {
        let (at, subject) = before.map_or((i64::MAX, ""), |(at, subject)| (at.as_millis(), subject.as_str()));
        let most = limit(most);
        let params: [Param<'_>; 4] = [&is_open, &at, &subject, &most];
        let rows = transact!(self, ConnectionUse::Read, |tx| ask(&tx, &INCIDENTS, &params))?;
        Ok(read(&rows, incident)?.into_iter().flatten().collect())
    }

    /// Messages before a number, the latest first.
    pub async fn deliveries(&self, before: Option<i64>, most: usize) -> Result<Vec<DeliveryRow>, StoreDown> {
        let (before, most) = (before.unwrap_or(i64::MAX), limit(most));
        let rows = transact!(self, ConnectionUse::Read, |tx| ask(&tx, &DELIVERIES, &[&before, &most]))?;
        read(&rows, delivery)
    }

    /// Which channels got messages since an instant, and when.
    pub async fn recent_deliveries(
        &self,
        since: Timestamp,
        most: usize,
    ) -> Result<Vec<(String, Timestamp)>, StoreDown> {
        let (since, most) = (since.as_millis(), limit(most));
        let rows = transact!(self, ConnectionUse::Read, |tx| ask(&tx, &RECENT, &[&since, &most]))?;
        read(&rows, |row| Ok((row.try_get(0)?, Timestamp::from_millis(row.try_get(1)?))))
    }

    /// Stores a mute.
    pub async fn put_mute(&self, mute: &Mute) -> Result<(), StoreDown> {
        let (scope, value) = mute.scope.parts();
        let (id, starts_at, ends_at) =
            (Uuid::from_u128(mute.id), mute.starts_at.as_millis(), mute.ends_at.as_millis());
        let params: [Param<'_>; 7] = [&id, &scope, &value, &starts_at, &ends_at, &mute.reason, &mute.actor];
        transact!(self, ConnectionUse::Write, |tx| ask(&tx, &PUT_MUTE, &params)).map(drop)
    }

    /// Removes a mute. False if there is none of this id.
    pub async fn remove_mute(&self, id: u128) -> Result<bool, StoreDown> {
        let id = Uuid::from_u128(id);
        let rows = transact!(self, ConnectionUse::Write, |tx| ask(&tx, &REMOVE_MUTE, &[&id]))?;
        Ok(!rows.is_empty())
    }

    /// Mutes, the one that ends last first.
    pub async fn mutes(&self, most: usize) -> Result<Vec<Mute>, StoreDown> {
        let most = limit(most);
        let rows = transact!(self, ConnectionUse::Read, |tx| ask(&tx, &MUTES, &[&most]))?;
        Ok(read(&rows, mute)?.into_iter().flatten().collect())
    }

    /// Removes what ended before the time for which it is kept, a few of each kind at a time.
    pub async fn trim_alerts(&self, keep_for: Duration, most: usize) -> Result<usize, StoreDown> {
        let (keep_for, most) = (keep_for.as_millis(), limit(most));
        let rows = transact!(self, ConnectionUse::Write, |tx| ask(&tx, &TRIM, &[&keep_for, &most]))?;
        let n_gone: Vec<i64> = read(&rows, |row| Ok(row.try_get(0)?))?;
        Ok(n_gone.first().and_then(|n| usize::try_from(*n).ok()).unwrap_or(0))
    }
}

async fn put_alerts(
    tx: &Transaction,
    me: Option<u128>,
    incidents: &[IncidentWrite],
    deliveries: &[NewDelivery],
) -> Result<bool, PgError> {
    tx.begin().await?;
    if let Some(me) = me
        && tx.query(&HOLD_LEASE, [&Uuid::from_u128(me)]).await?.is_empty()
    {
        tx.rollback().await?;
        return Ok(false);
    }
    if !incidents.is_empty() {
        let all = || incidents.iter().map(|it| &it.incident);
        let subject: Vec<String> = all().map(|it| it.subject.to_string()).collect();
        let opened_at: Vec<i64> = all().map(|it| it.opened_at.as_millis()).collect();
        let cause: Vec<&str> = all().map(|it| it.cause.as_str()).collect();
        let severity: Vec<&str> = all().map(|it| it.severity.as_str()).collect();
        let closed_at: Vec<Option<i64>> = all().map(|it| it.closed.map(|(at, _)| at.as_millis())).collect();
        let is_settled: Vec<bool> = incidents.iter().map(|it| it.is_settled).collect();
        let detail: Vec<String> = all().map(alert_rows::detail).collect();
        let params: [Param<'_>; 7] =
            [&subject, &opened_at, &cause, &severity, &closed_at, &is_settled, &detail];
        tx.query(&PUT_INCIDENTS, params).await?;
    }
    if !deliveries.is_empty() {
        let id: Vec<&str> = deliveries.iter().map(|it| it.id.as_str()).collect();
        let channel: Vec<&str> = deliveries.iter().map(|it| it.channel.as_str()).collect();
        let payload: Vec<&str> = deliveries.iter().map(|it| it.payload.as_str()).collect();
        tx.query(&PUT_DELIVERIES, [&id, &channel, &payload]).await?;
    }
    tx.commit().await?;
    Ok(true)
}
