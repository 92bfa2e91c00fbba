//! Incidents, what was sent about them, and mutes (G6).

use evenbeat_core::alert::{AlertSubject, Incident, Mute};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Text;
use super::instant::Instant;
use super::words::{AlertConditionWord, DeliveryStateWord, IncidentEndWord, MuteScopeWord};
use crate::alerts::subject_of;
use crate::store::alert_rows::DeliveryRow;

/// Trouble of one job, or of the scheduler itself, from its first sign until it is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Incident)]
pub struct IncidentView {
    /// What it is about: the key of a job, or `system` and a part of the scheduler.
    pub subject: String,
    /// The job, unless it is about the scheduler itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// Whether it is open.
    pub is_open: bool,
    /// How bad it is, or was last.
    #[schema(value_type = AlertConditionWord)]
    pub condition: Text,
    /// The reason code, as in `reason` of a job; `score_low` and `scheduler_away` for the scheduler itself.
    #[schema(value_type = String)]
    pub reason: Text,
    /// When it was opened.
    pub opened_at: Instant,
    /// Since when the reason holds.
    pub since: Instant,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_at: Option<Instant>,
    /// How it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<IncidentEndWord>)]
    pub end: Option<Text>,
    /// Whether its job turns to and fro, so that changes are not announced.
    pub is_flapping: bool,
    /// Who was told, and when last.
    pub told: Vec<ToldView>,
}

/// What a channel was told about an incident.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Told)]
pub struct ToldView {
    /// The name of the channel.
    pub channel: String,
    /// When the last message about it was stored.
    pub at: Instant,
    /// Number of messages about it.
    pub messages: u32,
}

impl From<&Incident> for IncidentView {
    fn from(it: &Incident) -> IncidentView {
        IncidentView {
            subject: it.subject.to_string(),
            job: match &it.subject {
                AlertSubject::Job(key) => Some(key.to_string()),
                AlertSubject::System(_) => None,
            },
            is_open: !it.is_closed(),
            condition: it.severity.as_str().into(),
            reason: it.cause.as_str().into(),
            opened_at: it.opened_at.into(),
            since: it.since.into(),
            closed_at: it.closed.map(|(at, _)| at.into()),
            end: it.closed.map(|(_, end)| end.as_str().into()),
            is_flapping: it.is_flapping,
            told: it
                .told
                .iter()
                .map(|(channel, told)| ToldView {
                    channel: channel.to_string(),
                    at: told.at.into(),
                    messages: told.n,
                })
                .collect(),
        }
    }
}

/// A message to one channel, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Delivery)]
pub struct DeliveryView {
    /// Its number, in the order of creation.
    pub no: i64,
    /// Its id, which is the same however often it is sent.
    pub id: String,
    /// The name of the channel.
    pub channel: String,
    /// Its first line.
    pub subject: String,
    /// Whether its receiver has accepted it.
    #[schema(value_type = DeliveryStateWord)]
    pub state: Text,
    /// When it was stored.
    pub created_at: Instant,
    /// Number of attempts so far.
    pub attempts: u32,
    /// When it was last tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_try_at: Option<Instant>,
    /// When it is tried next, while it is pending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_try_at: Option<Instant>,
    /// What the receiver said last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// When it was accepted or given up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done_at: Option<Instant>,
}

impl From<&DeliveryRow> for DeliveryView {
    fn from(row: &DeliveryRow) -> DeliveryView {
        let is_pending = row.done_at.is_none();
        DeliveryView {
            no: row.no,
            id: row.id.clone(),
            channel: row.channel.clone(),
            subject: subject_of(&row.payload),
            state: row.state.as_str().into(),
            created_at: row.created_at.into(),
            attempts: row.attempts,
            last_try_at: row.last_try_at.map(Into::into),
            next_try_at: is_pending.then(|| row.next_try_at.into()),
            answer: row.answer.clone(),
            done_at: row.done_at.map(Into::into),
        }
    }
}

/// A time in which some jobs cause no alerts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Mute)]
pub struct MuteView {
    /// Its id.
    pub id: String,
    /// What is muted.
    #[schema(value_type = MuteScopeWord)]
    pub scope: Text,
    /// Which of them: a pattern for keys, `name=value` of a label, a site or a tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// From when on.
    pub starts_at: Instant,
    /// Until when.
    pub ends_at: Instant,
    /// Why.
    pub reason: String,
    /// Who muted it.
    pub actor: String,
    /// Whether it is in force now.
    pub is_active: bool,
}

impl MuteView {
    /// A mute as of now.
    pub fn of(mute: &Mute, now: evenbeat_core::time::Timestamp) -> MuteView {
        let (scope, value) = mute.scope.parts();
        MuteView {
            id: uuid::Uuid::from_u128(mute.id).to_string(),
            scope: scope.into(),
            value: Some(value).filter(|it| !it.is_empty()),
            starts_at: mute.starts_at.into(),
            ends_at: mute.ends_at.into(),
            reason: mute.reason.clone(),
            actor: mute.actor.clone(),
            is_active: mute.is_active(now),
        }
    }
}

/// What to mute, and until when. A mute always has an end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MuteRequest {
    /// What to mute.
    #[schema(value_type = MuteScopeWord)]
    pub scope: Text,
    /// Which of them: a pattern for keys (`shop*`), `name=value` of a label, a site or a tenant. Not for `fleet`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// From when on; now if it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starts_at: Option<Instant>,
    /// Until when; at most 90 days.
    pub ends_at: Instant,
    /// Why, for people.
    pub reason: String,
}

/// The channel to test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AlertTestRequest {
    /// The name of the channel.
    pub channel: String,
}

/// What the receiver of a test message said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AlertTestAnswer {
    /// The name of the channel.
    pub channel: String,
    /// Whether the receiver has accepted the message.
    pub is_accepted: bool,
    /// What it said.
    pub answer: String,
}
