//! The nodes of the fleet.

use std::cmp::Reverse;

use evenbeat_core::ids::SessionId;

use super::ViewError;
use super::model::{LogPlace, NodeDetails, NodeView};
use crate::app::App;

/// Number of dead sessions of a node that are shown.
const N_DEAD_MAX: usize = 20;

/// All nodes by name, and dead ones if wanted.
pub(crate) async fn list(app: &App, with_dead: bool) -> Result<Vec<NodeView>, ViewError> {
    let sessions = app.store.sessions().await?;
    let n_open = app.store.open_runs_by_session().await?;
    let seen = app.store.sessions_seen().await?;
    let me = &app.identity;
    let shown = sessions.iter().filter(|it| with_dead || !it.is_dead);
    let mut nodes: Vec<NodeView> = shown
        .map(|it| {
            let is_this = !it.is_dead && it.spec.node == me.node && it.spec.home == me.home;
            let view = NodeView::of(it, n_open.get(&it.spec.id).copied().unwrap_or(0), is_this);
            view.seen_at(seen.get(&it.spec.id).copied())
        })
        .collect();
    nodes.sort_by(|one, other| {
        (&one.node, &one.instance, &one.session).cmp(&(&other.node, &other.instance, &other.session))
    });
    Ok(nodes)
}

/// One node with all its sessions. None if there is no session of that name.
pub(crate) async fn details(app: &App, name: &str) -> Result<Option<NodeDetails>, ViewError> {
    let mut sessions = list(app, true).await?;
    sessions.retain(|it| it.node == name);
    let rank = |it: &NodeView| ["living", "draining", "dead"].iter().position(|word| it.state == *word);
    sessions.sort_by_key(|it| (rank(it), Reverse(it.last_seen_at)));
    let n_sessions = sessions.iter().filter(|it| it.state != "dead").count().max(1) + N_DEAD_MAX;
    let open_runs = sessions.iter().map(|it| it.open_runs).sum();
    sessions.truncate(n_sessions);
    Ok(sessions.first().map(|best| NodeDetails {
        node: name.to_owned(),
        state: best.state.clone(),
        last_seen_at: sessions.iter().filter_map(|it| it.last_seen_at).max(),
        open_runs,
        sessions: sessions.clone(),
    }))
}

/// Where the runs of a session are, if not on this node.
pub(crate) async fn place_of(app: &App, session: SessionId) -> Result<Option<LogPlace>, ViewError> {
    let all = app.store.sessions().await?;
    let Some(owner) = all.iter().find(|it| it.spec.id == session) else { return Ok(None) };
    if owner.spec.node == app.identity.node {
        return Ok(None);
    }
    let seen = app.store.sessions_seen().await?;
    // A later process of the same node has the logs of earlier ones.
    let of_node =
        || all.iter().filter(|it| it.spec.node == owner.spec.node && it.spec.home == owner.spec.home);
    Ok(Some(LogPlace {
        node: owner.spec.node.to_string(),
        instance: owner.spec.name.clone(),
        is_alive: of_node().any(|it| !it.is_dead),
        last_seen_at: of_node().filter_map(|it| seen.get(&it.spec.id)).max().map(|at| (*at).into()),
    }))
}
