//! One open incident: why, since when, what happens next, and who was told.

use evenbeat_core::alert::{AlertRules, AlertSubject, Cause, Severity};
use evenbeat_core::ids::JobKey;
use maud::{Markup, html};

use super::message::{answer, answer_mark};
use super::mute;
use crate::dashboard::parts::{icon, job_path};
use crate::dashboard::times::{Distance, Times, brief, count, counted};
use crate::printable;
use crate::views::alert_overview::{AlertMessage, OpenIncident};

/// Messages about one incident that are shown.
const MESSAGES_SHOWN_MAX: usize = 8;

pub(super) fn details(
    it: &OpenIncident,
    messages: &[AlertMessage],
    rules: &AlertRules,
    may_mute: bool,
    times: &Times,
) -> Markup {
    let incident = &it.incident;
    let symbol = if incident.severity == Severity::Error { "error" } else { "warning" };
    let colour = if incident.severity == Severity::Error { "c-err" } else { "c-warn" };
    let why = why(it);
    html! {
        details.inc id={ "i-" (incident.subject.to_string().replace(' ', "-")) } {
            summary {
                (icon("right")) (icon(symbol))
                span.ell.jid title=(incident.subject) { (name(&incident.subject)) }
                span.ell.t2.i-w title=(why) { (why) }
                span.nw { b class=(colour) { (times.distance(incident.opened_at, Distance::Since)) } " " span.mut { "since " (times.short(incident.opened_at)) } }
                span.nw.t2.i-n.num {
                    @match (it.muted_until, it.next_reminder) {
                        (Some(at), _) => { "muted until " (times.short(at)) }
                        (None, Some(at)) => { "next reminder " (times.short(at)) }
                        (None, None) => { "no reminder" }
                    }
                }
            }
            div.inc-b {
                div {
                    h3 { "Why, and what happens next" }
                    p { (why) }
                    @if let Some(last_run) = it.last_run.as_ref().filter(|it| !why.contains(it.as_str())) { p { (printable::line(last_run)) } }
                    (facts(it, times))
                    p.mut { (closing(it, rules)) }
                    (verbs(it, may_mute))
                }
                div {
                    h3 { "Sent, " (times.zone_name()) ", and the answer" }
                    (sent(it, messages, times))
                }
            }
        }
    }
}

fn name(subject: &AlertSubject) -> String {
    match subject {
        AlertSubject::Job(key) => key.to_string(),
        AlertSubject::System(part) => format!("the {}", part.as_str()),
    }
}

/// Why it is open: the condition of the job as of now, or what is wrong with the scheduler.
fn why(it: &OpenIncident) -> String {
    if it.incident.well_since.is_some() {
        return match it.incident.n_good {
            0 => "Nothing is wrong at the moment".to_owned(),
            n => format!("Nothing is wrong at the moment, {} so far", counted(u64::from(n), "good run")),
        };
    }
    match (&it.job, it.incident.cause) {
        (Some(job), _) => printable::line(&job.sentence).into_owned(),
        (None, Cause::Reason(reason)) => reason.sentence().to_owned(),
        (None, Cause::ScoreLow) => "Starts are spread unevenly; a rebalance would help".to_owned(),
        (None, Cause::SchedulerAway) => "No node scheduled anything for a while".to_owned(),
    }
}

fn facts(it: &OpenIncident, times: &Times) -> Markup {
    let Some(job) = &it.job else { return html! {} };
    html! {
        p {
            @match job.last_good_end_at { Some(at) => { "Last good run " (times.short(at.0)) }, None => { "No good run yet" } }
            @if let Some(at) = job.deadline { ", deadline " (times.short(at.0)) }
            @if let Some(at) = job.owner_started_at { "; running since " (times.short(at.0)) }
            @else if let Some(at) = job.planned_start { "; next try " (times.short(at.0)) " " span.mut { (times.distance(at.0, Distance::In)) } }
            @else { "; no next try" }
            "."
        }
        @if let Some(contact) = &job.contact { p { "Ask " (printable::line(contact)) "." } }
    }
}

fn closing(it: &OpenIncident, rules: &AlertRules) -> String {
    let closes = match &it.incident.subject {
        AlertSubject::Job(_) => format!("Closes after {}", counted(u64::from(it.recover_after), "good run")),
        AlertSubject::System(_) => "Closes when it is well again".to_owned(),
    };
    let reminds = match rules.remind_every {
        Some(every) => format!("a reminder every {}", brief(every)),
        None => "no reminders".to_owned(),
    };
    let flapping =
        if it.incident.is_flapping { " It turns to and fro, and stays open until it is calm." } else { "" };
    format!("{closes}; {reminds}.{flapping}")
}

fn verbs(it: &OpenIncident, may_mute: bool) -> Markup {
    let key = it.incident.subject.job().map(JobKey::as_str);
    html! {
        p.inc-a {
            @if may_mute { a.btn href=(mute::path(key)) data-ask { "Mute" } }
            @if let Some(key) = key { a.btn href=(job_path(key)) { "Open the job" } } @else { a.btn href="/schedule" { "Open the schedule" } }
            @if let Some(run) = &it.last_run_id { a.btn href={ "/runs/" (run) } { "Last run" } }
        }
    }
}

/// Messages about it, the oldest first, as far as they are among the latest; of earlier ones, how many there were.
fn sent(it: &OpenIncident, messages: &[AlertMessage], times: &Times) -> Markup {
    let about: Vec<&AlertMessage> =
        messages.iter().filter(|message| message.is_about(&it.incident)).take(MESSAGES_SHOWN_MAX).collect();
    let shown_to =
        |channel: &str| about.iter().filter(|message| message.row.channel == channel).count() as u64;
    let earlier: Vec<(String, u64)> = it
        .incident
        .told
        .iter()
        .map(|(channel, told)| {
            (channel.to_string(), u64::from(told.n).saturating_sub(shown_to(channel.as_str())))
        })
        .filter(|(_, n)| 0 < *n)
        .collect();
    html! {
        @if about.is_empty() && it.incident.told.is_empty() {
            p.mut { @if it.muted_until.is_some() { "No message was sent: it is muted." } @else { "No message was sent yet." } }
        }
        @if !earlier.is_empty() {
            p.mut { @for (n, (channel, messages)) in earlier.iter().enumerate() { @if 0 < n { ", " } (count(*messages)) " earlier to " (printable::line(channel)) } }
        }
        ul.sent {
            @for message in about.iter().rev() {
                li {
                    span.nw { (times.exact(message.row.last_try_at.unwrap_or(message.row.created_at))) }
                    (answer_mark(&message.row).icon())
                    span.ell { (printable::line(&message.row.channel)) }
                    span.t2.ell title=[message.row.answer.as_deref()] { (answer(&message.row)) }
                }
            }
        }
    }
}
