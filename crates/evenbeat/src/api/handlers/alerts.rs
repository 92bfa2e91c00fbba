//! Incidents, what was sent about them, mutes, and tests of channels (G6).

use axum::Json;
use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use evenbeat_core::alert::MuteScope;
use evenbeat_core::ids::Channel;
use evenbeat_core::nearest::{nearest, shortened};

use crate::alerts::{MUTE_REASON_CHARS_MAX, MUTES_MAX, MuteError};
use crate::api::answer::NoContent;
use crate::api::caller::{Caller, Operator, Viewer};
use crate::api::extract::{Body, UrlQuery, run_id, segment};
use crate::api::operation::{DescribeInput, Operation};
use crate::api::params::{ID_PATTERN, NoParams, Params, Query};
use crate::api::problem::{Code, Problem};
use crate::api::router::Api;
use crate::views;
use crate::views::alerts::IncidentCursor;
use crate::views::model::{
    AlertTestAnswer, AlertTestRequest, DeliveryView, FieldError, IncidentView, MuteRequest, MuteView, Page,
};

/// Which incidents.
#[derive(Debug)]
pub(in crate::api) struct IncidentsQuery {
    is_open_only: bool,
    limit: usize,
    after: Option<IncidentCursor>,
}

/// A cursor of this list.
const CURSOR_PATTERN: &str = r"^(open|ended)-[0-9]{1,18}-[A-Za-z0-9 ._:@-]{1,300}$";

impl Query for IncidentsQuery {
    fn read(params: &mut Params) -> IncidentsQuery {
        let is_open_only = params.truth_or("open", false, "Lists only incidents that are open.");
        let limit = params.limit();
        let text =
            params.pattern("after", CURSOR_PATTERN, "Where the page begins: `next` of the page before.");
        let after = text.and_then(|text| {
            let cursor = IncidentCursor::parse(&text);
            if cursor.is_none() {
                params.fault("after", "this is not a `next` of a page before".to_owned());
            }
            cursor
        });
        IncidentsQuery { is_open_only, limit, after }
    }
}

pub(in crate::api) async fn list(
    _caller: Caller<Viewer>,
    State(api): State<Api>,
    UrlQuery(query): UrlQuery<IncidentsQuery>,
) -> Result<Json<Page<IncidentView>>, Problem> {
    let page = views::alerts::incidents(&api.app, query.after, query.is_open_only, query.limit).await?;
    Ok(Json(page))
}

/// Which messages.
#[derive(Debug)]
pub(in crate::api) struct DeliveriesQuery {
    limit: usize,
    before: Option<i64>,
}

impl Query for DeliveriesQuery {
    fn read(params: &mut Params) -> DeliveriesQuery {
        let limit = params.limit();
        let most = i64::MAX.unsigned_abs();
        let before = params.number("before", 1..=most, "Only messages before this number.");
        DeliveriesQuery { limit, before: before.and_then(|it| i64::try_from(it).ok()) }
    }
}

pub(in crate::api) async fn deliveries(
    _caller: Caller<Viewer>,
    State(api): State<Api>,
    UrlQuery(query): UrlQuery<DeliveriesQuery>,
) -> Result<Json<Page<DeliveryView>>, Problem> {
    let mut rows = api.app.store.deliveries(query.before, query.limit + 1).await?;
    let has_more = query.limit < rows.len();
    rows.truncate(query.limit);
    let next = rows.last().filter(|_| has_more).map(|it| it.no.to_string());
    Ok(Json(Page { items: rows.iter().map(DeliveryView::from).collect(), next }))
}

