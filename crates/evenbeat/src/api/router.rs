//! All routes put together, and what holds for all of them.

use std::any::Any;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration as Length;

use axum::Router;
use axum::body::{Body, Bytes, HttpBody as _};
use axum::extract::{DefaultBodyLimit, MatchedPath, Request, State};
use axum::http::{HeaderValue, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tower::ServiceExt as _;
use tower_http::catch_panic::CatchPanicLayer;

use super::authenticate::{authenticate, authenticate_reader};
use super::caller::Peer;
use super::guard::guard;
use super::handlers::metrics;
use super::log_book::{LogBook, NoLogs};
use super::openapi::ApiDocument;
use super::problem::{Code, Problem};
use super::routes::Routes;
use super::serve::{Crowded, Overflow};
use super::table::{self, RouteTable};
use crate::app::App;
use crate::auth::Auth;
use crate::config::Network;

/// Largest request body we accept.
const BODY_MAX: usize = 1 << 20;

/// Largest body that declares a whole fleet.
const APPLY_BODY_MAX: usize = 16 << 20;

/// Largest form of a page we accept.
const PAGE_BODY_MAX: usize = 64 << 10;

/// How many fleets are read at once, and how many ask for health.
const N_FLEETS_MAX: usize = 2;
const N_HEALTH_MAX: usize = 16;

/// Open streams of events and logs, over TCP and through the Unix socket. Each holds a connection, and half of those are
/// left for requests.
const N_TCP_STREAMS_MAX: usize = 256;
const N_SOCKET_STREAMS_MAX: usize = 64;

/// What the API goes by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiOptions {
    /// Names and addresses of this server, besides those that every machine has for itself.
    pub hosts: Vec<String>,
    /// Reverse proxies whose word about their clients counts.
    pub trusted_proxies: Vec<Network>,
    /// Where people reach the pages, without a path; none if only the socket is served.
    pub pages_url: Option<String>,
    /// Concurrent requests, over TCP and through the Unix socket each.
    pub n_requests_max: usize,
    /// How long a request waits for its turn.
    pub turn_within: Length,
    /// How long a body may take to arrive.
    pub body_within: Length,
    /// Bytes of bodies held at once, over TCP and through the Unix socket each.
    pub body_bytes_max: usize,
    /// How long an answer may take.
    pub answer_within: Length,
    /// How often a stream of events says that it is alive, if there is nothing else to say.
    pub alive_every: Length,
}

impl Default for ApiOptions {
    fn default() -> ApiOptions {
        ApiOptions {
            hosts: Vec::new(),
            trusted_proxies: Vec::new(),
            pages_url: None,
            n_requests_max: 128,
            turn_within: Length::from_secs(5),
            body_within: Length::from_secs(10),
            body_bytes_max: 64 << 20,
            answer_within: Length::from_secs(30),
            alive_every: Length::from_secs(15),
        }
    }
}

/// What handlers get.
#[derive(Clone, Debug)]
pub(super) struct Api {
    pub(super) app: App,
    pub(super) logs: Arc<dyn LogBook>,
    pub(super) auth: Auth,
    pub(super) options: Arc<ApiOptions>,
    pub(super) document: Arc<ApiDocument>,
    rooms: Arc<Budgets>,
}

/// What requests share. Each door has its own, so that a crowd at one does not lock the other, and health asks at
/// neither.
#[derive(Debug)]
struct Budgets {
    tcp: Budget,
    socket: Budget,
    health: Semaphore,
}

#[derive(Debug)]
struct Budget {
    /// Requests that are worked on.
    turns: Semaphore,
    /// Bytes of bodies that were received and are not done with.
    body_bytes: Arc<Semaphore>,
    /// Fleets that are read: a few at once, because a fleet takes more memory than its text.
    fleets: Arc<Semaphore>,
    /// Answers that go on: events, and logs that are followed.
    streams: Arc<Semaphore>,
}

impl Budget {
    fn new(options: &ApiOptions, n_streams_max: usize) -> Budget {
        Budget {
            turns: Semaphore::new(options.n_requests_max),
            body_bytes: Arc::new(Semaphore::new(options.body_bytes_max)),
            fleets: Arc::new(Semaphore::new(N_FLEETS_MAX)),
            streams: Arc::new(Semaphore::new(n_streams_max)),
        }
    }
}

impl Api {
    fn room(&self, peer: Option<&Peer>) -> &Budget {
        match peer {
            Some(Peer::Socket { .. }) => &self.rooms.socket,
            Some(Peer::Tcp(_)) | None => &self.rooms.tcp,
        }
    }

