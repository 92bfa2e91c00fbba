//! What ran lately, what went wrong, and whether it has recovered.

mod list;
mod query;
mod strip;

use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use evenbeat_core::job::Status;
use evenbeat_core::run::Outcome;
use maud::{Markup, html};

use self::query::RunsAddress;
use super::Pages;
use super::error::{NoPage, PageResult};
use super::frame::{Frame, Nav};
use super::parts::icon;
use super::times::{brief, count, counted};
use super::user::{PageUser, PageViewer};
use crate::api::id_range;
use crate::app::App;
use crate::store::query::SharedKind;
use crate::views::find_run::find;
use crate::views::model::SessionNames;
use crate::views::run_board::{self, BoardRow, EndedStrip, RunBoard};

/// Rows of a page.
const N_ROWS: usize = 50;

/// Pools to choose from.
const N_POOLS_MAX: usize = 100;

pub(super) fn routes() -> Router<Pages> {
    Router::new().route("/runs", get(page))
}

async fn page(user: PageUser<PageViewer>, State(pages): State<Pages>) -> PageResult<Response> {
    let app = &pages.app;
    let address = RunsAddress::read(&user.query).map_err(NoPage::Refused)?;
    let times = user.times(app.clock.store_now());
    let strip = run_board::strip(app, times.now).await?;
    let n_running = app.node.ask_roster(|roster| roster.counts().in_status(Status::Running)).await;
    let pools = app.store.shared_names(SharedKind::Pool, N_POOLS_MAX).await?;
    let board = board(app, &address, times.now).await?;
    let body = html! {
        (verdict(&strip))
        (strip::strip(&strip, &times))
        (list::tabs(&address, &strip, n_running, &pools))
        (list::table(&address, &board, &times))
    };
    let title = match strip.n_bad() {
        0 => "Runs".to_owned(),
        n => format!("{} bad · Runs", count(n)),
    };
    Ok(Frame::new(Nav::Runs, title, body).live("run").show(&user, &times))
}

/// The page of runs that an address asks for.
async fn board(
    app: &App,
    address: &RunsAddress,
    now: evenbeat_core::time::Timestamp,
) -> PageResult<RunBoard> {
    if let Some(found) = by_id(app, address.text.as_deref()).await {
        return Ok(found);
    }
    let mut query = address.board(now);
    if query.key.is_none()
        && let Some(text) = &query.text
        && let Some(keys) = app.fleet.find_keys(text.clone(), None, None, 2).await
        && let [only] = keys.as_slice()
    {
        // One job has this text in its key. Its runs are found by an index; what else mentions it is not.
        query.key = Some(only.clone());
        query.text = None;
    }
    Ok(run_board::board(app, &query, N_ROWS).await?)
}

/// The run whose id begins with a text, if that can only be an id.
async fn by_id(app: &App, text: Option<&str>) -> Option<RunBoard> {
    let ids = text.filter(|text| 8 <= text.len()).and_then(id_range)?;
    let found = find(app, ids).await.ok()?;
    let names = SessionNames::of(&app.store.sessions().await.ok()?);
    let row = BoardRow { view: found.view(&names), since_then: None };
    Some(RunBoard { rows: vec![row], ..RunBoard::default() })
}

fn verdict(strip: &EndedStrip) -> Markup {
    let window = window_words(strip);
    let (bad, n) = (strip.n_bad(), strip.n_ended);
    let parts = [
        (Outcome::Failed, "failed"),
        (Outcome::TimedOut, "timed out"),
        (Outcome::Lost, "lost"),
        (Outcome::Blackout, "stopped by a blackout"),
        (Outcome::Unknown, "without an answer"),
        (Outcome::Cancelled, "cancelled"),
    ];
    let parts: Vec<String> = parts
        .into_iter()
        .filter(|(outcome, _)| 0 < strip.n(*outcome))
        .map(|(outcome, word)| format!("{} {word}", count(strip.n(outcome))))
        .collect();
    let is_short = strip.window < evenbeat_core::time::Duration::from_hours(24);
    html! {
        section.verdict aria-labelledby="v" id="runs-v" data-l {
            div {
                h1 id="v" aria-live="polite" {
                    @match (n, bad) {
                        (0, _) => { (icon("new")) "No run ended in " (window) }
                        (1, 0) => { (icon("ok")) "The one run that ended in " (window) " ended well" }
                        (n, 0) => { (icon("ok")) "None of " (counted(n, "run")) " ended badly in " (window) }
                        (n, bad) => { (icon("error")) (count(bad)) " of " (counted(n, "run")) " ended badly in " (window) }
                    }
                }
                p.sub {
                    @if !parts.is_empty() { (parts.join(", ")) ". " }
                    "By end time, so a run that started yesterday and failed today is here."
                    @if is_short { " More runs ended in 24 h than are counted for one page, so these are the last " (brief(strip.window)) "." }
                }
            }
        }
    }
}

fn window_words(strip: &EndedStrip) -> String {
    match strip.window.as_millis() / 3_600_000 {
        24.. => "24 h".to_owned(),
        0 => brief(strip.window),
        hours => format!("{hours} h"),
    }
}
