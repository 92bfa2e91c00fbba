//! What a page says once after a form was sent: kept in a cookie from the answer to the form until the next page.

use axum::http::{HeaderMap, HeaderValue};
use serde::{Deserialize, Serialize};

use super::prefs::cookie;

const NAME: &str = "evenbeat_flash";

/// Browsers hold at least this much in a cookie.
const BYTES_MAX: usize = 3_000;

/// A message for the next page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Flash {
    /// Whether it reports a failure. Failures stay until they are dismissed.
    pub(super) is_failure: bool,
    /// What happened, with numbers.
    pub(super) title: String,
    /// Its effect, or what to do.
    pub(super) text: String,
    /// Where to look, as path and label.
    pub(super) link: Option<(String, String)>,
}

impl Flash {
    pub(super) fn done(title: impl Into<String>, text: impl Into<String>) -> Flash {
        Flash { is_failure: false, title: title.into(), text: text.into(), link: None }
    }

    pub(super) fn failed(title: impl Into<String>, text: impl Into<String>) -> Flash {
        Flash { is_failure: true, ..Flash::done(title, text) }
    }

    pub(super) fn with_link(mut self, path: impl Into<String>, label: impl Into<String>) -> Flash {
        self.link = Some((path.into(), label.into()));
        self
    }

    /// The cookie that carries it. It is text for one reader, which escapes it: nothing relies on it.
    pub(super) fn set(&self) -> Option<HeaderValue> {
        let mut text = serde_json::to_vec(self).ok()?;
        if BYTES_MAX / 2 < text.len() {
            let short = Flash { text: String::new(), link: None, ..self.clone() };
            text = serde_json::to_vec(&short).ok().filter(|it| it.len() <= BYTES_MAX / 2)?;
        }
        let mut value = format!("{NAME}=");
        for byte in text {
            use std::fmt::Write as _;
            let _ = write!(value, "{byte:02x}");
        }
        value.push_str("; Max-Age=60; HttpOnly; SameSite=Strict; Path=/");
        HeaderValue::from_str(&value).ok()
    }

    /// What the cookie of a request carries.
    pub(super) fn of(headers: &HeaderMap) -> Option<Flash> {
        let text = cookie(headers, NAME)?;
        let digits = |at: usize| text.get(at..at + 2).and_then(|it| u8::from_str_radix(it, 16).ok());
        let bytes: Option<Vec<u8>> = (0..text.len()).step_by(2).map(digits).collect();
        serde_json::from_slice(&bytes?).ok()
    }

    /// Removes the cookie.
    pub(super) fn clear() -> HeaderValue {
        HeaderValue::from_static("evenbeat_flash=; Max-Age=0; HttpOnly; SameSite=Strict; Path=/")
    }
}

#[cfg(test)]
mod tests {
    use axum::http::header::COOKIE;

    use super::*;

    #[test]
    fn a_message_survives_its_cookie() {
        let flash = Flash::failed("Not paused; \"x\" = é", "<b>").with_link("/jobs/a", "Open");
        let cookie = flash.set().unwrap();
        let pair = cookie.to_str().unwrap().split(';').next().unwrap().to_owned();
        let mut headers = HeaderMap::new();
        headers.insert(COOKIE, pair.parse().unwrap());
        assert_eq!(Flash::of(&headers), Some(flash));
    }

    #[test]
    fn a_long_message_loses_its_text_and_not_its_title() {
        let cookie = Flash::done("Paused 3 jobs", "x".repeat(9_000)).set().unwrap();
        assert!(cookie.len() < 4_096);
    }

    #[test]
    fn a_planted_cookie_says_nothing() {
        for text in ["", "zz", "7b7d", "7", "\u{e9}\u{e9}"] {
            let mut headers = HeaderMap::new();
            let value = HeaderValue::from_bytes(format!("evenbeat_flash={text}").as_bytes()).unwrap();
            headers.insert(COOKIE, value);
            assert_eq!(Flash::of(&headers), None, "{text}");
        }
    }
}
