//! The heading: open incidents, the age of the oldest, and whether messages arrived.

use evenbeat_core::alert::Severity;
use evenbeat_core::time::Duration;
use maud::{Markup, html};

use crate::dashboard::parts::ConditionMark;
use crate::dashboard::times::{Times, brief, count, counted};
use crate::store::alert_rows::DeliveryState;
use crate::views::alert_overview::{AlertMessage, AlertOverview, MESSAGES_MAX};

pub(super) struct AlertsVerdict {
    mark: ConditionMark,
    pub(super) title: String,
    sentence: String,
    sent: SentCounts,
}

/// Messages of the last day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct SentCounts {
    all: u64,
    /// Whether there may be more than were read.
    is_more: bool,
    given_up: u64,
    /// Tried, and not accepted yet.
    waiting: u64,
}

pub(super) fn verdict(alerts: &AlertOverview, times: &Times) -> AlertsVerdict {
    let sent = counts(&alerts.messages, times);
    let is_error = alerts.incidents.iter().any(|it| it.incident.severity == Severity::Error);
    let (mark, title) = match (alerts.n_open, alerts.oldest_at, alerts.channels.is_empty()) {
        (0, _, true) => (ConditionMark::Warning, "No one gets alerts: no channel is set up".to_owned()),
        (0, _, false) => (ConditionMark::Ok, "No incident is open".to_owned()),
        (n, oldest_at, _) => {
            let mark = if is_error { ConditionMark::Error } else { ConditionMark::Warning };
            let age = oldest_at.map(|at| brief(times.now - at)).unwrap_or_default();
            let more = if alerts.is_more { "More than " } else { "" };
            let title = match n {
                1 => format!("1 incident is open, for {age}"),
                n => format!("{more}{} incidents are open, the oldest for {age}", count(n as u64)),
            };
            (mark, title)
        }
    };
    let sentence = if alerts.channels.is_empty() {
        "Jobs are checked all the same: the fleet page shows what needs attention.".to_owned()
    } else {
        sentence(sent)
    };
    AlertsVerdict { mark, title, sentence, sent }
}

fn counts(messages: &[AlertMessage], times: &Times) -> SentCounts {
    let since = times.now - Duration::from_days(1);
    let mut sent = SentCounts::default();
    for row in messages.iter().map(|it| &it.row).filter(|row| since <= row.created_at) {
        sent.all += 1;
        sent.given_up += u64::from(row.state == DeliveryState::Failed);
        sent.waiting += u64::from(row.state == DeliveryState::Pending && 0 < row.attempts);
    }
    sent.is_more = sent.all == MESSAGES_MAX as u64;
    sent
}

fn sentence(sent: SentCounts) -> String {
    let more = if sent.is_more { "At least " } else { "" };
    let all = format!("{more}{} in 24 h", counted(sent.all, "message"));
    match (sent.all, sent.given_up, sent.waiting) {
        (0, ..) => "No message in 24 h.".to_owned(),
        (1, 0, 0) => format!("{all}, and its receiver accepted it."),
        (_, 0, 0) => format!("{all}, all accepted by their receivers."),
        (_, 0, waiting) => format!("{all}; {} not accepted yet and tried again.", is_or_are(waiting)),
        (_, given_up, 0) => format!("{all}; {} given up.", was_or_were(given_up)),
        (_, given_up, waiting) => {
            format!("{all}; {} given up, {} tried again.", was_or_were(given_up), is_or_are(waiting))
        }
    }
}

fn is_or_are(n: u64) -> String {
    if n == 1 { "1 is".to_owned() } else { format!("{n} are") }
}

fn was_or_were(n: u64) -> String {
    if n == 1 { "1 was".to_owned() } else { format!("{n} were") }
}

impl AlertsVerdict {
    pub(super) fn markup(&self, alerts: &AlertOverview, times: &Times) -> Markup {
        let n_muted = alerts.mutes.iter().filter(|it| it.is_active(times.now)).count() as u64;
        let n_failing = alerts.channels.iter().filter(|it| it.failing.is_some()).count() as u64;
        html! {
            section.verdict id="verdict" data-l aria-labelledby="v" {
                div { h1 id="v" { (self.mark.icon()) (self.title) } p.sub { (self.sentence) } }
                dl.facts {
                    div { dt { "Messages in 24 h" } dd {
                        (count(self.sent.all)) @if self.sent.is_more { "+" }
                        @if 0 < self.sent.given_up { " " small { (count(self.sent.given_up)) " given up" } }
                    } }
                    div { dt { "Mutes in force" } dd { (count(n_muted)) } }
                    div { dt { "Channels" } dd {
                        (count(alerts.channels.len() as u64))
                        @if 0 < n_failing { " " small.c-err { (count(n_failing)) " failing" } }
                    } }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(all: u64, given_up: u64, waiting: u64, expected: &str) {
        assert_eq!(sentence(SentCounts { all, is_more: false, given_up, waiting }), expected);
    }

    #[test]
    fn the_sentence_says_whether_messages_arrived() {
        check(0, 0, 0, "No message in 24 h.");
        check(1, 0, 0, "1 message in 24 h, and its receiver accepted it.");
        check(46, 0, 0, "46 messages in 24 h, all accepted by their receivers.");
        check(46, 1, 0, "46 messages in 24 h; 1 was given up.");
        check(46, 0, 2, "46 messages in 24 h; 2 are not accepted yet and tried again.");
        check(46, 2, 1, "46 messages in 24 h; 2 were given up, 1 is tried again.");
    }
}
