//! Alerts about one-time events. The node on which an event happened stores the alert.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use evenbeat_core::alert::{AlertEvent, AlertSubject, EventText, Mute, SystemPart, compose_event};
use evenbeat_core::ids::Channel;
use evenbeat_core::job::Job;
use evenbeat_core::notice::Notice;
use evenbeat_core::occurrence::RecordKind;
use evenbeat_core::store::StoreDown;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, sleep_until};

use super::payload::Payload;
use super::{AlertParts, Alerts, MUTES_MAX, length};
use crate::store::alert_rows::NewDelivery;

/// Most events in one message. Later ones are dropped.
const EVENTS_MAX: usize = 1_000;

/// Most open incidents among which that of the scheduler is looked for.
const INCIDENTS_MAX: usize = 1_000;

/// Listens until the process ends.
pub(super) async fn events(alerts: Alerts, mut notices: Receiver<Arc<Notice>>) {
    let mut waiting: BTreeMap<AlertEvent, Vec<EventText>> = BTreeMap::new();
    let mut due: Option<Instant> = None;
    loop {
        let is_due = async {
            match due {
                Some(at) => sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            notice = notices.recv() => match notice {
                Ok(notice) => {
                    let settings = alerts.parts.settings();
                    if settings.rules.is_on() && let Some((event, text)) = event_of(&notice) {
                        let events = waiting.entry(event).or_default();
                        if events.len() < EVENTS_MAX {
                            events.push(text);
                        }
                        due.get_or_insert_with(|| Instant::now() + length(settings.rules.group_wait));
                    }
                }
                // Too much happened at once, and some events were missed; the log has all of them.
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return,
            },
            () = is_due => {
                due = None;
                for (event, items) in std::mem::take(&mut waiting) {
                    if let Err(StoreDown(why)) = store(&alerts, event, items).await {
                        tracing::warn!(why, event = event.as_str(), "alert was not stored");
                    }
                }
            }
        }
    }
}

/// The event of a notice, if it is worth an alert.
fn event_of(notice: &Notice) -> Option<(AlertEvent, EventText)> {
    let of = |event, job: Option<&evenbeat_core::ids::JobKey>, sentence: String| {
        Some((event, EventText { job: job.cloned(), sentence }))
    };
    match notice {
        Notice::NotRun { key, record } => match record.what {
            RecordKind::MissedLate | RecordKind::MissedBackoff => {
                let (range, reason) = (record.range, record.what.reason());
                let sentence = match range.count {
                    1 => format!("the occurrence of {} got no run ({reason})", range.first),
                    n => format!(
                        "{n} occurrences from {} to {} got no run ({reason})",
                        range.first, range.last
                    ),
                };
                of(AlertEvent::OccurrencesMissed, Some(key), sentence)
            }
            RecordKind::SkippedOverlap | RecordKind::MissedPaused | RecordKind::MissedReplaced => None,
        },
        Notice::RunSlow { key, run, slow, usual } => {
            let (slow, usual) = (slow.rounded(), usual.rounded());
            let sentence =
                format!("run {run} has taken {slow} so far; runs of this job usually take {usual}");
            of(AlertEvent::RunSlow, Some(key), sentence)
        }
        Notice::Mended { key, fault, next } => {
            let next = next.map_or_else(|| "never".to_owned(), |at| at.to_string());
            of(AlertEvent::JobRepaired, Some(key), format!("{fault}; it runs next at {next}"))
        }
        Notice::ClockWasAhead { n_jobs, .. } => {
            of(AlertEvent::ClockWasAhead, None, format!("a clock was ahead; {n_jobs} jobs go on from now"))
        }
        Notice::TooManyFaults { n_faults, n_jobs, .. } => of(
            AlertEvent::TooManyFaults,
            None,
            format!(
                "stored next runs are wrong in {n_faults} of {n_jobs} jobs; look at the clock and the store"
            ),
        ),
        Notice::SessionFenced { node, .. } => {
            let node = node.as_ref().map_or_else(|| "a node".to_owned(), |it| format!("node {it}"));
            of(AlertEvent::NodeLost, None, format!("{node} stopped responding; its runs are taken over"))
        }
        Notice::RunUnkillable { run } => {
            of(AlertEvent::RunUnkillable, None, format!("run {run} was killed and is still there"))
        }
        _ => None,
    }
}

async fn store(alerts: &Alerts, event: AlertEvent, items: Vec<EventText>) -> Result<(), StoreDown> {
    let parts = &alerts.parts;
    let now = parts.intake.now();
    if event == AlertEvent::OccurrencesMissed && is_catching_up(parts).await? {
        // They were missed because the scheduler was away, which has an alert of its own.
        return Ok(());
    }
    let mutes: Vec<Mute> =
        parts.store.mutes(MUTES_MAX).await?.into_iter().filter(|it| it.is_active(now)).collect();
    let mut by_channel: BTreeMap<Channel, Vec<EventText>> = BTreeMap::new();
    for item in items {
        for channel in listeners(parts, event, &item, &mutes).await? {
            by_channel.entry(channel).or_default().push(item.clone());
        }
    }
    let settings = parts.settings();
    let public_url = settings.public_url.as_deref();
    let deliveries: Vec<NewDelivery> = by_channel
        .into_iter()
        .map(|(channel, items)| {
            let id = format!("event:{}:{}:{}", event.as_str(), parts.node_name, now.as_millis());
            let text = compose_event(event, &items, &id, public_url);
            let payload = Payload::of_event(event, &items, &id, &text, now).to_json();
            NewDelivery { id, channel: channel.to_string(), payload }
        })
        .collect();
    if deliveries.is_empty() {
        return Ok(());
    }
    parts.store.put_alerts(None, Vec::new(), deliveries).await?;
    alerts.nudge.notify_one();
    Ok(())
}

/// Whether the scheduler itself was away a moment ago.
async fn is_catching_up(parts: &AlertParts) -> Result<bool, StoreDown> {
    let open = parts.store.incidents(true, None, INCIDENTS_MAX).await?;
    Ok(open.iter().any(|it| it.subject == AlertSubject::System(SystemPart::Scheduler)))
}

async fn listeners(
    parts: &AlertParts,
    event: AlertEvent,
    item: &EventText,
    mutes: &[Mute],
) -> Result<BTreeSet<Channel>, StoreDown> {
    let settings = parts.settings();
    let rules = &settings.rules;
    let Some(key) = &item.job else {
        let is_muted = mutes.iter().any(|it| it.covers(&AlertSubject::System(SystemPart::Scheduler), None));
        return Ok(if is_muted { BTreeSet::new() } else { rules.of_system() });
    };
    let job: Option<Arc<Job>> = parts.store.job(key).await?.map(|row| row.job);
    if mutes.iter().any(|it| it.covers(&AlertSubject::Job(key.clone()), job.as_deref())) {
        return Ok(BTreeSet::new());
    }
    Ok(match job {
        Some(job) => rules.channels_for(&job, event.severity(), event.as_str()),
        None => rules.of_system(),
    })
}
