//! Good answers that are more than a JSON body with status 200.

use axum::Json;
use axum::http::{StatusCode, header as http_header};
use axum::response::{IntoResponse, Response};
use evenbeat_core::store::Revision;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa::openapi::Header;
use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::response::ResponseBuilder;
use utoipa::openapi::schema::{ObjectBuilder, Type};

use super::operation::{DescribeAnswer, Operation};

/// An answer about one job, with its revision as `ETag`.
#[derive(Debug)]
pub(super) struct Tagged<T> {
    pub(super) revision: Revision,
    pub(super) body: T,
}

impl<T: Serialize> IntoResponse for Tagged<T> {
    fn into_response(self) -> Response {
        let tag = format!("\"{}\"", self.revision.0);
        ([(http_header::ETAG, tag)], Json(self.body)).into_response()
    }
}

impl<T: ToSchema> DescribeAnswer for Tagged<T> {
    fn describe(operation: &mut Operation) {
        operation.json_answer::<T>(200, "The job.");
        header(operation, 200, "ETag", "The revision of the job, for `If-Match`.");
    }
}

/// The same for a job that may be new.
#[derive(Debug)]
pub(super) struct CreatedOrChanged<T> {
    pub(super) is_new: bool,
    pub(super) tagged: Tagged<T>,
}

impl<T: Serialize> IntoResponse for CreatedOrChanged<T> {
    fn into_response(self) -> Response {
        let status = if self.is_new { StatusCode::CREATED } else { StatusCode::OK };
        (status, self.tagged).into_response()
    }
}

impl<T: ToSchema> DescribeAnswer for CreatedOrChanged<T> {
    fn describe(operation: &mut Operation) {
        operation.json_answer::<T>(200, "The job was changed, or was like this before.");
        operation.json_answer::<T>(201, "The job is new.");
        for status in [200, 201] {
            header(operation, status, "ETag", "The revision of the job, for `If-Match`.");
        }
    }
}

/// 202: accepted.
#[derive(Debug)]
pub(super) struct Accepted<T>(pub(super) T);

impl<T: Serialize> IntoResponse for Accepted<T> {
    fn into_response(self) -> Response {
        (StatusCode::ACCEPTED, Json(self.0)).into_response()
    }
}

impl<T: ToSchema> DescribeAnswer for Accepted<T> {
    fn describe(operation: &mut Operation) {
        operation.json_answer::<T>(202, "The request was accepted.");
    }
}

/// 202: accepted, or 200 with the result of a dry run.
#[derive(Debug)]
pub(super) struct OkOrAccepted<T> {
    pub(super) is_accepted: bool,
    pub(super) body: T,
}

impl<T: Serialize> IntoResponse for OkOrAccepted<T> {
    fn into_response(self) -> Response {
        let status = if self.is_accepted { StatusCode::ACCEPTED } else { StatusCode::OK };
        (status, Json(self.body)).into_response()
    }
}

impl<T: ToSchema> DescribeAnswer for OkOrAccepted<T> {
    fn describe(operation: &mut Operation) {
        operation.json_answer::<T>(200, "A dry run: this would be done.");
        operation.json_answer::<T>(202, "The request was accepted.");
    }
}

/// 202: accepted, with the address of the result.
#[derive(Debug)]
pub(super) struct AcceptedAt<T> {
    pub(super) location: String,
    pub(super) body: T,
}

impl<T: Serialize> IntoResponse for AcceptedAt<T> {
    fn into_response(self) -> Response {
        ([(http_header::LOCATION, self.location)], Accepted(self.body)).into_response()
    }
}

impl<T: ToSchema> DescribeAnswer for AcceptedAt<T> {
    fn describe(operation: &mut Operation) {
        operation.json_answer::<T>(202, "The request was accepted.");
        header(operation, 202, "Location", "Where to follow it.");
    }
}

/// 201: created.
#[derive(Debug)]
pub(super) struct Created<T>(pub(super) T);

impl<T: Serialize> IntoResponse for Created<T> {
    fn into_response(self) -> Response {
        (StatusCode::CREATED, Json(self.0)).into_response()
    }
}

impl<T: ToSchema> DescribeAnswer for Created<T> {
    fn describe(operation: &mut Operation) {
        operation.json_answer::<T>(201, "It was created.");
    }
}

/// 204: done, without a body.
#[derive(Debug)]
pub(super) struct NoContent;

impl IntoResponse for NoContent {
    fn into_response(self) -> Response {
        StatusCode::NO_CONTENT.into_response()
    }
}

impl DescribeAnswer for NoContent {
    fn describe(operation: &mut Operation) {
        operation.answer(204, ResponseBuilder::new().description("It is done."));
    }
}

/// Adds a header to an answer that was described before.
pub(super) fn header(operation: &mut Operation, status: u16, name: &str, meaning: &str) {
    if let Some(answer) = operation.answer_mut(status) {
        answer.headers.insert(name.to_owned(), text_header(meaning).into());
    }
}

fn text_header(meaning: &str) -> Header {
    let schema = ObjectBuilder::new().schema_type(Type::String);
    HeaderBuilder::new().schema(Some(schema)).description(Some(meaning)).build()
}
