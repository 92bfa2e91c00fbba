//! Delivers messages until their receivers have accepted them.
//!
//! A channel gets its messages one at a time, in the order in which they were stored. Nothing counts as sent before its
//! receiver said so; what is not accepted is tried again, less and less often, and given up in the end.

use std::sync::Arc;
use std::time::Duration as Length;

use evenbeat_core::alert::{AlertEvent, EventText, compose_event};
use evenbeat_core::store::StoreDown;
use evenbeat_core::time::{Duration, Timestamp};
use tokio::time::{MissedTickBehavior, interval};

use super::channel::{self, Receipt};
use super::payload::Payload;
use super::{Alerts, length};
use crate::store::alert_rows::{AttemptResult, DeliveryRow, NewDelivery};

/// How often messages are looked for that another node stored, or that are due again.
const LOOK_EVERY: Length = Length::from_secs(1);

/// How much longer than an attempt a message stays with the node that took it.
const CLAIM_SLACK: Duration = Duration::from_secs(15);

/// The pause after the first attempt; it doubles with each.
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_mins(10);

/// Attempts at a message that its receiver refuses for good.
const REFUSALS_MAX: u32 = 5;

/// Delivers until the process ends.
pub(super) async fn deliver(alerts: Alerts) {
    let parts = Arc::clone(&alerts.parts);
    let mut is_released = false;
    let mut ticks = interval(LOOK_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = alerts.nudge.notified() => {}
        }
        let settings = parts.settings();
        if !settings.rules.is_on() {
            continue;
        }
        let longest = settings.channels.values().map(|it| it.time_limit).max().unwrap_or_default();
        // An attempt may send twice: a channel that rejects the first format gets a simpler one.
        let keep_for = longest + longest + CLAIM_SLACK;
        if !is_released {
            is_released = parts.store.release_deliveries(parts.home).await.is_ok();
            continue;
        }
        // `store_watch` reports store failures.
        let Ok(claimed) = parts.store.claim_deliveries(parts.home, keep_for).await else { continue };
        for row in claimed {
            tokio::spawn(attempt(alerts.clone(), row));
        }
    }
}

async fn attempt(alerts: Alerts, row: DeliveryRow) {
    let parts = &alerts.parts;
    let settings = parts.settings();
    let channel = row.channel.parse().ok().and_then(|it| settings.channels.get(&it));
    let now = parts.clock.now();
    let receipt = match channel {
        Some(channel) => {
            channel::send(channel, &Payload::from_json(&row.payload), &parts.outbound, now).await
        }
        None => Receipt::failed(format!("channel `{}` is not set up on this node", row.channel)),
    };
    let result = judge(&row, &receipt, parts.intake.now(), settings.retry_for);
    let word = match result {
        AttemptResult::Sent => "sent",
        AttemptResult::Again(_) => "retried",
        AttemptResult::GivenUp => "failed",
    };
    parts.telemetry.metrics().alert_delivered(&row.channel, word);
    let (channel, alert, answer) = (row.channel.as_str(), row.id.as_str(), receipt.answer.as_str());
    match result {
        AttemptResult::Sent => tracing::info!(channel, alert, answer, "alert delivered"),
        AttemptResult::Again(_) => {
            tracing::warn!(
                channel,
                alert,
                answer,
                attempt = row.attempts,
                "alert not delivered, trying again"
            );
        }
        AttemptResult::GivenUp => {
            tracing::error!(channel, alert, answer, attempt = row.attempts, "alert given up");
        }
    }
    let is_given_up = result == AttemptResult::GivenUp;
    finish(&alerts, &row, result, receipt.answer.clone()).await;
    if is_given_up {
        tell_others(&alerts, &row, &receipt.answer, now).await;
    }
    alerts.nudge.notify_one();
}

