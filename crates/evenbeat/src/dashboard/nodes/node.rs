//! One node with its running jobs.

use evenbeat_core::rights::Role;
use evenbeat_core::store::SessionKind;
use evenbeat_core::time::Duration;
use maud::{Markup, html};

use super::verdict::takeover_at;
use crate::dashboard::parts::{ConditionMark, SlotUnits, form_token, icon, job_link, percent, slot_cells};
use crate::dashboard::times::{Distance, Times, brief, counted};
use crate::dashboard::user::{PageUser, PageViewer};
use crate::printable;
use crate::views::capacity::{CapacityOverview, NodeLoad, NodeStanding, RunOnNode};

/// Runs of one node that are shown.
const RUNS_SHOWN_MAX: usize = 12;

/// With more units than this, the head of a node shows a bar instead of cells.
const NODE_CELLS_MAX: u64 = 24;

/// With more nodes than this on a page, fewer runs of each are shown.
const NODES_WITH_RUNS: usize = 16;
const RUNS_OF_MANY_MAX: usize = 4;

pub(super) fn card(
    node: &NodeLoad,
    fleet: &CapacityOverview,
    user: &PageUser<PageViewer>,
    times: &Times,
) -> Markup {
    let most = if fleet.nodes.len() <= NODES_WITH_RUNS { RUNS_SHOWN_MAX } else { RUNS_OF_MANY_MAX };
    let shown = node.runs.iter().take(most);
    let n_more = node.n_runs.saturating_sub(node.runs.len().min(most) as u64);
    html! {
        section.nd aria-label={ "Node " (printable::line(&node.node)) } {
            (head(node, user, times))
            @if node.standing == NodeStanding::Silent { (in_grace(node, fleet, times)) }
            @if 0 < node.n_runs {
                table.tbl.fix.ndt {
                    colgroup { col.n1; col; col.n2; col.n3; col.n4; col.n5; }
                    tbody { @for run in shown { (row(run, node, times)) } }
                }
                @if 0 < n_more {
                    p.mut.nd-m { "and " a.link href="/runs?o=running" { (counted(n_more, "more run")) } }
                }
            } @else { p.mut.nd-m { "Nothing runs here." } }
        }
    }
}

fn head(node: &NodeLoad, user: &PageUser<PageViewer>, times: &Times) -> Markup {
    let status = match node.standing {
        NodeStanding::Silent => html! { span.st.st-error { (icon("error")) span.w { "Silent" } } },
        NodeStanding::Draining => html! { span.st.st-paused { (icon("drain")) span.w { "Draining" } } },
        NodeStanding::Up => html! { span.st.st-ok { (icon("ok")) span.w { "Up" } } },
        NodeStanding::Dead => html! { span.st.st-paused { (icon("paused")) span.w { "Ended" } } },
    };
    let pools: Vec<String> =
        node.pools.iter().map(|(pool, units)| format!("{} {units}", printable::line(pool))).collect();
    html! {
        div.nd-h {
            h3 { (printable::line(&node.node)) }
            (status)
            span.mut {
                @if node.kind == SessionKind::Worker { "worker, " }
                @if node.instance != node.node { (printable::line(&node.instance)) ", " }
                @if !pools.is_empty() { (pools.join(", ")) ", " }
                @if node.is_this { "this node" }
                @else if let Some(at) = node.last_seen_at {
                    @if node.standing == NodeStanding::Silent { "last " } "ping " (times.distance(at, Distance::Ago))
                } @else { "ping not known" }
                @if node.standing == NodeStanding::Draining { ", takes no new runs" }
                @if !node.zone_data.is_empty() { ", zones " (printable::line(&node.zone_data)) }
            }
            span.nd-c { (cells(node)) }
            span.nd-v { (verb(node, user)) }
        }
    }
}

fn cells(node: &NodeLoad) -> Markup {
    let Some(in_use) = node.in_use else { return html! { span.mut { (counted(node.n_runs, "run")) } } };
    let rest = node.capacity().saturating_sub(in_use);
    let units = match node.standing {
        NodeStanding::Up => SlotUnits { running: in_use, free: rest, ..SlotUnits::default() },
        NodeStanding::Draining => SlotUnits { running: in_use, closed: rest, ..SlotUnits::default() },
        NodeStanding::Silent | NodeStanding::Dead => {
            SlotUnits { silent: in_use, closed: rest, ..SlotUnits::default() }
        }
    };
    slot_cells(units, NODE_CELLS_MAX)
}

