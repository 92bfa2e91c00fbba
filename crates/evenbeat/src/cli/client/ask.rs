//! A question for a server.

use std::fmt::Display;

use hyper::Method;
use serde::Serialize;

/// A question.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    pub(super) method: Method,
    /// Path and parameters, ready for the wire.
    pub(super) target: String,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: Option<Vec<u8>>,
}

impl Ask {
    /// To look at what these segments below `/api/v1` name.
    pub(crate) fn get(segments: &[&str]) -> Ask {
        Ask::of(Method::GET, segments)
    }

    /// To do something.
    pub(crate) fn post(segments: &[&str]) -> Ask {
        Ask::of(Method::POST, segments)
    }

    /// To put something there.
    pub(crate) fn put(segments: &[&str]) -> Ask {
        Ask::of(Method::PUT, segments)
    }

    /// To remove it.
    pub(crate) fn delete(segments: &[&str]) -> Ask {
        Ask::of(Method::DELETE, segments)
    }

    fn of(method: Method, segments: &[&str]) -> Ask {
        let mut target = "/api/v1".to_owned();
        for segment in segments {
            target.push('/');
            encode(segment, &mut target);
        }
        Ask { method, target, headers: Vec::new(), body: None }
    }

    /// With a parameter, if there is something to say.
    #[must_use]
    pub(crate) fn with(mut self, name: &str, value: Option<impl Display>) -> Ask {
        if let Some(value) = value {
            self.target.push(if self.target.contains('?') { '&' } else { '?' });
            encode(name, &mut self.target);
            self.target.push('=');
            encode(&value.to_string(), &mut self.target);
        }
        self
    }

    /// With a header, if there is something to say.
    #[must_use]
    pub(crate) fn header(mut self, name: &'static str, value: Option<impl Display>) -> Ask {
        self.headers.extend(value.map(|it| (name, it.to_string())));
        self
    }

    /// With a body.
    #[must_use]
    pub(crate) fn json(mut self, body: &impl Serialize) -> Ask {
        self.body = serde_json::to_vec(body).ok();
        self
    }
}

/// Everything that has no meaning of its own in an address stays; the rest is written by its bytes.
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
        let ask = Ask::get(&["jobs", "a@b/../c d"])
            .with("q", Some("x&y=z"))
            .with("no", None::<&str>)
            .with("n", Some(3));
        assert_eq!(ask.target, "/api/v1/jobs/a%40b%2F..%2Fc%20d?q=x%26y%3Dz&n=3");
        assert_eq!(Ask::post(&["jobs", "ä"]).target, "/api/v1/jobs/%C3%A4");
    }
}
