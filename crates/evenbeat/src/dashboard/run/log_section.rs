//! The log on the page of a run: its end as text, older and new parts for the script, and all of it to download.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use evenbeat_core::ids::RunId;
use evenbeat_core::time::Duration;
use futures_util::stream::unfold;
use maud::{Markup, html};
use serde::Serialize;

use super::heading::size;
use super::log::{self, LogLine, LogSlice};
use super::{found, id_of};
use crate::api::LogBook;
use crate::dashboard::Pages;
use crate::dashboard::error::{NoPage, PageResult};
use crate::dashboard::parts::{icon, run_path};
use crate::dashboard::times::{Distance, Times, brief, count};
use crate::dashboard::user::{PageUser, PageViewer};
use crate::printable;
use crate::target::command::KeptBytes;
use crate::views::model::LogPlace;
use crate::views::nodes::place_of;
use crate::views::run_details::RunDetails;

/// Bytes that are read at once for a download.
const DOWNLOAD_BYTES: usize = 256 << 10;

/// Where the log of a run is.
enum LogState {
    Here(Box<LogSlice>),
    Elsewhere(LogPlace),
    /// There is no log here.
    Missing,
    Unreadable(String),
}

/// Reads on a thread that may wait for a disk.
async fn blocking<T: Send + 'static>(
    pages: &Pages,
    read: impl FnOnce(&dyn LogBook) -> T + Send + 'static,
) -> T {
    let logs = Arc::clone(&pages.logs);
    let done = tokio::task::spawn_blocking(move || read(&*logs)).await;
    done.unwrap_or_else(|fault| std::panic::resume_unwind(fault.into_panic()))
}

/// The section. In an update its lines are left out: the page has them, and the script adds to them.
pub(super) async fn section(
    pages: &Pages,
    run: &RunDetails,
    times: &Times,
    is_update: bool,
) -> PageResult<Markup> {
    let Some(row) = &run.row else {
        // It is filled by an update, once there is a run.
        return Ok(html! { section.sec.logs id="log" data-l hidden {} });
    };
    let id = row.run;
    let state = if is_update {
        match blocking(pages, move |logs| logs.kept(id)).await {
            Some(kept) => {
                let lines = Vec::new();
                LogState::Here(Box::new(LogSlice { kept, first: 0, first_no: Some(1), next: 0, lines }))
            }
            None => LogState::Missing,
        }
    } else {
        match blocking(pages, move |logs| log::tail(logs, id)).await {
            Ok(Some(lines)) => LogState::Here(Box::new(lines)),
            Ok(None) => LogState::Missing,
            Err(error) => {
                tracing::warn!(%error, run = %id, "a log could not be read");
                LogState::Unreadable(error.to_string())
            }
        }
    };
    let state = match state {
        LogState::Missing => match place_of(&pages.app, row.session).await? {
            Some(place) => LogState::Elsewhere(place),
            None => LogState::Missing,
        },
        state => state,
    };
    Ok(match state {
        LogState::Here(lines) => viewer(run, &lines, times),
        LogState::Elsewhere(place) => elsewhere(&place, times),
        LogState::Missing => missing(run, pages.logs.kept_for(), times),
        LogState::Unreadable(error) => unreadable(&error),
    })
}

fn viewer(run: &RunDetails, lines: &LogSlice, times: &Times) -> Markup {
    let view = &run.view;
    let is_live = view.outcome.is_none();
    let kept = lines.kept;
    let path = run_path(&view.id);
    let next_no = lines.next_no().map(|no| no.to_string());
    let first_no = lines.first_no.map(|no| no.to_string());
    html! {
        section.sec.logs id="log" aria-labelledby="lg-h" data-path={ (path) "/log" } data-live=[is_live.then_some("1")]
            data-first=(lines.first) data-first-no=[first_no] data-next=(lines.next) data-next-no=[next_no] {
            div.sec-h {
                h2 id="lg-h" { "Log" }
                span.sub id="log-sub" { (subtitle(lines, is_live)) @if let Some(at) = view.ended_at { ", ended " (times.exact(at.0)) } }
                span.sp {}
                span.lgd { span { span.emk aria-hidden="true" { "E" } "stderr" } }
            }
            div.log-b {
                span.field.js-only {
                    label.sr for="lq" { "Search the log" }
                    (icon("search"))
                    input.in id="lq" type="search" placeholder="Search the log" autocomplete="off" spellcheck="false";
                }
                span.log-c.mut role="status" {}
                span.sp {}
                label.ckb.js-only { input type="checkbox" id="l-err"; " stderr only" }
                label.ckb.js-only { input type="checkbox" id="l-wrap"; " Wrap" }
                @if is_live { button.btn.js-only id="l-pause" type="button" aria-pressed="false" { "Pause" } }
                a.btn href={ (path) "/log.txt" } download { "Download raw" @if !is_live { ", " (size(kept_bytes(kept))) } }
            }
            div.log-w {
                pre.log tabindex="0" role="log" aria-live="off" aria-label="Log of this run" {
                    span.l-m id="log-first" { (first_line(lines)) }
                    (text(&lines.lines, lines.first_no))
                }
                @if is_live { button.btn.pri.log-n type="button" hidden { "0 new lines, go to the end" } }
            }
        }
    }
}

