//! Jobs: list, look, change, pause, resume, trigger, explain (G3).

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use evenbeat_core::condition::Condition;
use evenbeat_core::ids::JobKey;
use evenbeat_core::job::{Overlap, Pause, Status};
use evenbeat_core::nearest::shortened;
use evenbeat_core::store::JobRow;
use evenbeat_core::time::Timestamp;
use evenbeat_core::zone::Zones;

use super::trigger::IdempotencyKey;
use super::{definition, row_of};
use crate::api::answer::{AcceptedAt, CreatedOrChanged, NoContent, Tagged};
use crate::api::caller::{Caller, Editor, Operator, Viewer};
use crate::api::extract::{Body, KeyPath, KeyText, MaybeBody, Precondition, UrlQuery};
use crate::api::params::{NoParams, ParamKind, Params, Query};
use crate::api::problem::{Code, Problem};
use crate::api::router::Api;
use crate::intake::{self, Expect};
use crate::store::query::JobFilter;
use crate::value_json::from_json;
use crate::views::explanation::explanation;
use crate::views::jobs::{self as views, JobSelection};
use crate::views::model::{
    CountedJobs, ExplanationView, FieldError, Instant, JobDefinition, JobPut, JobView, PauseRequest,
    TriggerAnswer, TriggerRequest,
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
    /// Whether to say how many there are in all.
    count: bool,
}

impl Query for JobsQuery {
    fn read(params: &mut Params) -> JobsQuery {
        let filter = JobFilter {
            key_prefix: params.text("prefix", "Only jobs whose key begins with this."),
            key_text: params.text("q", "Only jobs whose key contains this, in any case."),
            labels: labels(params),
            pool: params.parsed("pool", "Only jobs of this pool."),
            site: params.parsed("site", "Only jobs of this site."),
            tenant: params.parsed("tenant", "Only jobs of this tenant."),
            is_paused: params.truth("paused", "Only jobs that are paused, or are not."),
            is_enabled: params.truth("enabled", "Only jobs that are enabled, or are not."),
            is_running: params.truth("running", "Only jobs that are running, or are not."),
        };
        let condition =
            params.word("condition", &Condition::ALL, Condition::as_str, "Only jobs with this condition.");
        let status = params.word("status", &Status::ALL, Status::as_str, "Only jobs with this status.");
        let wanted = JobSelection::new(filter, condition, status);
        let count = params.truth_or("count", false, "Whether to say how many jobs match in all.");
        JobsQuery { wanted, limit: params.limit(), after: params.after_key(), count }
    }
}

