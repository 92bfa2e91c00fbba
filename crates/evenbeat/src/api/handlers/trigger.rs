//! How a repeated request for a run is recognised: by its `Idempotency-Key`.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use evenbeat_core::ids::JobKey;
use evenbeat_core::store::Idempotency;
use utoipa::openapi::schema::{ObjectBuilder, Type};

use crate::api::operation::{DescribeInput, Operation};
use crate::api::problem::{Code, Problem};
use crate::views::model::TriggerRequest;

const HEADER: &str = "idempotency-key";

/// The longest key we accept, in bytes.
const KEY_BYTES_MAX: usize = 255;

/// The `Idempotency-Key` of a request, if it has one.
#[derive(Debug)]
pub(in crate::api) struct IdempotencyKey(Option<Vec<u8>>);

impl<S: Sync> FromRequestParts<S> for IdempotencyKey {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<IdempotencyKey, Problem> {
        let mut said = parts.headers.get_all(HEADER).iter();
        let Some(text) = said.next() else { return Ok(IdempotencyKey(None)) };
        let bad =
            |detail: &str| Err(Problem::new(Code::InvalidHeader, format!("`Idempotency-Key` {detail}")));
        if said.next().is_some() {
            return bad("is sent twice; send it once");
        }
        if text.is_empty() || KEY_BYTES_MAX < text.len() {
            return bad("has from 1 to 255 bytes, such as a UUID");
        }
        Ok(IdempotencyKey(Some(text.as_bytes().to_vec())))
    }
}

impl DescribeInput for IdempotencyKey {
    fn describe(operation: &mut Operation) {
        let schema = ObjectBuilder::new()
            .schema_type(Type::String)
            .min_length(Some(1))
            .max_length(Some(KEY_BYTES_MAX));
        let meaning = "A text that is different for each run that is wanted, such as a UUID. A request that is repeated with the same key within 24 hours gets the same answer and starts nothing.";
        operation.header_parameter("Idempotency-Key", schema, meaning);
        operation.refuses(&[Code::KeyReused, Code::KeyInFlight]);
    }
}

impl IdempotencyKey {
    /// How a repetition of this request is recognised, if the caller wants that.
    pub(super) fn of(self, job: &JobKey, request: &TriggerRequest) -> Option<Idempotency> {
        let text = self.0?;
        let key = hash("evenbeat 2026 idempotency key of a request", &[job.as_str().as_bytes(), &text]);
        let body = serde_json::to_vec(request).unwrap_or_default();
        Some(Idempotency { key, body: hash("evenbeat 2026 body of a request", &[&body]) })
    }
}

fn hash(context: &str, parts: &[&[u8]]) -> u128 {
    let mut hasher = blake3::Hasher::new_derive_key(context);
    for part in parts {
        hasher.update(part).update(&[0]);
    }
    let mut hash = [0; 16];
    hasher.finalize_xof().fill(&mut hash);
    u128::from_be_bytes(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: Option<&str>) -> Result<IdempotencyKey, Code> {
        let mut request = axum::http::Request::builder();
        if let Some(text) = text {
            request = request.header(HEADER, text);
        }
        let (mut parts, ()) = request.body(()).unwrap().into_parts();
        let read = IdempotencyKey::from_request_parts(&mut parts, &());
        futures_util::FutureExt::now_or_never(read).unwrap().map_err(|it| it.code())
    }

    fn of(job: &str, text: &str, body: &str) -> Result<Idempotency, Code> {
        let request = serde_json::from_str(body).unwrap();
        Ok(read(Some(text))?.of(&job.parse().unwrap(), &request).unwrap())
    }

    #[test]
    fn a_repetition_has_the_same_job_key_and_body() {
        let first = of("a", "k", r#"{"params":{"x":1,"y":2}}"#).unwrap();
        assert_eq!(of("a", "k", r#"{ "params": {"y":2, "x":1} }"#), Ok(first), "however it is written");
        let other_body = of("a", "k", "{}").unwrap();
        assert_eq!(other_body.key, first.key);
        assert_ne!(other_body.body, first.body);
        assert_ne!(of("b", "k", "{}").unwrap().key, first.key);
        assert_ne!(of("a", "l", "{}").unwrap().key, first.key);
        let none = read(None).unwrap().of(&"a".parse().unwrap(), &TriggerRequest::default());
        assert_eq!(none, None);
        assert_eq!(of("a", "", "{}"), Err(Code::InvalidHeader));
        assert_eq!(of("a", &"x".repeat(256), "{}"), Err(Code::InvalidHeader));
    }
}
