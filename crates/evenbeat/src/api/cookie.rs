//! The cookie that holds a session.
//!
//! Over HTTPS its name begins with `__Host-`, so that browsers take it only with `Secure`, for this host and all of its
//! paths. Over plain HTTP browsers would refuse that, so it has another name there, and is given out on this machine only.

use axum::http::header::{COOKIE, HeaderMap, HeaderValue};

const SECURE_NAME: &str = "__Host-evenbeat_session";
const PLAIN_NAME: &str = "evenbeat_session";

/// How the browser reaches the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionScheme {
    Https,
    /// Plain HTTP within one machine.
    PlainLoopback,
    /// Plain HTTP over a network: a cookie or a token could be read on the way.
    PlainNetwork,
}

impl SessionScheme {
    fn name(self) -> &'static str {
        match self {
            SessionScheme::Https => SECURE_NAME,
            SessionScheme::PlainLoopback | SessionScheme::PlainNetwork => PLAIN_NAME,
        }
    }

    fn flags(self) -> &'static str {
        match self {
            SessionScheme::Https => "; Secure; HttpOnly; SameSite=Strict; Path=/",
            SessionScheme::PlainLoopback | SessionScheme::PlainNetwork => {
                "; HttpOnly; SameSite=Strict; Path=/"
            }
        }
    }
}

/// What the session cookie of a request holds. If there are several, none counts: one of them was planted.
pub fn session_cookie(headers: &HeaderMap, scheme: SessionScheme) -> Option<&str> {
    let cookies = headers.get_all(COOKIE).iter().filter_map(|it| it.to_str().ok());
    let pairs = cookies.flat_map(|it| it.split(';')).filter_map(|it| it.trim().split_once('='));
    let mut found = pairs.filter(|(name, _)| *name == scheme.name()).map(|(_, value)| value);
    let session = found.next()?;
    found.next().is_none().then_some(session)
}

/// Sets the cookie. It goes when the browser is closed; the session itself ends on the server.
pub fn set_cookie(scheme: SessionScheme, session: &str) -> Option<HeaderValue> {
    header(&[scheme.name(), "=", session, scheme.flags()])
}

/// Removes the cookie.
pub fn clear_cookie(scheme: SessionScheme) -> Option<HeaderValue> {
    header(&[scheme.name(), "=; Max-Age=0", scheme.flags()])
}

fn header(parts: &[&str]) -> Option<HeaderValue> {
    HeaderValue::from_str(&parts.concat()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(scheme: SessionScheme, cookies: &[&str], expected: Option<&str>) {
        let mut headers = HeaderMap::new();
        for value in cookies {
            headers.append(COOKIE, value.parse().unwrap());
        }
        assert_eq!(session_cookie(&headers, scheme), expected, "{cookies:?}");
    }

    #[test]
    fn a_session_has_one_cookie_of_one_name() {
        check(SessionScheme::PlainLoopback, &["evenbeat_session=abc"], Some("abc"));
        check(SessionScheme::PlainLoopback, &["a=b; evenbeat_session=abc; c=d"], Some("abc"));
        check(SessionScheme::Https, &["a=b", "__Host-evenbeat_session=abc"], Some("abc"));
        check(SessionScheme::Https, &["evenbeat_session=abc"], None);
        check(SessionScheme::PlainLoopback, &["__Host-evenbeat_session=abc"], None);
        check(SessionScheme::PlainLoopback, &["evenbeat_session=abc; evenbeat_session=evil"], None);
        check(SessionScheme::PlainLoopback, &["evenbeat_sessions=abc"], None);
        check(SessionScheme::PlainLoopback, &[], None);
    }

    #[test]
    fn flags_keep_scripts_and_other_sites_away() {
        assert_eq!(
            set_cookie(SessionScheme::Https, "abc").unwrap(),
            "__Host-evenbeat_session=abc; Secure; HttpOnly; SameSite=Strict; Path=/"
        );
        assert_eq!(
            set_cookie(SessionScheme::PlainLoopback, "abc").unwrap(),
            "evenbeat_session=abc; HttpOnly; SameSite=Strict; Path=/"
        );
        assert_eq!(
            clear_cookie(SessionScheme::PlainLoopback).unwrap(),
            "evenbeat_session=; Max-Age=0; HttpOnly; SameSite=Strict; Path=/"
        );
    }
}
