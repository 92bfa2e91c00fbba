//! The end of a token.

use axum::extract::{Path, State};
use axum::response::Response;
use maud::html;

use super::may_change;
use crate::auth::TokenError;
use crate::dashboard::Pages;
use crate::dashboard::error::{NoPage, PageResult, see_other};
use crate::dashboard::flash::Flash;
use crate::dashboard::frame::{Frame, Nav};
use crate::dashboard::parts::{PageQuestion, question};
use crate::dashboard::times::Distance;
use crate::dashboard::user::{PageAdmin, PageForm, PageUser};
use crate::printable;
use crate::store::access::TokenState;

/// Asks, with the consequence.
pub(super) async fn ask(
    user: PageUser<PageAdmin>,
    State(pages): State<Pages>,
    Path(id): Path<String>,
) -> PageResult<Response> {
    let times = user.times(pages.app.intake.now());
    let tokens = pages.auth.list_tokens().await?;
    let Some(token) = tokens.iter().find(|it| it.id == id && it.state(times.now) == TokenState::Valid) else {
        return Err(NoPage::NotFound("there is no valid token of this id".to_owned()));
    };
    let name = if token.label.is_empty() { &token.id } else { &token.label };
    let name = printable::line(name);
    let asked = PageQuestion {
        title: format!("Revoke {name}?"),
        body: html! {
            p { "Whatever uses it is refused within seconds, and browser sessions that were opened with it end. It cannot be undone." }
            p {
                "Role " b { (token.grant) } ", "
                @match token.last_used_at { Some(at) => { "last used " (times.distance(at, Distance::Ago)) "." }, None => { "never used." } }
            }
        },
        action: format!("/tokens/{}/revoke", token.id),
        verb: "Revoke the token".to_owned(),
        is_final: true,
        back: "/tokens",
    };
    let body = question(&asked, &user.session);
    Ok(Frame::new(Nav::Tokens, asked.title, body).show(&user, &times))
}

/// Revokes.
pub(super) async fn revoke(
    State(pages): State<Pages>,
    Path(id): Path<String>,
    form: PageForm<PageAdmin>,
) -> PageResult<Response> {
    if !may_change(&form.user.session) {
        return Err(NoPage::Refused("no token can revoke tokens; sign in with a login link".to_owned()));
    }
    let revoked = pages.auth.revoke_token(form.user.actor(), &id).await;
    revoked.map_err(|error| match error {
        TokenError::Down(down) => NoPage::Down(down),
        error => NoPage::back("/tokens".to_owned(), Flash::failed("Nothing was revoked", error.to_string())),
    })?;
    let flash = Flash::done(format!("The token {id} is revoked"), "Other nodes refuse it within seconds.");
    Ok(see_other("/tokens", Some(&flash)))
}
