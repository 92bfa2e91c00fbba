//! The state of the fleet in one view: conditions, what needs attention, evenness, nodes.

use evenbeat_core::store::SessionKind;

use super::model::{StatusView, rounded};
use super::{ViewError, jobs};
use crate::app::App;
use crate::fleet::DAY_HOURS;
use crate::store::any::AnyStore;

/// How many jobs that need attention are shown.
const N_WORST: usize = 10;

/// The state of the fleet now.
pub(crate) async fn status(app: &App) -> Result<StatusView, ViewError> {
    let now = app.intake.now();
    let (counts, worst) = jobs::count(app, N_WORST).await?;
    let open_runs = app.store.open_runs_by_session().await?.values().sum();
    let sessions = app.store.sessions().await?;
    let nodes = sessions.iter().filter(|it| !it.is_dead && it.spec.kind == SessionKind::Node).count();
    let day = app.fleet.distribution(now, DAY_HOURS).await;
    let day = day.map_err(|error| ViewError::Bug(error.to_string()))?;
    let (peak_hour, peak_count) = day.peak_hour();
    let condition = match (counts.by_condition.error, counts.by_condition.warning) {
        (0, 0) => "ok",
        (0, _) => "warning",
        _ => "error",
    };
    let mut worst_views = jobs::views(app, &worst, now).await;
    for (view, row) in worst_views.iter_mut().zip(&worst) {
        view.say_last_run(jobs::last_run(app, row).await?);
    }
    Ok(StatusView {
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
        is_read: app.is_read().await,
        jobs: counts,
        open_runs,
        nodes,
        distribution_score: rounded(day.score()),
        peak_count,
        peak_at: day.hour_start(peak_hour).into(),
        worst: worst_views,
    })
}
