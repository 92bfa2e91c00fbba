//! The table of routes, and what holds for all of them.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration as Length;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{HeaderValue, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tower_http::catch_panic::CatchPanicLayer;

use super::guard::guard;
use super::handlers::{apply, health, jobs, nodes, runs, scheduler, status, upcoming};
use super::log_book::LogBook;
use super::problem::{Code, Problem};
use crate::runtime::app::App;

/// So large a body may be.
const BODY_MAX: usize = 1 << 20;

/// So large may be what declares a whole fleet.
const APPLY_BODY_MAX: usize = 16 << 20;

/// What the API goes by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiOptions {
    /// Names and addresses of this server, besides those that every machine has for itself.
    pub hosts: Vec<String>,
    /// So many requests are worked on at once.
    pub n_requests_max: usize,
    /// So long a request waits for its turn.
    pub turn_within: Length,
    /// So long a body may take to come.
    pub body_within: Length,
    /// So long an answer may take.
    pub answer_within: Length,
}

impl Default for ApiOptions {
    fn default() -> ApiOptions {
        ApiOptions {
            hosts: Vec::new(),
            n_requests_max: 128,
            turn_within: Length::from_secs(5),
            body_within: Length::from_secs(10),
            answer_within: Length::from_secs(30),
        }
    }
}

/// What handlers get.
#[derive(Clone, Debug)]
pub(super) struct Api {
    pub(super) app: App,
    pub(super) logs: Arc<dyn LogBook>,
    pub(super) options: Arc<ApiOptions>,
    turns: Arc<Semaphore>,
}

/// Everything that can be asked of a process. Whoever accepts connections puts a [`Peer`](super::Peer) into the
/// extensions of every request.
pub fn router(app: App, logs: Arc<dyn LogBook>, options: ApiOptions) -> Router {
    let turns = Arc::new(Semaphore::new(options.n_requests_max));
    let api = Api { app, logs, options: Arc::new(options), turns };
    Router::new()
        .route("/healthz", get(health::healthz))
        .route("/readyz", get(health::readyz))
        .nest("/api/v1", v1())
        .fallback(no_such_route)
        .method_not_allowed_fallback(no_such_method)
        .layer(CatchPanicLayer::custom(panicked))
        .layer(from_fn_with_state(api.clone(), in_turn))
        .layer(from_fn_with_state(api.clone(), guard))
        .layer(from_fn(with_headers))
        .layer(DefaultBodyLimit::max(BODY_MAX))
        .with_state(api)
}

fn v1() -> Router<Api> {
    Router::new()
        .route("/status", get(status::status))
        .route("/jobs", get(jobs::list))
        .route("/jobs/{key}", get(jobs::get).put(jobs::put).delete(jobs::delete))
        .route("/jobs/{key}/pause", post(jobs::pause))
        .route("/jobs/{key}/resume", post(jobs::resume))
        .route("/jobs/{key}/trigger", post(jobs::trigger))
        .route("/jobs/{key}/explain", get(jobs::explain))
        .route("/jobs/{key}/runs", get(runs::of_job))
        .route("/jobs/{key}/upcoming", get(upcoming::of_job))
        .route("/jobs/{key}/records", get(runs::records))
        .route("/apply", post(apply::apply).layer(DefaultBodyLimit::max(APPLY_BODY_MAX)))
        .route("/export", get(apply::export))
        .route("/runs", get(runs::list))
        .route("/runs/{id}", get(runs::get))
        .route("/runs/{id}/log", get(runs::log))
        .route("/runs/{id}/cancel", post(runs::cancel))
        .route("/nodes", get(nodes::list))
        .route("/nodes/{name}/drain", post(nodes::drain))
        .route("/upcoming", get(upcoming::list))
        .route("/scheduler/distribution", get(scheduler::distribution))
        .route("/scheduler/fleet", get(scheduler::fleet))
        .route("/scheduler/limits", get(scheduler::limits))
        .route("/scheduler/rebalance", post(scheduler::rebalance))
        .route("/scheduler/rebalance/preview", post(scheduler::preview))
}

async fn no_such_route() -> Problem {
    Problem::new(Code::NoSuchRoute, "there is nothing at this address; the API is below `/api/v1`")
}

async fn no_such_method(request: Request) -> Problem {
    let detail = format!("`{}` cannot be done to this address", request.method());
    Problem::new(Code::NoSuchMethod, detail)
}

/// Only so many at once, and none for ever: a slow store must not pile up requests without end.
async fn in_turn(State(api): State<Api>, request: Request, next: Next) -> Response {
    let Ok(Ok(_turn)) = timeout(api.options.turn_within, api.turns.acquire()).await else {
        let detail = "too many requests are being worked on; try again";
        return Problem::new(Code::TooManyRequests, detail).into_response();
    };
    match timeout(api.options.answer_within, next.run(request)).await {
        Ok(answer) => answer,
        Err(_) => {
            let detail =
                "the answer took too long; what was asked for may have been done: look before you try again";
            Problem::new(Code::TookTooLong, detail).into_response()
        }
    }
}

/// Nothing here is to be kept by those in between, or taken for a page.
async fn with_headers(request: Request, next: Next) -> Response {
    let mut answer = next.run(request).await;
    let headers = answer.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    answer
}

/// A bug of ours costs one answer, not the process.
#[expect(clippy::needless_pass_by_value, reason = "that is how it is called")]
fn panicked(what: Box<dyn Any + Send + 'static>) -> Response {
    let said = what.downcast_ref::<String>().map(String::as_str);
    let said = said.or_else(|| what.downcast_ref::<&str>().copied()).unwrap_or("no words");
    tracing::error!(said, "a request was not answered because of a bug");
    Problem::new(Code::Internal, "this is a bug; the log of the server says more").into_response()
}
