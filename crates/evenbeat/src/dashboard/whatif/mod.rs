//! The simulator: a question, an answer, charts side by side. It never changes anything.

mod answer;
mod chart;
mod desk;

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::HeaderValue;
use axum::http::header::REFRESH;
use axum::response::Response;
use axum::routing::{get, post};
use maud::{Markup, Render, html};

pub(super) use self::desk::WhatIfDesk;
use self::desk::{DeskAnswer, DeskProgress, Interest, NoDeskAnswer, PATIENCE};
use super::Pages;
use super::error::{PageResult, see_other};
use super::flash::Flash;
use super::frame::{Frame, Nav};
use super::parts::{ConditionMark, form_token, icon, url_query};
use super::times::{Times, count, counted};
use super::user::{FormFields, PageForm, PageUser, PageViewer};
use crate::app::App;
use crate::fleet::DAY_HOURS;
use crate::printable;
use crate::views::model::PoolView;
use crate::views::whatif::{self, SimulationStop, WhatIfQuestion};
use crate::views::{nodes, sharing};

/// Fleets with more jobs are simulated on the command line.
const JOBS_MAX: usize = 20_000;

/// Fleets that start more runs in the days of a question are, too.
const RUNS_MAX: u64 = 2_000_000;

/// The fields of a question, in their order.
const FIELDS: [&str; 8] = ["n", "every", "take", "pool", "allowed", "lose", "cap", "days"];

pub(super) fn routes() -> Router<Pages> {
    Router::new().route("/whatif", get(page)).route("/whatif/cancel", post(cancel))
}

async fn page(user: PageUser<PageViewer>, State(pages): State<Pages>) -> PageResult<Response> {
    let times = user.times(pages.app.clock.store_now());
    let fields = &user.query;
    let form = form(&pages.app, fields).await?;
    let (title, body, is_pending) = match WhatIfQuestion::read(|name| fields.get(name)) {
        Err(why) => ("What if".to_owned(), no_answer(&why.to_string()), false),
        Ok(question) if question.is_empty() || fields.get("ask") == Some("no") => {
            ("What if".to_owned(), prompt(), false)
        }
        Ok(question) => {
            let (app, asked) = (pages.app.clone(), question.clone());
            let work = |interest| simulate(app, asked, interest);
            let progress = pages.whatif.ask(&address(fields), PATIENCE, work).await;
            let is_pending = matches!(progress, DeskProgress::Waiting | DeskProgress::Running(_));
            let (title, body) = shown(progress, &question, &user, &times);
            (title, body, is_pending)
        }
    };
    let body = html! { (form) (body) };
    let mut answer = Frame::new(Nav::WhatIf, title, body).show(&user, &times);
    if is_pending {
        answer.headers_mut().insert(REFRESH, HeaderValue::from_static("1"));
    }
    Ok(answer)
}

/// Gives a question up, for all who wait for it.
async fn cancel(State(pages): State<Pages>, form: PageForm<PageViewer>) -> PageResult<Response> {
    pages.whatif.cancel(&address(&form.fields));
    let fields = given(&form.fields).chain([("ask", "no")]);
    let flash = Flash::done("Cancelled", "The simulation was stopped. Nothing has changed.");
    Ok(see_other(&url_query("/whatif", fields), Some(&flash)))
}

/// The fields that are filled in.
fn given(fields: &FormFields) -> impl Iterator<Item = (&str, &str)> {
    FIELDS.iter().filter_map(|name| Some((*name, fields.get(name)?)))
}

/// The address of a question: also its name.
fn address(fields: &FormFields) -> String {
    url_query("/whatif", given(fields))
}

/// Works an answer out. None if no page waits for it.
async fn simulate(app: App, question: WhatIfQuestion, interest: Arc<Interest>) -> Option<DeskAnswer> {
    if let Ok(day) = app.fleet.distribution(app.intake.now(), DAY_HOURS).await
        && RUNS_MAX < day.n_runs.saturating_mul(question.days.unsigned_abs())
    {
        return Some(Err(NoDeskAnswer::TooLarge));
    }
    let fleet = match whatif::load(&app, JOBS_MAX).await {
        Ok(Some(fleet)) => fleet,
        Ok(None) => return Some(Err(NoDeskAnswer::TooLarge)),
        Err(error) => return Some(Err(NoDeskAnswer::Unavailable(error.to_string()))),
    };
    let now = app.intake.now();
    let work = tokio::task::spawn_blocking(move || {
        whatif::answer(&question, fleet, now, &mut |n_simulations| interest.check(n_simulations))
    });
    match work.await {
        Ok(Ok(Ok(answer))) => Some(Ok(answer)),
        Ok(Ok(Err(why))) => Some(Err(NoDeskAnswer::NotAnswerable(why.to_string()))),
        Ok(Err(SimulationStop::TooLong)) => Some(Err(NoDeskAnswer::TooLong)),
        Ok(Err(SimulationStop::Cancelled)) => None,
        Err(fault) => std::panic::resume_unwind(fault.into_panic()),
    }
}

