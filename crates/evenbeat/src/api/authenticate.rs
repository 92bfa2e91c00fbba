//! Identifies the caller before the body is read and the handler runs (S5). It applies to matched routes, so no rule
//! depends on the text of a path.

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::caller::Peer;
use super::cookie::session_cookie;
use super::held_body::HeldBody;
use super::problem::{Code, Problem};
use super::proxy::{client_address, scheme_of};
use super::router::Api;
use super::serve::{Crowded, Overflow};
use crate::auth::{AuthError, Authority, Identity};

/// Lets known callers through and counts their streams.
pub(super) async fn authenticate(State(api): State<Api>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let identity = match identify(&api, &parts).await {
        Ok(identity) => identity,
        Err(problem) => return problem.into_response(),
    };
    parts.extensions.insert(identity.clone());
    let answer = next.run(Request::from_parts(parts, body)).await;
    if !is_stream(&answer) {
        return answer;
    }
    match api.auth.stream(&identity) {
        Some(permit) => answer.map(|body| Body::new(HeldBody::new(body, permit))),
        None => {
            let detail = "too many streams are open; close some, or use fewer tabs";
            Problem::new(Code::TooManyStreams, detail).into_response()
        }
    }
}

/// The same for routes that people read in a browser: a session of the pages counts there too. Nowhere else does a cookie
/// authorise anything (S9).
pub(super) async fn authenticate_reader(State(api): State<Api>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let scheme = scheme_of(&api.options.trusted_proxies, &parts.extensions, &parts.headers);
    let cookie =
        session_cookie(&parts.headers, scheme).filter(|_| !parts.headers.contains_key(AUTHORIZATION));
    let session = match cookie {
        Some(cookie) => api.auth.session(cookie).await,
        None => Ok(None),
    };
    match session {
        Ok(Some(session)) => {
            let authority = Authority::Session(session.role);
            parts.extensions.insert(Identity { actor: session.actor, authority });
            next.run(Request::from_parts(parts, body)).await
        }
        Ok(None) => authenticate(State(api), Request::from_parts(parts, body), next).await,
        Err(down) => Problem::from(down).into_response(),
    }
}

async fn identify(api: &Api, parts: &Parts) -> Result<Identity, Problem> {
    let extensions = &parts.extensions;
    let full =
        || Problem::new(Code::TooManyRequests, "too many connections are open; close some, or try again");
    if extensions.get::<Overflow>().is_some() {
        return Err(full());
    }
    let nobody = || Problem::new(Code::NotAllowed, "the origin of this request is unknown");
    let peer = extensions.get::<Peer>().copied().ok_or_else(nobody)?;
    let from = client_address(&api.options.trusted_proxies, peer, &parts.headers);
    let identity = match (bearer_of(&parts.headers)?, peer) {
        (Some(token), _) => api.auth.bearer(token, from).await?,
        (None, Peer::Socket { uid }) => api.auth.socket_peer(uid)?,
        (None, Peer::Tcp(address)) => api.auth.bare_peer(address.ip())?,
    };
    // Addresses are limited so that strangers cannot take every place. Tokens have limits of their own.
    if extensions.get::<Crowded>().is_some() && !matches!(identity.authority, Authority::Token { .. }) {
        return Err(full());
    }
    Ok(identity)
}

/// The token of a request, if it shows one.
fn bearer_of(headers: &HeaderMap) -> Result<Option<&str>, AuthError> {
    let mut shown = headers.get_all(AUTHORIZATION).iter();
    let Some(value) = shown.next() else { return Ok(None) };
    if shown.next().is_some() {
        return Err(AuthError::NotBearer);
    }
    let (scheme, token) =
        value.to_str().ok().and_then(|it| it.split_once(' ')).ok_or(AuthError::NotBearer)?;
    if !scheme.eq_ignore_ascii_case("bearer") || token.is_empty() {
        return Err(AuthError::NotBearer);
    }
    Ok(Some(token))
}

fn is_stream(answer: &Response) -> bool {
    let kind = answer.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    kind.is_some_and(|it| it.starts_with(b"text/event-stream"))
}

impl From<AuthError> for Problem {
    fn from(error: AuthError) -> Problem {
        let code = match &error {
            AuthError::Missing
            | AuthError::NotBearer
            | AuthError::Unknown
            | AuthError::Expired { .. }
            | AuthError::Revoked { .. }
            | AuthError::RunIsOver(_) => Code::NotAuthenticated,
            AuthError::NotOwner { .. } => Code::NotAllowed,
            AuthError::TooManyAttempts | AuthError::TooFast { .. } => Code::RateLimited,
            AuthError::Down(down) => return down.clone().into(),
        };
        Problem::new(code, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(values: &[&str], expected: &Result<Option<&str>, AuthError>) {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(AUTHORIZATION, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        assert_eq!(&bearer_of(&headers), expected, "{values:?}");
    }

    #[test]
    fn a_token_is_shown_in_one_way() {
        check(&[], &Ok(None));
        check(&["Bearer abc"], &Ok(Some("abc")));
        check(&["bearer abc"], &Ok(Some("abc")));
        for other in ["", "abc", "Bearer", "Bearer ", "Basic YTpi", "Bearer: abc", "Bearer\u{e9} x"] {
            check(&[other], &Err(AuthError::NotBearer));
        }
        check(&["Bearer a", "Bearer b"], &Err(AuthError::NotBearer));
    }
}
