//! Asking for a run twice with one `Idempotency-Key` asks for it once.
//!
//! The id of the wish is made of the key, so nothing has to be remembered: while it waits the job knows it, and then
//! the run that serves it does, for as long as runs are kept.

use std::collections::BTreeMap;

use axum::http::HeaderMap;
use evenbeat_core::ids::{ExtraId, JobKey};
use evenbeat_core::store::{JobRow, RunFilter};
use evenbeat_core::value::Value;

use crate::api::problem::{Code, Problem};
use crate::api::router::Api;

const HEADER: &str = "idempotency-key";

/// So long a key may be.
const KEY_BYTES_MAX: usize = 255;

/// So many of the latest runs of the job are looked at.
const N_RUNS_MAX: usize = 200;

/// The id of the wish; none if the caller does not mind asking twice.
pub(super) fn extra_id(headers: &HeaderMap, key: &JobKey) -> Result<Option<ExtraId>, Problem> {
    let mut said = headers.get_all(HEADER).iter();
    let Some(text) = said.next() else { return Ok(None) };
    let bad = |detail: &str| Err(Problem::new(Code::InvalidHeader, format!("`Idempotency-Key` {detail}")));
    if said.next().is_some() {
        return bad("is said twice; send one");
    }
    if text.is_empty() || KEY_BYTES_MAX < text.len() {
        return bad("has from 1 to 255 bytes, such as a UUID");
    }
    let mut hasher = blake3::Hasher::new_derive_key(
        "evenbeat 2026 id of a run that was asked for, by its idempotency key",
    );
    hasher.update(key.as_str().as_bytes()).update(&[0]).update(text.as_bytes());
    let mut id = [0; 16];
    hasher.finalize_xof().fill(&mut id);
    Ok(Some(ExtraId(uuid::Builder::from_custom_bytes(id).into_uuid().as_u128())))
}

/// Whether this was asked for before. The same key with something else to say is refused.
pub(super) async fn asked_before(
    api: &Api,
    row: &JobRow,
    id: ExtraId,
    params: Option<&BTreeMap<String, Value>>,
) -> Result<bool, Problem> {
    let waiting = row.state.extras.iter().find(|it| it.id == id).map(|it| it.params.clone());
    let before = match waiting {
        Some(before) => Some(before),
        None => {
            let filter = RunFilter { key: Some(row.job.key.clone()), is_open: false };
            let runs = api.app.store.runs(filter, None, N_RUNS_MAX).await?;
            runs.into_iter().find(|run| run.due.asked() == Some(id)).map(|run| run.due.params)
        }
    };
    let Some(before) = before else { return Ok(false) };
    if before.as_deref() != params {
        let detail = "this `Idempotency-Key` was used with other params; use a new one for a new request";
        return Err(Problem::new(Code::KeyReused, detail));
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(key: &str, text: &str) -> Result<Option<ExtraId>, Code> {
        let mut headers = HeaderMap::new();
        headers.insert(HEADER, text.parse().unwrap());
        extra_id(&headers, &key.parse().unwrap()).map_err(|it| it.code())
    }

    #[test]
    fn a_key_always_gives_the_same_id_and_another_for_every_job() {
        assert_eq!(id("a", "k"), id("a", "k"));
        assert_ne!(id("a", "k"), id("b", "k"));
        assert_ne!(id("a", "k"), id("a", "l"));
        assert_eq!(id("a", "k").unwrap().unwrap().to_string(), "81382e42-9715-84f0-bff9-4c803c6bff83");
        assert_eq!(extra_id(&HeaderMap::new(), &"a".parse().unwrap()), Ok(None));
        assert_eq!(id("a", ""), Err(Code::InvalidHeader));
        assert_eq!(id("a", &"x".repeat(256)), Err(Code::InvalidHeader));
    }
}
