//! The empty state: paste a crontab, compare, take it over.

use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use maud::html;

use super::Pages;
use super::error::PageResult;
use super::frame::{Frame, Nav};
use super::user::{PageUser, PageViewer};

pub(super) fn routes() -> Router<Pages> {
    Router::new().route("/welcome", get(page))
}

async fn page(user: PageUser<PageViewer>, State(pages): State<Pages>) -> PageResult<Response> {
    let times = user.times(pages.app.clock.store_now());
    let body = html! { h1 { "Welcome" } };
    Ok(Frame::new(Nav::Welcome, "Welcome", body).show(&user, &times))
}
