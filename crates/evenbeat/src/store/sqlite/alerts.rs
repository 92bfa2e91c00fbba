//! Incidents, messages and mutes in a file.

use evenbeat_core::alert::{Incident, Mute};
use evenbeat_core::store::StoreDown;
use evenbeat_core::time::{Duration, Timestamp};
use rusqlite::{OptionalExtension, Result, Row, params};

use super::feed::limit;
use super::read_tx::ReadTx;
use super::rows::{Id, id};
use super::write_tx::WriteTx;
use crate::store::alert_rows::{
    self, ALERT_LEASE, AlertLease, AttemptResult, DeliveryColumns, DeliveryRow, IncidentWrite, NewDelivery,
};
use crate::store::columns::number;

macro_rules! delivery_sql {
    ($rest:literal) => {
        concat!(
            "SELECT no, id, channel, created_at, payload, state, attempts, next_try_at, last_try_at, answer, done_at \
             FROM alert_delivery ",
            $rest
        )
    };
}

fn delivery(row: &Row<'_>) -> Result<DeliveryRow> {
    let columns = DeliveryColumns {
        no: row.get(0)?,
        id: row.get(1)?,
        channel: row.get(2)?,
        created_at: row.get(3)?,
        payload: row.get(4)?,
        state: row.get(5)?,
        attempts: row.get(6)?,
        next_try_at: row.get(7)?,
        last_try_at: row.get(8)?,
        answer: row.get(9)?,
        done_at: row.get(10)?,
    };
    Ok(columns.into())
}

