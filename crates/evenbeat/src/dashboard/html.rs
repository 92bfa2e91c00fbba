//! What all pages have in common: their frame, their style and their headers.

use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, REFERRER_POLICY,
    X_FRAME_OPTIONS,
};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use maud::{DOCTYPE, Markup, html};

const STYLE: &str = include_str!("evenbeat.css");

/// Nothing from elsewhere, and nothing inline: text that was smuggled into a page stays text (S10).
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'self'; script-src 'self'; object-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
);

const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");

/// A page with its title.
pub(super) struct PageHtml {
    pub(super) status: StatusCode,
    pub(super) title: &'static str,
    pub(super) body: Markup,
    /// Whether the page loads itself again at once.
    pub(super) reloads: bool,
}

impl PageHtml {
    pub(super) fn new(title: &'static str, body: Markup) -> PageHtml {
        PageHtml { status: StatusCode::OK, title, body, reloads: false }
    }
}

impl IntoResponse for PageHtml {
    fn into_response(self) -> Response {
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    @if self.reloads { meta http-equiv="refresh" content="0"; }
                    title { (self.title) " · Evenbeat" }
                    link rel="stylesheet" href="/assets/evenbeat.css";
                }
                body { main { (self.body) } }
            }
        };
        let kind = (CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
        (self.status, [kind], page.into_string()).into_response()
    }
}

/// The style of all pages.
pub(super) async fn style() -> impl IntoResponse {
    let kind = (CONTENT_TYPE, HeaderValue::from_static("text/css; charset=utf-8"));
    ([kind, (CACHE_CONTROL, HeaderValue::from_static("public, max-age=3600"))], STYLE)
}

/// Adds the headers that every page has.
pub(super) async fn with_headers(request: Request, next: Next) -> Response {
    let mut answer = next.run(request).await;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, POLICY);
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    headers.insert(OPENER_POLICY, HeaderValue::from_static("same-origin"));
    answer
}
