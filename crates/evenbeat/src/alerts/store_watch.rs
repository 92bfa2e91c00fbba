//! Watches the store itself. While it cannot be written, no message can be stored: people are told directly, and the
//! heartbeat stops.

use std::sync::Arc;
use std::time::Duration as Length;

use evenbeat_core::alert::AlertText;
use evenbeat_core::time::{BootTime, Duration, Timestamp};
use hyper::Method;
use tokio::time::sleep;

use super::payload::Payload;
use super::{AlertParts, Alerts, channel, length};
use crate::outbound::OutboundRequest;

/// How often the store is tried.
const PROBE_EVERY: Length = Length::from_secs(5);

/// How long the store may fail before people are told.
const TOLD_AFTER: Duration = Duration::from_secs(30);

/// Attempts to tell each channel without the store.
const N_TRIES: u32 = 5;

/// How long a call of the heartbeat may take.
const HEARTBEAT_WITHIN: Length = Length::from_secs(10);

/// Watches until the process ends.
pub(super) async fn watch(alerts: Alerts) {
    let parts = Arc::clone(&alerts.parts);
    let mut trouble: Option<Trouble> = None;
    let mut called_at: Option<BootTime> = None;
    loop {
        let settings = parts.settings();
        if !settings.rules.is_on() && settings.heartbeat.is_none() {
            trouble = None;
            sleep(PROBE_EVERY).await;
            continue;
        }
        match (parts.write_probe.ask().await, &mut trouble) {
            (Ok(()), None) => {}
            (Ok(()), Some(was)) => {
                if was.is_told {
                    let lasted = (parts.clock.boot() - was.since).rounded();
                    let text =
                        format!("The store of {} can be written again, after {lasted}.", parts.node_name);
                    tell(&parts, "OK", "the store can be written again", &text, was.began_at);
                }
                trouble = None;
            }
            (Err(why), None) => {
                let (since, began_at) = (parts.clock.boot(), parts.clock.now());
                trouble = Some(Trouble { since, began_at, why, is_told: false });
            }
            (Err(_), Some(was)) => {
                if !was.is_told && was.since + TOLD_AFTER <= parts.clock.boot() {
                    was.is_told = true;
                    let text = format!(
                        "{} cannot write to its store since {}: {}\n\nRuns go on, but their ends are recorded later, and no other \
                         alert is sent by this node until the store is back.",
                        parts.node_name, was.began_at, was.why
                    );
                    tell(&parts, "STORE", "the store cannot be written", &text, was.began_at);
                }
            }
        }
        let is_due = called_at.is_none_or(|at| at + settings.heartbeat_every <= parts.clock.boot());
        if trouble.is_none() && is_due && settings.heartbeat.is_some() {
            called_at = Some(parts.clock.boot());
            tokio::spawn(call(Arc::clone(&parts)));
        }
        sleep(PROBE_EVERY.min(length(settings.heartbeat_every))).await;
    }
}

struct Trouble {
    since: BootTime,
    began_at: Timestamp,
    why: String,
    is_told: bool,
}

/// Tells the default channels, past the outbox.
fn tell(parts: &Arc<AlertParts>, tag: &str, subject: &str, body: &str, began_at: Timestamp) {
    let subject = format!("[{tag}] {}: {subject}", parts.node_name);
    let id = format!("store:{}:{}:{tag}", parts.node_name, began_at.as_millis());
    let settings = parts.settings();
    let link = settings.public_url.clone();
    let text = AlertText { subject, body: format!("{body}\n\nAlert {id}\n"), link };
    let payload = Payload::plain(&id, &text, parts.clock.now());
    for name in settings.rules.of_system() {
        let (parts, settings, payload) = (Arc::clone(parts), Arc::clone(&settings), payload.clone());
        tokio::spawn(async move {
            let Some(channel_settings) = settings.channels.get(&name) else { return };
            let mut pause = Duration::from_secs(1);
            for _ in 0..N_TRIES {
                let receipt =
                    channel::send(channel_settings, &payload, &parts.outbound, parts.clock.now()).await;
                let (channel, alert, answer) = (name.as_str(), payload.id.as_str(), receipt.answer);
                if receipt.is_accepted {
                    tracing::info!(channel, alert, answer, "alert delivered");
                    return;
                }
                tracing::warn!(channel, alert, answer, "alert not delivered, trying again");
                sleep(length(pause)).await;
                pause = pause + pause;
            }
        });
    }
}

/// Calls the address that waits for signs of life.
async fn call(parts: Arc<AlertParts>) {
    let Some(Ok(url)) = parts.settings().heartbeat.as_ref().map(crate::config::SecretSource::read) else {
        return;
    };
    let request = OutboundRequest {
        method: Method::GET,
        url: &url,
        headers: Vec::new(),
        body: Vec::new(),
        within: HEARTBEAT_WITHIN,
    };
    match parts.outbound.send(request).await {
        Ok(answer) if answer.is_good() => {}
        Ok(answer) => tracing::warn!(status = answer.status, "heartbeat was not accepted"),
        Err(error) => tracing::warn!(%error, "heartbeat was not delivered"),
    }
}
