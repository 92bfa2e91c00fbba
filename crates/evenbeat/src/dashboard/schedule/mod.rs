//! How the starts of a day are spread, and the rebalance: preview, compare, confirm, result.

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
    Router::new().route("/schedule", get(page))
}

async fn page(user: PageUser<PageViewer>, State(pages): State<Pages>) -> PageResult<Response> {
    let times = user.times(pages.app.clock.store_now());
    let body = html! { h1 { "Schedule" } };
    Ok(Frame::new(Nav::Schedule, "Schedule", body).show(&user, &times))
}