/// `label=team=news`, as often as needed.
fn labels(params: &mut Params) -> Vec<(String, String)> {
    let mut labels = Vec::new();
    let form = ParamKind::Pattern("=");
    let meaning = "Only jobs with this label, written `team=news`. May be given several times.";
    for text in params.texts("label", form, meaning) {
        match text.split_once('=') {
            Some((name, value)) => labels.push((name.to_owned(), value.to_owned())),
            None => {
                let text = shortened(&text);
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
) -> Result<Json<CountedJobs>, Problem> {
    let now = api.app.intake.now();
    let found = views::list(&api.app, &query.wanted, query.after, query.limit).await?;
    let items = views::views(&api.app, &found.rows, now).await;
    let total = if query.count { Some(views::total(&api.app, &query.wanted).await?) } else { None };
    Ok(Json(CountedJobs {
        items,
        next: found.next.map(|key| key.to_string()),
        total: total.map(|it| it.n),
        total_is_exact: total.map(|it| it.is_exact),
    }))
}

pub(in crate::api) async fn get(
    _caller: Caller<Viewer>,
    State(api): State<Api>,
    KeyPath(key): KeyPath,
    UrlQuery(NoParams): UrlQuery<NoParams>,
) -> Result<Tagged<JobView>, Problem> {
    let row = row_of(&api, &key).await?;
    let now = api.app.intake.now();
    let mut view = views::view(&api.app, &row, now).await;
    view.say_last_run(views::last_run(&api.app, &row).await?);
    Ok(Tagged { revision: row.revision, body: view })
}

pub(in crate::api) async fn put(
    caller: Caller<Editor>,
    State(api): State<Api>,
    KeyText(key): KeyText,
    precondition: Precondition,
    UrlQuery(NoParams): UrlQuery<NoParams>,
    Body(definition): Body<JobDefinition>,
) -> Result<CreatedOrChanged<JobPut>, Problem> {
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
    let job = views::view(&api.app, &row, now).await;
    let body = JobPut { job, warnings: read.warnings };
    let tagged = Tagged { revision: row.revision, body };
    Ok(CreatedOrChanged { is_new: before.is_none(), tagged })
}

pub(in crate::api) async fn delete(
    caller: Caller<Editor>,
    State(api): State<Api>,
    KeyPath(key): KeyPath,
    precondition: Precondition,
    UrlQuery(NoParams): UrlQuery<NoParams>,
) -> Result<NoContent, Problem> {
    let row = row_of(&api, &key).await?;
    let expect = expected(precondition, &key, Some(&row))?;
    api.app.intake.remove(&caller.actor, &key, expect).await?;
    Ok(NoContent)
}

pub(in crate::api) async fn pause(
    caller: Caller<Operator>,
    State(api): State<Api>,
    KeyPath(key): KeyPath,
    UrlQuery(NoParams): UrlQuery<NoParams>,
    MaybeBody(request): MaybeBody<PauseRequest>,
) -> Result<Tagged<JobView>, Problem> {
    let until = pause_end(request.until, api.app.intake.now())?;
    let reason = pause_reason(request.reason)?;
    let row = api.app.intake.pause(&caller.actor, &key, reason, until).await?;
    Ok(as_it_is(&api, &row).await)
}

pub(in crate::api) async fn resume(
    caller: Caller<Operator>,
    State(api): State<Api>,
    KeyPath(key): KeyPath,
    UrlQuery(NoParams): UrlQuery<NoParams>,
) -> Result<Tagged<JobView>, Problem> {
    let row = api.app.intake.resume(&caller.actor, &key).await?;
    Ok(as_it_is(&api, &row).await)
}

pub(in crate::api) async fn trigger(
    caller: Caller<Operator>,
    State(api): State<Api>,
    KeyPath(key): KeyPath,
    UrlQuery(NoParams): UrlQuery<NoParams>,
    idempotency: IdempotencyKey,
    MaybeBody(request): MaybeBody<TriggerRequest>,
) -> Result<AcceptedAt<TriggerAnswer>, Problem> {
    let row = row_of(&api, &key).await?;
    if let Some(pause) = row.state.pause.as_deref().filter(|_| row.job.enabled) {
        return Err(paused(&key, pause));
    }
    let idempotency = idempotency.of(&key, &request);
    let params = request.params.map(|params| {
        params
            .into_iter()
            .map(|(name, value)| (name, from_json(value)))
            .collect::<std::collections::BTreeMap<_, _>>()
    });
    let id = api.app.intake.trigger(&caller.actor, &key, idempotency, params).await?;
    // The same for a request that is repeated, however the job stands by then.
    let sentence = if matches!(row.job.overlap, Overlap::Allow { .. }) {
        "The run starts as soon as there is room for it."
    } else {
        "The run starts when there is room for it and no other run of the job is open."
    };
    let body = TriggerAnswer { id: id.to_string(), job: key.to_string(), sentence: sentence.to_owned() };
    Ok(AcceptedAt { location: format!("/api/v1/runs/{id}"), body })
}

/// A reason that can be stored and shown.
pub(super) fn pause_reason(reason: Option<String>) -> Result<Option<String>, Problem> {
    Ok(intake::pause_reason(reason)?)
}

/// When a pause ends, if that can be.
pub(super) fn pause_end(until: Option<Instant>, now: Timestamp) -> Result<Option<Timestamp>, Problem> {
    Ok(intake::pause_end(until.map(|it| it.0), now)?)
}

/// What becomes of a trigger of a paused job: nothing, and nothing waits until it is resumed.
fn paused(key: &JobKey, pause: &Pause) -> Problem {
    let reason = pause.reason.as_ref().map_or(String::new(), |reason| format!(" ({})", shortened(reason)));
    let by = pause.by.as_str();
    let detail =
        format!("`{key}` is paused by {by}{reason}, so nothing starts and no run is queued; resume it first");
    Problem::new(Code::JobPaused, detail)
}

/// As of which instant.
#[derive(Debug)]
pub(in crate::api) struct ExplainQuery {
    at: Option<Timestamp>,
}

impl Query for ExplainQuery {
    fn read(params: &mut Params) -> ExplainQuery {
        ExplainQuery { at: params.parsed("at", "Explains this instant instead of now.") }
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
pub(super) fn expected(
    precondition: Precondition,
    key: &JobKey,
    row: Option<&JobRow>,
) -> Result<Expect, Problem> {
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

async fn as_it_is(api: &Api, row: &JobRow) -> Tagged<JobView> {
    let now = api.app.intake.now();
    Tagged { revision: row.revision, body: views::view(&api.app, row, now).await }
}
