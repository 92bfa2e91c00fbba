//! A webhook: the message as JSON, signed.
//!
//! The signature is HMAC-SHA256 over the timestamp, a dot and the body, so that a receiver can tell who sent it (S18) and
//! refuse what is old. The id of the message is its `Idempotency-Key`: the same message may come twice.

use std::fmt::Write as _;
use std::time::Duration as Length;

use evenbeat_core::time::Timestamp;
use hyper::Method;
use ring::hmac;

use super::{Payload, Receipt};
use crate::config::SecretSource;
use crate::outbound::{Outbound, OutboundRequest};

pub(super) async fn send(
    url: &SecretSource,
    secret: Option<&SecretSource>,
    payload: &Payload,
    outbound: &Outbound,
    now: Timestamp,
    within: Length,
) -> Receipt {
    let (url, secret) = match (url.read(), secret.map(SecretSource::read).transpose()) {
        (Ok(url), Ok(secret)) => (url, secret),
        (Err(why), _) | (_, Err(why)) => return Receipt::failed(why),
    };
    let (body, timestamp) = (payload.to_json(), now.as_second().to_string());
    let mut headers = vec![
        ("content-type", "application/json".to_owned()),
        ("idempotency-key", header(&payload.id)),
        ("evenbeat-timestamp", timestamp.clone()),
    ];
    if let Some(secret) = secret {
        headers.push(("evenbeat-signature", format!("v1={}", signature(&secret, &timestamp, &body))));
    }
    let request =
        OutboundRequest { method: Method::POST, url: &url, headers, body: body.into_bytes(), within };
    Receipt::of_http(outbound.send(request).await)
}

/// The signature of a body that was sent then, in hexadecimal.
fn signature(secret: &str, timestamp: &str, body: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let tag = hmac::sign(&key, format!("{timestamp}.{body}").as_bytes());
    tag.as_ref().iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// A text that a header can carry.
fn header(text: &str) -> String {
    text.chars().filter(char::is_ascii_graphic).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_what_others_compute() {
        // printf '%s' '1700000000.{}' | openssl dgst -sha256 -hmac secret
        let expected = "b8569b78799ff9e3cbff0fc2d63a33a2b57f3282abd07c37ae5e8e7d79a5f163";
        assert_eq!(signature("secret", "1700000000", "{}"), expected);
    }
}
