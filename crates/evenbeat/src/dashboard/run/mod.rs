//! One run: how it stands or why it ended, its log, and its other attempts.

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
    Router::new().route("/runs/{id}", get(page))
}

async fn page(user: PageUser<PageViewer>, State(pages): State<Pages>) -> PageResult<Response> {
    let times = user.times(pages.app.clock.store_now());
    let body = html! { h1 { "Run" } };
    Ok(Frame::new(Nav::Runs, "Run", body).show(&user, &times))
}
