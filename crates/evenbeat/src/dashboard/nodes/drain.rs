//! Draining: a node takes no new runs, and those that it has go on.

use axum::extract::{Path, State};
use axum::response::Response;
use evenbeat_core::ids::NodeName;
use maud::{Markup, html};

use crate::dashboard::Pages;
use crate::dashboard::error::{NoPage, PageResult, see_other};
use crate::dashboard::flash::Flash;
use crate::dashboard::frame::{Frame, Nav};
use crate::dashboard::parts::{PageQuestion, question};
use crate::dashboard::times::{count, counted};
use crate::dashboard::user::{PageForm, PageOperator, PageUser};
use crate::intake::IntakeError;
use crate::views;
use crate::views::capacity::{CapacityOverview, NodeStanding};

/// Asks, with the consequence.
pub(super) async fn ask(
    user: PageUser<PageOperator>,
    State(pages): State<Pages>,
    Path(name): Path<String>,
) -> PageResult<Response> {
    let node = node_name(&name).map_err(NoPage::NotFound)?;
    let times = user.times(pages.app.intake.now());
    let fleet = views::capacity::overview(&pages.app).await?;
    if !fleet.nodes.iter().any(|it| it.node == node.as_str()) {
        return Err(NoPage::NotFound(format!("there is no live node `{node}`")));
    }
    let asked = PageQuestion {
        title: format!("Drain {node}?"),
        body: consequence(&fleet, node.as_str()),
        action: format!("/nodes/{node}/drain"),
        verb: format!("Drain {node}"),
        is_final: false,
        back: "/nodes",
    };
    let body = question(&asked, &user.session);
    Ok(Frame::new(Nav::Nodes, asked.title, body).show(&user, &times))
}

/// Drains, or takes new runs again.
pub(super) async fn drain(
    State(pages): State<Pages>,
    Path(name): Path<String>,
    form: PageForm<PageOperator>,
) -> PageResult<Response> {
    let node = node_name(&name).map_err(NoPage::NotFound)?;
    let is_draining = match form.fields.get("draining") {
        None | Some("yes") => true,
        Some("no") => false,
        Some(_) => return Err(NoPage::Refused("`draining` is `yes` or `no`".to_owned())),
    };
    let told = pages.app.intake.drain(form.user.actor(), &node, is_draining).await;
    told.map_err(|error| match error {
        IntakeError::Down(down) => NoPage::Down(down),
        error => {
            let flash = Flash::failed(format!("{node} was not changed"), error.to_string());
            NoPage::back("/nodes".to_owned(), flash)
        }
    })?;
    let flash = if is_draining {
        Flash::done(format!("{node} is draining"), "It takes no new runs. Those that it has go on.")
    } else {
        Flash::done(
            format!("{node} takes runs again"),
            "Jobs that wait for its pools start as there is room.",
        )
    };
    Ok(see_other("/nodes", Some(&flash)))
}

fn node_name(name: &str) -> Result<NodeName, String> {
    name.parse().map_err(|_| "there is no live node of this name".to_owned())
}

/// What draining a node does to its runs and its pools.
fn consequence(fleet: &CapacityOverview, node: &str) -> Markup {
    let theirs = || fleet.nodes.iter().filter(|it| it.node == node && it.standing != NodeStanding::Silent);
    let n_runs: u64 = theirs().map(|it| it.n_runs).sum();
    let left = fleet.pools.iter().filter_map(|pool| {
        let up = theirs().filter(|it| it.standing == NodeStanding::Up);
        let lost: u64 = up.filter_map(|it| it.pools.get(&pool.pool)).map(|it| u64::from(*it)).sum();
        (0 < lost).then(|| (pool.pool.as_str(), pool.usable.saturating_sub(lost), pool.usable))
    });
    let (alone, shared): (Vec<_>, Vec<_>) = left.partition(|(_, left, _)| *left == 0);
    let alone: Vec<&str> = alone.into_iter().map(|(pool, ..)| pool).collect();
    html! {
        p {
            "It takes no new runs. "
            @match n_runs {
                0 => "Nothing runs on it now.",
                1 => "The run that it has goes on until it ends.",
                n => { "Its " (counted(n, "run")) " go on until they end." }
            }
        }
        @if !alone.is_empty() {
            p {
                b { "No other node carries the " (if alone.len() == 1 { "pool" } else { "pools" }) " " (alone.join(", ")) "." }
                (if alone.len() == 1 { " Its jobs" } else { " Their jobs" }) " wait until a node takes runs again."
            }
        }
        @for (pool, left, usable) in shared {
            p { "The pool " b { (pool) } " keeps " (count(left)) " of its " (counted(usable, "usable slot")) "." }
        }
    }
}
