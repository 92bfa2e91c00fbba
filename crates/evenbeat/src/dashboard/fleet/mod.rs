//! The first page: how the fleet is, what is late and why, when the next peak comes, and the list of jobs.
//!
//! The address is the only state of the list, so that the server renders exactly what it says, with scripts or without.

mod address;
mod bulk;
mod causes;
mod filters;
mod peak;
mod search;
mod table;
mod verdict;

use axum::Router;
use axum::extract::State;
use axum::http::header::{HeaderValue, REFRESH};
use axum::response::Response;
use axum::routing::{get, post};
use evenbeat_core::rights::Role;
use maud::{Markup, html};

use self::address::{ListAddress, PER_PAGE};
use super::Pages;
use super::error::{NoPage, PageResult};
use super::frame::{Frame, Nav};
use super::parts::icon;
use super::user::{PageUser, PageViewer};
use crate::views::job_lines::lines;
use crate::views::job_list::find;
use crate::views::overview::{JobNumbers, overview};

/// What makes the page load itself again.
const LIVE: &str = "job run condition";

pub(super) fn routes() -> Router<Pages> {
    Router::new().route("/", get(page)).route("/search", get(search::search)).route("/bulk", post(bulk::act))
}

async fn page(user: PageUser<PageViewer>, State(pages): State<Pages>) -> PageResult<Response> {
    let app = &pages.app;
    let address = ListAddress::parse(&user.query).map_err(NoPage::Refused)?;
    let fleet = overview(app).await?;
    let times = user.times(app.clock.store_now());
    if !fleet.is_read {
        let mut answer = Frame::new(Nav::Fleet, "Fleet", being_read(&fleet.jobs)).show(&user, &times);
        answer.headers_mut().insert(REFRESH, HeaderValue::from_static("2"));
        return Ok(answer);
    }
    if fleet.jobs.all == 0 {
        let body = invitation(user.may(Role::Editor));
        return Ok(Frame::new(Nav::Fleet, "Fleet", body).live(LIVE).show(&user, &times));
    }
    let found = find(app, &address.query, address.skip(), PER_PAGE).await?;
    let rows = lines(app, found.keys.clone()).await?;
    let body = html! {
        (verdict::verdict(&fleet, &times))
        (verdict::condition_bar(&fleet.jobs))
        div.two {
            (causes::causes(&fleet, &address, &times))
            (peak::peak(&fleet.day, &times))
        }
        section aria-labelledby="j-h" {
            h2.sr id="j-h" { "Jobs" }
            (filters::filters(&address, &fleet))
            (table::table(&address, &found, &rows, &user, &times))
        }
    };
    let frame = Frame::new(Nav::Fleet, verdict::title(&fleet.jobs), body).live(LIVE).dialogs(bulk::dialog());
    Ok(frame.show(&user, &times))
}

/// The page until all jobs have been read.
fn being_read(jobs: &JobNumbers) -> Markup {
    html! {
        section.verdict {
            div {
                h1 { (icon("wait")) "Reading the fleet" }
                p.sub {
                    @if 0 < jobs.all { (super::times::counted(jobs.all, "job")) " so far. " }
                    "How jobs stand is known once all of them have been read. This page tries again every 2 seconds."
                }
            }
        }
    }
}

/// The page without jobs.
fn invitation(may_add: bool) -> Markup {
    html! {
        div.empty id="no-jobs" {
            (icon("new"))
            h1 { "No jobs yet" }
            p {
                @if may_add { "Paste a crontab and see how even your day would be, or add a single job." }
                @else { "Someone with the role editor can add jobs." }
            }
            a.btn.pri href="/welcome" { @if may_add { "Add jobs" } @else { "See how it works" } }
        }
    }
}
