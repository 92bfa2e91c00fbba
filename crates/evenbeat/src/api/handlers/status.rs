//! How the fleet is.

use axum::Json;
use axum::extract::State;
use evenbeat_core::store::SessionKind;

use super::health::is_read;
use crate::api::caller::{Caller, Viewer};
use crate::api::extract::{Asked, Nothing};
use crate::api::judge;
use crate::api::model::{StatusView, rounded};
use crate::api::problem::{Code, Problem};
use crate::api::router::Api;
use crate::store::any::AnyStore;

/// So many jobs that stand badly are shown.
const N_WORST: usize = 10;

const DAY_HOURS: u32 = 24;

pub(in crate::api) async fn status(
    _caller: Caller<Viewer>,
    State(api): State<Api>,
    Asked(Nothing): Asked<Nothing>,
) -> Result<Json<StatusView>, Problem> {
    let app = &api.app;
    let now = app.intake.now();
    let (jobs, worst) = judge::count(app, N_WORST).await?;
    let open_runs = app.store.open_runs_by_session().await?.values().sum();
    let sessions = app.store.sessions().await?;
    let nodes = sessions.iter().filter(|it| !it.is_dead && it.spec.kind == SessionKind::Node).count();
    let day = app.fleet.distribution_async(now, DAY_HOURS).await;
    let day = day.map_err(|error| Problem::new(Code::Internal, error.to_string()))?;
    let (peak_hour, peak_count) = day.peak_hour();
    let condition = match (jobs.by_condition.error, jobs.by_condition.warning) {
        (0, 0) => "ok",
        (0, _) => "warning",
        _ => "error",
    };
    let mut worst_views = judge::views(app, &worst, now).await;
    for (view, row) in worst_views.iter_mut().zip(&worst) {
        view.say_last_run(judge::last_run(app, row).await?);
    }
    Ok(Json(StatusView {
        condition: condition.into(),
        now: now.into(),
        version: env!("CARGO_PKG_VERSION").into(),
        node: app.identity.node.to_string(),
        instance: app.identity.instance.clone(),
        started_at: app.started_at.into(),
        store: match app.store {
            AnyStore::Sqlite(_) => "sqlite".into(),
            AnyStore::Postgres(_) => "postgres".into(),
        },
        is_read: is_read(app).await,
        jobs,
        open_runs,
        nodes,
        distribution_score: rounded(day.score()),
        peak_count,
        peak_at: day.hour_start(peak_hour).into(),
        worst: worst_views,
    }))
}