/// How much there is.
fn subtitle(lines: &LogSlice, is_live: bool) -> String {
    let (shown, n_kept) = (lines.n_bytes(), kept_bytes(lines.kept));
    match (is_live, 0 < lines.first) {
        (true, _) => format!("live, {} so far", size(lines.kept.end)),
        (false, true) => format!("the last {} of {}", size(shown), size(n_kept)),
        (false, false) => size(n_kept),
    }
}

fn kept_bytes(kept: KeptBytes) -> u64 {
    kept.head_end + kept.end.saturating_sub(kept.tail_start)
}

/// What is not loaded, and what was cut.
fn first_line(lines: &LogSlice) -> Markup {
    let kept = lines.kept;
    let n_cut = kept.tail_start.saturating_sub(kept.head_end);
    let cut_words = format!("{} after the first {} were not kept", size(n_cut), size(kept.head_end));
    let not_loaded = match lines.first_no {
        Some(no) if 2 < no => format!("lines 1 to {} are not loaded", count(no - 1)),
        _ => format!(
            "{} before are not loaded",
            size(lines.first - if kept.tail_start <= lines.first { n_cut } else { 0 })
        ),
    };
    html! {
        @if 0 < lines.first {
            button.link.js-only id="log-older" type="button" { "Load the " (size(log::PART_BYTES)) " before" } " "
            (not_loaded) @if 0 < n_cut { "; " (cut_words) }
        } @else if 0 < n_cut { (cut_words) }
        @else if lines.lines.is_empty() && lines.kept.end == 0 { "Nothing written so far" }
    }
}

/// Lines as text. Numbers and marks are content of the style, so that copying gives the log alone.
fn text(lines: &[LogLine], first_no: Option<u64>) -> Markup {
    html! {
        @for (idx, line) in lines.iter().enumerate() {
            span.l.e[line.is_error].o[line.is_open] data-n=[first_no.map(|no| count(no + idx as u64))] {
                @for span in &line.spans {
                    @let classes = span.style.classes();
                    @if classes.is_empty() { (span.text) } @else { span class=(classes) { (span.text) } }
                }
                "\n"
            }
        }
    }
}

fn note(title: &str, body: &Markup) -> Markup {
    html! {
        section.sec.logs id="log" aria-labelledby="lg-h" data-l {
            div.sec-h { h2 id="lg-h" { "Log" } }
            div.log-0 { p { b { (title) } } (body) }
        }
    }
}

fn elsewhere(place: &LogPlace, times: &Times) -> Markup {
    let (node, instance) = (printable::line(&place.node), printable::line(&place.instance));
    note(
        &format!("The log is on node {node} ({instance})."),
        &html! {
            p {
                @if place.is_alive { "Open this page on that node." }
                @else {
                    "That node is not running"
                    @if let Some(at) = place.last_seen_at { ", last heard of " (times.distance(at.0, Distance::Ago)) }
                    ". Start it, then open this page there."
                }
                " " a.link href={ "/nodes#" (place.node) } { "Open the node" }
            }
        },
    )
}

fn missing(run: &RunDetails, kept_for: Option<Duration>, times: &Times) -> Markup {
    let kept = kept_for.map(|it| format!("Logs are kept for {}.", brief(it)));
    let Some(ended) = run.view.ended_at else {
        return note("Nothing written so far.", &html! {});
    };
    let is_old = kept_for.is_some_and(|it| ended.0 + it < times.now);
    let title = if is_old { "The log is gone." } else { "There is no log." };
    let text = if is_old { "" } else { "The run wrote nothing, or its log was removed from this node. " };
    note(title, &html! { p { (text) @if let Some(kept) = kept { (kept) } } })
}

fn unreadable(error: &str) -> Markup {
    note(
        "The log cannot be read.",
        &html! { p { (printable::line(error)) ". The run itself is not affected. " a.link href="" { "Try again" } } },
    )
}

/// A part of a log for the script.
#[derive(Debug, Serialize)]
struct LogAnswerPart {
    /// The lines as text for the page.
    html: String,
    /// What stands above them.
    first_line: String,
    first: u64,
    first_no: Option<u64>,
    next: u64,
    next_no: Option<u64>,
    /// Whether the lines replace all others.
    replaces: bool,
    /// Whether nothing will follow.
    is_over: bool,
    subtitle: String,
}

