//! What is stored of a message, and what a webhook or a command receives: JSON that does not change once it was stored.

use evenbeat_core::alert::{AlertEvent, AlertSubject, AlertText, Announced, EventText, LISTED_MAX};
use evenbeat_core::time::Timestamp;
use serde::{Deserialize, Serialize};

/// A message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Payload {
    /// Of this format.
    pub(super) version: u32,
    /// The same however often it is sent.
    pub(super) id: String,
    pub(super) at: String,
    pub(super) subject: String,
    pub(super) text: String,
    pub(super) link: Option<String>,
    /// What it is about; at most [`LISTED_MAX`] of them.
    pub(super) alerts: Vec<PayloadItem>,
    /// How many more there are.
    pub(super) n_more: usize,
}

/// One thing that a message is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PayloadItem {
    /// `opened`, `worse`, `flapping`, `reminder`, `over`, or `event`.
    pub(super) kind: String,
    pub(super) job: Option<String>,
    /// The reason of the condition, or what happened.
    pub(super) reason: String,
    /// `warning` or `error`.
    pub(super) condition: String,
    /// Since when that holds.
    pub(super) since: Option<String>,
    /// When its incident was opened.
    pub(super) opened_at: Option<String>,
}

const VERSION: u32 = 1;

impl Payload {
    pub(super) fn plain(id: &str, text: &AlertText, at: Timestamp) -> Payload {
        let AlertText { subject, body, link } = text.clone();
        let (id, at) = (id.to_owned(), at.to_string());
        Payload { version: VERSION, id, at, subject, text: body, link, alerts: Vec::new(), n_more: 0 }
    }

    pub(super) fn of(announced: &Announced, text: &AlertText, at: Timestamp) -> Payload {
        let item = |it: &evenbeat_core::alert::AnnouncedItem| PayloadItem {
            kind: it.kind.as_str().to_owned(),
            job: match &it.incident.subject {
                AlertSubject::Job(key) => Some(key.to_string()),
                AlertSubject::System(_) => None,
            },
            reason: it.incident.cause.as_str().to_owned(),
            condition: it.incident.severity.as_str().to_owned(),
            since: Some(it.incident.since.to_string()),
            opened_at: Some(it.incident.opened_at.to_string()),
        };
        let alerts = announced.items.iter().take(LISTED_MAX).map(item).collect();
        let n_more = announced.items.len().saturating_sub(LISTED_MAX);
        Payload { alerts, n_more, ..Payload::plain(&announced.id, text, at) }
    }

    pub(super) fn of_event(
        event: AlertEvent,
        items: &[EventText],
        id: &str,
        text: &AlertText,
        at: Timestamp,
    ) -> Payload {
        let item = |it: &EventText| PayloadItem {
            kind: "event".to_owned(),
            job: it.job.as_ref().map(ToString::to_string),
            reason: event.as_str().to_owned(),
            condition: event.severity().as_str().to_owned(),
            since: None,
            opened_at: None,
        };
        let alerts = items.iter().take(LISTED_MAX).map(item).collect();
        let n_more = items.len().saturating_sub(LISTED_MAX);
        Payload { alerts, n_more, ..Payload::plain(id, text, at) }
    }

    pub(super) fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The message of a stored text. One that another version wrote is delivered as far as it is understood.
    pub(super) fn from_json(text: &str) -> Payload {
        serde_json::from_str(text).unwrap_or_else(|_| Payload {
            version: VERSION,
            id: String::new(),
            at: String::new(),
            subject: "[ALERT] a message of another version of Evenbeat".to_owned(),
            text: text.to_owned(),
            link: None,
            alerts: Vec::new(),
            n_more: 0,
        })
    }
}

/// The subject of a stored message.
pub(crate) fn subject_of(payload: &str) -> String {
    Payload::from_json(payload).subject
}

/// What a stored message is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MessageTopic {
    /// `opened`, `worse`, `flapping`, `reminder`, `over`, or `event`.
    pub(crate) kind: String,
    /// The job; none if it is about the scheduler itself.
    pub(crate) job: Option<String>,
    /// When its incident was opened; none if it happened once.
    pub(crate) opened_at: Option<Timestamp>,
}

/// The subject of a stored message, what it is about, and how much more than that.
pub(crate) fn topics_of(payload: &str) -> (String, Vec<MessageTopic>, usize) {
    let payload = Payload::from_json(payload);
    let topic = |it: PayloadItem| MessageTopic {
        kind: it.kind,
        job: it.job,
        opened_at: it.opened_at.and_then(|at| at.parse().ok()),
    };
    (payload.subject, payload.alerts.into_iter().map(topic).collect(), payload.n_more)
}