    /// Waits until a fleet may be read. To be held until it has been.
    pub(super) async fn fleet_turn(&self, peer: Peer) -> Result<OwnedSemaphorePermit, Problem> {
        let fleets = Arc::clone(&self.room(Some(&peer)).fleets);
        let turn = timeout(self.options.turn_within, fleets.acquire_owned()).await;
        turn.ok().and_then(Result::ok).ok_or_else(too_busy)
    }
}

impl Api {
    /// Room for one more stream. To be held until it ends. A stream takes no turn: it would never give it back.
    pub(super) fn stream_turn(&self, peer: Peer) -> Result<OwnedSemaphorePermit, Problem> {
        let streams = Arc::clone(&self.room(Some(&peer)).streams);
        streams.try_acquire_owned().map_err(|_| {
            Problem::new(Code::TooManyRequests, "too many streams are open; close one, or try again")
        })
    }
}

/// What routes are made of.
#[derive(Debug)]
pub struct RouterParts {
    pub app: App,
    /// Where the output of runs is read.
    pub logs: Arc<dyn LogBook>,
    /// Who callers are.
    pub auth: Auth,
    pub options: ApiOptions,
    /// The pages for people. They check sessions themselves, and their fallback is the page for addresses that lead nowhere.
    pub pages: Router,
}

/// All routes of a process. The acceptor of a connection puts a [`Peer`] into the
/// extensions of every request.
pub fn router(parts: RouterParts) -> Router {
    let RouterParts { app, logs, auth, options, pages } = parts;
    let table = table::all();
    let [health, usual, large] = [&table.health, &table.usual, &table.large].map(Routes::routers);
    let api = shared(app, logs, auth, options, table);
    let health = health.open.layer(from_fn_with_state(api.clone(), in_health_turn));
    // The body first: a slow sender takes no turn.
    let bounded = |routes: Router<Api>, body_max: usize| {
        routes
            .layer(from_fn_with_state(api.clone(), in_turn))
            .layer(from_fn_with_state((api.clone(), body_max), with_whole_body))
    };
    // Around all of that: strangers do not even get to send a body. On routes only, so that what is not there is not
    // there for anyone.
    let known = |routes: Router<Api>| routes.route_layer(from_fn_with_state(api.clone(), authenticate));
    let readers = |routes: Router<Api>| {
        let routes = routes.route_layer(from_fn_with_state(api.clone(), authenticate_reader));
        routes.route_layer(from_fn(not_crowded))
    };
    let open = |routes: Router<Api>| routes.route_layer(from_fn(not_crowded));
    let nowhere = pages.clone();
    Router::new()
        .merge(health)
        .merge(known(bounded(usual.closed, BODY_MAX)))
        .merge(known(bounded(large.closed, APPLY_BODY_MAX)))
        .merge(readers(bounded(usual.pages, BODY_MAX)))
        .merge(open(bounded(usual.open, BODY_MAX)))
        .merge(open(bounded(pages.with_state(()), PAGE_BODY_MAX)))
        .fallback(move |request: Request| no_such_address(nowhere, request))
        .method_not_allowed_fallback(no_such_method)
        .layer(CatchPanicLayer::custom(panicked))
        .layer(from_fn_with_state(api.clone(), guard))
        .layer(from_fn_with_state(api.clone(), counted))
        .layer(from_fn(with_headers))
        .layer(DefaultBodyLimit::disable())
        .with_state(api)
}

/// The routes of an address that serves metrics and health only, to anyone who reaches it.
pub fn metrics_router(app: App, auth: Auth, options: ApiOptions) -> Router {
    let table = table::all();
    let health = table.health.routers().open;
    let api = shared(app, Arc::new(NoLogs), auth, options, table);
    let metrics = Router::new()
        .route("/metrics", get(metrics::open_metrics))
        .layer(from_fn_with_state(api.clone(), in_turn))
        .layer(from_fn_with_state((api.clone(), BODY_MAX), with_whole_body));
    Router::new()
        .merge(health.layer(from_fn_with_state(api.clone(), in_health_turn)))
        .merge(metrics)
        .fallback(no_such_route)
        .method_not_allowed_fallback(no_such_method)
        .layer(CatchPanicLayer::custom(panicked))
        .layer(from_fn(with_headers))
        .layer(DefaultBodyLimit::disable())
        .with_state(api)
}

fn shared(app: App, logs: Arc<dyn LogBook>, auth: Auth, options: ApiOptions, table: RouteTable) -> Api {
    let rooms = Budgets {
        tcp: Budget::new(&options, N_TCP_STREAMS_MAX),
        socket: Budget::new(&options, N_SOCKET_STREAMS_MAX),
        health: Semaphore::new(N_HEALTH_MAX),
    };
    let document = Arc::new(ApiDocument::new(table.into_operations()));
    Api { app, logs, auth, options: Arc::new(options), document, rooms: Arc::new(rooms) }
}

