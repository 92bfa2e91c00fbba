//! The numbers of this process, for Prometheus.

use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;

use crate::api::caller::{Caller, Viewer};
use crate::api::extract::{NoParams, UrlQuery};
use crate::api::problem::{Code, Problem};
use crate::api::router::Api;
use crate::node::metrics::METRICS_TYPE;

const DAY_HOURS: u32 = 24;

pub(in crate::api) async fn metrics(
    _caller: Caller<Viewer>,
    State(api): State<Api>,
    UrlQuery(NoParams): UrlQuery<NoParams>,
) -> Result<impl IntoResponse, Problem> {
    let metrics = api.app.telemetry.metrics();
    // Jobs come and go between two notices: the score is that of now.
    if let Ok(day) = api.app.fleet.distribution_async(api.app.intake.now(), DAY_HOURS).await {
        metrics.scored(day.score());
    }
    let text = metrics.to_text();
    let text = text.map_err(|_| Problem::new(Code::Internal, "the metrics could not be written"))?;
    Ok(([(header::CONTENT_TYPE, METRICS_TYPE)], text))
}
