//! Incidents, mutes, routes, channels and messages: what is open, who knows, did it arrive?

mod incident;
mod message;
mod mute;
mod mute_end;
mod routing;
mod setup;
mod verdict;

use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::{get, post};
use evenbeat_core::rights::Role;
use maud::{Markup, html};

use super::Pages;
use super::error::{NoPage, PageResult};
use super::frame::{Frame, Nav};
use super::parts::icon;
use super::times::{Distance, Times, count, counted};
use super::user::{PageUser, PageViewer};
use crate::printable;
use crate::views::alert_overview::{self, AlertOverview, ChannelFailure, ChannelHealth};

/// Incidents of one page.
const INCIDENTS_MAX: usize = 25;

pub(super) fn routes() -> Router<Pages> {
    Router::new()
        .route("/alerts", get(page))
        .route("/alerts/mute", get(mute::page).post(mute::mute))
        .route("/alerts/unmute", post(mute::unmute))
        .route("/alerts/test", post(routing::test))
}

async fn page(user: PageUser<PageViewer>, State(pages): State<Pages>) -> PageResult<Response> {
    let times = user.times(pages.app.intake.now());
    let skip = match user.query.get("from") {
        None => 0,
        Some(text) => text
            .parse()
            .map_err(|_| NoPage::Refused("`from` is the number of incidents to skip".to_owned()))?,
    };
    let with_all = user.query.get("messages") == Some("all");
    let alerts = alert_overview::overview(&pages.app, skip, INCIDENTS_MAX).await?;
    let rules = &pages.app.alerts.rules();
    let verdict = verdict::verdict(&alerts, &times);
    let may_mute = user.may(Role::Operator);
    let is_set_up = !alerts.channels.is_empty();
    let body = html! {
        div id="failing" data-l { @for channel in &alerts.channels { (failing(channel, &times)) } }
        (verdict.markup(&alerts, &times))
        @if user.query.get("mute").is_some() && may_mute {
            noscript { p.banner.calm { span { "This needs a page of its own without scripts." } span.sp {} a.btn href=(mute::path(user.query.get("job"))) { "Mute alerts" } } }
        }
        @if is_set_up || 0 < alerts.n_open {
            section.sec.gap id="open" data-l aria-labelledby="i-h" {
                div.sec-h {
                    h2 id="i-h" { "Open incidents" }
                    span.sub { "one per job, oldest first" }
                    span.sp {}
                    @if may_mute { a.btn href="/alerts/mute" data-ask { "Mute alerts" } }
                }
                @if alerts.n_open == 0 {
                    div.empty { (icon("ok")) h3 { "Nothing is open" } p { "A job gets an incident when it breaks its promise, or is about to." } }
                }
                @for it in &alerts.incidents { (incident::details(it, &alerts.messages, rules, may_mute, &times)) }
                (pager(&alerts, skip))
            }
        }
        @if !is_set_up { (setup::section()) }
        div.altwo {
            (mute::section(&alerts.mutes, &user, &times))
            @if is_set_up { (routing::section(rules, &alerts.channels, &user, &times)) }
        }
        @if is_set_up || !alerts.messages.is_empty() { (message::section(&alerts.messages, with_all, &times)) }
    };
    let frame = Frame::new(Nav::Alerts, verdict.title, body).live("condition");
    Ok(frame.show(&user, &times))
}

fn failing(channel: &ChannelHealth, times: &Times) -> Markup {
    let Some(ChannelFailure { since, answer, n_waiting }) = &channel.failing else { return html! {} };
    html! {
        div.banner.err role="alert" {
            (icon("error"))
            span {
                b { "The channel " (printable::line(&channel.name)) " has accepted nothing since " (times.short(*since)) "." }
                @if let Some(answer) = answer { " Last answer: " (printable::line(answer)) "." }
                @match n_waiting { 0 => {}, n => { " " (counted(*n as u64, "message")) (if *n == 1 { " waits" } else { " wait" }) " to be sent again." } }
            }
        }
    }
}

fn pager(alerts: &AlertOverview, skip: usize) -> Markup {
    let last = skip + alerts.incidents.len();
    let all = if alerts.is_more {
        format!("more than {}", count(alerts.n_open as u64))
    } else {
        count(alerts.n_open as u64)
    };
    html! {
        @if 0 < skip || last < alerts.n_open {
            div.pager {
                span { (count((skip + 1).min(last) as u64)) " to " (count(last as u64)) " of " (all) }
                span.sp {}
                @if 0 < skip { a.btn href={ "/alerts?from=" (skip.saturating_sub(INCIDENTS_MAX)) } { "Older" } }
                @if last < alerts.n_open { a.btn href={ "/alerts?from=" (last) } { "Newer" } }
            }
        }
    }
}

/// How long ago something was, with its time.
fn ago(at: evenbeat_core::time::Timestamp, times: &Times) -> Markup {
    html! { (times.short(at)) " " span.mut { (times.distance(at, Distance::Ago)) } }
}
