//! Whether the process is there, and whether it can do its work (G4). No role is needed.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use evenbeat_core::store::StoreDown;

use crate::api::router::Api;
use crate::views::model::{HealthView, ReadyView};

pub(in crate::api) async fn healthz() -> Json<HealthView> {
    Json(HealthView { status: "ok".into() })
}

pub(in crate::api) async fn readyz(State(api): State<Api>) -> impl IntoResponse {
    let store = api.app.store.sessions().await;
    let written = api.app.write_probe.ask().await;
    let fleet = api.app.is_read().await;
    let reason = match (&store, &written) {
        (Err(StoreDown(why)), _) => Some(format!("the store does not answer: {why}")),
        (Ok(_), Err(why)) => Some(format!("the store cannot write: {why}")),
        (Ok(_), Ok(())) if !fleet => Some("the jobs have not all been read yet".to_owned()),
        (Ok(_), Ok(())) => None,
    };
    let ready = reason.is_none();
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let store = store.is_ok() && written.is_ok();
    (status, Json(ReadyView { ready, store, fleet, reason }))
}
