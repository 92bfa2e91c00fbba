//! Runs: list, look, read what they wrote, cancel (G3).

use axum::Json;
use axum::extract::{Extension, State};
use axum::http::{HeaderName, header};
use axum::response::{IntoResponse, Response};
use evenbeat_core::edit::Refusal;
use evenbeat_core::ids::{JobKey, RunId};
use evenbeat_core::run::Outcome;
use evenbeat_core::store::Cancelled;
use evenbeat_core::time::Timestamp;
use utoipa::openapi::Content;
use utoipa::openapi::response::ResponseBuilder;
use utoipa::openapi::schema::{ObjectBuilder, Type};

use super::follow_log::{FollowedLog, followed};
use super::row_of;
use crate::api::answer::{Accepted, header as answer_header};
use crate::api::caller::{Caller, Operator, Peer, Viewer};
use crate::api::event_stream::OpenStream;
use crate::api::extract::{KeyPath, RunPath, UrlQuery, run_id};
use crate::api::log_book::LogPart;
use crate::api::operation::{DescribeAnswer, Operation};
use crate::api::params::{ID_PATTERN, NoParams, Params, Query};
use crate::api::problem::{Code, Problem};
use crate::api::router::Api;
use crate::api::serve::ServerStop;
use crate::intake::IntakeError;
use crate::printable;
use crate::store::query::RunQuery;
use crate::views;
use crate::views::find_run::find;
use crate::views::model::{CancelAnswer, LogPlace, Page, RecordView, RunView, SessionNames};
use crate::views::runs::RunSelection;

/// The most bytes of a log in one answer.
const LOG_BYTES_MAX: usize = 256 << 10;

/// The last byte that a log can be asked for from: the largest integer of every client.
const LOG_FROM_MAX: u64 = i64::MAX.unsigned_abs();

/// From which byte a log goes on.
pub(super) const LOG_NEXT: HeaderName = HeaderName::from_static("evenbeat-log-next");

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
            outcome: params.word(
                "outcome",
                &Outcome::ALL,
                Outcome::as_str,
                "Only runs that ended like this.",
            ),
            since: params.parsed("since", "Only runs that ended at this instant or later."),
            until: params.parsed("until", "Only runs that ended before this instant."),
        };
        let open = params.truth("open", "Only runs that are open, or are over.");
        let selection = RunSelection { query, open };
        if selection.open == Some(true) && selection.is_of_ended() {
            let detail = "open runs have not ended: `outcome`, `since` and `until` do not fit";
            params.fault("open", detail.to_owned());
        }
        RunsQuery { selection, limit: params.limit(), before: before(params) }
    }
}

fn before(params: &mut Params) -> Option<RunId> {
    let meaning = "Continues with runs before this one: the `next` of the page before.";
    let text = params.pattern("before", ID_PATTERN, meaning)?;
    let id = run_id(&text);
    if id.is_none() {
        params.fault("before", "hand back `next` as it was given".to_owned());
    }
    id
}

impl Query for RunsQuery {
    fn read(params: &mut Params) -> RunsQuery {
        let job = params.parsed("job", "Only runs of this job.");
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
    /// Whether the answer goes on until the run ends.
    follow: bool,
}

impl Query for LogQuery {
    fn read(params: &mut Params) -> LogQuery {
        LogQuery {
            from: params.number_or("from", 0..=LOG_FROM_MAX, 0, "The byte of the output to start from."),
            is_raw: params.truth_or(
                "raw",
                false,
                "The bytes exactly as they were written, control characters included, for download.",
            ),
            follow: params.truth_or("follow", false, "Whether the answer goes on until the run ends."),
        }
    }
}

pub(in crate::api) async fn log(
    _caller: Caller<Viewer>,
    State(api): State<Api>,
    RunPath(ids): RunPath,
    Extension(peer): Extension<Peer>,
    stopping: ServerStop,
    UrlQuery(query): UrlQuery<LogQuery>,
) -> Result<LogAnswer, Problem> {
    let found = find(&api.app, ids).await?;
    let follow = |run: Option<RunId>| {
        let stream = OpenStream::begin(&api, peer)?;
        let (api, from, is_raw) = (api.clone(), query.from, query.is_raw);
        let log = FollowedLog { api, ids, run, from, is_raw, stopping, _stream: stream };
        Ok(LogAnswer::Followed(followed(log)))
    };
    let Some(row) = found.run else {
        if query.follow && found.waiting.is_some() {
            return follow(None);
        }
        // Nothing has been written yet, and more comes only if the request still waits.
        let part = LogPart { bytes: Vec::new(), next: query.from, is_over: found.waiting.is_none() };
        return Ok(LogAnswer::Part(part, query.is_raw));
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
            if let Some(place) = views::nodes::place_of(&api.app, row.session).await? {
                return Err(log_elsewhere(place));
            }
            // It wrote nothing so far, or its log has been removed since.
            LogPart { bytes: Vec::new(), next: query.from, is_over: row.ended.is_some() }
        }
    };
    if query.follow {
        return follow(Some(run));
    }
    Ok(LogAnswer::Part(part, query.is_raw))
}