/// Decides what to do with a message after an attempt.
fn judge(row: &DeliveryRow, receipt: &Receipt, now: Timestamp, retry_for: Duration) -> AttemptResult {
    if receipt.is_accepted {
        return AttemptResult::Sent;
    }
    let is_refused = receipt.is_refused && REFUSALS_MAX <= row.attempts;
    if is_refused || row.created_at + retry_for <= now {
        return AttemptResult::GivenUp;
    }
    let doublings = row.attempts.saturating_sub(1).min(20);
    let pause = Duration::from_millis(PAUSE_MIN.as_millis() << doublings);
    AttemptResult::Again(pause.min(PAUSE_MAX))
}

/// Records the result. Retries until the store has it or another node has taken the message.
async fn finish(alerts: &Alerts, row: &DeliveryRow, result: AttemptResult, answer: String) {
    let mut pause = Duration::from_millis(200);
    for _ in 0..8 {
        let store = &alerts.parts.store;
        match store.finish_delivery(row.no, row.attempts, result.clone(), answer.clone()).await {
            Ok(_) => return,
            Err(StoreDown(_)) => tokio::time::sleep(length(pause)).await,
        }
        pause = pause + pause;
    }
}

/// Tells the other channels of the default route that this one is broken.
async fn tell_others(alerts: &Alerts, row: &DeliveryRow, answer: &str, now: Timestamp) {
    let parts = &alerts.parts;
    let is_about_this = row.id.starts_with("event:channel_failing");
    let settings = parts.settings();
    let others = settings.rules.of_system().into_iter().filter(|it| it.as_str() != row.channel);
    let subject = super::payload::subject_of(&row.payload);
    let sentence = format!("`{}` did not get \"{subject}\": {answer}", row.channel);
    let items = [EventText { job: None, sentence }];
    let event = AlertEvent::ChannelFailing;
    let id = format!("event:{}:{}", event.as_str(), row.no);
    let text = compose_event(event, &items, &id, settings.public_url.as_deref());
    let payload = Payload::of_event(event, &items, &id, &text, now).to_json();
    let deliveries: Vec<NewDelivery> = others
        // Two broken channels must not report each other forever.
        .filter(|_| !is_about_this)
        .map(|it| NewDelivery { id: id.clone(), channel: it.to_string(), payload: payload.clone() })
        .collect();
    if !deliveries.is_empty()
        && let Err(StoreDown(why)) = parts.store.put_alerts(None, Vec::new(), deliveries).await
    {
        tracing::warn!(why, "alert about a failing channel was not stored");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::alert_rows::DeliveryState;

    #[track_caller]
    fn check(attempts: u32, age: Duration, receipt: &Receipt, expected: &AttemptResult) {
        let created_at = Timestamp::from_second(1_000_000);
        let row = DeliveryRow {
            no: 1,
            id: "shop:1:1".to_owned(),
            channel: "ops".to_owned(),
            created_at,
            payload: String::new(),
            state: DeliveryState::Pending,
            attempts,
            next_try_at: created_at,
            last_try_at: None,
            answer: None,
            done_at: None,
        };
        assert_eq!(judge(&row, receipt, created_at + age, Duration::from_days(1)), *expected);
    }

    #[test]
    fn a_message_is_tried_again_less_and_less_often_and_not_for_ever() {
        let failed = Receipt::failed("HTTP 503".to_owned());
        let refused = Receipt { is_refused: true, ..failed.clone() };
        let accepted = Receipt { is_accepted: true, ..failed.clone() };
        let soon = Duration::from_secs(5);
        check(1, soon, &accepted, &AttemptResult::Sent);
        check(1, soon, &failed, &AttemptResult::Again(Duration::from_secs(1)));
        check(4, soon, &failed, &AttemptResult::Again(Duration::from_secs(8)));
        check(99, soon, &failed, &AttemptResult::Again(PAUSE_MAX));
        check(4, soon, &refused, &AttemptResult::Again(Duration::from_secs(8)));
        check(5, soon, &refused, &AttemptResult::GivenUp);
        check(99, Duration::from_days(1), &failed, &AttemptResult::GivenUp);
        check(99, Duration::from_days(2), &accepted, &AttemptResult::Sent);
    }
}
