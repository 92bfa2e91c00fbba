//! Runs: list, look, read what they wrote, cancel (G3).

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use evenbeat_core::edit::Refusal;
use evenbeat_core::ids::{JobKey, RunId};
use evenbeat_core::run::Outcome;
use evenbeat_core::store::Cancelled;
use evenbeat_core::time::Timestamp;

use super::row_of;
use crate::api::caller::{Caller, Operator, Viewer};
use crate::api::extract::{KeyPath, NoParams, Params, Query, RunPath, UrlQuery, run_id};
use crate::api::log_book::LogPart;
use crate::api::problem::{Code, Problem};
use crate::api::router::Api;
use crate::intake::IntakeError;
use crate::printable;
use crate::store::query::RunQuery;
use crate::views;
use crate::views::find_run::find;
use crate::views::model::{CancelAnswer, Page, RecordView, RunView, SessionNames};
use crate::views::runs::RunSelection;

/// The most bytes of a log in one answer.
const LOG_BYTES_MAX: usize = 256 << 10;

/// From which byte a log goes on.
const LOG_NEXT: HeaderName = HeaderName::from_static("evenbeat-log-next");

/// Whether more may come: `true` or `false`.
const LOG_MORE: HeaderName = HeaderName::from_static("evenbeat-log-more");

/// Which runs.
#[derive(Debug)]
pub(in crate::api) struct RunsQuery {
    selection: RunSelection,
    /// Page size.
    limit: usize,
    /// Before this one.
    before: Option<RunId>,
}

impl RunsQuery {
    fn read_of(job: Option<JobKey>, params: &mut Params) -> RunsQuery {
        let query = RunQuery {
            key: job,
            outcome: params.word("outcome", &Outcome::ALL, Outcome::as_str),
            since: params.parsed("since"),
            until: params.parsed("until"),
        };
        let selection = RunSelection { query, open: params.truth("open") };
        if selection.open == Some(true) && selection.is_of_ended() {
            let detail = "open runs have not ended: `outcome`, `since` and `until` do not fit";
            params.fault("open", detail.to_owned());
        }
        RunsQuery { selection, limit: params.limit(), before: before(params) }
    }
}

fn before(params: &mut Params) -> Option<RunId> {
    let text = params.text("before")?;
    let id = run_id(&text);
    if id.is_none() {
        params.fault("before", "hand back `next` as it was given".to_owned());
    }
    id
}

impl Query for RunsQuery {
    fn read(params: &mut Params) -> RunsQuery {
        let job = params.parsed("job");
        RunsQuery::read_of(job, params)
    }
}

/// The same within one job.
#[derive(Debug)]
pub(in crate::api) struct RunsOfJobQuery(RunsQuery);

impl Query for RunsOfJobQuery {
    fn read(params: &mut Params) -> RunsOfJobQuery {
        RunsOfJobQuery(RunsQuery::read_of(None, params))
    }
}

pub(in crate::api) async fn list(
    _caller: Caller<Viewer>,
    State(api): State<Api>,
    UrlQuery(query): UrlQuery<RunsQuery>,
) -> Result<Json<Page<RunView>>, Problem> {
    Ok(Json(views::runs::list(&api.app, query.selection, query.before, query.limit).await?))
}

pub(in crate::api) async fn of_job(
    _caller: Caller<Viewer>,
    State(api): State<Api>,
    KeyPath(key): KeyPath,
    UrlQuery(RunsOfJobQuery(mut query)): UrlQuery<RunsOfJobQuery>,
) -> Result<Json<Page<RunView>>, Problem> {
    row_of(&api, &key).await?;
    query.selection.query.key = Some(key);
    Ok(Json(views::runs::list(&api.app, query.selection, query.before, query.limit).await?))
}

pub(in crate::api) async fn get(
    _caller: Caller<Viewer>,
    State(api): State<Api>,
    RunPath(ids): RunPath,
    UrlQuery(NoParams): UrlQuery<NoParams>,
) -> Result<Json<RunView>, Problem> {
    let names = SessionNames::of(&api.app.store.sessions().await?);
    let now = api.app.intake.now();
    Ok(Json(find(&api.app, ids).await?.view(&names).seen_at(now)))
}

/// Which part of a log.
#[derive(Debug)]
pub(in crate::api) struct LogQuery {
    /// From this byte of the whole output on.
    from: u64,
    /// The bytes as the run wrote them, control characters included.
    is_raw: bool,
}

impl Query for LogQuery {
    fn read(params: &mut Params) -> LogQuery {
        LogQuery {
            from: params.number("from", 0..=u64::MAX).unwrap_or(0),
            is_raw: params.truth("raw").unwrap_or(false),
        }
    }
}

