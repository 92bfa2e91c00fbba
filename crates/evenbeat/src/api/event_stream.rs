//! Events as a stream of server-sent events, apart from who may read them: routes of the API and of pages share it.
//!
//! A stream takes no turn and has no time limit. Its reader may be slow: it is told when it missed something, and events are
//! kept once for all readers.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream::unfold;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::sleep;
use utoipa::openapi::Content;
use utoipa::openapi::response::ResponseBuilder;
use utoipa::openapi::schema::{ObjectBuilder, Type};

use super::caller::Peer;
use super::operation::{DescribeAnswer, DescribeInput, Operation};
use super::problem::{Code, Problem};
use super::router::Api;
use super::serve::ServerStop;
use crate::node::events::{EventId, EventReader, NextEvents};
use crate::node::metrics::Metrics;
use crate::views::events::{EventFilter, ShownEvent, view};
use crate::views::model::EventView;

/// How soon a browser connects again, in milliseconds.
const RETRY_MS: u32 = 2_000;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Tells nginx, and others that do as it does, not to collect the answer before passing it on.
pub(super) const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// The last event that a reader has seen, if it comes back.
#[derive(Clone, Copy, Debug)]
pub(super) struct LastEventId(Option<EventId>);

impl<S: Sync> FromRequestParts<S> for LastEventId {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<LastEventId, Infallible> {
        let id = parts.headers.get(LAST_EVENT_ID);
        // An id that cannot be read is one that we do not know.
        let id = id.map(|id| id.to_str().ok().and_then(|it| it.parse().ok()).unwrap_or(EventId::UNKNOWN));
        Ok(LastEventId(id))
    }
}

impl DescribeInput for LastEventId {
    fn describe(operation: &mut Operation) {
        let text = ObjectBuilder::new().schema_type(Type::String);
        let meaning = "The id of the last event that you have seen. Without it, the stream begins now.";
        operation.header_parameter("Last-Event-ID", text, meaning);
    }
}

/// A stream of events as an answer.
#[derive(Debug)]
pub(super) struct EventStream(Response);

impl IntoResponse for EventStream {
    fn into_response(self) -> Response {
        self.0
    }
}

impl DescribeAnswer for EventStream {
    fn describe(operation: &mut Operation) {
        let event = operation.schema_of::<EventView>();
        let answer = ResponseBuilder::new()
            .description("Events as they happen. The schema is that of the data of one event.")
            .content(EVENT_TYPE, Content::new(Some(event)));
        operation.answer(200, answer);
        operation.refuses(&[Code::TooManyStreams]);
    }
}

const EVENT_TYPE: &str = "text/event-stream";

/// Room for a stream, and its place in the metrics. To be held as long as it lasts.
#[derive(Debug)]
pub(super) struct OpenStream {
    metrics: Metrics,
    _turn: OwnedSemaphorePermit,
}

impl OpenStream {
    /// Refuses if too many are open.
    pub(super) fn begin(api: &Api, peer: Peer) -> Result<OpenStream, Problem> {
        let turn = api.stream_turn(peer)?;
        let metrics = api.app.telemetry.metrics().clone();
        metrics.stream_opened();
        Ok(OpenStream { metrics, _turn: turn })
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.metrics.stream_closed();
    }
}

/// What a stream needs between two events.
struct StreamState {
    api: Api,
    reader: EventReader,
    filter: EventFilter,
    stopping: ServerStop,
    stream: OpenStream,
    has_begun: bool,
    is_over: bool,
}

/// All events of these kinds from now on, or from where an earlier stream ended.
pub(super) fn event_stream(
    api: &Api,
    stream: OpenStream,
    filter: EventFilter,
    LastEventId(last): LastEventId,
    stopping: ServerStop,
) -> EventStream {
    let reader = api.app.telemetry.events().read(last);
    let api = api.clone();
    let state = StreamState { api, reader, filter, stopping, stream, has_begun: false, is_over: false };
    let body = unfold(state, |mut state| async move {
        let text = state.next().await?;
        Some((Ok::<Bytes, Infallible>(Bytes::from(text)), state))
    });
    let kind = (header::CONTENT_TYPE, HeaderValue::from_static(EVENT_TYPE));
    let no_store = (header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    let no_buffer = (X_ACCEL_BUFFERING, HeaderValue::from_static("no"));
    EventStream(([kind, no_store, no_buffer], Body::from_stream(body)).into_response())
}

impl StreamState {
    /// The next part of the stream; none at its end.
    async fn next(&mut self) -> Option<String> {
        if self.is_over {
            return None;
        }
        if !std::mem::replace(&mut self.has_begun, true) {
            return Some(self.beginning());
        }
        loop {
            let alive_in = self.api.options.alive_every;
            let next = tokio::select! {
                biased;
                () = self.stopping.stopped() => return None,
                next = self.reader.next() => next,
                () = sleep(alive_in) => return Some(alive(self.reader.last_id())),
            };
            let text = match next {
                NextEvents::Batch(batch, place) => {
                    let mut text = String::new();
                    if batch.is_cut {
                        write(&mut text, None, &resync("more happened at once than can be told"));
                    }
                    for event in self.filter.select(&batch, place) {
                        match event {
                            ShownEvent::Single(id, record, at) => {
                                let written = record.text.get_or_init(|| {
                                    let mut text = String::new();
                                    write(&mut text, Some(id), &view(&record.what, at));
                                    Arc::from(text)
                                });
                                text.push_str(written);
                            }
                            ShownEvent::Summary(id, view) => write(&mut text, Some(id), &view),
                        }
                    }
                    text
                }
                NextEvents::CutOff => {
                    self.is_over = true;
                    self.stream.metrics.stream_cut_off();
                    let detail = "this reader was too slow; connect again, and read faster or ask for less";
                    let mut text = String::new();
                    write(&mut text, None, &EventView::CutOff { detail: detail.into() });
                    text
                }
            };
            if !text.is_empty() {
                return Some(text);
            }
        }
    }

    /// Something is sent at once, so that whatever is in between passes the headers on.
    fn beginning(&self) -> String {
        let mut text = format!("retry: {RETRY_MS}\n");
        text.push_str(&alive(self.reader.last_id()));
        if self.reader.has_missed {
            write(&mut text, None, &resync("events since then were not kept"));
        }
        text
    }
}

fn resync(detail: &'static str) -> EventView {
    EventView::Resync { detail: detail.into() }
}

/// A comment, and how far the reader is: events that it did not want count as read.
fn alive(last: EventId) -> String {
    format!(": alive\nid: {last}\n\n")
}

fn write(text: &mut String, id: Option<EventId>, event: &EventView) {
    if let Some(id) = id {
        let _ = writeln!(text, "id: {id}");
    }
    let data = serde_json::to_string(event).unwrap_or_default();
    let _ = write!(text, "event: {}\ndata: {data}\n\n", event.name());
}
