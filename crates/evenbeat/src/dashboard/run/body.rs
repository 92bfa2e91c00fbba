//! The main column of a run's page: heading, reason, steps, what it reported, attempts.

use evenbeat_core::time::Timestamp;
use maud::{Markup, html};
use serde_json::Value as Json;

use super::heading::{compared, heading, main_clause, size};
use crate::dashboard::parts::{
    ConditionMark, icon, job_link, job_path, run_mark, run_path, run_status, status_with,
};
use crate::dashboard::times::{Distance, Times, count, took};
use crate::printable;
use crate::views::model::{ExplanationView, RunView};
use crate::views::run_details::RunDetails;

/// Values of a report that are shown.
const N_VALUES_MAX: usize = 24;

/// Everything above the columns.
pub(super) fn top(run: &RunDetails, times: &Times, is_operator: bool) -> Markup {
    let view = &run.view;
    let mark = run_mark(&view.status);
    html! {
        nav.crumb aria-label="Breadcrumb" {
            a href="/" { "Fleet" } span { "/" }
            (job_link(&view.job)) span { "/" }
            span.mono title=(view.id) { (short_id(&view.id)) }
        }
        div.jh.rh id="run-top" data-l {
            div {
                h1 aria-live="polite" { (mark.icon()) span { (headline(run, times)) } }
                p.sub { (subline(run, times)) }
            }
            span.sp {}
            div.acts { (verbs(run, is_operator)) }
        }
        div id="run-why" data-l { (why(run, times)) }
        (steps(run, times))
    }
}

/// Enough of an id to tell runs apart.
pub(super) fn short_id(id: &str) -> &str {
    id.get(..18).unwrap_or(id)
}

fn headline(run: &RunDetails, times: &Times) -> Markup {
    let view = &run.view;
    let has_estimate = run.job.as_ref().is_some_and(|(_, job)| job.estimate.is_some());
    let ends_at = run.explanation.as_ref().and_then(|it| it.expected_end).map(|it| it.0);
    match (view.status.as_ref(), view.started_at) {
        ("running", Some(started)) => html! {
            "Running for " (times.distance(started.0, Distance::Since))
            @if view.cancel_asked { ", told to end" }
            @else if let Some(at) = ends_at.filter(|at| times.now < *at) {
                // Without a good run to learn from, only a limit is known.
                @if has_estimate { ", ends about " } @else { ", should end by " }
                (times.short(at))
            }
        },
        _ => html! { (heading(view)) },
    }
}

fn subline(run: &RunDetails, times: &Times) -> Markup {
    let view = &run.view;
    let usual = run.job.as_ref().and_then(|(_, job)| job.average_good_duration).map(|it| it.0);
    let so_far = view.started_at.map(|from| view.ended_at.map_or(times.now, |it| it.0) - from.0);
    let compared = so_far.and_then(|so_far| compared(so_far, usual, view.outcome.is_some()));
    let deadline = run.explanation.as_ref().and_then(|it| it.deadline).map(|it| it.0);
    html! {
        @if let Some(text) = compared { (text) " " }
        @if let Some(planned) = run.planned {
            "Attempt " (planned.no) " at " (times.short(planned.at)) ", " (times.distance(planned.at, Distance::In)) ". "
        }
        @if let Some(at) = deadline.filter(|_| view.status == "running") {
            @if at < times.now { "The deadline was " (times.short(at)) ". " } @else { "The deadline is " (times.short(at)) ". " }
        }
        @if run.job.is_none() { "The job has been removed." }
        @if view.clock_was_ahead { "Its times are in the future: the clock that stored them was ahead." }
    }
}

fn verbs(run: &RunDetails, is_operator: bool) -> Markup {
    let path = run_path(&run.view.id);
    html! {
        @if is_operator && run.view.outcome.is_none() && !run.view.cancel_asked {
            a.btn.dng href={ (path) "?confirm=cancel" } data-ask {
                @if run.row.is_some() { "Cancel run" } @else { "Cancel request" }
            }
        }
        @if is_operator && run.view.outcome.is_some() && run.job.is_some() {
            a.btn.pri href={ (path) "?confirm=again" } data-ask { "Run again" }
        }
        @if run.job.is_some() { a.btn href=(job_path(&run.view.job)) { "Open the job" } }
    }
}

