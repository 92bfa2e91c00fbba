//! How each kind of channel is reached. Text is escaped for each in its own way (S22).

mod command;
mod email;
mod slack;
mod webhook;

use evenbeat_core::time::Timestamp;

use super::length;
use super::payload::Payload;
use crate::config::{ChannelKind, ChannelSettings};
use crate::outbound::{Outbound, OutboundAnswer, OutboundError};

/// What came of one attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Receipt {
    /// Whether the receiver has accepted the message. Nothing counts as sent before that.
    pub(super) is_accepted: bool,
    /// Whether another attempt would be refused as well, as far as the receiver says.
    pub(super) is_refused: bool,
    /// What the receiver said, or why it said nothing.
    pub(super) answer: String,
}

/// Longest part of an answer that is shown.
const SHOWN_CHARS_MAX: usize = 200;

impl Receipt {
    pub(super) fn failed(answer: String) -> Receipt {
        Receipt { is_accepted: false, is_refused: false, answer }
    }

    fn of_http(answer: Result<OutboundAnswer, OutboundError>) -> Receipt {
        match answer {
            Ok(answer) => {
                let is_refused =
                    (400..500).contains(&answer.status) && ![408, 425, 429].contains(&answer.status);
                let body: String = answer.body.trim().chars().take(SHOWN_CHARS_MAX).collect();
                let body = crate::printable::line(&body);
                let shown = if body.is_empty() { String::new() } else { format!(": {body}") };
                let text = format!("HTTP {}{shown}", answer.status);
                Receipt { is_accepted: answer.is_good(), is_refused, answer: text }
            }
            Err(error) => Receipt::failed(error.to_string()),
        }
    }
}

/// Sends a message once.
pub(super) async fn send(
    settings: &ChannelSettings,
    payload: &Payload,
    outbound: &Outbound,
    now: Timestamp,
) -> Receipt {
    let within = length(settings.time_limit);
    match &settings.kind {
        ChannelKind::Email(email) => email::send(email, payload, within).await,
        ChannelKind::Webhook { url, secret } => {
            webhook::send(url, secret.as_ref(), payload, outbound, now, within).await
        }
        ChannelKind::Slack { url } => slack::send(url, payload, outbound, within).await,
        ChannelKind::Command { argv, env_pass } => command::send(argv, env_pass, payload, within).await,
    }
}
