//! The column beside: facts of the run, what was left behind, its neighbours.

use evenbeat_core::time::Duration;
use maud::{Markup, html};

use super::body::cause_of;
use crate::dashboard::parts::{job_link, run_path, run_word};
use crate::dashboard::times::{Distance, Times, brief, counted, took};
use crate::printable;
use crate::views::model::RunView;
use crate::views::run_details::RunDetails;

/// The column.
pub(super) fn aside(run: &RunDetails, times: &Times) -> Markup {
    html! {
        aside.col id="run-aside" aria-label="Details" data-l {
            section.sec.kvs {
                h3 { "This run" }
                dl.kv { (facts(run, times)) }
                @if let Some(params) = run.view.params.as_ref().filter(|it| !it.is_empty()) {
                    h3 { "Its own parameters" }
                    dl.kv {
                        @for (name, value) in params {
                            dt { (printable::line(name)) } dd.mono { (printable::line(&value.to_string())) }
                        }
                    }
                }
                @if !run.view.left_behind.is_empty() {
                    h3 { "Processes it left behind" }
                    pre.tree tabindex="0" {
                        @for name in &run.view.left_behind { (printable::line(name)) "  stopped\n" }
                    }
                }
            }
            @if run.row.is_some() { (neighbours(run, times)) }
        }
    }
}

fn facts(run: &RunDetails, times: &Times) -> Markup {
    let view = &run.view;
    let job = run.job.as_ref();
    let limits = job.map(|(row, _)| row.job.limits);
    let killed_at = view
        .started_at
        .filter(|_| view.outcome.is_none())
        .and_then(|from| limits.and_then(|it| it.max_allowed).map(|longest| (from.0 + longest, longest)));
    let deadline = run.explanation.as_ref().and_then(|it| it.deadline).map(|it| it.0);
    html! {
        dt { "Job" } dd { (job_link(&view.job)) }
        dt { "Id" } dd.mono { (view.id) }
        dt { (if view.started_at.is_some() { "Why it ran" } else { "Why it runs" }) } dd { (cause_of(view)) }
        @if let Some(asked) = view.asked.as_ref().filter(|it| **it != view.id) { dt { "Request" } dd.mono { (asked) } }
        @if let Some(node) = &view.node {
            dt { "Node" }
            dd {
                a.link href={ "/nodes#" (node) } { (printable::line(node)) }
                @if let Some(instance) = &view.instance { " " span.mut { (printable::line(instance)) } }
            }
        }
        @if let Some(ping) = &run.ping {
            dt { "Last beat" }
            dd {
                (times.distance(ping.last_ping_at, Distance::Ago))
                @if let Some(since) = ping.doubted_at { " " span.c-warn { "in doubt since " (times.exact(since)) } }
            }
        }
        @if let Some((_, job)) = job {
            dt { "Usually takes" }
            dd {
                @if let Some(estimate) = &job.estimate {
                    (took(estimate.mean.0)) " " span.mut { "of " (counted(estimate.samples, "good run")) }
                } @else { span.mut { "not known yet" } }
            }
        }
        @if let Some(longest) = limits.and_then(|it| it.max_expected) { dt { "At most expected" } dd { (brief(longest)) } }
        @if let Some((at, longest)) = killed_at {
            dt { "Stopped at" } dd { (times.exact(at)) " " span.mut { "max allowed " (brief(longest)) } }
        }
        @if let Some(at) = deadline {
            dt { "Deadline" }
            dd {
                (times.short(at)) " "
                @if at < times.now { span.c-err { "missed by " (times.distance(at, Distance::Since)) } }
                @else { span.mut { (times.distance(at, Distance::In)) } }
            }
        }
        @if let Some(code) = view.exit_code { dt { "Exit code" } dd { (code) } }
        @if let Some(signal) = view.signal { dt { "Signal" } dd { (signal) } }
        @if let Some(frozen) = view.frozen_for.filter(|it| Duration::ZERO < it.0) { dt { "Frozen for" } dd { (took(frozen.0)) } }
    }
}

fn neighbours(run: &RunDetails, times: &Times) -> Markup {
    let link = |label: &str, it: &RunView, class: Option<&str>| {
        let at = it.started_at.or(it.claimed_at).map(|at| at.0);
        html! {
            a class=[class] href=(run_path(&it.id)) {
                span.mut { (label) }
                b { @if let Some(at) = at { (times.short(at)) ", " } (run_word(&it.status).to_lowercase()) }
                span.t2 { @if let Some(length) = it.took { (took(length.0)) } @else { "open" } }
            }
        }
    };
    let planned = run.job.as_ref().and_then(|(_, job)| job.planned_start).map(|it| it.0);
    html! {
        nav.nb aria-label="Neighbouring runs" {
            @if let Some(it) = &run.previous { (link("Previous run", it, None)) } @else { span {} }
            @if let Some(it) = &run.following { (link("Next run", it, Some("num"))) }
            @else if let Some(at) = planned {
                span.num.nb-p {
                    span.mut { "Next run" } b { (times.short(at)) ", planned" } span.t2 { (times.distance(at, Distance::In)) }
                }
            }
        }
    }
}
