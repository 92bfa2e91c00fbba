//! Pools and nodes: what is full, who is silent, and what runs where.

mod drain;
mod node;
mod pool;
mod verdict;

use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use maud::{Markup, html};

use super::Pages;
use super::error::PageResult;
use super::frame::{Frame, Nav};
use super::times::{Distance, Times, count, counted};
use super::user::{PageUser, PageViewer};
use crate::printable;
use crate::views;
use crate::views::capacity::{CapacityOverview, NodeLoad};

pub(super) fn routes() -> Router<Pages> {
    Router::new().route("/nodes", get(page)).route("/nodes/{name}/drain", get(drain::ask).post(drain::drain))
}

async fn page(user: PageUser<PageViewer>, State(pages): State<Pages>) -> PageResult<Response> {
    let times = user.times(pages.app.intake.now());
    let fleet = views::capacity::overview(&pages.app).await?;
    let verdict = verdict::verdict(&fleet, &times);
    let with_dead = user.query.get("dead").is_some();
    let body = html! {
        (verdict.markup(&fleet, &times))
        (pool::section(&fleet.pools, &times))
        section.sec.gap aria-labelledby="n-h" {
            div.sec-h {
                h2 id="n-h" { "Nodes" }
                span.sub { "running jobs, deadline first; the tick on a bar is the usual duration" }
                span.sp {}
                (legend())
            }
            div class=(if fleet.nodes.len() < 2 { "nds one" } else { "nds" }) id="nodes" data-l {
                @for node in &fleet.nodes { (node::card(node, &fleet, &user, &times)) }
            }
            @if fleet.is_cut { p.mut { "These are the first " (count(fleet.nodes.len() as u64)) " nodes." } }
        }
        (dead(&fleet, with_dead, &times))
    };
    Ok(Frame::new(Nav::Nodes, verdict.title, body).live("node run job").show(&user, &times))
}

fn legend() -> Markup {
    let cell = |class: &str| {
        html! { svg.cellrow viewBox="0 0 14 14" width="14" height="14" aria-hidden="true" { path class=(class) d="M.75 .75h10.5v12.5h-10.5z" {} } }
    };
    html! {
        div.lgd {
            span { (cell("run")) "running" }
            span { (cell("bad")) "no ping" }
            span { (cell("free")) "free" }
            span { (cell("off")) "closed" }
        }
    }
}

/// Sessions that have ended, behind a link: they are rarely needed.
fn dead(fleet: &CapacityOverview, is_shown: bool, times: &Times) -> Markup {
    let n_dead = fleet.dead.len() as u64;
    let row = |node: &NodeLoad| {
        html! {
            tr {
                td.ell title=(printable::line(&node.node)) { b { (printable::line(&node.node)) } }
                td.ell.t2 { (printable::line(&node.instance)) }
                td.nw {
                    @if let Some(at) = node.last_seen_at { (times.short(at)) " " span.mut { (times.distance(at, Distance::Ago)) } }
                    @else { span.mut { "not known" } }
                }
                td.t2.ell { @if 0 < node.n_runs { (counted(node.n_runs, "run")) " not taken over yet" } @else { "nothing left behind" } }
            }
        }
    };
    html! {
        @if 0 < n_dead {
            section.sec.gap id="dead" aria-labelledby="x-h" {
                div.sec-h {
                    h2 id="x-h" { "Ended" }
                    span.sub { @if n_dead == 1 { "1 process" } @else { (count(n_dead)) " processes" } " of nodes that left or were taken over" }
                    span.sp {}
                    @if is_shown { a.link href="/nodes" { "Hide" } } @else { a.link href="/nodes?dead=1#dead" { "Show" } }
                }
                @if is_shown {
                    table.tbl.fix.rts.dead {
                        colgroup { col.v1; col.v2; col.v3; col; }
                        thead { tr { th { "Node" } th { "Instance" } th { "Last ping, " (times.zone_name()) } th { "Runs" } } }
                        tbody { @for node in &fleet.dead { (row(node)) } }
                    }
                }
            }
        }
    }
}
