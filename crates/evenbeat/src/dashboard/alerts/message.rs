//! Messages, and what their receivers said. Sent means accepted: nothing else counts.

use maud::{Markup, html};

use crate::dashboard::parts::{ConditionMark, job_link};
use crate::dashboard::times::{Distance, Times, count};
use crate::printable;
use crate::store::alert_rows::{DeliveryRow, DeliveryState};
use crate::views::alert_overview::AlertMessage;

/// Messages that are shown, and those that are shown on demand.
const FEW: usize = 10;
const MANY: usize = 50;

/// Longest answer in a table cell.
const ANSWER_CHARS_MAX: usize = 32;

pub(super) fn section(messages: &[AlertMessage], with_all: bool, times: &Times) -> Markup {
    let most = if with_all { MANY } else { FEW };
    let shown = messages.len().min(most);
    html! {
        section.sec.gap id="deliveries" data-l aria-labelledby="d-h" {
            div.sec-h {
                h2 id="d-h" { "Messages" }
                span.sub { @if 0 < shown { "the last " (count(shown as u64)) "; " } "one counts as sent when its receiver has accepted it" }
                span.sp {}
                @if with_all { a.link href="/alerts" { "Fewer" } } @else if FEW < messages.len() { a.link href="/alerts?messages=all#deliveries" { "Show the last " (count(messages.len().min(MANY) as u64)) } }
            }
            @if messages.is_empty() { p.mut { "Nothing was sent yet." } }
            @else {
                table.tbl.fix.dlog {
                    colgroup { col.d1; col.d2; col.d3; col.d2; col; }
                    thead { tr { th { "Time, " (times.zone_name()) } th { "Answer" } th { "About" } th { "Message" } th { "To" } } }
                    tbody { @for message in messages.iter().take(most) { (row(message, times)) } }
                }
            }
        }
    }
}

fn row(message: &AlertMessage, times: &Times) -> Markup {
    let mark = answer_mark(&message.row);
    let topic = message.topics.first();
    let n_more = message.topics.len().saturating_sub(1) + message.n_more;
    html! {
        tr {
            td.nw { (times.exact(message.row.created_at)) }
            td.ell title=[message.row.answer.as_deref().map(printable::line)] {
                span class={ "st st-" (mark.name()) } { (mark.icon()) span.w { (answer(&message.row)) } }
            }
            td.ell title=(printable::line(&message.subject)) {
                @match topic.and_then(|it| it.job.as_deref()) {
                    Some(job) => { (job_link(job)) }
                    None => { (printable::line(&message.subject)) }
                }
                @if 0 < n_more { span.mut { " and " (count(n_more as u64)) " more" } }
            }
            td.ell.t2 { (topic.map_or("notice", |it| printable_kind(&it.kind))) }
            td.ell {
                (printable::line(&message.row.channel))
                @if message.row.state == DeliveryState::Pending && 0 < message.row.attempts {
                    " " span.mut { "tried " (count(u64::from(message.row.attempts))) (if message.row.attempts == 1 { " time" } else { " times" }) ", again " (times.distance(message.row.next_try_at, Distance::In)) }
                }
                @if message.row.state == DeliveryState::Failed {
                    " " span.mut { "given up after " (count(u64::from(message.row.attempts))) " tries" }
                }
            }
        }
    }
}

fn printable_kind(kind: &str) -> &str {
    match kind {
        "opened" | "worse" | "flapping" | "reminder" | "over" => kind,
        "event" => "notice",
        _ => "other",
    }
}

/// How it stands with a message.
pub(super) fn answer_mark(row: &DeliveryRow) -> ConditionMark {
    match (row.state, row.attempts) {
        (DeliveryState::Sent, _) => ConditionMark::Ok,
        (DeliveryState::Failed, _) => ConditionMark::Error,
        (DeliveryState::Pending, 0) => ConditionMark::New,
        (DeliveryState::Pending, _) => ConditionMark::Warning,
    }
}

/// What the receiver said, in a few words: `answered HTTP 200`, `no answer`.
pub(super) fn answer(row: &DeliveryRow) -> String {
    let said = row.answer.as_deref().unwrap_or_default();
    // What comes from a receiver begins with how it was said.
    let is_theirs = ["HTTP ", "SMTP ", "exit "].iter().any(|it| said.starts_with(it));
    match (row.state, row.attempts, is_theirs) {
        (DeliveryState::Pending, 0, _) => "waiting".to_owned(),
        (DeliveryState::Sent, _, false) => "accepted".to_owned(),
        (_, _, false) => "no answer".to_owned(),
        (_, _, true) => {
            let short = said.split(": ").next().unwrap_or(said);
            format!("answered {}", printable::line(&short.chars().take(ANSWER_CHARS_MAX).collect::<String>()))
        }
    }
}

#[cfg(test)]
mod tests {
    use evenbeat_core::time::Timestamp;

    use super::*;

    #[track_caller]
    fn check(state: DeliveryState, attempts: u32, said: Option<&str>, expected: &str, mark: ConditionMark) {
        let at = Timestamp::from_second(1_000_000);
        let row = DeliveryRow {
            no: 1,
            id: String::new(),
            channel: "ops".to_owned(),
            created_at: at,
            payload: String::new(),
            state,
            attempts,
            next_try_at: at,
            last_try_at: None,
            answer: said.map(str::to_owned),
            done_at: None,
        };
        assert_eq!((answer(&row).as_str(), answer_mark(&row)), (expected, mark));
    }

    #[test]
    fn a_message_is_sent_when_its_receiver_said_so() {
        use DeliveryState::{Failed, Pending, Sent};
        check(Sent, 1, Some("HTTP 200: ok"), "answered HTTP 200", ConditionMark::Ok);
        check(Sent, 1, Some("SMTP 250: OK: queued"), "answered SMTP 250", ConditionMark::Ok);
        check(Failed, 5, Some("HTTP 404"), "answered HTTP 404", ConditionMark::Error);
        check(Failed, 5, Some("connection refused"), "no answer", ConditionMark::Error);
        check(Pending, 0, None, "waiting", ConditionMark::New);
        check(Pending, 2, Some("no answer within 10s"), "no answer", ConditionMark::Warning);
        check(Pending, 2, Some("HTTP 5\u{202e}03"), "answered HTTP 5\\u{202e}03", ConditionMark::Warning);
    }
}
