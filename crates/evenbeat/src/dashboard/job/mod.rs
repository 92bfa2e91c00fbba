//! One job: how fresh it is, why it waits, its history, its next runs, and what can be done to it.

mod actions;
mod aside;
mod axis;
mod backfill;
mod draft;
mod editor;
mod freshness;
mod header;
mod history;
mod label_row;
mod log_tail;
mod preview;
mod ribbon;
mod why;

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use evenbeat_core::ids::{JobKey, RunId};
use evenbeat_core::nearest::shortened;
use evenbeat_core::store::JobRow;
use evenbeat_core::time::{Duration, Timestamp};
use maud::{Markup, html};
use uuid::Uuid;

use self::freshness::{Attempt, FreshnessFacts, freshness_chart};
use self::header::{Verb, mark_of};
use self::history::{ROWS, RunEnding};
use self::log_tail::{LogTail, log_tail};
use self::ribbon::{DayFacts, day_ribbon};
use super::Pages;
use super::error::{NoPage, PageResult};
use super::frame::{BarePage, Frame, Nav};
use super::parts::{ConditionMark, job_link};
use super::times::{Distance, Times, brief, length_text};
use super::user::{PageUser, PageViewer};
use crate::mint::mint;
use crate::views::job_detail::{JobDetail, near_keys, runs_of};
use crate::views::model::{AttainmentWindow, RunView};

/// Times that a job was late, of those that are listed.
const N_LATE: usize = 3;

pub(super) fn routes() -> Router<Pages> {
    Router::new()
        .route("/jobs/new", get(editor::new_page).post(editor::create))
        .route("/jobs/{key}", get(page))
        .route("/jobs/{key}/edit", get(editor::edit_page).post(editor::save))
        .route("/jobs/{key}/backfill", get(backfill::page).post(backfill::request))
        .route("/jobs/{key}/run", post(actions::run))
        .route("/jobs/{key}/pause", post(actions::pause))
        .route("/jobs/{key}/resume", post(actions::resume))
        .route("/jobs/{key}/stop", post(actions::stop))
        .route("/jobs/{key}/delete", post(actions::delete))
}

/// The job of an address, or a not-found page.
async fn job_of(pages: &Pages, text: &str) -> Result<JobRow, Response> {
    let row = match text.parse::<JobKey>() {
        Ok(key) => pages.app.store.job(&key).await.map_err(|down| NoPage::Down(down).into_response())?,
        Err(_) => None,
    };
    match row.filter(|row| !row.is_deleted) {
        Some(row) => Ok(row),
        None => Err(no_job(pages, text).await),
    }
}

async fn no_job(pages: &Pages, text: &str) -> Response {
    let near = near_keys(&pages.app, text).await;
    let body = html! {
        h1 { "There is no job of this name" }
        p.sub { code { (crate::printable::line(&shortened(text))) } " was removed, or never was." }
        @if !near.is_empty() {
            p { "These look like it:" }
            ul.near { @for key in &near { li { (job_link(key.as_str())) } } }
        }
        p { a.btn href="/?tab=all" { "All jobs" } }
    };
    BarePage { status: StatusCode::NOT_FOUND, ..BarePage::new("No such job", body) }.into_response()
}

async fn page(
    user: PageUser<PageViewer>,
    State(pages): State<Pages>,
    Path(text): Path<String>,
) -> PageResult<Response> {
    match job_of(&pages, &text).await {
        Ok(row) => Box::pin(show(&user, &pages, row)).await,
        Err(answer) => Ok(answer),
    }
}

/// The page of a job.
async fn show(user: &PageUser<PageViewer>, pages: &Pages, row: JobRow) -> PageResult<Response> {
    let before = user.query.get("before").map(run_cursor).transpose()?;
    let detail = Box::pin(JobDetail::of(&pages.app, row)).await?;
    let times = user.times(detail.now);
    let listed = runs_of(&pages.app, detail.key(), before, ROWS).await?;
    let tail = last_bad_log(pages, &detail.runs.items).await;
    let idempotency = Uuid::from_u128(mint(detail.now)).to_string();
    let asked = user.query.get("confirm").and_then(Verb::named);
    let body = html! {
        (header::header(&detail, user))
        @if let Some(verb) = asked { (header::asked(verb, &detail, user, &idempotency, &times)) }
        (why::why_box(&detail, &times))
        div.job {
            div.col {
                (freshness(&detail, &times))
                (day(&detail))
                (history::history(&detail, &listed, before.is_none(), tail.as_ref(), &times))
                (attainment(&detail, &times))
            }
            (aside::aside(&detail, user, &times))
        }
    };
    let title = match mark_of(&detail) {
        (ConditionMark::Error | ConditionMark::Warning, word) => format!("{word} · {}", detail.key()),
        _ => detail.key().to_string(),
    };
    let dialogs = header::dialogs(&detail, user, &idempotency, &times);
    let frame = Frame::new(Nav::Fleet, title, body).live("job run condition").live_job(detail.key().as_str());
    Ok(frame.dialogs(dialogs).show(user, &times))
}

