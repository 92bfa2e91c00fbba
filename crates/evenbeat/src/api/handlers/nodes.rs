//! Nodes: list, drain (L6).

use axum::Json;
use axum::extract::State;

use crate::api::caller::{Caller, Operator, Viewer};
use crate::api::extract::{Body, NodePath, UrlQuery};
use crate::api::params::{NoParams, Params, Query};
use crate::api::problem::{Code, Problem};
use crate::api::router::Api;
use crate::views;
use crate::views::model::{DrainAnswer, DrainRequest, NodeDetails, NodeView, Page};

/// Which nodes.
#[derive(Debug)]
pub(in crate::api) struct NodesQuery {
    /// Whether dead ones too.
    dead: bool,
}

impl Query for NodesQuery {
    fn read(params: &mut Params) -> NodesQuery {
        NodesQuery { dead: params.truth_or("dead", false, "Also lists nodes that are dead.") }
    }
}

pub(in crate::api) async fn list(
    _caller: Caller<Viewer>,
    State(api): State<Api>,
    UrlQuery(query): UrlQuery<NodesQuery>,
) -> Result<Json<Page<NodeView>>, Problem> {
    let items = views::nodes::list(&api.app, query.dead).await?;
    Ok(Json(Page { items, next: None }))
}

pub(in crate::api) async fn get(
    _caller: Caller<Viewer>,
    State(api): State<Api>,
    NodePath(node): NodePath,
    UrlQuery(NoParams): UrlQuery<NoParams>,
) -> Result<Json<NodeDetails>, Problem> {
    let unknown = || Problem::new(Code::NoSuchNode, format!("there is no node `{node}`"));
    views::nodes::details(&api.app, node.as_str()).await?.map(Json).ok_or_else(unknown)
}

pub(in crate::api) async fn drain(
    caller: Caller<Operator>,
    State(api): State<Api>,
    NodePath(node): NodePath,
    UrlQuery(NoParams): UrlQuery<NoParams>,
    Body(request): Body<DrainRequest>,
) -> Result<Json<DrainAnswer>, Problem> {
    let sessions = api.app.intake.drain(&caller.actor, &node, request.draining).await?;
    Ok(Json(DrainAnswer { node: node.to_string(), draining: request.draining, sessions }))
}
