//! Whether the process is there, and whether it can do its work (G4). No role is needed.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use evenbeat_core::store::StoreDown;

use crate::api::caller::Anyone;
use crate::api::operation::{DescribeAnswer, Operation};
use crate::api::router::Api;
use crate::views::model::{HealthView, ReadyView};

pub(in crate::api) async fn healthz(_caller: Anyone) -> Json<HealthView> {
    Json(HealthView { status: "ok".into() })
}

pub(in crate::api) async fn readyz(_caller: Anyone, State(api): State<Api>) -> Ready {
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
    let store = store.is_ok() && written.is_ok();
    Ready(ReadyView { ready, store, fleet, reason })
}

/// Status 200 if the process can do its work, 503 otherwise.
#[derive(Debug)]
pub(in crate::api) struct Ready(ReadyView);

impl IntoResponse for Ready {
    fn into_response(self) -> Response {
        let status = if self.0.ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        (status, Json(self.0)).into_response()
    }
}

impl DescribeAnswer for Ready {
    fn describe(operation: &mut Operation) {
        operation.json_answer::<ReadyView>(200, "The process can do its work.");
        operation.json_answer::<ReadyView>(503, "The process cannot do its work yet, or no longer.");
    }
}
