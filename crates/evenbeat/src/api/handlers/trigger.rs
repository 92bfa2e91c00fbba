//! How a repeated request for a run is recognised: by its `Idempotency-Key`.

use axum::http::HeaderMap;
use evenbeat_core::ids::JobKey;
use evenbeat_core::store::Idempotency;

use crate::api::problem::{Code, Problem};
use crate::views::model::TriggerRequest;

const HEADER: &str = "idempotency-key";

/// The longest key we accept, in bytes.
const KEY_BYTES_MAX: usize = 255;

/// How a repetition of this request is recognised; none if the caller did not ask for that.
pub(super) fn idempotency(
    headers: &HeaderMap,
    job: &JobKey,
    request: &TriggerRequest,
) -> Result<Option<Idempotency>, Problem> {
    let mut said = headers.get_all(HEADER).iter();
    let Some(text) = said.next() else { return Ok(None) };
    let bad = |detail: &str| Err(Problem::new(Code::InvalidHeader, format!("`Idempotency-Key` {detail}")));
    if said.next().is_some() {
        return bad("is sent twice; send it once");
    }
    if text.is_empty() || KEY_BYTES_MAX < text.len() {
        return bad("has from 1 to 255 bytes, such as a UUID");
    }
    let key = hash("evenbeat 2026 idempotency key of a request", &[job.as_str().as_bytes(), text.as_bytes()]);
    let body = serde_json::to_vec(request).unwrap_or_default();
    Ok(Some(Idempotency { key, body: hash("evenbeat 2026 body of a request", &[&body]) }))
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

    fn of(job: &str, text: &str, body: &str) -> Result<Idempotency, Code> {
        let mut headers = HeaderMap::new();
        headers.insert(HEADER, text.parse().unwrap());
        let request = serde_json::from_str(body).unwrap();
        let found = idempotency(&headers, &job.parse().unwrap(), &request).map_err(|it| it.code())?;
        Ok(found.unwrap())
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
        let none = idempotency(&HeaderMap::new(), &"a".parse().unwrap(), &TriggerRequest::default());
        assert_eq!(none, Ok(None));
        assert_eq!(of("a", "", "{}"), Err(Code::InvalidHeader));
        assert_eq!(of("a", &"x".repeat(256), "{}"), Err(Code::InvalidHeader));
    }
}
