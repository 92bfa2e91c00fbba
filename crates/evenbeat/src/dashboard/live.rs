//! Tells open pages that something has changed, so that they load themselves again. What changed is not in the stream: a
//! page is made in one place, and a fleet that starts thousands of runs a second says one sentence a second.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::time::Duration as Length;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream::unfold;
use serde::Serialize;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, sleep_until};

use super::Pages;
use super::user::{PageUser, PageViewer};
use crate::api::ServerStop;
use crate::clock::Clock;
use crate::node::events::{EventReader, NextEvents};

/// The shortest time between two messages.
const MESSAGE_EVERY: Length = Length::from_secs(1);

/// How often the stream says that it is there. Pages call it silence after three times this.
const ALIVE_EVERY: Length = Length::from_secs(5);

/// Jobs that one message names. With more, every page may be concerned.
const JOBS_MAX: usize = 50;

/// What has changed since the last message.
#[derive(Debug, Default, Serialize)]
struct Changes {
    /// Kinds of events.
    kinds: BTreeSet<&'static str>,
    /// Jobs that they were about; none if there were too many to name.
    jobs: Option<BTreeSet<String>>,
}

impl Changes {
    fn add(&mut self, kind: &'static str, job: Option<&str>) {
        let is_first = self.kinds.is_empty();
        self.kinds.insert(kind);
        if is_first {
            self.jobs = Some(BTreeSet::new());
        }
        if let (Some(jobs), Some(job)) = (&mut self.jobs, job) {
            jobs.insert(job.to_owned());
            if JOBS_MAX < jobs.len() {
                self.jobs = None;
            }
        }
    }

    /// Anything may have changed.
    fn add_all(&mut self) {
        self.kinds.insert("all");
        self.jobs = None;
    }
}

struct LiveState {
    reader: EventReader,
    clock: Clock,
    stopping: ServerStop,
    changes: Changes,
    next_at: Instant,
    has_begun: bool,
    is_over: bool,
    _room: OwnedSemaphorePermit,
}

/// The stream. It ends with the server, and with the connection.
pub(super) async fn live(
    _user: PageUser<PageViewer>,
    State(pages): State<Pages>,
    stopping: ServerStop,
) -> Response {
    let Ok(room) = std::sync::Arc::clone(&pages.streams).try_acquire_owned() else {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    };
    let state = LiveState {
        reader: pages.app.telemetry.events().read(None),
        clock: pages.app.clock.clone(),
        stopping,
        changes: Changes::default(),
        next_at: Instant::now(),
        has_begun: false,
        is_over: false,
        _room: room,
    };
    let body = unfold(state, |mut state| async move {
        let text = state.next().await?;
        Some((Ok::<Bytes, Infallible>(Bytes::from(text)), state))
    });
    let kind = (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    let no_store = (header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // nginx would collect the answer before passing it on.
    let no_buffer = (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    ([kind, no_store, no_buffer], Body::from_stream(body)).into_response()
}

impl LiveState {
    async fn next(&mut self) -> Option<String> {
        if self.is_over {
            return None;
        }
        if !std::mem::replace(&mut self.has_begun, true) {
            return Some(format!("retry: 2000\n{}", self.tick()));
        }
        let alive_at = Instant::now() + ALIVE_EVERY;
        loop {
            let is_changed = !self.changes.kinds.is_empty();
            tokio::select! {
                biased;
                () = self.stopping.stopped() => return None,
                () = sleep_until(self.next_at), if is_changed => {
                    self.next_at = Instant::now() + MESSAGE_EVERY;
                    let changes = std::mem::take(&mut self.changes);
                    let data = serde_json::to_string(&changes).unwrap_or_default();
                    return Some(format!("event: change\ndata: {data}\n\n"));
                }
                next = self.reader.next() => match next {
                    NextEvents::Batch(batch, place) => {
                        if batch.is_cut {
                            self.changes.add_all();
                        }
                        for event in batch.events.iter().skip(place) {
                            let job = event.what.job().map(evenbeat_core::ids::JobKey::as_str);
                            self.changes.add(event.what.kind().as_str(), job);
                        }
                    }
                    // The browser connects again, and the page loads itself then.
                    NextEvents::CutOff => {
                        self.is_over = true;
                        return None;
                    }
                },
                () = sleep_until(alive_at) => return Some(self.tick()),
            }
        }
    }

    /// The time of the server.
    fn tick(&self) -> String {
        format!("event: tick\ndata: {}\n\n", self.clock.store_now().as_millis())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_are_named_while_they_are_few() {
        let mut changes = Changes::default();
        changes.add("score", None);
        changes.add("run", Some("a"));
        assert_eq!(serde_json::to_string(&changes).unwrap(), r#"{"kinds":["run","score"],"jobs":["a"]}"#);
        for n in 0..JOBS_MAX {
            changes.add("run", Some(&format!("b{n}")));
        }
        changes.add("run", Some("c"));
        assert_eq!(changes.jobs, None);
    }
}