fn run_cursor(text: &str) -> PageResult<RunId> {
    let id = Uuid::try_parse(text)
        .map_err(|_| NoPage::Refused(format!("`{}` is not the id of a run", shortened(text))))?;
    Ok(RunId(id.as_u128()))
}

/// The last lines of the last bad run, if the latest run that ended was bad and its log is on this node.
async fn last_bad_log(pages: &Pages, runs: &[RunView]) -> Option<(String, LogTail)> {
    let last = runs.iter().find(|run| run.outcome.is_some())?;
    if RunEnding::of(last) == Some(RunEnding::Good) {
        return None;
    }
    let run = RunId(Uuid::try_parse(&last.id).ok()?.as_u128());
    let logs = Arc::clone(&pages.logs);
    let read = tokio::task::spawn_blocking(move || log_tail(logs.as_ref(), run)).await.ok()?;
    let tail = read.inspect_err(|error| tracing::warn!(%error, %run, "a log could not be read")).ok()??;
    Some((last.id.clone(), tail))
}

/// The runs of a job as blocks of time.
fn attempts(runs: &[RunView]) -> Vec<Attempt> {
    let attempt = |run: &RunView| {
        let from = run.started_at.or(run.claimed_at)?.0;
        let to = run.ended_at.map(|it| it.0).filter(|_| run.outcome.is_some());
        Some(Attempt { from, to, is_good: RunEnding::of(run) == Some(RunEnding::Good) })
    };
    runs.iter().rev().filter_map(attempt).collect()
}

/// How long a run takes, if that is known.
fn known_length(detail: &JobDetail) -> Option<Duration> {
    Some(detail.explanation.expected_length.0).filter(|it| Duration::ZERO < *it)
}

fn freshness(detail: &JobDetail, times: &Times) -> Markup {
    let (view, why) = (&detail.view, &detail.explanation);
    let since = view.last_good_start_at.map(|it| it.0);
    let deadline = why.deadline.map(|it| it.0).filter(|_| view.tracked);
    let placed_for = detail.row.state.placement.as_ref().map(|it| it.anchor_at);
    let facts = deadline.zip(since.or(placed_for)).map(|(deadline, from)| FreshnessFacts {
        since: from.min(deadline),
        has_good_run: since.is_some(),
        now: detail.now,
        latest_start: why.should_start_by.map_or(deadline, |it| it.0),
        deadline,
        attempts: attempts(&view_runs_since(detail, since)),
        planned: why.starts_at.map(|it| it.0).filter(|_| view.owner_tag.is_none()),
        length: known_length(detail),
        can_run_now: view.owner_tag.is_none() && view.enabled && view.paused_by.is_none(),
    });
    html! {
        section.sec aria-labelledby="f-h" id="fresh" data-l {
            div.sec-h {
                h2 id="f-h" { "Freshness" }
                span.sub { (age_words(since, deadline, detail, times)) }
            }
            @match &facts {
                Some(facts) => { (freshness_chart(facts, times)) (freshness_legend()) },
                None => p.mut { (why_not_tracked(detail)) },
            }
        }
    }
}

/// Runs since the last good start, that one included.
fn view_runs_since(detail: &JobDetail, since: Option<Timestamp>) -> Vec<RunView> {
    let is_later = |run: &&RunView| {
        let start = run.started_at.or(run.claimed_at).map(|it| it.0);
        since.is_none_or(|since| start.is_some_and(|start| since <= start))
    };
    detail.runs.items.iter().filter(is_later).cloned().collect()
}

