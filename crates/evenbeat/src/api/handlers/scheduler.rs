//! The scheduler's own endpoints: how even the fleet is, and its rebalance (G2).

use axum::Json;
use axum::extract::State;
use evenbeat_core::distribution::WINDOW_HOURS_MAX;
use evenbeat_core::ids::JobKey;
use evenbeat_core::store::PlanId;

use crate::api::caller::{Caller, Operator, Viewer};
use crate::api::extract::{MaybeBody, UrlQuery};
use crate::api::params::{NoParams, Params, Query};
use crate::api::problem::{Code, Problem};
use crate::api::router::Api;
use crate::fleet::DAY_HOURS;
use crate::store::query::JobFilter;
use crate::views::ViewError;
use crate::views::model::{
    DistributionView, FleetJob, LimitsView, Page, PreviewRequest, RebalanceAnswer, RebalancePreview,
    RebalanceRequest,
};

/// How far is looked.
#[derive(Debug)]
pub(in crate::api) struct DistributionQuery {
    window_hours: u32,
}

impl Query for DistributionQuery {
    fn read(params: &mut Params) -> DistributionQuery {
        let (limits, default) = (1..=u64::from(WINDOW_HOURS_MAX), u64::from(DAY_HOURS));
        let hours = params.number_or("window_hours", limits, default, "How many hours to look ahead.");
        DistributionQuery { window_hours: u32::try_from(hours).unwrap_or(DAY_HOURS) }
    }
}

pub(in crate::api) async fn distribution(
    _caller: Caller<Viewer>,
    State(api): State<Api>,
    UrlQuery(query): UrlQuery<DistributionQuery>,
) -> Result<Json<DistributionView>, Problem> {
    let (now, hours) = (api.app.intake.now(), query.window_hours);
    let found = api.app.fleet.distribution(now, hours).await;
    let found = found.map_err(|error| Problem::new(Code::InvalidParameter, error.to_string()))?;
    Ok(Json(DistributionView::of(&found, hours)))
}

/// Which part of the fleet.
#[derive(Debug)]
pub(in crate::api) struct FleetQuery {
    /// Page size.
    limit: usize,
    /// After this key.
    after: Option<JobKey>,
}

impl Query for FleetQuery {
    fn read(params: &mut Params) -> FleetQuery {
        FleetQuery { limit: params.limit(), after: params.after_key() }
    }
}

pub(in crate::api) async fn fleet(
    _caller: Caller<Viewer>,
    State(api): State<Api>,
    UrlQuery(query): UrlQuery<FleetQuery>,
) -> Result<Json<Page<FleetJob>>, Problem> {
    let page = api.app.store.list_jobs(JobFilter::default(), query.after, query.limit).await?;
    let items = page.rows.iter().map(FleetJob::of).collect();
    Ok(Json(Page { items, next: page.next.map(|key| key.to_string()) }))
}

pub(in crate::api) async fn limits(
    _caller: Caller<Viewer>,
    State(api): State<Api>,
    UrlQuery(NoParams): UrlQuery<NoParams>,
) -> Result<Json<LimitsView>, Problem> {
    let limits = api.app.node.ask(|engine, _| LimitsView::of(engine.settings())).await;
    limits.map(Json).ok_or_else(|| ViewError::NodeGone.into())
}

pub(in crate::api) async fn preview(
    caller: Caller<Viewer>,
    State(api): State<Api>,
    UrlQuery(NoParams): UrlQuery<NoParams>,
    MaybeBody(PreviewRequest {}): MaybeBody<PreviewRequest>,
) -> Result<Json<RebalancePreview>, Problem> {
    let plan = api.app.intake.plan_rebalance(&caller.actor).await?;
    Ok(Json((&plan).into()))
}

pub(in crate::api) async fn rebalance(
    caller: Caller<Operator>,
    State(api): State<Api>,
    UrlQuery(NoParams): UrlQuery<NoParams>,
    MaybeBody(request): MaybeBody<RebalanceRequest>,
) -> Result<Json<RebalanceAnswer>, Problem> {
    let done = match request.plan_id {
        None => api.app.intake.rebalance_now(&caller.actor).await?,
        Some(text) => match uuid::Uuid::try_parse(&text) {
            Ok(id) => api.app.intake.rebalance(&caller.actor, PlanId(id.as_u128())).await?,
            Err(_) => {
                let text = evenbeat_core::nearest::shortened(&text);
                let detail = format!("there is no rebalance plan `{text}`; make a new plan");
                return Err(Problem::new(Code::PlanIsOld, detail));
            }
        },
    };
    Ok(Json((&done).into()))
}
