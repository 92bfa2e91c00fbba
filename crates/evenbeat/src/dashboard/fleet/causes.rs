//! What is late or at risk, and why: each cause once, with what happens next.

use evenbeat_core::roster::AttentionCause;
use maud::{Markup, html};

use super::address::ListAddress;
use crate::dashboard::parts::icon;
use crate::dashboard::times::{Times, count};
use crate::views::job_list::ListQuery;
use crate::views::overview::{CauseLine, FleetOverview};

pub(super) fn causes(fleet: &FleetOverview, address: &ListAddress, times: &Times) -> Markup {
    html! {
        section.sec aria-labelledby="c-h" {
            div.sec-h { h2 id="c-h" { "What is late, and why" } }
            div id="causes" data-l {
                @if fleet.causes.is_empty() {
                    div.empty { (icon("ok")) h3 { "Nothing is late or at risk" } p { "Causes are listed here as soon as a job needs attention." } }
                } @else {
                    table.tbl.causes.fix {
                        colgroup { col.w-i; col; col.w-n; col.w-n; col.w-x; }
                        thead { tr {
                            th { span.sr { "Severity" } } th { "Cause" } th.num { "Error" } th.num { "At risk" }
                            th { "What happens next" }
                        } }
                        tbody { @for line in &fleet.causes { (row(line, address, times)) } }
                    }
                }
            }
        }
    }
}

fn row(line: &CauseLine, address: &ListAddress, times: &Times) -> Markup {
    let query = ListQuery {
        cause: Some(line.cause),
        pool: line.pool.as_ref().and_then(|it| it.name.parse().ok()),
        ..ListQuery::default()
    };
    let is_chosen = address.query.cause == query.cause && address.query.pool == query.pool;
    let path = ListAddress { query, page_idx: 0 }.path();
    html! {
        tr {
            td { @if 0 < line.n_late { (icon("error")) } @else { (icon("warning")) } }
            td.ell { a href=(path) aria-current=[is_chosen.then_some("true")] { (text(line)) } }
            td.num.z[line.n_late == 0] { @if 0 < line.n_late { b.c-err { (count(line.n_late.into())) } } @else { "0" } }
            td.num.z[line.n_at_risk == 0] { @if 0 < line.n_at_risk { b.c-warn { (count(line.n_at_risk.into())) } } @else { "0" } }
            td.t2.nx.ell { (next(line, times)) }
        }
    }
}

/// The cause in a few words.
pub(super) fn name(cause: AttentionCause) -> &'static str {
    match cause {
        AttentionCause::Failed => "The last run failed",
        AttentionCause::Running => "Runs take too long, or began too late",
        AttentionCause::Waiting => "Waiting to start",
        AttentionCause::NoNode => "No node can take them",
        AttentionCause::Blackout => "Held up by a blackout",
        AttentionCause::StartsLate => "The next start is too late",
        AttentionCause::Unsatisfiable => "Cannot be on time as defined",
        AttentionCause::GivenUp => "Paused by the system",
    }
}

fn text(line: &CauseLine) -> String {
    match &line.pool {
        Some(pool) => match pool.units {
            Some((used, capacity)) if capacity <= used => {
                format!("Pool {} is full, {used} of {capacity} slots busy", pool.name)
            }
            _ => format!("Waiting to start in pool {}", pool.name),
        },
        None if line.cause == AttentionCause::Waiting => "Waiting to start in other pools".to_owned(),
        None => name(line.cause).to_owned(),
    }
}

fn next(line: &CauseLine, times: &Times) -> Markup {
    let at = |what: &str| {
        let whose = if line.is_sample { "of the most urgent, " } else { "" };
        line.next_at.map(|at| html! { (whose) (what) " " (times.short(at)) })
    };
    let timed = match line.cause {
        AttentionCause::Failed => at("next retry"),
        AttentionCause::Running => at("first end expected"),
        AttentionCause::Waiting => at("next slot frees about"),
        AttentionCause::Blackout | AttentionCause::StartsLate => at("next start"),
        AttentionCause::NoNode | AttentionCause::Unsatisfiable | AttentionCause::GivenUp => None,
    };
    timed.unwrap_or_else(|| {
        html! {
            (match line.cause {
                AttentionCause::Failed => "no retry is planned",
                AttentionCause::Running => "nothing foreseen",
                AttentionCause::Waiting => "they start as slots free",
                AttentionCause::NoNode => "they start when a node can take them",
                AttentionCause::Blackout | AttentionCause::StartsLate => "no start is foreseen",
                AttentionCause::Unsatisfiable => "change how they are defined",
                AttentionCause::GivenUp => "fix them, then resume them",
            })
        }
    })
}