/// Says where a log is that is not here.
fn log_elsewhere(place: LogPlace) -> Problem {
    let LogPlace { node, instance, is_alive, .. } = &place;
    let detail = if *is_alive {
        format!("the log of this run is on node `{node}` ({instance}); ask that node")
    } else {
        format!(
            "the log of this run is on node `{node}` ({instance}), which is not running; start it, then ask it"
        )
    };
    Problem::new(Code::LogElsewhere, detail).with_place(place)
}

/// A part of a log. A log may hold anything, so by default it is served as safe text; a browser that is sent here does
/// not interpret it.
#[derive(Debug)]
pub(in crate::api) enum LogAnswer {
    /// What is there, as bytes if that is wanted.
    Part(LogPart, bool),
    /// What has been written so far, and what follows.
    Followed(Response),
}

impl IntoResponse for LogAnswer {
    fn into_response(self) -> Response {
        let (part, is_raw) = match self {
            LogAnswer::Part(part, is_raw) => (part, is_raw),
            LogAnswer::Followed(answer) => return answer,
        };
        let more = (LOG_MORE, (!part.is_over).to_string());
        if is_raw {
            let kind = (header::CONTENT_TYPE, RAW_TYPE.to_owned());
            let attachment = (header::CONTENT_DISPOSITION, "attachment; filename=\"run.log\"".to_owned());
            let headers = [kind, attachment, (LOG_NEXT, part.next.to_string()), more];
            return (headers, part.bytes).into_response();
        }
        let (text, n_used) = printable::output(&part.bytes, part.is_over);
        // A character whose last bytes have not arrived yet is read again from its first byte.
        let next = part.next - (part.bytes.len() - n_used) as u64;
        let kind = (header::CONTENT_TYPE, TEXT_TYPE.to_owned());
        ([kind, (LOG_NEXT, next.to_string()), more], text).into_response()
    }
}

const RAW_TYPE: &str = "application/octet-stream";
const TEXT_TYPE: &str = "text/plain; charset=utf-8";

impl DescribeAnswer for LogAnswer {
    fn describe(operation: &mut Operation) {
        let text = || ObjectBuilder::new().schema_type(Type::String).build();
        let answer = ResponseBuilder::new()
            .description("A part of the log; empty if there is no more for now.")
            .content(TEXT_TYPE, Content::new(Some(text())))
            .content(RAW_TYPE, Content::new(Some(text())));
        operation.answer(200, answer);
        answer_header(operation, 200, "Evenbeat-Log-Next", "The byte to go on from.");
        answer_header(operation, 200, "Evenbeat-Log-More", "`true` if more may come, `false` at the end.");
    }
}

pub(in crate::api) async fn cancel(
    caller: Caller<Operator>,
    State(api): State<Api>,
    RunPath(ids): RunPath,
    UrlQuery(NoParams): UrlQuery<NoParams>,
) -> Result<Accepted<CancelAnswer>, Problem> {
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

fn cancel_asked(run: &str) -> Accepted<CancelAnswer> {
    Accepted(CancelAnswer { run: run.to_owned(), asked: true })
}

/// Which records.
#[derive(Debug)]
pub(in crate::api) struct RecordsQuery {
    before: Option<Timestamp>,
    limit: usize,
}

impl Query for RecordsQuery {
    fn read(params: &mut Params) -> RecordsQuery {
        RecordsQuery {
            before: params.parsed(
                "before",
                "Continues with occurrences before this instant: the `next` of the page before.",
            ),
            limit: params.limit(),
        }
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