async fn form(app: &App, fields: &FormFields) -> PageResult<Markup> {
    let pools: Vec<PoolView> = sharing::pools(app).await?.items;
    let nodes = nodes::list(app, false).await?;
    let mut names: Vec<&str> = nodes
        .iter()
        .filter(|it| it.kind == "node" && it.state == "living")
        .map(|it| it.node.as_str())
        .collect();
    names.dedup();
    let value = |name: &str| fields.get(name).unwrap_or("");
    let chosen = fields.get("pool").unwrap_or_else(|| pools.first().map_or("default", |it| it.pool.as_str()));
    let slots = pools.iter().find(|it| it.pool == chosen).map_or(0, |it| it.capacity);
    let is_known = pools.iter().any(|it| it.pool == chosen);
    Ok(html! {
        form.ask method="get" action="/whatif" aria-label="Ask the simulator" {
            b { "What if" }
            label { "I add " input.in name="n" value=(value("n")) placeholder="0" inputmode="numeric" autocomplete="off"; }
            label { "jobs every " input.in name="every" value=(value("every")) placeholder="6h" autocomplete="off"; }
            label { "taking " input.in name="take" value=(value("take")) placeholder="2m" autocomplete="off"; }
            label {
                "in pool "
                select.sel name="pool" {
                    @for pool in &pools { option value=(pool.pool) selected[pool.pool == chosen] { (printable::line(&pool.pool)) } }
                    @if !is_known { option value=(chosen) selected { (printable::line(chosen)) } }
                }
            }
            label { "may be " input.in.w name="allowed" value=(value("allowed")) placeholder="12h" autocomplete="off"; }
            " " span { "old" }
            span.brk {}
            label {
                "and lose "
                select.sel name="lose" {
                    option value="" { "no node" }
                    @for name in &names { option value=(name) selected[value("lose") == *name] { (printable::line(name)) } }
                }
            }
            label {
                "with " input.in name="cap" value=(value("cap")) placeholder=(slots) inputmode="numeric" autocomplete="off";
                " slots in that pool"
            }
            label {
                "over "
                select.sel name="days" {
                    @for (days, text) in [("1", "1 day"), ("3", "3 days"), ("7", "7 days")] {
                        option value=(days) selected[value("days") == days] { (text) }
                    }
                }
            }
            span.sp {}
            a.btn href="/whatif" { "Clear" }
            button.btn.pri type="submit" { "Ask" }
        }
    })
}

fn prompt() -> Markup {
    html! {
        section.verdict aria-labelledby="v" {
            div {
                h1 id="v" { (icon("new")) "What breaks first, and what is the smallest fix?" }
                p.sub {
                    "Fill in what you plan and ask. The fleet as it is now is simulated with its real times, limits and nodes, once as it is "
                    "and once as asked. Nothing is changed by it."
                }
            }
        }
        p.gap {
            "For example: "
            a.link href=(url_query("/whatif", [("n", "100"), ("every", "6h"), ("take", "5m"), ("days", "1")])) {
                "100 more jobs every 6h taking 5m"
            }
            "."
        }
    }
}

fn no_answer(why: &str) -> Markup {
    verdict(ConditionMark::Warning, "This has no answer", html! { (printable::line(why)) })
}

fn verdict(mark: ConditionMark, title: &str, sub: impl Render) -> Markup {
    html! {
        section.verdict aria-labelledby="v" { div { h1 id="v" { (mark.icon()) (title) } p.sub { (sub) } } }
    }
}

/// What the page says to how far a question is.
fn shown(
    progress: DeskProgress,
    question: &WhatIfQuestion,
    user: &PageUser<PageViewer>,
    times: &Times,
) -> (String, Markup) {
    let titled = |body: Markup| ("What if".to_owned(), body);
    let done = match progress {
        DeskProgress::Waiting => return titled(pending("Another question is answered first", user)),
        DeskProgress::Running(n) => {
            return titled(pending(&format!("{} so far", counted(n as u64, "simulation")), user));
        }
        DeskProgress::Full => {
            let sub = html! { "Many questions wait for an answer. Ask again in a minute, or run " (command(question)) "." };
            return titled(verdict(ConditionMark::Warning, "The simulator is busy", sub));
        }
        DeskProgress::Done(done) => done,
    };
    match &*done {
        Ok(found) => answer::page(found, times),
        Err(NoDeskAnswer::NotAnswerable(why)) => titled(no_answer(why)),
        Err(NoDeskAnswer::Unavailable(why)) => titled(verdict(
            ConditionMark::Error,
            "The fleet could not be read",
            html! { (printable::line(why)) },
        )),
        Err(NoDeskAnswer::TooLarge) => {
            let title = "This fleet is too large to simulate on a page";
            let sub = html! {
                "It has more than " (count(JOBS_MAX as u64)) " jobs, or starts more than " (count(RUNS_MAX)) " runs in that time. "
                (command(question)) " asks the same question from the command line."
            };
            titled(verdict(ConditionMark::Warning, title, sub))
        }
        Err(NoDeskAnswer::TooLong) => {
            let sub = html! {
                "It was stopped after a minute. Ask about fewer days or fewer jobs, or run " (command(question))
                ", which takes its time."
            };
            titled(verdict(ConditionMark::Warning, "This takes too long for a page", sub))
        }
    }
}

fn command(question: &WhatIfQuestion) -> Markup {
    html! { code.mono { (question.command()) } }
}

fn pending(how_far: &str, user: &PageUser<PageViewer>) -> Markup {
    html! {
        section.verdict aria-labelledby="v" {
            div {
                h1 id="v" { (icon("run")) "Simulating" }
                p.sub {
                    "This takes longer than 2 seconds: " (how_far) ". The page loads itself when the answer is there; it is given up if you leave."
                }
            }
        }
        form.gap method="post" action="/whatif/cancel" {
            (form_token(&user.session))
            @for (name, value) in given(&user.query) { input type="hidden" name=(name) value=(value); }
            button.btn type="submit" { "Cancel" }
        }
    }
}