pub(in crate::api) async fn log(
    _caller: Caller<Viewer>,
    State(api): State<Api>,
    RunPath(ids): RunPath,
    UrlQuery(query): UrlQuery<LogQuery>,
) -> Result<Response, Problem> {
    let found = find(&api.app, ids).await?;
    let Some(row) = found.run else {
        // Nothing has been written yet, and more comes only if the request still waits.
        let part = LogPart { bytes: Vec::new(), next: query.from, is_over: found.waiting.is_none() };
        return Ok(log_answer(part, query.is_raw));
    };
    let run = row.run;
    let logs = std::sync::Arc::clone(&api.logs);
    let read = tokio::task::spawn_blocking(move || logs.read(run, query.from, LOG_BYTES_MAX)).await;
    let read = read.unwrap_or_else(|fault| std::panic::resume_unwind(fault.into_panic()));
    let part = read.map_err(|error| {
        tracing::warn!(%error, %run, "a log could not be read");
        Problem::new(Code::Internal, format!("the log of `{run}` cannot be read: {error}"))
    })?;
    let part = match part {
        Some(part) => part,
        None => {
            let names = SessionNames::of(&api.app.store.sessions().await?);
            match RunView::of(&row, &names).node {
                Some(node) if node != api.app.identity.node.as_str() => {
                    let detail = format!("the run was on node `{node}`; ask that node");
                    return Err(Problem::new(Code::NoLog, detail));
                }
                // It wrote nothing so far, or its log has been removed since.
                _ => LogPart { bytes: Vec::new(), next: query.from, is_over: row.ended.is_some() },
            }
        }
    };
    Ok(log_answer(part, query.is_raw))
}

/// A log may hold anything, so by default it is served as safe text; a browser that is sent here does not interpret it.
fn log_answer(part: LogPart, is_raw: bool) -> Response {
    let more = (LOG_MORE, (!part.is_over).to_string());
    if is_raw {
        let kind = (header::CONTENT_TYPE, "application/octet-stream".to_owned());
        let attachment = (header::CONTENT_DISPOSITION, "attachment; filename=\"run.log\"".to_owned());
        let headers = [kind, attachment, (LOG_NEXT, part.next.to_string()), more];
        return (headers, part.bytes).into_response();
    }
    let (text, n_used) = printable::output(&part.bytes, part.is_over);
    // A character whose last bytes have not arrived yet is read again from its first byte.
    let next = part.next - (part.bytes.len() - n_used) as u64;
    let kind = (header::CONTENT_TYPE, "text/plain; charset=utf-8".to_owned());
    ([kind, (LOG_NEXT, next.to_string()), more], text).into_response()
}

pub(in crate::api) async fn cancel(
    caller: Caller<Operator>,
    State(api): State<Api>,
    RunPath(ids): RunPath,
    UrlQuery(NoParams): UrlQuery<NoParams>,
) -> Result<Response, Problem> {
    let mut found = find(&api.app, ids).await?;
    if let Some(waiting) = &found.waiting {
        match api.app.intake.withdraw(&caller.actor, &found.key, waiting.id).await {
            Ok(()) => return Ok(cancel_asked(&found.id)),
            // Its run was claimed a moment ago.
            Err(IntakeError::Refused { refusal: Refusal::NotWaiting, .. }) => {
                found = find(&api.app, ids).await?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    let over = |outcome: &str| {
        Err(Problem::new(Code::RunIsOver, format!("the run `{}` is over: {outcome}", found.id)))
    };
    let Some(run) = &found.run else { return over(Outcome::Cancelled.as_str()) };
    match api.app.intake.cancel(&caller.actor, run.run).await? {
        Cancelled::Asked => Ok(cancel_asked(&run.run.to_string())),
        Cancelled::Over(outcome) => over(outcome.as_str()),
        Cancelled::Unknown => Err(Problem::new(Code::NoSuchRun, format!("there is no run `{}`", run.run))),
    }
}

fn cancel_asked(run: &str) -> Response {
    (StatusCode::ACCEPTED, Json(CancelAnswer { run: run.to_owned(), asked: true })).into_response()
}

/// Which records.
#[derive(Debug)]
pub(in crate::api) struct RecordsQuery {
    before: Option<Timestamp>,
    limit: usize,
}

impl Query for RecordsQuery {
    fn read(params: &mut Params) -> RecordsQuery {
        RecordsQuery { before: params.parsed("before"), limit: params.limit() }
    }
}

pub(in crate::api) async fn records(
    _caller: Caller<Viewer>,
    State(api): State<Api>,
    KeyPath(key): KeyPath,
    UrlQuery(query): UrlQuery<RecordsQuery>,
) -> Result<Json<Page<RecordView>>, Problem> {
    row_of(&api, &key).await?;
    let rows = api.app.store.records(&key, query.before, query.limit).await?;
    let next =
        rows.last().filter(|_| query.limit <= rows.len()).map(|row| row.record.range.first.to_string());
    Ok(Json(Page { items: rows.iter().map(Into::into).collect(), next }))
}