fn incident(row: &Row<'_>) -> Result<Option<Incident>> {
    let (subject, opened_at, cause): (String, i64, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
    let (severity, detail): (String, String) = (row.get(3)?, row.get(4)?);
    Ok(alert_rows::incident(&subject, opened_at, &cause, &severity, &detail))
}

impl WriteTx<'_> {
    /// Takes or keeps the right to alert, and notes that someone looks.
    pub fn take_alert_lease(&mut self, me: u128) -> Result<AlertLease, StoreDown> {
        let taken = self.do_take_alert_lease(me);
        self.or_down(taken)
    }

    fn do_take_alert_lease(&mut self, me: u128) -> Result<AlertLease> {
        let sql = "SELECT looked_at FROM alert_lease WHERE no = 1";
        let looked_at: Option<i64> = self.read.one(sql, [], |row| row.get(0)).optional()?;
        let (now, until) = (self.now.as_millis(), (self.now + ALERT_LEASE).as_millis());
        let n_taken = self.run(
            "INSERT INTO alert_lease (no, holder, held_until, looked_at) VALUES (1, ?1, ?2, ?3)
             ON CONFLICT (no) DO UPDATE SET holder = ?1, held_until = ?2, looked_at = ?3
             WHERE holder = ?1 OR held_until <= ?3",
            params![Id::of(me), until, now],
        )?;
        Ok(AlertLease { is_mine: n_taken == 1, looked_at: looked_at.map(Timestamp::from_millis) })
    }

    /// Stores incidents and messages, all or none. `me` must hold the lease, unless the messages are about events.
    pub fn put_alerts(
        &mut self,
        me: Option<u128>,
        incidents: &[IncidentWrite],
        deliveries: &[NewDelivery],
    ) -> Result<bool, StoreDown> {
        let put = self.do_put_alerts(me, incidents, deliveries);
        self.or_down(put)
    }

    fn do_put_alerts(
        &mut self,
        me: Option<u128>,
        incidents: &[IncidentWrite],
        deliveries: &[NewDelivery],
    ) -> Result<bool> {
        let now = self.now.as_millis();
        if let Some(me) = me {
            let sql = "SELECT 1 FROM alert_lease WHERE no = 1 AND holder = ?1 AND ?2 < held_until";
            if self.read.one(sql, params![Id::of(me), now], |_| Ok(())).optional()?.is_none() {
                return Ok(false);
            }
        }
        for IncidentWrite { incident, is_settled } in incidents {
            self.run(
                "INSERT INTO incident (subject, opened_at, cause, severity, closed_at, is_settled, detail)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (subject, opened_at) DO UPDATE SET
                 cause = ?3, severity = ?4, closed_at = ?5, is_settled = ?6, detail = ?7",
                params![
                    incident.subject.to_string(),
                    incident.opened_at.as_millis(),
                    incident.cause.as_str(),
                    incident.severity.as_str(),
                    incident.closed.map(|(at, _)| at.as_millis()),
                    is_settled,
                    alert_rows::detail(incident),
                ],
            )?;
        }
        for NewDelivery { id, channel, payload } in deliveries {
            self.run(
                "INSERT INTO alert_delivery
                 (no, id, channel, created_at, payload, state, attempts, next_try_at, claimed_until)
                 VALUES ((SELECT coalesce(max(no), 0) + 1 FROM alert_delivery), ?1, ?2, ?3, ?4, 'pending', 0, ?3, 0)
                 ON CONFLICT (channel, id) DO NOTHING",
                params![id, channel, now, payload],
            )?;
        }
        Ok(true)
    }

    /// Takes the next message of each channel that is due, for a while. No other node gets it meanwhile.
    pub fn claim_deliveries(&mut self, me: u128, keep_for: Duration) -> Result<Vec<DeliveryRow>, StoreDown> {
        let claimed = self.do_claim_deliveries(me, keep_for);
        self.or_down(claimed)
    }

    fn do_claim_deliveries(&mut self, me: u128, keep_for: Duration) -> Result<Vec<DeliveryRow>> {
        let (now, until) = (self.now.as_millis(), (self.now + keep_for).as_millis());
        let due: Vec<i64> = self.read.many(
            "SELECT no FROM alert_delivery WHERE no IN
             (SELECT min(no) FROM alert_delivery WHERE state = 'pending' GROUP BY channel)
             AND next_try_at <= ?1 AND claimed_until <= ?1 ORDER BY no",
            [now],
            |row| row.get(0),
        )?;
        let mut claimed = Vec::with_capacity(due.len());
        for no in due {
            self.run(
                "UPDATE alert_delivery SET attempts = attempts + 1, claimed_by = ?2, claimed_until = ?3, last_try_at = ?4
                 WHERE no = ?1",
                params![no, Id::of(me), until, now],
            )?;
            claimed.push(self.read.one(delivery_sql!("WHERE no = ?1"), [no], delivery)?);
        }
        Ok(claimed)
    }

    /// Notes what came of an attempt. False if another node has taken the message meanwhile.
    pub fn finish_delivery(
        &mut self,
        no: i64,
        attempt: u32,
        result: &AttemptResult,
        answer: &str,
    ) -> Result<bool, StoreDown> {
        let now = self.now.as_millis();
        let done_at = (!matches!(result, AttemptResult::Again(_))).then_some(now);
        let finished = self.run(
            "UPDATE alert_delivery SET state = ?3, next_try_at = ?4, claimed_until = 0, answer = ?5, done_at = ?6
             WHERE no = ?1 AND attempts = ?2 AND state = 'pending'",
            params![
                no,
                i64::from(attempt),
                result.state().as_str(),
                now + result.pause_ms(),
                alert_rows::stored_answer(answer),
                done_at
            ],
        );
        self.or_down(finished).map(|n_finished| n_finished == 1)
    }

    /// Gives back what an earlier process of this node had taken.
    pub fn release_deliveries(&mut self, me: u128) -> Result<(), StoreDown> {
        let released = self.run(
            "UPDATE alert_delivery SET claimed_until = 0 WHERE state = 'pending' AND claimed_by = ?1",
            [Id::of(me)],
        );
        self.or_down(released).map(drop)
    }

    /// Stores a mute.
    pub fn put_mute(&mut self, mute: &Mute) -> Result<(), StoreDown> {
        let (scope, value) = mute.scope.parts();
        let (starts_at, ends_at) = (mute.starts_at.as_millis(), mute.ends_at.as_millis());
        let put = self.run(
            "INSERT INTO mute (id, scope, value, starts_at, ends_at, reason, actor)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            params![Id::of(mute.id), scope, value, starts_at, ends_at, mute.reason, mute.actor],
        );
        self.or_down(put).map(drop)
    }

    /// Removes a mute. False if there is none of this id.
    pub fn remove_mute(&mut self, id: u128) -> Result<bool, StoreDown> {
        let removed = self.run("DELETE FROM mute WHERE id = ?1", [Id::of(id)]);
        self.or_down(removed).map(|n_removed| n_removed == 1)
    }

    /// Removes what ended before the time for which it is kept, a few of each kind at a time.
    pub fn trim_alerts(&mut self, keep_for: Duration, most: usize) -> Result<usize, StoreDown> {
        let before = (self.now - keep_for).as_millis();
        let trimmed = self.do_trim_alerts(before, most);
        self.or_down(trimmed)
    }

    fn do_trim_alerts(&mut self, before: i64, most: usize) -> Result<usize> {
        let n_deliveries = self.run(
            "DELETE FROM alert_delivery WHERE no IN (SELECT no FROM alert_delivery
             WHERE created_at < ?1 AND state <> 'pending' ORDER BY created_at LIMIT ?2)",
            params![before, limit(most)],
        )?;
        let n_incidents = self.run(
            "DELETE FROM incident WHERE (subject, opened_at) IN (SELECT subject, opened_at FROM incident
             WHERE is_settled = 1 AND closed_at < ?1 ORDER BY opened_at LIMIT ?2)",
            params![before, limit(most)],
        )?;
        let n_mutes = self.run("DELETE FROM mute WHERE ends_at < ?1", [before])?;
        Ok(n_deliveries.max(n_incidents).max(n_mutes))
    }
}

