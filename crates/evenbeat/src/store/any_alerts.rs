//! Incidents, messages and mutes of the configured store.

use evenbeat_core::alert::{Incident, Mute};
use evenbeat_core::store::StoreDown;
use evenbeat_core::time::{Duration, Timestamp};

use super::alert_rows::{AlertLease, AttemptResult, DeliveryRow, IncidentWrite, NewDelivery};
use super::any::{AnyStore, look, write};

impl AnyStore {
    /// Takes or keeps the right to alert, for this data directory, and notes that someone looks.
    pub async fn take_alert_lease(&self, me: u128) -> Result<AlertLease, StoreDown> {
        write!(self, |tx| tx.take_alert_lease(me), |server| server.take_alert_lease(me))
    }

    /// Stores incidents and messages, all or none. `me` must hold the lease, unless the messages are about events.
    pub async fn put_alerts(
        &self,
        me: Option<u128>,
        incidents: Vec<IncidentWrite>,
        deliveries: Vec<NewDelivery>,
    ) -> Result<bool, StoreDown> {
        write!(self, |tx| tx.put_alerts(me, &incidents, &deliveries), |server| server.put_alerts(
            me,
            &incidents,
            &deliveries
        ))
    }

    /// Takes the next message of each channel that is due.
    pub async fn claim_deliveries(
        &self,
        me: u128,
        keep_for: Duration,
    ) -> Result<Vec<DeliveryRow>, StoreDown> {
        write!(self, |tx| tx.claim_deliveries(me, keep_for), |server| server.claim_deliveries(me, keep_for))
    }

    /// Notes what came of an attempt.
    pub async fn finish_delivery(
        &self,
        no: i64,
        attempt: u32,
        result: AttemptResult,
        answer: String,
    ) -> Result<bool, StoreDown> {
        write!(self, |tx| tx.finish_delivery(no, attempt, &result, &answer), |server| server
            .finish_delivery(no, attempt, &result, &answer))
    }

    /// Gives back what an earlier process of this node had taken.
    pub async fn release_deliveries(&self, me: u128) -> Result<(), StoreDown> {
        write!(self, |tx| tx.release_deliveries(me), |server| server.release_deliveries(me))
    }

    /// Stores a mute.
    pub async fn put_mute(&self, mute: Mute) -> Result<(), StoreDown> {
        write!(self, |tx| tx.put_mute(&mute), |server| server.put_mute(&mute))
    }

    /// Removes a mute. False if there is none of this id.
    pub async fn remove_mute(&self, id: u128) -> Result<bool, StoreDown> {
        write!(self, |tx| tx.remove_mute(id), |server| server.remove_mute(id))
    }

    /// Removes what ended before the time for which it is kept. Returns how much at most of one kind.
    pub async fn trim_alerts(&self, keep_for: Duration, most: usize) -> Result<usize, StoreDown> {
        write!(self, |tx| tx.trim_alerts(keep_for, most), |server| server.trim_alerts(keep_for, most))
    }

    /// Incidents that are not settled.
    pub async fn unsettled_incidents(&self, most: usize) -> Result<Vec<Incident>, StoreDown> {
        look!(self, |tx| tx.unsettled_incidents(most), |server| server.unsettled_incidents(most))
    }

    /// The number of open incidents, counted up to `most`.
    pub async fn n_open_incidents(&self, most: usize) -> Result<u64, StoreDown> {
        look!(self, |tx| tx.n_open_incidents(most), |server| server.n_open_incidents(most))
    }

    /// Open or ended incidents before a place in the list, the latest first.
    pub async fn incidents(
        &self,
        is_open: bool,
        before: Option<(Timestamp, String)>,
        most: usize,
    ) -> Result<Vec<Incident>, StoreDown> {
        look!(self, |tx| tx.incidents(is_open, before.as_ref(), most), |server| server.incidents(
            is_open,
            before.as_ref(),
            most
        ))
    }

    /// Messages before a number, the latest first.
    pub async fn deliveries(&self, before: Option<i64>, most: usize) -> Result<Vec<DeliveryRow>, StoreDown> {
        look!(self, |tx| tx.deliveries(before, most), |server| server.deliveries(before, most))
    }

    /// Which channels got messages since an instant, and when.
    pub async fn recent_deliveries(
        &self,
        since: Timestamp,
        most: usize,
    ) -> Result<Vec<(String, Timestamp)>, StoreDown> {
        look!(self, |tx| tx.recent_deliveries(since, most), |server| server.recent_deliveries(since, most))
    }

    /// Mutes, the one that ends last first.
    pub async fn mutes(&self, most: usize) -> Result<Vec<Mute>, StoreDown> {
        look!(self, |tx| tx.mutes(most), |server| server.mutes(most))
    }
}
