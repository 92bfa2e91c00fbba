//! A new token. Its text is shown once, on the page that answers the form, and is in no address and no cookie.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use evenbeat_core::ids::Pool;
use evenbeat_core::rights::{Grant, Role};
use evenbeat_core::time::Duration;
use maud::{Markup, html};

use super::may_change;
use crate::auth::{NewToken, TokenError};
use crate::dashboard::Pages;
use crate::dashboard::error::{NoPage, PageResult};
use crate::dashboard::flash::Flash;
use crate::dashboard::frame::{Frame, Nav};
use crate::dashboard::parts::{form_token, icon};
use crate::dashboard::user::{FormFields, PageAdmin, PageForm, PageUser};
use crate::printable;

/// How long a token may be valid, as offered. Others are made with `evenbeat token create --expires`.
const LIVES: [(&str, &str, Option<i64>); 5] = [
    ("30d", "30 days", Some(30)),
    ("90d", "90 days", Some(90)),
    ("365d", "1 year", Some(365)),
    ("7d", "7 days", Some(7)),
    ("never", "never", None),
];

/// What each role may do, for people who choose one.
fn meaning(grant: Grant) -> &'static str {
    match grant {
        Grant::Role(Role::Viewer) => "viewer: looks",
        Grant::Role(Role::Operator) => "operator: pauses, runs, cancels, drains, mutes",
        Grant::Role(Role::Editor) => "editor: also changes jobs, and thereby runs anything",
        Grant::Role(Role::Admin) => "admin: everything but tokens",
        Grant::Worker => "worker: asks for work and reports",
        Grant::Metrics => "metrics: reads metrics only",
    }
}

pub(super) fn section(user: &PageUser<PageAdmin>) -> Markup {
    html! {
        section.sec.gap aria-labelledby="c-h" {
            div.sec-h { h2 id="c-h" { "Create a token" } span.sub { "for a program, or for a person who cannot reach the server" } }
            form.mk method="post" action="/tokens" {
                (form_token(&user.session))
                label.fld { span { "Label" } input.in name="label" maxlength="64" autocomplete="off" placeholder="who or what uses it"; }
                label.fld { span { "Role" } select.sel name="role" { @for grant in Grant::ALL { option value=(grant.as_str()) { (meaning(grant)) } } } }
                label.fld { span { "Expires after" } select.sel name="expires" { @for (value, label, _) in LIVES { option value=(value) { (label) } } } }
                label.fld { span { "Pools, for a worker" } input.in name="pools" autocomplete="off" placeholder="all"; }
                button.btn.pri type="submit" { "Create the token" }
            }
        }
    }
}

/// Creates a token and shows it.
pub(super) async fn create(State(pages): State<Pages>, form: PageForm<PageAdmin>) -> PageResult<Response> {
    let PageForm { user, fields } = form;
    if !may_change(&user.session) {
        return Err(NoPage::Refused("no token can create tokens; sign in with a login link".to_owned()));
    }
    let failed =
        |text: String| NoPage::back("/tokens".to_owned(), Flash::failed("No token was created", text));
    let new = read(&fields).map_err(failed)?;
    let (row, token) = pages.auth.create_token(user.actor(), new).await.map_err(|error| match error {
        TokenError::Down(down) => NoPage::Down(down),
        error => failed(error.to_string()),
    })?;
    let times = user.times(pages.app.intake.now());
    let name = if row.label.is_empty() { row.id.clone() } else { row.label.clone() };
    let body = html! {
        section.verdict aria-labelledby="v" {
            div {
                h1 id="v" { (icon("ok")) "Copy the token now: it is shown once" }
                p.sub { "Only its hash is stored. If it is lost, revoke it and create another." }
            }
        }
        section.sec.gap aria-label="The token" {
            label.fld.tk { span { (printable::line(&name)) ", role " (row.grant) @if let Some(at) = row.expires_at { ", valid until " (times.short(at)) } }
                input.in.mono readonly value=(token) spellcheck="false" autocomplete="off" autofocus;
            }
            p.mut { "A program sends it with each request: " code { "Authorization: Bearer TOKEN" } ". A person pastes it on the login page." }
            p.gap { a.btn href="/tokens" { "Done" } }
        }
    };
    let mut frame = Frame::new(Nav::Tokens, "A new token", body);
    frame.status = StatusCode::CREATED;
    Ok(frame.show(&user, &times))
}

fn read(fields: &FormFields) -> Result<NewToken, String> {
    let grant = fields.get("role").unwrap_or_default();
    let grant: Grant = grant.parse().map_err(|error| format!("Choose a role: {error}"))?;
    let expires = fields.get("expires").unwrap_or_default();
    let Some((_, _, days)) = LIVES.iter().find(|(value, ..)| *value == expires) else {
        return Err("Choose when the token expires.".to_owned());
    };
    let pools = fields.get("pools").unwrap_or_default().split([',', ' ']).filter(|it| !it.is_empty());
    let pools: Result<Vec<Pool>, String> =
        pools.map(|it| it.parse().map_err(|error| format!("{error}"))).collect();
    Ok(NewToken {
        label: fields.get("label").unwrap_or_default().to_owned(),
        grant,
        pools: pools?,
        expires_in: days.map(Duration::from_days),
    })
}
