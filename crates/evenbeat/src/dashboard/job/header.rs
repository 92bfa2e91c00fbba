//! The head of a job's page: its name, how it stands, and what can be done to it.

use evenbeat_core::rights::Role;
use evenbeat_core::time::{Duration, Timestamp};
use maud::{Markup, html};

use super::freshness::margin;
use super::why::coded;
use crate::dashboard::parts::{ConditionMark, form_token, status_pill, url_query};
use crate::dashboard::times::{Times, counted, length_text};
use crate::dashboard::user::PageUser;
use crate::printable;
use crate::views::job_detail::JobDetail;

/// Labels that are shown; the others are in the definition.
const N_LABELS: usize = 8;

/// Open runs that one click stops.
const N_STOPPED_MAX: usize = 50;

/// What can be confirmed on this page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    Run,
    Pause,
    Resume,
    Stop,
    Delete,
}

impl Verb {
    const ALL: [Verb; 5] = [Verb::Run, Verb::Pause, Verb::Resume, Verb::Stop, Verb::Delete];

    /// The word in addresses.
    pub(super) fn word(self) -> &'static str {
        match self {
            Verb::Run => "run",
            Verb::Pause => "pause",
            Verb::Resume => "resume",
            Verb::Stop => "stop",
            Verb::Delete => "delete",
        }
    }

    pub(super) fn named(word: &str) -> Option<Verb> {
        Verb::ALL.into_iter().find(|it| it.word() == word)
    }

    fn role(self) -> Role {
        match self {
            Verb::Delete => Role::Editor,
            _ => Role::Operator,
        }
    }
}

/// The mark and the word of a job's state.
pub(super) fn mark_of(detail: &JobDetail) -> (ConditionMark, &'static str) {
    let view = &detail.view;
    match (view.status.as_ref(), view.condition.as_ref()) {
        ("disabled", _) => (ConditionMark::Paused, "Disabled"),
        ("done", _) => (ConditionMark::Paused, "Done"),
        (_, _) if !view.tracked => (ConditionMark::Paused, "Paused"),
        (_, "error") => (ConditionMark::Error, "Error"),
        (_, "warning") => (ConditionMark::Warning, "Warning"),
        _ if view.last_start_at.is_none() => (ConditionMark::New, "New"),
        _ => (ConditionMark::Ok, "OK"),
    }
}

/// Whether a verb makes sense for the job as it is. Whether it is allowed is asked again when it is done.
fn suits(verb: Verb, detail: &JobDetail) -> bool {
    let view = &detail.view;
    let is_paused = view.paused_by.is_some();
    let is_invalid = view.reason == "disabled_invalid";
    match verb {
        Verb::Run => view.enabled && !is_paused && (view.open_runs == 0 || !refuses_overlap(detail)),
        Verb::Pause => view.enabled && !is_paused,
        Verb::Resume => is_paused && !is_invalid,
        Verb::Stop => 0 < view.open_runs,
        Verb::Delete => true,
    }
}

fn refuses_overlap(detail: &JobDetail) -> bool {
    matches!(detail.row.job.overlap, evenbeat_core::job::Overlap::Skip)
}

pub(super) fn header<R>(detail: &JobDetail, user: &PageUser<R>) -> Markup {
    let (job, view, key) = (&*detail.row.job, &detail.view, detail.key());
    let (mark, word) = mark_of(detail);
    html! {
        nav.crumb aria-label="Breadcrumb" {
            a href="/?tab=all" { "Fleet" } span { "/" }
            a href={ "/?tab=all&pool=" (view.pool) } { "pool " (view.pool) }
            @if let Some(site) = &view.site { span { "/" } a href={ "/?tab=all&site=" (site) } { (site) } }
            @if key.configuration().is_some() { span { "/" } a href={ "/?tab=all&q=" (key.name()) "@" } { (key.name()) } }
        }
        div.jh {
            h1 { (key.name()) @if let Some(it) = key.configuration() { span.mut { "@" (it) } } }
            span id="pill" data-l { (status_pill(mark, word)) }
            @if let Some(text) = &job.description { span.sub { (printable::line(text)) } }
            span.sp {}
            div.acts id="acts" data-l { (verbs(detail, user)) }
        }
        @if !job.labels.is_empty() {
            p.labels {
                @for (name, value) in job.labels.iter().take(N_LABELS) {
                    a.tag href=(url_query("/", [("tab", "all"), ("label", &format!("{name}={value}"))])) { (printable::line(name)) "=" (printable::line(value)) }
                }
                @if N_LABELS < job.labels.len() { span.mut { "and " (job.labels.len() - N_LABELS) " more" } }
            }
        }
    }
}

