//! The state of the fleet.

use axum::Json;
use axum::extract::State;

use crate::api::caller::{Caller, Viewer};
use crate::api::extract::UrlQuery;
use crate::api::params::NoParams;
use crate::api::problem::Problem;
use crate::api::router::Api;
use crate::views;
use crate::views::model::StatusView;

pub(in crate::api) async fn status(
    _caller: Caller<Viewer>,
    State(api): State<Api>,
    UrlQuery(NoParams): UrlQuery<NoParams>,
) -> Result<Json<StatusView>, Problem> {
    Ok(Json(views::status::status(&api.app).await?))
}
