//! Whether the process is there, and whether it can do its work (G4). Nobody needs a role to know.

use std::future::ready;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;

use crate::api::model::{HealthView, ReadyView};
use crate::api::router::Api;
use crate::runtime::app::App;

pub(in crate::api) async fn healthz() -> Json<HealthView> {
    Json(HealthView { status: "ok".into() })
}

pub(in crate::api) async fn readyz(State(api): State<Api>) -> impl IntoResponse {
    let store = api.app.store.sessions().await.is_ok();
    let fleet = is_read(&api.app).await;
    let ready = store && fleet;
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(ReadyView { ready, store, fleet }))
}

/// Whether everything that is stored has been read once.
pub(super) async fn is_read(app: &App) -> bool {
    tokio::select! {
        biased;
        () = app.fleet.read() => true,
        () = ready(()) => false,
    }
}
