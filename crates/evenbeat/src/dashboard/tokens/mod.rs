//! Tokens: who may use the API. Only people who came by a login link can change them: no token can make others.

mod create;
mod revoke;

use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use maud::{Markup, html};

use super::Pages;
use super::error::PageResult;
use super::frame::{Frame, Nav};
use super::parts::{ConditionMark, icon};
use super::times::{Distance, Times, count, counted};
use super::user::{PageAdmin, PageUser};
use crate::auth::PageSession;
use crate::printable;
use crate::store::access::{TokenRow, TokenState};

/// Tokens that are listed.
const ROWS_MAX: usize = 100;

/// A token that is valid for less than this is about to end.
const SOON: evenbeat_core::time::Duration = evenbeat_core::time::Duration::from_days(7);

pub(super) fn routes() -> Router<Pages> {
    Router::new()
        .route("/tokens", get(page).post(create::create))
        .route("/tokens/{id}/revoke", get(revoke::ask).post(revoke::revoke))
}

/// Whether someone may create and revoke tokens, besides being an admin.
fn may_change(session: &PageSession) -> bool {
    !session.is_of_token
}

async fn page(user: PageUser<PageAdmin>, State(pages): State<Pages>) -> PageResult<Response> {
    let times = user.times(pages.app.intake.now());
    let tokens = pages.auth.list_tokens().await?;
    let may_change = may_change(&user.session);
    let valid = || tokens.iter().filter(|it| it.state(times.now) == TokenState::Valid);
    let n_valid = valid().count() as u64;
    let n_unused = valid().filter(|it| it.last_used_at.is_none()).count() as u64;
    let soon = valid().filter_map(|it| it.expires_at).filter(|at| *at - times.now < SOON).min();
    let title = match n_valid {
        0 => "No token is valid".to_owned(),
        1 => "1 token is valid".to_owned(),
        n => format!("{} tokens are valid", count(n)),
    };
    let body = html! {
        section.verdict aria-labelledby="v" {
            div {
                h1 id="v" { (title) }
                p.sub {
                    @if n_valid == 0 { "People sign in with the link that " code { "evenbeat login" } " prints; programs need a token." }
                    @else if let Some(at) = soon { "The next one expires " (times.distance(at, Distance::In)) "." }
                    @else if 0 < n_unused { (counted(n_unused, "token")) (if n_unused == 1 { " was" } else { " were" }) " never used." }
                    @else { "A token is shown once, when it is created; only its hash is stored." }
                }
            }
        }
        @if may_change { (create::section(&user)) }
        @else {
            div.banner.calm.gap { (icon("paused")) span {
                "You signed in with a token, and no token can create or revoke tokens. Sign in with the link that "
                code { "evenbeat login" } " prints on the server."
            } }
        }
        (list(&tokens, may_change, &times))
    };
    Ok(Frame::new(Nav::Tokens, "Tokens", body).show(&user, &times))
}

fn list(tokens: &[TokenRow], may_change: bool, times: &Times) -> Markup {
    let mut sorted: Vec<&TokenRow> = tokens.iter().collect();
    sorted.sort_by_key(|it| it.state(times.now) != TokenState::Valid);
    let n_more = sorted.len().saturating_sub(ROWS_MAX);
    html! {
        section.sec.gap aria-labelledby="l-h" {
            div.sec-h { h2 id="l-h" { "Tokens" } span.sub { "newest first; revoked and expired ones are listed for 30 days" } }
            @if sorted.is_empty() { p.mut { "No tokens yet." } }
            @else {
                table.tbl.fix.tok {
                    colgroup { col.t1; col.t2c; col.t3; col.t4; col.t5; col.t6; col; }
                    thead { tr {
                        th { "Token" } th { "Label" } th { "Role" } th { "Created, " (times.zone_name()) } th { "Expires" } th { "Last used" } th { span.sr { "Action" } }
                    } }
                    tbody { @for token in sorted.iter().take(ROWS_MAX) { (row(token, may_change, times)) } }
                }
                @if 0 < n_more { p.mut { "and " (count(n_more as u64)) " more: " code { "evenbeat token list" } " shows all." } }
            }
        }
    }
}

fn row(token: &TokenRow, may_change: bool, times: &Times) -> Markup {
    let state = token.state(times.now);
    let mark = if state == TokenState::Valid { ConditionMark::Ok } else { ConditionMark::Paused };
    let pools: Vec<&str> = token.pools.iter().map(evenbeat_core::ids::Pool::as_str).collect();
    html! {
        tr {
            td { span class={ "st st-" (mark.name()) } { (mark.icon()) span.w.mono { "evb_" (token.id) "…" } } }
            td.ell title=(printable::line(&token.label)) { @if token.label.is_empty() { span.mut { "none" } } @else { b { (printable::line(&token.label)) } } }
            td.ell { (token.grant) @if !pools.is_empty() { span.mut { " for " (pools.join(", ")) } } }
            td.nw title={ "by " (printable::line(&token.created_by)) } { (times.short(token.created_at)) }
            td.nw {
                @match (state, token.revoked_at, token.expires_at) {
                    (TokenState::Revoked, Some(at), _) => { "revoked " (times.short(at)) }
                    (TokenState::Expired, _, Some(at)) => { "expired " (times.short(at)) }
                    (_, _, Some(at)) => { (times.short(at)) " " span.mut { (times.distance(at, Distance::In)) } }
                    (_, _, None) => span.mut { "never" }
                }
            }
            td.nw { @match token.last_used_at { Some(at) => (times.distance(at, Distance::Ago)), None => span.mut { "never" } } }
            td.num { @if may_change && state == TokenState::Valid { a.btn.bare href={ "/tokens/" (token.id) "/revoke" } data-ask { "Revoke" span.sr { " " (token.id) } } } }
        }
    }
}