impl ReadTx<'_> {
    /// Incidents that are not settled.
    pub fn unsettled_incidents(&self, most: usize) -> Result<Vec<Incident>, StoreDown> {
        let sql = "SELECT subject, opened_at, cause, severity, detail FROM incident WHERE is_settled = 0
                   ORDER BY subject, opened_at LIMIT ?1";
        let rows = self.or_down(self.many(sql, [limit(most)], incident))?;
        Ok(rows.into_iter().flatten().collect())
    }

    /// The number of open incidents, counted up to `most`. What is open is not settled, and an index has what is not.
    pub fn n_open_incidents(&self, most: usize) -> Result<u64, StoreDown> {
        let sql = "SELECT count(*) FROM (SELECT 1 FROM incident INDEXED BY incident_unsettled
                   WHERE is_settled = 0 AND closed_at IS NULL LIMIT ?1)";
        self.or_down(self.one(sql, params![limit(most)], |row| row.get(0)).map(number))
    }

    /// Open or ended incidents before a place in the list, the latest first.
    pub fn incidents(
        &self,
        is_open: bool,
        before: Option<&(Timestamp, String)>,
        most: usize,
    ) -> Result<Vec<Incident>, StoreDown> {
        let sql = "SELECT subject, opened_at, cause, severity, detail FROM incident
                   WHERE (closed_at IS NULL) = ?1 AND (opened_at, subject) < (?2, ?3)
                   ORDER BY opened_at DESC, subject DESC LIMIT ?4";
        let (at, subject) = before.map_or((i64::MAX, ""), |(at, subject)| (at.as_millis(), subject.as_str()));
        let rows = self.or_down(self.many(sql, params![is_open, at, subject, limit(most)], incident))?;
        Ok(rows.into_iter().flatten().collect())
    }

    /// Messages before a number, the latest first.
    pub fn deliveries(&self, before: Option<i64>, most: usize) -> Result<Vec<DeliveryRow>, StoreDown> {
        let sql = delivery_sql!("WHERE no < ?1 ORDER BY no DESC LIMIT ?2");
        self.or_down(self.many(sql, params![before.unwrap_or(i64::MAX), limit(most)], delivery))
    }

    /// Which channels got messages since an instant, and when.
    pub fn recent_deliveries(
        &self,
        since: Timestamp,
        most: usize,
    ) -> Result<Vec<(String, Timestamp)>, StoreDown> {
        let sql = "SELECT channel, created_at FROM alert_delivery WHERE ?1 <= created_at
                   ORDER BY created_at DESC LIMIT ?2";
        self.or_down(self.many(sql, params![since.as_millis(), limit(most)], |row| {
            Ok((row.get(0)?, Timestamp::from_millis(row.get(1)?)))
        }))
    }

    /// Mutes, the one that ends last first.
    pub fn mutes(&self, most: usize) -> Result<Vec<Mute>, StoreDown> {
        let sql = "SELECT id, scope, value, starts_at, ends_at, reason, actor FROM mute
                   ORDER BY ends_at DESC, id LIMIT ?1";
        let rows = self.or_down(self.many(sql, [limit(most)], |row| {
            let (scope, value): (String, String) = (row.get(1)?, row.get(2)?);
            let (times, about) = ((row.get(3)?, row.get(4)?), (row.get(5)?, row.get(6)?));
            Ok(alert_rows::mute(id(row, 0)?, (&scope, &value), times, about))
        }))?;
        Ok(rows.into_iter().flatten().collect())
    }
}