fn why(run: &RunDetails, times: &Times) -> Markup {
    let view = &run.view;
    if view.phase == "waiting" {
        return run.explanation.as_ref().map_or(html! {}, |it| waits(it, times));
    }
    let Some(clause) = run.row.as_ref().and_then(|row| main_clause(row, view)) else { return html! {} };
    let class = match view.status.as_ref() {
        "failed" | "timed_out" | "lost" | "unknown" => "why error",
        "succeeded" | "blackout" => "why warning",
        _ => "why",
    };
    let left: Vec<_> = view.left_behind.iter().map(|name| printable::line(name)).collect();
    html! {
        div class=(class) {
            (run_mark(&view.status).icon())
            div {
                b { (printable::line(&clause)) }
                ul.rsn {
                    @if view.ignored_term {
                        li { b { "Ignored SIGTERM." } " It was still there when its grace was over, and was killed." }
                    }
                    @match left.len() {
                        0 => {}
                        1 => li { b { "Left a process behind," } " which was stopped: " span.mono { (left.join(", ")) } }
                        n => li { b { "Left " (n) " processes behind," } " which were stopped: " span.mono { (left.join(", ")) } }
                    }
                    @if 0 < view.output_cut {
                        li { b { "Output cut." } " " (size(view.output_cut)) " of its output were discarded." }
                    }
                    @if let Some(line) = &view.last_error_line {
                        li { b { "Last line of stderr" } " " span.mono { (printable::line(line)) } }
                    }
                    @if let Some(late) = &view.late {
                        li { b { "A late result" } " came at " (times.exact(late.ended_at.0)) ": " (late.outcome) ". It changed nothing." }
                    }
                }
            }
        }
    }
}

/// Why a request has not started.
fn waits(it: &ExplanationView, times: &Times) -> Markup {
    html! {
        div.why {
            (icon("wait"))
            div {
                b { (printable::line(&it.binding_sentence)) }
                p {
                    @if let Some(until) = it.binding_until { "Until " (times.short(until.0)) ", " (times.distance(until.0, Distance::In)) ". " }
                    @match it.before {
                        0 => {}
                        1 => { "One job is ahead of it in line. " }
                        n => { (count(n as u64)) " jobs are ahead of it in line. " }
                    }
                    @if let Some(at) = it.starts_at { "It should start at " (times.short(at.0)) "." }
                    @else { "When it starts cannot be foreseen." }
                }
            }
        }
    }
}

/// A step on the way of a run.
struct RunStep {
    icon: &'static str,
    class: &'static str,
    word: &'static str,
    at: Option<Timestamp>,
    note: Markup,
}

fn steps(run: &RunDetails, times: &Times) -> Markup {
    let steps = steps_of(run, times);
    let class = format!("steps s{}", steps.len());
    html! {
        ol class=(class) id="run-steps" data-l {
            @for step in &steps {
                li class=[(!step.class.is_empty()).then_some(step.class)] {
                    span.dot { (icon(step.icon)) }
                    b { (step.word) }
                    @if let Some(at) = step.at { (times.exact(at)) } @else { span {} }
                    span.mut { (step.note) }
                }
            }
        }
    }
}

fn steps_of(run: &RunDetails, times: &Times) -> Vec<RunStep> {
    let view = &run.view;
    let mut steps = Vec::new();
    let mut step = |icon, class, word, at: Option<Timestamp>, note| {
        steps.push(RunStep { icon, class, word, at, note });
    };
    let due = view.scheduled_for.map(|it| it.0);
    let word = if view.asked.is_some() { "Requested" } else { "Due" };
    step("ok", "", word, due, html! { (cause_of(view)) });
    let Some(claimed) = view.claimed_at.map(|it| it.0) else {
        let word = if view.outcome.is_some() { "Cancelled" } else { "Waiting" };
        let class = if view.outcome.is_some() { "" } else { "now" };
        step(if view.outcome.is_some() { "paused" } else { "wait" }, class, word, None, html! {});
        return steps;
    };
    let node =
        view.node.as_deref().map_or("a node that is gone".to_owned(), |it| printable::line(it).into_owned());
    let waited = due.map(|due| took((claimed - due).max(evenbeat_core::time::Duration::ZERO)));
    step(
        "ok",
        "",
        "Claimed",
        Some(claimed),
        html! { "by " (node) @if let Some(waited) = waited { ", " (waited) } },
    );
    if view.phase == "published" {
        step("run", "now", "Published", None, html! { "waits for a worker" });
        return steps;
    }
    if let Some(started) = view.started_at.map(|it| it.0) {
        step(
            "ok",
            "",
            "Started",
            Some(started),
            html! { (took((started - claimed).max(evenbeat_core::time::Duration::ZERO))) " later" },
        );
    } else if view.outcome.is_none() {
        step("run", "now", "Starting", None, html! { "for " (times.distance(claimed, Distance::Since)) });
        return steps;
    }
    match view.ended_at.map(|it| it.0) {
        Some(ended) => {
            let (icon, class) = end_mark(&view.status);
            let note =
                match (view.took, view.frozen_for.filter(|it| evenbeat_core::time::Duration::ZERO < it.0)) {
                    (Some(length), Some(frozen)) => {
                        html! { "after " (took(length.0)) ", frozen for " (took(frozen.0)) }
                    }
                    (Some(length), None) => html! { "after " (took(length.0)) },
                    (None, _) => html! { "it never started" },
                };
            step(icon, class, crate::dashboard::parts::run_word(&view.status), Some(ended), note);
        }
        None => {
            let note = match &run.ping {
                Some(ping) => html! { "last beat " (times.distance(ping.last_ping_at, Distance::Ago)) },
                None => html! {},
            };
            step("run", "now", if view.cancel_asked { "Ending" } else { "Running" }, None, note);
        }
    }
    steps
}