fn verbs<R>(detail: &JobDetail, user: &PageUser<R>) -> Markup {
    let key = detail.key();
    let link = |verb: Verb, class: &str, label: Markup| {
        html! {
            @if user.may(verb.role()) && suits(verb, detail) {
                a class=(class) role="button" href={ "/jobs/" (key) "?confirm=" (verb.word()) } data-open={ "dlg-" (verb.word()) } { (label) }
            }
        }
    };
    let n_open = detail.view.open_runs;
    let stop = if n_open == 1 {
        html! { "Stop run" }
    } else {
        html! { "Stop " (counted(u64::from(n_open), "run")) }
    };
    html! {
        (link(Verb::Run, "btn pri", html! { "Run now" }))
        (link(Verb::Stop, "btn dng", stop))
        (link(Verb::Pause, "btn", html! { "Pause" }))
        @if user.may(Role::Operator) && suits(Verb::Resume, detail) {
            form method="post" action={ "/jobs/" (key) "/resume" } { (form_token(&user.session)) button.btn.pri type="submit" { "Resume" } }
        }
        @if user.may(Role::Editor) { a.btn href={ "/jobs/" (key) "/edit" } { "Edit" } }
        @if user.may(Role::Operator) {
            details.more.jmore {
                summary.btn { "More" }
                div.menu {
                    @if may_backfill(detail) { a href={ "/jobs/" (key) "/backfill" } { "Backfill" } }
                    a href={ "/alerts?mute=1&job=" (key) } { "Mute alerts" }
                    @if user.may(Role::Editor) {
                        a href={ "/jobs/new?add=1&like=" (key) } { "Copy" }
                        a.c-err href={ "/jobs/" (key) "?confirm=delete" } data-open="dlg-delete" { "Delete" }
                    }
                }
            }
        }
    }
}

/// Whether the past of a job has occurrences that a run can be asked for.
fn may_backfill(detail: &JobDetail) -> bool {
    let view = &detail.view;
    ["every", "cron"].contains(&view.schedule_kind.as_ref()) && view.enabled && view.paused_by.is_none()
}

/// The question about a verb, as a heading, a text and a form.
struct VerbQuestion {
    heading: String,
    body: Markup,
    safe: &'static str,
    act: String,
    class: &'static str,
}

fn question<R>(
    verb: Verb,
    detail: &JobDetail,
    user: &PageUser<R>,
    idempotency: &str,
    times: &Times,
) -> VerbQuestion {
    let key = detail.key();
    let token = form_token(&user.session);
    match verb {
        Verb::Run => VerbQuestion {
            heading: format!("Run {key} now?"),
            body: html! {
                p { @for sentence in run_now_text(detail, times) { (coded(&sentence)) " " } }
                (token) input type="hidden" name="idempotency" value=(idempotency);
            },
            safe: "Keep the schedule",
            act: "Run now".to_owned(),
            class: "btn pri",
        },
        Verb::Pause => VerbQuestion {
            heading: format!("Pause {key}"),
            body: html! {
                p.t2 { "Nothing more of it starts. A run that goes on may end." }
                label.fld { span { "Why" } input.in name="reason" maxlength="1000" placeholder="Site migrates, ask the shop team" autocomplete="off"; }
                label.fld {
                    span { "Until" }
                    select.sel name="until" {
                        option value="" { "someone resumes it" }
                        option value="1h" { "in 1 hour, " (times.short_text(times.now + Duration::from_hours(1))) }
                        option value="4h" { "in 4 hours, " (times.short_text(times.now + Duration::from_hours(4))) }
                        option value="1d" { "in 1 day, " (times.short_text(times.now + Duration::from_days(1))) }
                        option value="7d" { "in 7 days, " (times.short_text(times.now + Duration::from_days(7))) }
                    }
                }
                label.fld { span { "Or until, " (times.zone_name()) } input.in type="datetime-local" name="until_at"; }
                (token)
            },
            safe: "Cancel",
            act: "Pause".to_owned(),
            class: "btn pri",
        },
        Verb::Resume => VerbQuestion {
            heading: format!("Resume {key}?"),
            body: html! { p { "It gets a new place on the time line, and what was missed meanwhile is not made up for." } (token) },
            safe: "Keep it paused",
            act: "Resume".to_owned(),
            class: "btn pri",
        },
        Verb::Stop => {
            let open: Vec<&str> = detail
                .runs
                .items
                .iter()
                .filter(|run| run.outcome.is_none())
                .map(|run| run.id.as_str())
                .take(N_STOPPED_MAX)
                .collect();
            let act = if open.len() == 1 {
                "Stop run".to_owned()
            } else {
                format!("Stop {}", counted(open.len() as u64, "run"))
            };
            VerbQuestion {
                heading: format!("{act} of {key}?"),
                body: html! {
                    p { "It is asked to end, and killed if it does not. It counts as cancelled, not as failed" @if detail.view.tracked { ", so the data stays as old as it is" } "." }
                    @for run in &open { input type="hidden" name="run" value=(run); }
                    (token)
                },
                safe: "Let it run",
                act,
                class: "btn dng-f",
            }
        }
        Verb::Delete => VerbQuestion {
            heading: format!("Delete {key}?"),
            body: html! {
                p { "Nothing of it starts from now on; a run that goes on may end. Its history is kept for as long as that of other jobs. If a job file declares it, the next " code { "evenbeat apply" } " creates it again." }
                input type="hidden" name="version" value=(detail.view.revision);
                (token)
            },
            safe: "Keep it",
            act: format!("Delete {key}"),
            class: "btn dng-f",
        },
    }
}

