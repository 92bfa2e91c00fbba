//! A request to the server.

use std::fmt::Display;

use hyper::Method;
use serde::Serialize;

/// A request.
#[derive(Clone, Debug)]
pub(crate) struct ApiRequest {
    pub(super) method: Method,
    /// Path and query, percent-encoded.
    pub(super) target: String,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: Option<Vec<u8>>,
}

impl ApiRequest {
    /// A GET request for these path segments below `/api/v1`.
    pub(crate) fn get(segments: &[&str]) -> ApiRequest {
        ApiRequest::of(Method::GET, segments)
    }

    /// A POST request.
    pub(crate) fn post(segments: &[&str]) -> ApiRequest {
        ApiRequest::of(Method::POST, segments)
    }

    /// A PUT request.
    pub(crate) fn put(segments: &[&str]) -> ApiRequest {
        ApiRequest::of(Method::PUT, segments)
    }

    /// A PATCH request.
    pub(crate) fn patch(segments: &[&str]) -> ApiRequest {
        ApiRequest::of(Method::PATCH, segments)
    }

    /// A DELETE request.
    pub(crate) fn delete(segments: &[&str]) -> ApiRequest {
        ApiRequest::of(Method::DELETE, segments)
    }

    fn of(method: Method, segments: &[&str]) -> ApiRequest {
        let mut target = "/api/v1".to_owned();
        for segment in segments {
            target.push('/');
            encode(segment, &mut target);
        }
        ApiRequest { method, target, headers: Vec::new(), body: None }
    }

    /// Adds a query parameter if it has a value.
    #[must_use]
    pub(crate) fn with(mut self, name: &str, value: Option<impl Display>) -> ApiRequest {
        if let Some(value) = value {
            self.target.push(if self.target.contains('?') { '&' } else { '?' });
            encode(name, &mut self.target);
            self.target.push('=');
            encode(&value.to_string(), &mut self.target);
        }
        self
    }

    /// Adds a header if it has a value.
    #[must_use]
    pub(crate) fn header(mut self, name: &'static str, value: Option<impl Display>) -> ApiRequest {
        self.headers.extend(value.map(|it| (name, it.to_string())));
        self
    }

    /// Sets a JSON body.
    #[must_use]
    pub(crate) fn json(mut self, body: &impl Serialize) -> ApiRequest {
        self.body = serde_json::to_vec(body).ok();
        self
    }
}

/// Percent-encodes everything except unreserved characters.
fn encode(text: &str, into: &mut String) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            into.push(char::from(byte));
        } else {
            into.push('%');
            into.push(char::from(HEX[usize::from(byte >> 4)]));
            into.push(char::from(HEX[usize::from(byte & 15)]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_said_stays_in_its_place() {
        let request = ApiRequest::get(&["jobs", "a@b/../c d"])
            .with("q", Some("x&y=z"))
            .with("no", None::<&str>)
            .with("n", Some(3));
        assert_eq!(request.target, "/api/v1/jobs/a%40b%2F..%2Fc%20d?q=x%26y%3Dz&n=3");
        assert_eq!(ApiRequest::post(&["jobs", "ä"]).target, "/api/v1/jobs/%C3%A4");
    }
}