fn end_mark(status: &str) -> (&'static str, &'static str) {
    match run_mark(status) {
        ConditionMark::Ok => ("ok", ""),
        ConditionMark::Error => ("error", "bad"),
        ConditionMark::Warning => ("warning", ""),
        _ => ("paused", ""),
    }
}

/// What made a run start.
pub(super) fn cause_of(view: &RunView) -> String {
    let cause = match view.trigger.as_ref() {
        "manual" => "by hand",
        "retry" => "another attempt",
        "catchup" => "makes up for a missed time",
        "backfill" => "for a time in the past",
        _ => "by its schedule",
    };
    if 1 < view.attempt { format!("{cause}, attempt {}", view.attempt) } else { cause.to_owned() }
}

/// What the run reported of itself.
pub(super) fn result(run: &RunDetails) -> Markup {
    let values = &run.view.result;
    if values.is_empty() {
        return html! {};
    }
    html! {
        section.sec id="run-result" aria-labelledby="pr-h" data-l {
            div.sec-h { h2 id="pr-h" { "Result" } span.sub { "as the run reported it" } }
            dl.kp.cn {
                @for (name, value) in values.iter().take(N_VALUES_MAX) {
                    div { dt { (printable::line(&name.replace('_', " "))) } dd { (value_text(value)) } }
                }
            }
            @if N_VALUES_MAX < values.len() { p.mut { "and " (values.len() - N_VALUES_MAX) " more, in the API" } }
        }
    }
}

fn value_text(value: &Json) -> String {
    let text = match value {
        Json::Number(number) => match number.as_u64() {
            Some(number) => count(number),
            None => number.to_string(),
        },
        Json::String(text) => text.clone(),
        other => other.to_string(),
    };
    let short: String = text.chars().take(80).collect();
    let end = if short.len() < text.len() { "…" } else { "" };
    format!("{}{end}", printable::line(&short))
}

/// The attempts at the same occurrence or request.
pub(super) fn attempts(run: &RunDetails, times: &Times) -> Markup {
    if run.attempts.is_empty() {
        return html! { section.sec id="run-attempts" data-l hidden {} };
    }
    let what = if run.view.asked.is_some() { "at this request" } else { "at this occurrence" };
    html! {
        section.sec id="run-attempts" aria-labelledby="at-h" data-l {
            div.sec-h { h2 id="at-h" { "Attempts" } span.sub { (run.attempts.len()) " " (what) } }
            table.tbl.fix.atts {
                colgroup { col.a1; col.a2; col.a3; col.a4; col.a5; col; }
                thead {
                    tr {
                        th { "No." } th { "Start, " (times.zone_name()) } th { "Outcome" } th.num { "Took" } th.a-w { "Node" }
                        th { "Why it ended" }
                    }
                }
                tbody {
                    @for attempt in &run.attempts { (attempt_row(attempt, attempt.id == run.view.id, times)) }
                    @if let Some(planned) = run.planned {
                        tr {
                            td.a-n { (planned.no) } td.nw.a-s { (times.short(planned.at)) }
                            td.a-o { (status_with(ConditionMark::New, "Planned")) } td.num.a-d {} td.a-w {}
                            td.ell.t2.a-r { (times.distance(planned.at, Distance::In)) }
                        }
                    }
                }
            }
        }
    }
}

fn attempt_row(attempt: &RunView, is_this: bool, times: &Times) -> Markup {
    let why = attempt.sentence.as_deref().map(|it| it.strip_prefix("The run ").unwrap_or(it));
    let why = why.map(|it| printable::line(it).into_owned()).unwrap_or_default();
    let at = attempt.started_at.or(attempt.claimed_at).map(|it| it.0);
    let start = html! { @if let Some(at) = at { (times.exact(at)) } };
    html! {
        tr {
            td.a-n { @if is_this { b { (attempt.attempt) } } @else { (attempt.attempt) } }
            td.nw.a-s { @if is_this { b { (start) } } @else { a.link href=(run_path(&attempt.id)) { (start) } } }
            td.a-o { (run_status(&attempt.status)) }
            td.num.nw.a-d {
                @if let Some(length) = attempt.took { (took(length.0)) }
                @else if let Some(from) = attempt.started_at.filter(|_| attempt.outcome.is_none()) { (times.distance(from.0, Distance::Since)) }
            }
            td.a-w.ell { @if let Some(node) = &attempt.node { (printable::line(node)) } }
            td.ell.t2.a-r title=(why) { (why) }
        }
    }
}
