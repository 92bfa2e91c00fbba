//! Incidents, messages and mutes as both databases store them.

use std::collections::BTreeMap;

use evenbeat_core::alert::{
    AlertSubject, Cause, Incident, IncidentEnd, Mute, MuteScope, Severity, Told, ToldWhat,
};
use evenbeat_core::time::{Duration, Timestamp};
use serde_json::{Value as Json, json};

/// How long the node that alerts holds its lease, by the store's clock. It is renewed three times as often.
pub const ALERT_LEASE: Duration = Duration::from_secs(30);

/// Longest answer of a receiver that is kept.
const ANSWER_CHARS_MAX: usize = 500;

/// An incident to be written.
#[derive(Clone, Debug, PartialEq)]
pub struct IncidentWrite {
    pub incident: Incident,
    /// Whether it need not be looked at again.
    pub is_settled: bool,
}

/// A message to be delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewDelivery {
    /// Its name. With its channel, the same message is stored once.
    pub id: String,
    pub channel: String,
    /// What it says, as JSON.
    pub payload: String,
}

/// What came of asking for the lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AlertLease {
    /// Whether this node may alert.
    pub is_mine: bool,
    /// When some node last looked.
    pub looked_at: Option<Timestamp>,
}

/// How far a message has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryState {
    /// It will be tried, or tried again.
    Pending,
    /// Its receiver has accepted it.
    Sent,
    /// It was given up.
    Failed,
}

impl DeliveryState {
    /// The word in the store and on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            DeliveryState::Pending => "pending",
            DeliveryState::Sent => "sent",
            DeliveryState::Failed => "failed",
        }
    }

    fn named(word: &str) -> DeliveryState {
        match word {
            "sent" => DeliveryState::Sent,
            "failed" => DeliveryState::Failed,
            _ => DeliveryState::Pending,
        }
    }
}

/// A message and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryRow {
    /// Its number, in the order of creation.
    pub no: i64,
    pub id: String,
    pub channel: String,
    pub created_at: Timestamp,
    pub payload: String,
    pub state: DeliveryState,
    /// How often it was tried.
    pub attempts: u32,
    /// When it is tried next, while it is pending.
    pub next_try_at: Timestamp,
    pub last_try_at: Option<Timestamp>,
    /// What the receiver said last.
    pub answer: Option<String>,
    /// When it was accepted or given up.
    pub done_at: Option<Timestamp>,
}

/// What came of one attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttemptResult {
    /// The receiver has accepted it.
    Sent,
    /// It is tried again after this pause.
    Again(Duration),
    /// It is given up.
    GivenUp,
}

impl AttemptResult {
    pub(super) fn state(&self) -> DeliveryState {
        match self {
            AttemptResult::Sent => DeliveryState::Sent,
            AttemptResult::Again(_) => DeliveryState::Pending,
            AttemptResult::GivenUp => DeliveryState::Failed,
        }
    }

    pub(super) fn pause_ms(&self) -> i64 {
        match self {
            AttemptResult::Again(pause) => pause.as_millis(),
            AttemptResult::Sent | AttemptResult::GivenUp => 0,
        }
    }
}

/// An answer as it is stored: one line that is not too long.
pub(super) fn stored_answer(answer: &str) -> String {
    answer.chars().map(|it| if it.is_control() { ' ' } else { it }).take(ANSWER_CHARS_MAX).collect()
}

/// The columns of a message, as a row has them.
pub(super) struct DeliveryColumns {
    pub(super) no: i64,
    pub(super) id: String,
    pub(super) channel: String,
    pub(super) created_at: i64,
    pub(super) payload: String,
    pub(super) state: String,
    pub(super) attempts: i64,
    pub(super) next_try_at: i64,
    pub(super) last_try_at: Option<i64>,
    pub(super) answer: Option<String>,
    pub(super) done_at: Option<i64>,
}

impl From<DeliveryColumns> for DeliveryRow {
    fn from(columns: DeliveryColumns) -> DeliveryRow {
        DeliveryRow {
            no: columns.no,
            id: columns.id,
            channel: columns.channel,
            created_at: Timestamp::from_millis(columns.created_at),
            payload: columns.payload,
            state: DeliveryState::named(&columns.state),
            attempts: u32::try_from(columns.attempts).unwrap_or(u32::MAX),
            next_try_at: Timestamp::from_millis(columns.next_try_at),
            last_try_at: columns.last_try_at.map(Timestamp::from_millis),
            answer: columns.answer,
            done_at: columns.done_at.map(Timestamp::from_millis),
        }
    }
}

/// A mute of its columns. None if it was written by a version that knows more.
pub(super) fn mute(
    id: u128,
    (scope, value): (&str, &str),
    (starts_at, ends_at): (i64, i64),
    (reason, actor): (String, String),
) -> Option<Mute> {
    let scope = MuteScope::of_parts(scope, value).ok()?;
    let (starts_at, ends_at) = (Timestamp::from_millis(starts_at), Timestamp::from_millis(ends_at));
    Some(Mute { id, scope, starts_at, ends_at, reason, actor })
}

/// All of an incident but its subject and its beginning, as JSON.
pub(super) fn detail(incident: &Incident) -> String {
    let told = incident.told.iter().map(|(channel, it)| {
        let entry = json!({ "what": it.what.as_str(), "at": it.at.as_millis(), "n": it.n });
        (channel.to_string(), entry)
    });
    let told: serde_json::Map<String, Json> = told.collect();
    json!({
        "since": incident.since.as_millis(),
        "turned_at": incident.turned_at.as_millis(),
        "well_since": incident.well_since.map(Timestamp::as_millis),
        "n_good": incident.n_good,
        "last_good_at": incident.last_good_at.map(Timestamp::as_millis),
        "closed_at": incident.closed.map(|(at, _)| at.as_millis()),
        "end": incident.closed.map(|(_, end)| end.as_str()),
        "changes": incident.changes.iter().map(|at| at.as_millis()).collect::<Vec<_>>(),
        "is_flapping": incident.is_flapping,
        "told": told,
    })
    .to_string()
}

/// The incident of these columns. None if it was written by a version that knows more.
pub(super) fn incident(
    subject: &str,
    opened_at: i64,
    cause: &str,
    severity: &str,
    detail: &str,
) -> Option<Incident> {
    let detail: Json = serde_json::from_str(detail).ok()?;
    let at = |key: &str| detail[key].as_i64().map(Timestamp::from_millis);
    let mut told = BTreeMap::new();
    for (channel, entry) in detail["told"].as_object()? {
        let what = ToldWhat::named(entry["what"].as_str()?)?;
        let n = u32::try_from(entry["n"].as_u64()?).ok()?;
        told.insert(
            channel.parse().ok()?,
            Told { what, at: Timestamp::from_millis(entry["at"].as_i64()?), n },
        );
    }
    let changes = detail["changes"].as_array()?.iter().filter_map(Json::as_i64);
    Some(Incident {
        subject: AlertSubject::parse(subject)?,
        opened_at: Timestamp::from_millis(opened_at),
        cause: Cause::named(cause)?,
        since: at("since")?,
        severity: Severity::named(severity)?,
        turned_at: at("turned_at")?,
        well_since: at("well_since"),
        n_good: u32::try_from(detail["n_good"].as_u64()?).ok()?,
        last_good_at: at("last_good_at"),
        closed: at("closed_at").zip(detail["end"].as_str().and_then(IncidentEnd::named)),
        changes: changes.map(Timestamp::from_millis).collect(),
        is_flapping: detail["is_flapping"].as_bool()?,
        told,
    })
}
