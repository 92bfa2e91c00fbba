//! The API about itself: an index, the API document, and the document as a page.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use utoipa::openapi::Content;
use utoipa::openapi::response::ResponseBuilder;
use utoipa::openapi::schema::{Object, ObjectBuilder, Type};

use crate::api::caller::{Anyone, Caller, Reader, Viewer};
use crate::api::extract::UrlQuery;
use crate::api::operation::{DescribeAnswer, JSON_TYPE, Operation};
use crate::api::params::NoParams;
use crate::api::problem::Problem;
use crate::api::reference;
use crate::api::router::Api;
use crate::views::model::ApiIndex;

pub(in crate::api) async fn index(
    _caller: Caller<Viewer>,
    State(api): State<Api>,
    UrlQuery(NoParams): UrlQuery<NoParams>,
) -> Result<Json<ApiIndex>, Problem> {
    Ok(Json(api.document.index.clone()))
}

/// A document that is the same for everyone as long as the process runs.
#[derive(Debug)]
pub(in crate::api) struct OpenApiText(Arc<str>);

impl IntoResponse for OpenApiText {
    fn into_response(self) -> Response {
        let kind = (header::CONTENT_TYPE, HeaderValue::from_static(JSON_TYPE));
        // The document says nothing about the fleet, so tools in browsers may read it from elsewhere.
        let from_anywhere = (header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
        ([kind, from_anywhere], self.0.to_string()).into_response()
    }
}

impl DescribeAnswer for OpenApiText {
    fn describe(operation: &mut Operation) {
        let schema = ObjectBuilder::new().schema_type(Type::Object).build();
        operation.answer(200, described("The document.", JSON_TYPE, schema));
    }
}

pub(in crate::api) async fn openapi(
    _caller: Anyone,
    State(api): State<Api>,
    UrlQuery(NoParams): UrlQuery<NoParams>,
) -> Result<OpenApiText, Problem> {
    Ok(OpenApiText(Arc::clone(&api.document.json)))
}

pub(in crate::api) async fn openapi_3_0(
    _caller: Caller<Viewer>,
    State(api): State<Api>,
    UrlQuery(NoParams): UrlQuery<NoParams>,
) -> Result<OpenApiText, Problem> {
    Ok(OpenApiText(Arc::clone(&api.document.json_3_0)))
}

const HTML_TYPE: &str = "text/html; charset=utf-8";
const CSS_TYPE: &str = "text/css; charset=utf-8";

/// The page loads its own style and nothing else.
const PAGE_POLICY: &str =
    "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

#[derive(Debug)]
pub(in crate::api) struct ReferencePage(Arc<str>);

impl IntoResponse for ReferencePage {
    fn into_response(self) -> Response {
        let kind = (header::CONTENT_TYPE, HeaderValue::from_static(HTML_TYPE));
        let policy = (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(PAGE_POLICY));
        let referrer = (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
        ([kind, policy, referrer], self.0.to_string()).into_response()
    }
}

impl DescribeAnswer for ReferencePage {
    fn describe(operation: &mut Operation) {
        operation.answer(200, described("The page.", HTML_TYPE, text()));
    }
}

pub(in crate::api) async fn page(
    _caller: Reader,
    State(api): State<Api>,
    UrlQuery(NoParams): UrlQuery<NoParams>,
) -> Result<ReferencePage, Problem> {
    Ok(ReferencePage(Arc::clone(&api.document.page)))
}

#[derive(Debug)]
pub(in crate::api) struct StyleSheet;

impl IntoResponse for StyleSheet {
    fn into_response(self) -> Response {
        ([(header::CONTENT_TYPE, HeaderValue::from_static(CSS_TYPE))], reference::STYLE).into_response()
    }
}

impl DescribeAnswer for StyleSheet {
    fn describe(operation: &mut Operation) {
        operation.answer(200, described("The style.", CSS_TYPE, text()));
    }
}

pub(in crate::api) async fn style(
    _caller: Reader,
    UrlQuery(NoParams): UrlQuery<NoParams>,
) -> Result<StyleSheet, Problem> {
    Ok(StyleSheet)
}

fn text() -> Object {
    ObjectBuilder::new().schema_type(Type::String).build()
}

fn described(meaning: &str, kind: &str, schema: Object) -> ResponseBuilder {
    ResponseBuilder::new().description(meaning).content(kind, Content::new(Some(schema)))
}
