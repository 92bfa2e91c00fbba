//! Why a page could not be shown, as a page.

use axum::http::header::{HeaderValue, LOCATION, RETRY_AFTER, SET_COOKIE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use evenbeat_core::rights::Role;
use evenbeat_core::store::StoreDown;
use maud::html;

use super::flash::Flash;
use super::frame::{BarePage, protect};
use super::parts::icon;
use super::prefs::Prefs;
use crate::views::ViewError;

/// Why there is no page.
#[derive(Debug)]
pub(super) enum NoPage {
    /// They came by a link from another site. Browsers do not send the cookie then, but they do if the page loads itself
    /// again: that is tried once before a login is asked for.
    ComeAgain,
    /// They have no session.
    LogIn,
    /// Their role is not enough.
    NotAllowed(Role),
    /// The form was not sent by a page of theirs.
    Forged,
    /// What the address names is not there.
    NotFound(String),
    /// The address or a form cannot be understood.
    Refused(String),
    /// A change was refused: back to this page, with the reason.
    Back(Box<(String, Flash)>),
    /// The store does not answer.
    Down(StoreDown),
    /// The node of this process has stopped.
    NodeGone,
}

/// What a handler of a page returns.
pub(super) type PageResult<T> = Result<T, NoPage>;

impl NoPage {
    /// Back to a page, with a message.
    pub(super) fn back(path: impl Into<String>, flash: Flash) -> NoPage {
        NoPage::Back(Box::new((path.into(), flash)))
    }
}

impl From<StoreDown> for NoPage {
    fn from(down: StoreDown) -> NoPage {
        NoPage::Down(down)
    }
}

impl From<ViewError> for NoPage {
    fn from(error: ViewError) -> NoPage {
        match error {
            ViewError::Down(down) => NoPage::Down(down),
            ViewError::NodeGone => NoPage::NodeGone,
            ViewError::NoSuchRun(text) | ViewError::AmbiguousRun(text) => NoPage::NotFound(text),
            other @ (ViewError::Window(_) | ViewError::Bug(_)) => NoPage::Refused(other.to_string()),
        }
    }
}

impl IntoResponse for NoPage {
    fn into_response(self) -> Response {
        match self {
            NoPage::ComeAgain => {
                let body = html! { p { a href="/" { "Continue" } } };
                BarePage { reloads: true, ..BarePage::new("One moment", body) }.into_response()
            }
            NoPage::LogIn => {
                (StatusCode::SEE_OTHER, [(LOCATION, HeaderValue::from_static("/login"))]).into_response()
            }
            NoPage::NotAllowed(role) => {
                let text = format!("This needs the role {role}. Sign out, and sign in again with that role.");
                refused(StatusCode::FORBIDDEN, "Permission denied", &text)
            }
            NoPage::Forged => {
                let text = "The form is out of date. Go back, reload the page and send it again.";
                refused(StatusCode::FORBIDDEN, "Not sent", text)
            }
            NoPage::NotFound(text) => refused(StatusCode::NOT_FOUND, "Not found", &sentence(&text)),
            NoPage::Refused(text) => refused(StatusCode::BAD_REQUEST, "Not understood", &sentence(&text)),
            NoPage::Back(back) => see_other(&back.0, Some(&back.1)),
            NoPage::Down(StoreDown(why)) => {
                tracing::warn!(why, "the store did not answer a request");
                store_away().into_response()
            }
            NoPage::NodeGone => {
                let text = "The node of this process has stopped. Use another one.";
                refused(StatusCode::SERVICE_UNAVAILABLE, "Not available", text)
            }
        }
    }
}

/// Goes on to another page, with a message.
pub(super) fn see_other(path: &str, flash: Option<&Flash>) -> Response {
    let Ok(to) = HeaderValue::from_str(path) else { return StatusCode::BAD_REQUEST.into_response() };
    let mut answer = (StatusCode::SEE_OTHER, [(LOCATION, to)]).into_response();
    if let Some(cookie) = flash.and_then(Flash::set) {
        answer.headers_mut().append(SET_COOKIE, cookie);
    }
    answer
}

fn refused(status: StatusCode, title: &'static str, text: &str) -> Response {
    let body = html! {
        h1 { (title) }
        p.sub { (text) }
        p { a.btn href="/" { "Open the fleet" } }
    };
    BarePage { status, ..BarePage::new(title, body) }.into_response()
}

/// The page while the store is away. It tries again by itself.
fn store_away() -> Response {
    let body = html! {
        h1 { (icon("error")) " The store does not answer" }
        p.sub { "This page reads from it, so there is nothing to show right now. Runs that have started go on; new ones start when it is back." }
        p { a.btn href="" { "Try again" } }
        p.mut.gap { "This page tries again every 5 seconds." }
    };
    let page = BarePage {
        status: StatusCode::SERVICE_UNAVAILABLE,
        reloads_in: Some(5),
        ..BarePage::new("The store does not answer", body)
    };
    let mut answer = page.into_response();
    answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("5"));
    answer
}

/// The page for an address that leads nowhere. Anyone gets it: it says nothing about what there is.
pub(super) async fn nowhere(headers: HeaderMap) -> Response {
    let body = html! {
        h1 { "There is no such page" }
        p.sub { "The address may be mistyped, or what it led to is gone." }
        p { a.btn href="/" { "Open the fleet" } }
    };
    let prefs = Some(Prefs::of(&headers));
    let page = BarePage { status: StatusCode::NOT_FOUND, prefs, ..BarePage::new("Not found", body) };
    let mut answer = page.into_response();
    protect(&mut answer);
    answer
}

/// An error text as a sentence.
pub(super) fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let Some(first) = letters.next() else { return String::new() };
    let end = if text.ends_with(['.', '!', '?']) { "" } else { "." };
    format!("{}{}{end}", first.to_uppercase(), letters.as_str())
}