/// What a run that is asked for now skips, when it would end, and how that stands to the deadline.
pub(super) fn run_now_text(detail: &JobDetail, times: &Times) -> Vec<String> {
    let why = &detail.explanation;
    let text = |at: Timestamp| times.moment_text(at);
    let mut said = Vec::new();
    let until = why.binding_until.map(|at| text(at.0));
    match (why.binding.as_ref(), until) {
        ("backoff", Some(until)) => said.push(format!("This skips the back-off that ends at {until}.")),
        ("cooldown", Some(until)) => {
            said.push(format!("This skips the rest after the last good run, which ends at {until}."));
        }
        ("not_due" | "never_run", Some(until)) => {
            said.push(format!("It is due at {until}; this is a run besides that one."));
        }
        ("blackout" | "blackout_ahead", Some(until)) => {
            said.push(format!("A blackout holds it up: the run is requested now and starts at {until}."));
        }
        ("running", _) => said.push("It is running; this run starts when it may.".to_owned()),
        ("ok" | "manual", _) => {}
        _ => said.push(format!("It waits like the others: {}", why.binding_sentence)),
    }
    let is_held = ["blackout", "blackout_ahead"].contains(&why.binding.as_ref());
    let start = why.binding_until.filter(|_| is_held).map_or(times.now, |at| at.0.max(times.now));
    let length = why.expected_length.0;
    if Duration::ZERO < length {
        let end = start + length;
        let margin = why
            .deadline
            .filter(|_| detail.view.tracked)
            .map_or(String::new(), |deadline| format!(", {}", margin(end, deadline.0)));
        said.push(format!(
            "A run takes about {} and would end at {}{margin}.",
            length_text(length),
            text(end)
        ));
    } else {
        said.push("How long a run takes is not known yet.".to_owned());
    }
    said
}

/// The question on the page itself, for those without scripts.
pub(super) fn asked<R>(
    verb: Verb,
    detail: &JobDetail,
    user: &PageUser<R>,
    idempotency: &str,
    times: &Times,
) -> Markup {
    if !user.may(verb.role()) || !suits(verb, detail) {
        return html! {};
    }
    let it = question(verb, detail, user, idempotency, times);
    let key = detail.key();
    html! {
        form.ask-box method="post" action={ "/jobs/" (key) "/" (verb.word()) } {
            h2 { (it.heading) }
            (it.body)
            div.ask-f { a.btn href={ "/jobs/" (key) } { (it.safe) } button class=(it.class) type="submit" { (it.act) } }
        }
    }
}

/// The same questions as dialogs.
pub(super) fn dialogs<R>(detail: &JobDetail, user: &PageUser<R>, idempotency: &str, times: &Times) -> Markup {
    let key = detail.key();
    html! {
        @for verb in [Verb::Run, Verb::Pause, Verb::Stop, Verb::Delete] {
            @if user.may(verb.role()) {
                @let it = question(verb, detail, user, idempotency, times);
                @let id = format!("dlg-{}", verb.word());
                dialog.dlg.small id=(id) data-l aria-labelledby={ (id) "-h" } {
                    form method="post" action={ "/jobs/" (key) "/" (verb.word()) } {
                        div.dlg-h { h2 id={ (id) "-h" } { (it.heading) } }
                        div.dlg-b { (it.body) }
                        div.dlg-f {
                            span.sp {}
                            button.btn type="button" data-close autofocus[verb != Verb::Pause] { (it.safe) }
                            button class=(it.class) type="submit" { (it.act) }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verbs_have_words_of_their_own() {
        for verb in Verb::ALL {
            assert_eq!(Verb::named(verb.word()), Some(verb));
        }
        assert_eq!(Verb::named("explode"), None);
    }
}
