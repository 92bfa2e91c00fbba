//! Jobs: list, look, change, pause, resume, trigger, explain (G3).

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use evenbeat_core::condition::Condition;
use evenbeat_core::ids::JobKey;
use evenbeat_core::job::Status;
use evenbeat_core::store::JobRow;
use evenbeat_core::time::Timestamp;
use evenbeat_core::zone::Zones;

use super::trigger::idempotency;
use super::{definition, row_of};
use crate::api::caller::{Caller, Editor, Operator, Viewer};
use crate::api::extract::{
    Body, KeyPath, MaybeBody, NoParams, Params, Precondition, Query, Segment, UrlQuery,
};
use crate::api::problem::{Code, Problem};
use crate::api::router::Api;
use crate::intake::Expect;
use crate::store::query::JobFilter;
use crate::value_json::from_json;
use crate::views::explanation::explanation;
use crate::views::jobs::{self as views, JobSelection};
use crate::views::model::{
    ExplanationView, FieldError, JobDefinition, JobPut, JobView, Page, PauseRequest, TriggerAnswer,
    TriggerRequest,
};

/// Which jobs.
#[derive(Debug)]
pub(in crate::api) struct JobsQuery {
    /// By key, text, labels, pool, site, tenant, paused, running, enabled, condition, status.
    wanted: JobSelection,
    /// Page size.
    limit: usize,
    /// After this key.
    after: Option<JobKey>,
}

impl Query for JobsQuery {
    fn read(params: &mut Params) -> JobsQuery {
        const CONDITIONS: [Condition; 3] = [Condition::Ok, Condition::Warning, Condition::Error];
        const STATUSES: [Status; 6] = [
            Status::Pending,
            Status::Scheduled,
            Status::Running,
            Status::Paused,
            Status::Disabled,
            Status::Done,
        ];
        let mut filter = JobFilter {
            key_prefix: params.text("prefix"),
            key_text: params.text("q"),
            labels: labels(params),
            pool: params.parsed("pool"),
            site: params.parsed("site"),
            tenant: params.parsed("tenant"),
            is_paused: params.truth("paused"),
            is_enabled: params.truth("enabled"),
            is_running: params.truth("running"),
        };
        let condition = params.word("condition", &CONDITIONS, Condition::as_str);
        let status = params.word("status", &STATUSES, Status::as_str);
        // What the store can leave out by itself need not be judged.
        match status {
            Some(Status::Running) => filter.is_running = filter.is_running.or(Some(true)),
            Some(Status::Disabled) => filter.is_enabled = filter.is_enabled.or(Some(false)),
            Some(Status::Paused) => filter.is_paused = filter.is_paused.or(Some(true)),
            Some(Status::Pending | Status::Scheduled | Status::Done) | None => {}
        }
        let wanted = JobSelection { filter, condition, status };
        JobsQuery { wanted, limit: params.limit(), after: params.parsed("after") }
    }
}

/// `label=team=news`, as often as needed.
fn labels(params: &mut Params) -> Vec<(String, String)> {
    let mut labels = Vec::new();
    for text in params.texts("label") {
        match text.split_once('=') {
            Some((name, value)) => labels.push((name.to_owned(), value.to_owned())),
            None => {
                let text = evenbeat_core::nearest::shortened(&text);
                params
                    .fault("label", format!("`{text}` is not a name and a value (write `label=team=news`)"));
            }
        }
    }
    labels
}

pub(in crate::api) async fn list(
    _caller: Caller<Viewer>,
    State(api): State<Api>,
    UrlQuery(query): UrlQuery<JobsQuery>,
) -> Result<Json<Page<JobView>>, Problem> {
    let now = api.app.intake.now();
    let found = views::list(&api.app, &query.wanted, query.after, query.limit).await?;
    let items = views::views(&api.app, &found.rows, now).await;
    Ok(Json(Page { items, next: found.next.map(|key| key.to_string()) }))
}

pub(in crate::api) async fn get(
    _caller: Caller<Viewer>,
    State(api): State<Api>,
    KeyPath(key): KeyPath,
    UrlQuery(NoParams): UrlQuery<NoParams>,
) -> Result<Response, Problem> {
    let row = row_of(&api, &key).await?;
    let now = api.app.intake.now();
    let mut view = views::view(&api.app, &row, now).await;
    view.say_last_run(views::last_run(&api.app, &row).await?);
    Ok(tagged(StatusCode::OK, &row, view))
}

