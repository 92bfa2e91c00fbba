//! Who looks at a page, and what they may do there.

use std::collections::BTreeMap;
use std::marker::PhantomData;

use axum::extract::{Form, FromRequest, FromRequestParts, Request};
use axum::http::header::{HeaderName, LOCATION};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use evenbeat_core::rights::Role;
use evenbeat_core::store::StoreDown;
use maud::html;

use super::Pages;
use super::html::PageHtml;
use crate::api::{scheme_of, session_cookie};
use crate::auth::PageSession;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The field of a form that holds its token.
pub(super) const FORM_TOKEN: &str = "form_token";

/// A role that a page needs, as a type.
pub(super) trait PageRole: Send {
    const ROLE: Role;
}

/// Someone who may look.
#[derive(Debug)]
pub(super) struct PageViewer;

impl PageRole for PageViewer {
    const ROLE: Role = Role::Viewer;
}

/// Someone with a session who has at least that role.
#[derive(Debug)]
pub(super) struct PageUser<R> {
    pub(super) session: PageSession,
    role: PhantomData<R>,
}

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
    Down(StoreDown),
}

impl<R: PageRole> FromRequestParts<Pages> for PageUser<R> {
    type Rejection = NoPage;

    async fn from_request_parts(parts: &mut Parts, pages: &Pages) -> Result<PageUser<R>, NoPage> {
        let scheme = scheme_of(&pages.trusted_proxies, &parts.extensions, &parts.headers);
        let session = match session_cookie(&parts.headers, scheme) {
            Some(cookie) => pages.auth.session(cookie).await.map_err(NoPage::Down)?,
            None => None,
        };
        let Some(session) = session else {
            let site = parts.headers.get(SEC_FETCH_SITE).map(HeaderValue::as_bytes);
            let is_from_elsewhere = matches!(site, Some(b"cross-site" | b"same-site"));
            return Err(if is_from_elsewhere { NoPage::ComeAgain } else { NoPage::LogIn });
        };
        if session.role < R::ROLE {
            return Err(NoPage::NotAllowed(R::ROLE));
        }
        Ok(PageUser { session, role: PhantomData })
    }
}

/// A form that someone with that role has sent from a page of theirs.
#[derive(Debug)]
pub(super) struct PageForm<R> {
    pub(super) user: PageUser<R>,
}

impl<R: PageRole> FromRequest<Pages> for PageForm<R> {
    type Rejection = NoPage;

    async fn from_request(request: Request, pages: &Pages) -> Result<PageForm<R>, NoPage> {
        let (mut parts, body) = request.into_parts();
        let user = PageUser::from_request_parts(&mut parts, pages).await?;
        let request = Request::from_parts(parts, body);
        let Form(fields) = Form::<BTreeMap<String, String>>::from_request(request, pages)
            .await
            .map_err(|_| NoPage::Forged)?;
        match fields.get(FORM_TOKEN) {
            Some(token) if user.session.accepts(token) => Ok(PageForm { user }),
            _ => Err(NoPage::Forged),
        }
    }
}

impl IntoResponse for NoPage {
    fn into_response(self) -> Response {
        let refused = |status: StatusCode, title: &'static str, text: String| {
            let body = html! {
                h1 { (title) }
                p { (text) }
                p { a href="/" { "Back to the start" } }
            };
            PageHtml { status, ..PageHtml::new(title, body) }.into_response()
        };
        match self {
            NoPage::ComeAgain => {
                let body = html! { p { a href="/" { "Continue" } } };
                PageHtml { reloads: true, ..PageHtml::new("One moment", body) }.into_response()
            }
            NoPage::LogIn => {
                (StatusCode::SEE_OTHER, [(LOCATION, HeaderValue::from_static("/login"))]).into_response()
            }
            NoPage::NotAllowed(role) => {
                let text = format!("This needs the role {role}. Log out, and log in again with that role.");
                refused(StatusCode::FORBIDDEN, "Permission denied", text)
            }
            NoPage::Forged => {
                let text = "The form is out of date. Go back, reload the page and send it again.".to_owned();
                refused(StatusCode::FORBIDDEN, "Not sent", text)
            }
            NoPage::Down(StoreDown(why)) => {
                tracing::warn!(why, "the store did not answer a request");
                let text =
                    "The store does not answer, so your session cannot be checked. Try again.".to_owned();
                refused(StatusCode::SERVICE_UNAVAILABLE, "Not available", text)
            }
        }
    }
}
