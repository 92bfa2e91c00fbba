//! The state of the fleet.

use axum::Json;
use axum::extract::State;

use crate::api::caller::{Caller, Viewer};
use crate::api::extract::{Asked, Nothing};
use crate::api::problem::Problem;
use crate::api::router::Api;
use crate::views;
use crate::views::model::StatusView;

pub(in crate::api) async fn status(
    _caller: Caller<Viewer>,
    State(api): State<Api>,
    Asked(Nothing): Asked<Nothing>,
) -> Result<Json<StatusView>, Problem> {
    Ok(Json(views::status::status(&api.app).await?))
}