fn age_words(
    since: Option<Timestamp>,
    deadline: Option<Timestamp>,
    detail: &JobDetail,
    times: &Times,
) -> Markup {
    let is_late = deadline.is_some_and(|deadline| deadline < detail.now);
    let tone = match (is_late, detail.view.condition.as_ref()) {
        (true, _) => "c-err",
        (false, "warning") => "c-warn",
        _ => "",
    };
    html! {
        @match since {
            Some(since) => { "data is " b { (times.distance(since, Distance::Since)) } " old" },
            None => "no good run yet",
        }
        @if let (Some(since), Some(deadline)) = (since, deadline) { ", " (brief(deadline - since)) " allowed" }
        @if let Some(deadline) = deadline { ", " b class=(tone) { (times.distance(deadline, Distance::Left)) } }
    }
}

fn why_not_tracked(detail: &JobDetail) -> &'static str {
    match detail.view.status.as_ref() {
        _ if detail.view.schedule_kind == "manual" => {
            "It runs only when someone asks for it, so there is no deadline."
        }
        "disabled" => "Not tracked while it is disabled.",
        "done" => "Nothing of its schedule is left, so there is no deadline.",
        _ if !detail.view.tracked => "Not tracked while it is paused.",
        _ => "It has no deadline yet.",
    }
}

fn freshness_legend() -> Markup {
    let key = |class: &'static str, words: &str| {
        html! { span { svg.tl-k viewBox="0 0 14 10" aria-hidden="true" { rect class=(class) x="0.75" y="0.75" width="12.5" height="8.5" rx="2" {} } (words) } }
    };
    html! {
        div.lgd.tl-l {
            (key("run-ok", "good run")) (key("run-bad", "failed run")) (key("run-plan", "planned run")) (key("run-alt", "if run now"))
            (key("tight", "a start here would be late")) (key("late", "stale"))
        }
    }
}

fn day(detail: &JobDetail) -> Markup {
    let job = &*detail.row.job;
    let oldest = detail.runs.items.last().and_then(|run| run.claimed_at).map(|it| it.0);
    let last_start = detail.upcoming.items.last().map(|it| it.at.0);
    let facts = DayFacts {
        zone: &job.zone,
        blackouts: &job.blackouts,
        now: detail.now,
        runs: attempts(&detail.runs.items),
        planned: detail.upcoming.items.iter().map(|it| it.at.0).collect(),
        length: detail.explanation.expected_length.0,
        runs_since: oldest.filter(|_| detail.runs.next.is_some()),
        planned_until: last_start.filter(|_| detail.upcoming.next.is_some()),
    };
    html! {
        section.sec aria-labelledby="d-h" id="day" data-l {
            div.sec-h { h2 id="d-h" { "Day" } span.sub { (facts.about()) } }
            (day_ribbon(&facts))
        }
    }
}

fn attainment(detail: &JobDetail, times: &Times) -> Markup {
    let share = |window: &AttainmentWindow| match window.figures.attainment {
        // Rounded down: what was late for a moment was not perfect.
        Some(share) => format!("{:.2} %", (share * 10_000.0).floor() / 100.0).replace(".00 %", " %"),
        None => "–".to_owned(),
    };
    html! {
        section.sec aria-labelledby="a-h" id="attained" data-l {
            div.sec-h { h2 id="a-h" { "In time" } span.sub { "the share of time in which its data was fresh enough" } }
            dl.att {
                @for window in &detail.attainment.windows {
                    div {
                        dt { (match window.window.as_str() { "24h" => "24 hours", "7d" => "7 days", _ => "30 days" }) }
                        dd { b { (share(window)) }
                            " " span.mut {
                                @if window.figures.attainment.is_none() { "not tracked" }
                                @else if window.figures.attainment == Some(1.0) { "never late" }
                                @else if window.figures.late_seconds == 0 { "late for less than a second" }
                                @else { "late for " (brief(Duration::from_secs(window.figures.late_seconds))) }
                            }
                        }
                    }
                }
            }
            @if !detail.attainment.late.is_empty() {
                ul.lates {
                    @for span in detail.attainment.late.iter().take(N_LATE) {
                        li {
                            "Late from " (times.short(span.from.0))
                            @match span.to {
                                Some(to) => { " to " (times.short(to.0)) ", " (length_text(to.0 - span.from.0)) },
                                None => " until now",
                            }
                        }
                    }
                    @if N_LATE < detail.attainment.late.len() { li.mut { "and " (detail.attainment.late.len() - N_LATE) " more times in 30 days" } }
                }
            }
        }
    }
}
