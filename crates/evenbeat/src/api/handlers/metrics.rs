//! The numbers of this process, for Prometheus.

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use utoipa::openapi::Content;
use utoipa::openapi::response::ResponseBuilder;
use utoipa::openapi::schema::{ObjectBuilder, Type};

use crate::api::caller::{Caller, MetricsReader};
use crate::api::extract::UrlQuery;
use crate::api::operation::{DescribeAnswer, Operation};
use crate::api::params::NoParams;
use crate::api::problem::{Code, Problem};
use crate::api::router::Api;
use crate::node::metrics::METRICS_TYPE;

/// Metrics as text.
#[derive(Debug)]
pub(in crate::api) struct MetricsText(String);

impl IntoResponse for MetricsText {
    fn into_response(self) -> Response {
        ([(header::CONTENT_TYPE, METRICS_TYPE)], self.0).into_response()
    }
}

impl DescribeAnswer for MetricsText {
    fn describe(operation: &mut Operation) {
        let text = ObjectBuilder::new().schema_type(Type::String).build();
        let answer = ResponseBuilder::new().description("The metrics, in the text format of OpenMetrics.");
        operation.answer(200, answer.content(METRICS_TYPE, Content::new(Some(text))));
    }
}

pub(in crate::api) async fn metrics(
    _caller: Caller<MetricsReader>,
    State(api): State<Api>,
    UrlQuery(NoParams): UrlQuery<NoParams>,
) -> Result<MetricsText, Problem> {
    scraped(&api).await
}

/// The same on the metrics address, which needs no token.
pub(in crate::api) async fn open_metrics(
    State(api): State<Api>,
    UrlQuery(NoParams): UrlQuery<NoParams>,
) -> Result<MetricsText, Problem> {
    scraped(&api).await
}

async fn scraped(api: &Api) -> Result<MetricsText, Problem> {
    let text = api.app.scrape().await;
    let text = text.map_err(|_| Problem::new(Code::Internal, "the metrics could not be written"))?;
    Ok(MetricsText(text))
}
