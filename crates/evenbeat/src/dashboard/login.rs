//! Logging in, by a link or with a token, and out again.

use std::net::IpAddr;

use axum::extract::FromRequest;
use axum::extract::{Form, Query, Request, State};
use axum::http::header::{HeaderValue, LOCATION, SET_COOKIE};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use serde::Deserialize;

use super::Pages;
use super::error::NoPage;
use super::frame::BarePage;
use super::parts::icon;
use super::user::{PageForm, PageViewer};
use crate::api::{Peer, SessionScheme, clear_cookie, client_address, scheme_of, set_cookie};
use crate::auth::AuthError;
use crate::store::access::{PAGE_SESSION_IDLE, PAGE_SESSION_LIFE};

/// The same for every link and every token that opens nothing: strangers do not learn which there are.
const NOT_VALID: &str = "Not valid, or used already";

/// What a login link carries.
#[derive(Deserialize)]
struct LoginQuery {
    code: Option<String>,
}

/// What the login form carries.
#[derive(Deserialize)]
struct LoginForm {
    token: String,
}

/// The form; or, with a code, the one GET that changes something: it uses the link up.
pub(super) async fn page(State(pages): State<Pages>, request: Request) -> Response {
    let scheme = scheme_of(&pages.trusted_proxies, request.extensions(), request.headers());
    let code = Query::<LoginQuery>::try_from_uri(request.uri()).ok().and_then(|Query(it)| it.code);
    let Some(code) = code.filter(|_| request.method() == Method::GET) else { return form(scheme, None) };
    if scheme == SessionScheme::PlainNetwork {
        return form(scheme, None);
    }
    match pages.auth.use_login_link(&code, from(&pages, &request)).await {
        Ok(Some(session)) => logged_in(scheme, &session),
        Ok(None) => form(scheme, Some((StatusCode::FORBIDDEN, NOT_VALID))),
        Err(error) => form(scheme, Some(refusal(&error))),
    }
}

/// Opens a session with a token. It ends with the token.
pub(super) async fn with_token(State(pages): State<Pages>, request: Request) -> Response {
    let scheme = scheme_of(&pages.trusted_proxies, request.extensions(), request.headers());
    if scheme == SessionScheme::PlainNetwork {
        return form(scheme, None);
    }
    let from = from(&pages, &request);
    let Ok(Form(sent)) = Form::<LoginForm>::from_request(request, &pages).await else {
        return form(scheme, Some((StatusCode::BAD_REQUEST, "Paste a token into the field.")));
    };
    match pages.auth.open_session_with(&sent.token, from).await {
        Ok(session) => logged_in(scheme, &session),
        Err(error) => form(scheme, Some(refusal(&error))),
    }
}

/// Ends the session.
pub(super) async fn logout(State(pages): State<Pages>, request: Request) -> Response {
    let scheme = scheme_of(&pages.trusted_proxies, request.extensions(), request.headers());
    let sent = match PageForm::<PageViewer>::from_request(request, &pages).await {
        Ok(sent) => sent,
        Err(refused) => return refused.into_response(),
    };
    if let Err(down) = pages.auth.end_session(&sent.user.session).await {
        return NoPage::Down(down).into_response();
    }
    to("/login", clear_cookie(scheme))
}

fn from(pages: &Pages, request: &Request) -> Option<IpAddr> {
    let peer = request.extensions().get::<Peer>()?;
    client_address(&pages.trusted_proxies, *peer, request.headers())
}

fn logged_in(scheme: SessionScheme, session: &str) -> Response {
    to("/", set_cookie(scheme, session))
}

fn to(path: &'static str, cookie: Option<HeaderValue>) -> Response {
    let mut answer = (StatusCode::SEE_OTHER, [(LOCATION, HeaderValue::from_static(path))]).into_response();
    if let Some(cookie) = cookie {
        answer.headers_mut().insert(SET_COOKIE, cookie);
    }
    answer
}

/// Why someone is not let in, without telling strangers which tokens there are.
fn refusal(error: &AuthError) -> (StatusCode, &'static str) {
    match error {
        AuthError::TooManyAttempts | AuthError::TooFast { .. } => {
            (StatusCode::TOO_MANY_REQUESTS, "Too many attempts. Try again in a minute.")
        }
        AuthError::Down(_) => (StatusCode::SERVICE_UNAVAILABLE, "The store does not answer. Try again."),
        _ => (StatusCode::FORBIDDEN, NOT_VALID),
    }
}

fn form(scheme: SessionScheme, problem: Option<(StatusCode, &'static str)>) -> Response {
    let (status, problem) = problem.map_or((StatusCode::OK, None), |(status, text)| (status, Some(text)));
    let (status, body) = match scheme {
        SessionScheme::PlainNetwork => (StatusCode::FORBIDDEN, unencrypted()),
        SessionScheme::Https | SessionScheme::PlainLoopback => (status, token_form(problem)),
    };
    BarePage { status, ..BarePage::new("Sign in", body) }.into_response()
}

fn unencrypted() -> Markup {
    html! {
        h1 { "Sign in" }
        div.why.error { (icon("error")) div {
            b { "This connection is not encrypted" }
            p { "Signing in would show your token to the network." }
        } }
        p.sub { "Use HTTPS: set " code { "tls.cert" } " and " code { "tls.key" } ", or put a reverse proxy in front and name it in "
            code { "auth.trusted_proxies" } "." }
    }
}

fn token_form(problem: Option<&str>) -> Markup {
    html! {
        h1 { "Sign in" }
        p.sub { "With the one-time link that " span.mono { "evenbeat login" } " prints on the server, or with a token." }
        form method="post" action="/login" autocomplete="off" {
            label.fld {
                span { "Token" }
                input.in type="password" name="token" required autocomplete="off" placeholder="evb_…" autofocus
                    aria-invalid=[problem.map(|_| "true")] aria-describedby=[problem.map(|_| "problem")];
            }
            @if let Some(problem) = problem {
                div.why.error.no id="problem" role="alert" { (icon("error")) div {
                    b { (problem) }
                    p { "A link works once and for a minute: run " span.mono { "evenbeat login" } " for another." }
                } }
            }
            button.btn.pri type="submit" { "Sign in" }
        }
        p.mut.gap {
            "You stay signed in on this browser for up to " (PAGE_SESSION_LIFE) ", and for " (PAGE_SESSION_IDLE) " without a visit. The token is never put into the address. "
            "Jobs keep running when you sign out."
        }
    }
}
