//! Nodes: list, drain (L6).

use axum::Json;
use axum::extract::State;
use evenbeat_core::ids::NodeName;

use crate::api::caller::{Caller, Operator, Viewer};
use crate::api::extract::{Asked, Body, Nothing, Params, Query, Segment};
use crate::api::problem::{Code, Problem};
use crate::api::router::Api;
use crate::views::model::{DrainAnswer, DrainRequest, NodeView, Page};

/// Which nodes.
#[derive(Debug)]
pub(in crate::api) struct NodesQuery {
    /// Whether dead ones too.
    dead: bool,
}

impl Query for NodesQuery {
    fn read(params: &mut Params) -> NodesQuery {
        NodesQuery { dead: params.truth("dead").unwrap_or(false) }
    }
}

pub(in crate::api) async fn list(
    _caller: Caller<Viewer>,
    State(api): State<Api>,
    Asked(query): Asked<NodesQuery>,
) -> Result<Json<Page<NodeView>>, Problem> {
    let sessions = api.app.store.sessions().await?;
    let n_open = api.app.store.open_runs_by_session().await?;
    let me = &api.app.identity;
    let mut items: Vec<NodeView> = sessions
        .iter()
        .filter(|it| query.dead || !it.is_dead)
        .map(|it| {
            let is_this = !it.is_dead && it.spec.node == me.node && it.spec.home == me.home;
            NodeView::of(it, n_open.get(&it.spec.id).copied().unwrap_or(0), is_this)
        })
        .collect();
    items.sort_by(|one, other| {
        (&one.node, &one.instance, &one.session).cmp(&(&other.node, &other.instance, &other.session))
    });
    Ok(Json(Page { items, next: None }))
}

pub(in crate::api) async fn drain(
    caller: Caller<Operator>,
    State(api): State<Api>,
    Segment(name): Segment,
    Asked(Nothing): Asked<Nothing>,
    Body(request): Body<DrainRequest>,
) -> Result<Json<DrainAnswer>, Problem> {
    let node: NodeName = name.parse().map_err(|error| Problem::new(Code::NoSuchNode, format!("{error}")))?;
    let sessions = api.app.intake.drain(&caller.actor, &node, request.draining).await?;
    Ok(Json(DrainAnswer { node: node.to_string(), draining: request.draining, sessions }))
}
