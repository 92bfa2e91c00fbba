//! One run: how it stands or why it ended, its log, and its other attempts.
//!
//! The log is not part of what live updates replace: `assets/run.js` adds to it, so that nothing moves under a reader.

mod actions;
mod ansi;
mod aside;
mod body;
mod heading;
mod log;
mod log_section;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::Response;
use axum::routing::{get, post};
use evenbeat_core::ids::RunId;
use evenbeat_core::nearest::shortened;
use evenbeat_core::rights::Role;
use maud::html;

use super::Pages;
use super::error::{NoPage, PageResult, see_other};
use super::frame::{Frame, Nav};
use super::parts::{run_path, run_word};
use super::user::{PageUser, PageViewer};
use crate::api::id_range;
use crate::app::App;
use crate::views::find_run::{FoundRun, find, find_exactly};
use crate::views::run_details::details;

pub(super) fn routes() -> Router<Pages> {
    Router::new()
        .route("/runs/{id}", get(page))
        .route("/runs/{id}/log", get(log_section::part))
        .route("/runs/{id}/log.txt", get(log_section::download))
        .route("/runs/{id}/cancel", post(actions::cancel))
        .route("/runs/{id}/again", post(actions::again))
}

/// The run or request with this id.
async fn found(app: &App, text: &str) -> PageResult<FoundRun> {
    let unknown = || NoPage::NotFound(format!("`{}` is not the id of a run", shortened(text)));
    let ids = id_range(text).filter(|ids| ids.from == ids.to).ok_or_else(unknown)?;
    Ok(find_exactly(app, ids.from).await?)
}

/// The whole id that begins with a text, if that is only the beginning of one.
async fn whole_id(app: &App, text: &str) -> PageResult<Option<String>> {
    match id_range(text) {
        Some(ids) if ids.from != ids.to => Ok(Some(find(app, ids).await?.id)),
        _ => Ok(None),
    }
}

async fn page(
    user: PageUser<PageViewer>,
    State(pages): State<Pages>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> PageResult<Response> {
    if let Some(whole) = whole_id(&pages.app, &id).await? {
        return Ok(see_other(&run_path(&whole), None));
    }
    let found = found(&pages.app, &id).await?;
    if found.id != id {
        return Ok(see_other(&run_path(&found.id), None));
    }
    let times = user.times(pages.app.clock.store_now());
    let run = details(&pages.app, found).await?;
    let title = format!("{} · {}", run_word(&run.view.status), run.view.job);
    let is_operator = user.may(Role::Operator);
    if let Some(question) = user.query.get("confirm").filter(|_| is_operator) {
        return match actions::asked(question, &run, &user.session, &times) {
            Some(question) => Ok(Frame::new(Nav::Runs, title, question).show(&user, &times)),
            // It ended in between, or was requested by hand.
            None => Ok(see_other(&run_path(&id), None)),
        };
    }
    let is_update = headers.contains_key("x-evenbeat-live");
    let log = log_section::section(&pages, &run, &times, is_update).await?;
    let body = html! {
        (body::top(&run, &times, is_operator))
        div.job.run {
            div.col {
                (body::result(&run))
                (log)
                (body::attempts(&run, &times))
            }
            (aside::aside(&run, &times))
        }
    };
    let frame = Frame::new(Nav::Runs, title, body).live("run job").live_job(&run.view.job);
    Ok(frame.show(&user, &times))
}

/// The id of a run or request as a number. Ids of both come from one source.
fn id_of(text: &str) -> Option<RunId> {
    id_range(text).filter(|ids| ids.from == ids.to).map(|ids| ids.from)
}