pub(in crate::api) async fn put(
    caller: Caller<Editor>,
    State(api): State<Api>,
    Segment(key): Segment,
    precondition: Precondition,
    UrlQuery(NoParams): UrlQuery<NoParams>,
    Body(definition): Body<JobDefinition>,
) -> Result<Response, Problem> {
    let key: JobKey = key.parse().map_err(|error| {
        let detail = format!("{error}");
        definition::invalid(vec![FieldError { pointer: "/name".to_owned(), detail }])
    })?;
    let now = api.app.intake.now();
    let mut read = definition::read_named(definition, &key, now, &mut Zones::new())?;
    let around = definition::doubts_around(&api.app, std::slice::from_ref(&read.job), |_| String::new());
    read.warnings.extend(around.await);
    let before = api.app.store.job(&key).await?.filter(|row| !row.is_deleted);
    let expect = expected(precondition, &key, before.as_ref())?;
    let row = api.app.intake.put(&caller.actor, Arc::new(read.job), expect).await?;
    let status = if before.is_some() { StatusCode::OK } else { StatusCode::CREATED };
    let job = views::view(&api.app, &row, now).await;
    Ok(tagged(status, &row, JobPut { job, warnings: read.warnings }))
}

pub(in crate::api) async fn delete(
    caller: Caller<Editor>,
    State(api): State<Api>,
    KeyPath(key): KeyPath,
    precondition: Precondition,
    UrlQuery(NoParams): UrlQuery<NoParams>,
) -> Result<StatusCode, Problem> {
    let row = row_of(&api, &key).await?;
    let expect = expected(precondition, &key, Some(&row))?;
    api.app.intake.remove(&caller.actor, &key, expect).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(in crate::api) async fn pause(
    caller: Caller<Operator>,
    State(api): State<Api>,
    KeyPath(key): KeyPath,
    UrlQuery(NoParams): UrlQuery<NoParams>,
    MaybeBody(request): MaybeBody<PauseRequest>,
) -> Result<Response, Problem> {
    let row = api.app.intake.pause(&caller.actor, &key, request.reason).await?;
    Ok(as_it_is(&api, &row).await)
}

pub(in crate::api) async fn resume(
    caller: Caller<Operator>,
    State(api): State<Api>,
    KeyPath(key): KeyPath,
    UrlQuery(NoParams): UrlQuery<NoParams>,
) -> Result<Response, Problem> {
    let row = api.app.intake.resume(&caller.actor, &key).await?;
    Ok(as_it_is(&api, &row).await)
}

pub(in crate::api) async fn trigger(
    caller: Caller<Operator>,
    State(api): State<Api>,
    KeyPath(key): KeyPath,
    UrlQuery(NoParams): UrlQuery<NoParams>,
    headers: HeaderMap,
    MaybeBody(request): MaybeBody<TriggerRequest>,
) -> Result<Response, Problem> {
    row_of(&api, &key).await?;
    let idempotency = idempotency(&headers, &key, &request)?;
    let params = request.params.map(|params| {
        params
            .into_iter()
            .map(|(name, value)| (name, from_json(value)))
            .collect::<std::collections::BTreeMap<_, _>>()
    });
    let id = api.app.intake.trigger(&caller.actor, &key, idempotency, params).await?;
    let triggered = TriggerAnswer { id: id.to_string(), job: key.to_string() };
    let location = [(header::LOCATION, format!("/api/v1/runs/{id}"))];
    Ok((StatusCode::ACCEPTED, location, Json(triggered)).into_response())
}

/// As of which instant.
#[derive(Debug)]
pub(in crate::api) struct ExplainQuery {
    at: Option<Timestamp>,
}

impl Query for ExplainQuery {
    fn read(params: &mut Params) -> ExplainQuery {
        ExplainQuery { at: params.parsed("at") }
    }
}

pub(in crate::api) async fn explain(
    _caller: Caller<Viewer>,
    State(api): State<Api>,
    KeyPath(key): KeyPath,
    UrlQuery(query): UrlQuery<ExplainQuery>,
) -> Result<Json<ExplanationView>, Problem> {
    let row = row_of(&api, &key).await?;
    Ok(Json(explanation(&api.app, &row, query.at).await?))
}

/// What the intake is to expect.
fn expected(precondition: Precondition, key: &JobKey, row: Option<&JobRow>) -> Result<Expect, Problem> {
    let other = |detail: String| Err(Problem::new(Code::OtherRevision, detail));
    match (precondition, row) {
        (Precondition::None, _) => Ok(Expect::Any),
        (Precondition::Absent, _) => Ok(Expect::New),
        (Precondition::Present | Precondition::OneOf(_), None) => other(format!("there is no job `{key}`")),
        (Precondition::Present, Some(row)) => Ok(Expect::Revision(row.revision)),
        (Precondition::OneOf(all), Some(row)) if all.contains(&row.revision) => {
            Ok(Expect::Revision(row.revision))
        }
        (Precondition::OneOf(_), Some(row)) => other(format!(
            "`{key}` was changed by someone else (its revision is {} now); look at it again",
            row.revision.0
        )),
    }
}

async fn as_it_is(api: &Api, row: &JobRow) -> Response {
    let now = api.app.intake.now();
    tagged(StatusCode::OK, row, views::view(&api.app, row, now).await)
}

/// An answer about one job, with its revision.
fn tagged(status: StatusCode, row: &JobRow, body: impl serde::Serialize) -> Response {
    let tag = format!("\"{}\"", row.revision.0);
    (status, [(header::ETAG, tag)], Json(body)).into_response()
}