impl LogAnswerPart {
    fn of(lines: &LogSlice, replaces: bool, is_open: bool) -> LogAnswerPart {
        LogAnswerPart {
            html: text(&lines.lines, lines.first_no).into_string(),
            first_line: first_line(lines).into_string(),
            first: lines.first,
            first_no: lines.first_no,
            next: lines.next,
            next_no: lines.next_no(),
            replaces,
            is_over: !is_open && lines.kept.is_over && lines.kept.end <= lines.next,
            subtitle: if is_open { subtitle(lines, true) } else { size(kept_bytes(lines.kept)) },
        }
    }
}

/// A part of a log: `before` a byte, or `after` one.
pub(super) async fn part(
    user: PageUser<PageViewer>,
    State(pages): State<Pages>,
    Path(id): Path<String>,
) -> PageResult<Response> {
    let number = |name: &str| match user.query.get(name).map(str::parse::<u64>) {
        None => Ok(None),
        Some(Ok(number)) if number <= i64::MAX.unsigned_abs() => Ok(Some(number)),
        Some(_) => Err(format!("`{name}` is a number")),
    };
    let before = number("before").map_err(NoPage::Refused)?;
    let after = number("after").map_err(NoPage::Refused)?;
    let no = number("no").map_err(NoPage::Refused)?;
    let run = id_of(&id).ok_or_else(|| NoPage::NotFound(format!("there is no run `{id}`")))?;
    let read = move |logs: &dyn LogBook| match (before, after) {
        (Some(byte), None) => Some(log::before(logs, run, byte, no).map(|it| it.map(|lines| (lines, false)))),
        (None, Some(byte)) => {
            Some(log::after(logs, run, byte, no).map(|it| it.map(|(lines, goes_on)| (lines, !goes_on))))
        }
        _ => None,
    };
    let read = blocking(&pages, read).await;
    let read = read.ok_or_else(|| NoPage::Refused("give `before` or `after`".to_owned()))?;
    // Asked after the log was read: what a run wrote last is there before its end is on record.
    let found = found(&pages.app, &id).await?;
    let is_open = found.run.is_none_or(|run| run.phase.is_open());
    let no_store = (CACHE_CONTROL, HeaderValue::from_static("no-store"));
    match read {
        Ok(Some((lines, replaces))) => {
            Ok(([no_store], Json(LogAnswerPart::of(&lines, replaces, is_open))).into_response())
        }
        Ok(None) => {
            let kept = KeptBytes { is_over: true, ..KeptBytes::default() };
            let lines = LogSlice { kept, first: 0, first_no: Some(1), next: 0, lines: Vec::new() };
            Ok(([no_store], Json(LogAnswerPart::of(&lines, false, is_open))).into_response())
        }
        Err(error) => {
            tracing::warn!(%error, %run, "a log could not be read");
            Ok((StatusCode::INTERNAL_SERVER_ERROR, [no_store]).into_response())
        }
    }
}

/// The whole log as it was written, control characters included.
pub(super) async fn download(
    _user: PageUser<PageViewer>,
    State(pages): State<Pages>,
    Path(id): Path<String>,
) -> PageResult<Response> {
    let found = found(&pages.app, &id).await?;
    let Some(row) = found.run else {
        return Err(NoPage::NotFound("the run has not started, so there is no log".to_owned()));
    };
    let run = row.run;
    let Some(kept) = blocking(&pages, move |logs| logs.kept(run)).await else {
        let text = match place_of(&pages.app, row.session).await? {
            Some(place) => format!("the log is on node `{}` ({})", place.node, place.instance),
            None => "there is no log of this run here".to_owned(),
        };
        return Err(NoPage::NotFound(text));
    };
    // The end of a growing log is that at the time of the request.
    let state = (Arc::clone(&pages.logs), 0_u64);
    let chunks = unfold(state, move |(logs, at)| async move {
        if kept.end <= at {
            return None;
        }
        let most = usize::try_from(kept.end - at).unwrap_or(DOWNLOAD_BYTES).min(DOWNLOAD_BYTES);
        let (reader, from) = (Arc::clone(&logs), at);
        let read = tokio::task::spawn_blocking(move || read_chunk(&*reader, run, from, most)).await;
        let (bytes, next) = read.ok()?.ok().flatten()?;
        Some((Ok::<Bytes, Infallible>(bytes), (logs, next)))
    });
    let attachment = format!("attachment; filename=\"evenbeat-{run}.log\"");
    let attachment = HeaderValue::from_str(&attachment).unwrap_or(HeaderValue::from_static("attachment"));
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8")),
        (CONTENT_DISPOSITION, attachment),
        (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    Ok((headers, Body::from_stream(chunks)).into_response())
}

/// The next bytes, and where to go on. None at the end.
fn read_chunk(logs: &dyn LogBook, run: RunId, from: u64, most: usize) -> io::Result<Option<(Bytes, u64)>> {
    let Some(part) = logs.read(run, from, most)? else { return Ok(None) };
    Ok((!part.bytes.is_empty()).then(|| (Bytes::from(part.bytes), part.next)))
}