pub(in crate::api) async fn test(
    caller: Caller<Operator>,
    State(api): State<Api>,
    UrlQuery(NoParams): UrlQuery<NoParams>,
    Body(request): Body<AlertTestRequest>,
) -> Result<Json<AlertTestAnswer>, Problem> {
    let channel = request.channel;
    let answer = match channel.parse::<Channel>() {
        Ok(name) => api.app.alerts.test(&name, &caller.actor).await,
        Err(_) => None,
    };
    let Some(answer) = answer else {
        let channels = api.app.alerts.channels();
        let names: Vec<&str> = channels.iter().map(|(name, _)| name.as_str()).collect();
        let hint = match nearest(&channel, names.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None if names.is_empty() => "this node has no channels; see `alerts.channels`".to_owned(),
            None => format!("there are `{}`", names.join("`, `")),
        };
        let detail = format!("there is no channel `{}`; {hint}", shortened(&channel));
        return Err(Problem::new(Code::NoSuchChannel, detail));
    };
    Ok(Json(AlertTestAnswer { channel, is_accepted: answer.is_accepted, answer: answer.answer }))
}

pub(in crate::api) async fn mutes(
    _caller: Caller<Viewer>,
    State(api): State<Api>,
    UrlQuery(NoParams): UrlQuery<NoParams>,
) -> Result<Json<Page<MuteView>>, Problem> {
    let now = api.app.intake.now();
    let mutes = api.app.store.mutes(MUTES_MAX).await?;
    Ok(Json(Page { items: mutes.iter().map(|it| MuteView::of(it, now)).collect(), next: None }))
}

pub(in crate::api) async fn mute(
    caller: Caller<Operator>,
    State(api): State<Api>,
    UrlQuery(NoParams): UrlQuery<NoParams>,
    Body(request): Body<MuteRequest>,
) -> Result<Json<MuteView>, Problem> {
    let wrong = |field: &str, detail: String| {
        let errors = vec![FieldError { pointer: format!("/{field}"), detail: detail.clone() }];
        Problem::new(Code::InvalidBody, detail).with(errors)
    };
    let MuteRequest { scope, value, starts_at, ends_at, reason } = request;
    let scope = MuteScope::of_parts(&scope, value.as_deref().unwrap_or_default())
        .map_err(|error| wrong("value", error))?;
    let reason = reason.trim().to_owned();
    if reason.is_empty() || MUTE_REASON_CHARS_MAX < reason.chars().count() {
        let detail = format!("say why, in at most {MUTE_REASON_CHARS_MAX} characters");
        return Err(wrong("reason", detail));
    }
    let now = api.app.intake.now();
    let times = (starts_at.map_or(now, |it| it.0), ends_at.0);
    let muted = api.app.alerts.mute(scope, times, reason, &caller.actor).await;
    let mute = muted.map_err(|error| match error {
        MuteError::Down(why) => Problem::from(evenbeat_core::store::StoreDown(why)),
        MuteError::TooMany => Problem::new(Code::TooManyMutes, error.to_string()),
        _ => wrong("ends_at", error.to_string()),
    })?;
    Ok(Json(MuteView::of(&mute, now)))
}

pub(in crate::api) async fn unmute(
    caller: Caller<Operator>,
    State(api): State<Api>,
    MutePath(id): MutePath,
    UrlQuery(NoParams): UrlQuery<NoParams>,
) -> Result<NoContent, Problem> {
    if api.app.alerts.unmute(id, &caller.actor).await? {
        return Ok(NoContent);
    }
    Err(no_such_mute())
}

fn no_such_mute() -> Problem {
    Problem::new(Code::NoSuchMute, "there is no mute of this id; it may have been removed already")
}

/// The mute that a path names.
#[derive(Debug)]
pub(in crate::api) struct MutePath(u128);

impl FromRequestParts<Api> for MutePath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<MutePath, Problem> {
        let text = segment(parts, api).await?;
        run_id(&text).map(|it| MutePath(it.0)).ok_or_else(no_such_mute)
    }
}

impl DescribeInput for MutePath {
    fn describe(operation: &mut Operation) {
        operation.path_parameter(Some(ID_PATTERN), "The id of a mute.");
        operation.refuses(&[Code::NoSuchMute, Code::NoSuchRoute]);
    }
}
