//! The nodes of the fleet.

use super::ViewError;
use super::model::NodeView;
use crate::app::App;

/// All nodes by name, and dead ones if wanted.
pub(crate) async fn list(app: &App, with_dead: bool) -> Result<Vec<NodeView>, ViewError> {
    let sessions = app.store.sessions().await?;
    let n_open = app.store.open_runs_by_session().await?;
    let me = &app.identity;
    let shown = sessions.iter().filter(|it| with_dead || !it.is_dead);
    let mut nodes: Vec<NodeView> = shown
        .map(|it| {
            let is_this = !it.is_dead && it.spec.node == me.node && it.spec.home == me.home;
            NodeView::of(it, n_open.get(&it.spec.id).copied().unwrap_or(0), is_this)
        })
        .collect();
    nodes.sort_by(|one, other| {
        (&one.node, &one.instance, &one.session).cmp(&(&other.node, &other.instance, &other.session))
    });
    Ok(nodes)
}