fn verb(node: &NodeLoad, user: &PageUser<PageViewer>) -> Markup {
    let path = format!("/nodes/{}/drain", node.node);
    let is_node = node.kind == SessionKind::Node;
    html! {
        @if is_node && user.may(Role::Operator) {
            @match node.standing {
                NodeStanding::Up => a.btn href=(path) data-ask { "Drain" },
                NodeStanding::Draining => {
                    form method="post" action=(path) {
                        (form_token(&user.session))
                        input type="hidden" name="draining" value="no";
                        button.btn type="submit" { "Undrain" }
                    }
                }
                NodeStanding::Silent | NodeStanding::Dead => {}
            }
        }
    }
}

fn in_grace(node: &NodeLoad, fleet: &CapacityOverview, times: &Times) -> Markup {
    let name = printable::line(&node.node);
    html! {
        div.banner.nd-n {
            (icon("error"))
            span {
                @match takeover_at(node, fleet).filter(|_| 0 < node.n_runs) {
                    Some(at) if times.now < at => {
                        b { (counted(node.n_runs, "run")) " in grace until " (times.exact(at)) "." }
                        " If " (name) " does not ping by then, other nodes may take them over."
                    }
                    Some(_) => { b { "Other nodes may take over its " (counted(node.n_runs, "run")) " now." } }
                    None => { "Nothing runs here that others would have to take over." }
                }
            }
        }
    }
}

fn row(run: &RunOnNode, node: &NodeLoad, times: &Times) -> Markup {
    let elapsed = times.now - run.since;
    let mark = ConditionMark::of(&run.job.condition);
    let mark = if run.job.tracked { mark } else { ConditionMark::Paused };
    let left = run.job.deadline.map(|it| it.0);
    let is_late = left.is_some_and(|at| at < times.now);
    let is_silent = node.standing == NodeStanding::Silent;
    html! {
        tr {
            td title=(mark.word()) { (mark.icon()) span.sr { (mark.word()) } }
            td.ell title=(run.job.key) { (job_link(&run.job.key)) }
            td.n-p { (progress(run, elapsed)) }
            td.num.nw.n-t {
                a href={ "/runs/" (run.run) } { (times.distance(run.since, Distance::Since)) }
                @if let Some(usual) = run.usual { span.mut { " of " (brief(usual)) } }
            }
            td.num.nw.n-d {
                @match left {
                    Some(at) if is_late => b.c-err { (times.distance(at, Distance::Left)) },
                    Some(at) => span class=(if mark == ConditionMark::Warning { "c-warn" } else { "t2" }) { (times.distance(at, Distance::Left)) },
                    None => span.mut { "no deadline" },
                }
            }
            td.num.nw.n-g.t2 {
                @if let Some(at) = run.last_ping_at {
                    "ping " @if is_silent { b.c-err { (times.distance(at, Distance::Since)) } } @else { (times.distance(at, Distance::Since)) }
                }
            }
        }
    }
}

/// How far a run is: the whole bar is the longest it may take, and the tick is how long it usually takes.
fn progress(run: &RunOnNode, elapsed: Duration) -> Markup {
    let for_so_long = brief(elapsed);
    let elapsed = elapsed.as_millis_f64().max(0.0);
    let usual = run.usual.map(Duration::as_millis_f64);
    let most = run.max_allowed.map(Duration::as_millis_f64);
    let scale = most.or(usual.map(|it| it * 2.5)).unwrap_or(0.0).max(elapsed).max(usual.unwrap_or(0.0));
    let is_over = run.max_expected.is_some_and(|it| it.as_millis_f64() < elapsed)
        || run.job.reasons.iter().any(|it| it == "overrunning");
    let share = |it: f64| percent(it / scale.max(1.0) * 100.0);
    let label = match run.usual {
        Some(usual) => format!("Running for {for_so_long} of usually {}", brief(usual)),
        None => format!("Running for {for_so_long}"),
    };
    html! {
        @if 0.0 < scale && (usual.is_some() || most.is_some()) {
            svg class=(if is_over { "pg over" } else { "pg" }) role="img" aria-label=(label) {
                rect.trk width="100%" height="8" rx="2" {}
                rect.use width=(share(elapsed)) height="8" rx="2" {}
                @if let Some(usual) = usual { line.mx x1=(share(usual)) x2=(share(usual)) y1="-2" y2="10" {} }
            }
        } @else { span.mut.nw { "no estimate" } }
    }
}