/// A page for people who look with a browser; JSON for everyone else, and for everything under `/api`.
async fn no_such_address(pages: Router, request: Request) -> Response {
    let path = request.uri().path();
    let is_of_api = path == "/api" || path.starts_with("/api/");
    let accepted = request.headers().get(header::ACCEPT).and_then(|it| it.to_str().ok());
    if is_of_api || !accepted.is_some_and(|it| it.contains("text/html")) {
        return no_such_route().await.into_response();
    }
    // Nothing in it has this address either, so its fallback answers.
    let (parts, _) = request.into_parts();
    pages.oneshot(Request::from_parts(parts, Body::empty())).await.into_response()
}

async fn no_such_route() -> Problem {
    Problem::new(Code::NoSuchRoute, "no such route; the API is under `/api/v1`")
}

async fn no_such_method(request: Request) -> Problem {
    let detail = format!("`{}` is not allowed here", request.method());
    Problem::new(Code::NoSuchMethod, detail)
}

/// Connections beyond the limits get no open routes but health: they may take no turn.
async fn not_crowded(request: Request, next: Next) -> Response {
    let extensions = request.extensions();
    if extensions.get::<Overflow>().is_some() || extensions.get::<Crowded>().is_some() {
        let detail = "too many connections are open; close some, or try again";
        return Problem::new(Code::TooManyRequests, detail).into_response();
    }
    next.run(request).await
}

/// Receives the body before anything is done, within its limits of size and time.
async fn with_whole_body(
    State((api, body_max)): State<(Api, usize)>,
    request: Request,
    next: Next,
) -> Response {
    let (parts, body) = request.into_parts();
    let budget = &api.room(parts.extensions.get()).body_bytes;
    match timeout(api.options.body_within, whole(body, body_max, budget)).await {
        // What was received counts until it is done with.
        Ok(Ok((bytes, _held))) => next.run(Request::from_parts(parts, Body::from(bytes))).await,
        Ok(Err(problem)) => problem.into_response(),
        Err(_) => {
            let within = api.options.body_within;
            let detail = format!("the body was not complete after {within:?}; send it faster");
            Problem::new(Code::BodyTooSlow, detail).into_response()
        }
    }
}

async fn whole(
    mut body: Body,
    body_max: usize,
    budget: &Arc<Semaphore>,
) -> Result<(Bytes, Option<OwnedSemaphorePermit>), Problem> {
    let too_large = || {
        let detail = format!("the body is larger than the {body_max} bytes that are allowed here; send less");
        Problem::new(Code::BodyTooLarge, detail)
    };
    if usize::try_from(body.size_hint().lower()).map_or(true, |least| body_max < least) {
        return Err(too_large());
    }
    let (mut bytes, mut held) = (Vec::new(), None::<OwnedSemaphorePermit>);
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        let frame = frame.map_err(|_| Problem::new(Code::MalformedBody, "the body broke off"))?;
        let Ok(data) = frame.into_data() else { continue };
        if body_max < bytes.len() + data.len() {
            return Err(too_large());
        }
        let n_bytes = u32::try_from(data.len()).unwrap_or(u32::MAX);
        let more = Arc::clone(budget).acquire_many_owned(n_bytes).await.map_err(|_| too_busy())?;
        match &mut held {
            Some(held) => held.merge(more),
            None => held = Some(more),
        }
        bytes.extend_from_slice(&data);
    }
    Ok((bytes.into(), held))
}

/// Bounds concurrency and time: a slow store must not pile up requests.
async fn in_turn(State(api): State<Api>, request: Request, next: Next) -> Response {
    let turns = &api.room(request.extensions().get()).turns;
    answered(&api.options, turns, next.run(request)).await
}

/// Health has turns of its own, so that it is answered however much else there is to do.
async fn in_health_turn(State(api): State<Api>, request: Request, next: Next) -> Response {
    answered(&api.options, &api.rooms.health, next.run(request)).await
}

async fn answered(
    options: &ApiOptions,
    turns: &Semaphore,
    answer: impl Future<Output = Response>,
) -> Response {
    let Ok(Ok(_turn)) = timeout(options.turn_within, turns.acquire()).await else {
        return too_busy().into_response();
    };
    match timeout(options.answer_within, answer).await {
        Ok(answer) => answer,
        Err(_) => {
            let detail =
                "the request took too long and may still have been carried out; check before you retry";
            Problem::new(Code::TookTooLong, detail).into_response()
        }
    }
}

fn too_busy() -> Problem {
    Problem::new(Code::TooManyRequests, "too many requests are being worked on; try again")
}

/// Counts what was asked, by the template of its route: the address itself could be anything.
async fn counted(State(api): State<Api>, request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>().cloned();
    let answer = next.run(request).await;
    let route = route.as_ref().map(MatchedPath::as_str);
    api.app.telemetry.metrics().requested(route, answer.status().as_u16());
    answer
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
