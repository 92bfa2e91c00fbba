//! Nodes: list, drain (L6).

use axum::Json;
use axum::extract::State;
use evenbeat_core::ids::NodeName;

use crate::api::caller::{Caller, Operator, Viewer};
use crate::api::extract::{Body, NoParams, Params, Query, Segment, UrlQuery};
use crate::api::problem::{Code, Problem};
use crate::api::router::Api;
use crate::views;
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
    UrlQuery(query): UrlQuery<NodesQuery>,
) -> Result<Json<Page<NodeView>>, Problem> {
    let items = views::nodes::list(&api.app, query.dead).await?;
    Ok(Json(Page { items, next: None }))
}

pub(in crate::api) async fn drain(
    caller: Caller<Operator>,
    State(api): State<Api>,
    Segment(name): Segment,
    UrlQuery(NoParams): UrlQuery<NoParams>,
    Body(request): Body<DrainRequest>,
) -> Result<Json<DrainAnswer>, Problem> {
    let node: NodeName = name.parse().map_err(|error| Problem::new(Code::NoSuchNode, format!("{error}")))?;
    let sessions = api.app.intake.drain(&caller.actor, &node, request.draining).await?;
    Ok(Json(DrainAnswer { node: node.to_string(), draining: request.draining, sessions }))
}
