//! A log as it grows: what a run has written, and what it writes, until it ends.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration as Length;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use evenbeat_core::ids::RunId;
use futures_util::stream::unfold;
use http_body_util::StreamBody;
use hyper::body::Frame;
use tokio::time::{Instant, sleep};

use super::runs::LOG_NEXT;
use crate::api::event_stream::{OpenStream, X_ACCEL_BUFFERING};
use crate::api::log_book::LogPart;
use crate::api::router::Api;
use crate::api::serve::ServerStop;
use crate::printable;
use crate::views::find_run::{IdRange, find};

/// The most bytes of a log that are read at once.
const PART_MAX: usize = 64 << 10;

/// The first and the longest pause before another look at a log that has not grown.
const PAUSE_MIN: Length = Length::from_millis(100);
const PAUSE_MAX: Length = Length::from_secs(1);

/// How often the store is asked whether a run that writes nothing is over.
const ASK_EVERY: Length = Length::from_secs(2);

/// A log that is being followed.
pub(super) struct FollowedLog {
    pub(super) api: Api,
    pub(super) ids: IdRange,
    /// None while the run has not been claimed.
    pub(super) run: Option<RunId>,
    /// From this byte of the whole output on.
    pub(super) from: u64,
    pub(super) is_raw: bool,
    pub(super) stopping: ServerStop,
    pub(super) _stream: OpenStream,
}

struct FollowState {
    log: FollowedLog,
    pause: Length,
    asked_at: Option<Instant>,
    stage: FollowStage,
}

enum FollowStage {
    Reading,
    /// Only the trailer is left to send.
    Over,
    Done,
}

/// Streams it. How far it came is in a trailer, for clients that take trailers: safe text is not as long as what was
/// written.
pub(super) fn followed(log: FollowedLog) -> Response {
    let kind = if log.is_raw { "application/octet-stream" } else { "text/plain; charset=utf-8" };
    let state = FollowState { log, pause: PAUSE_MIN, asked_at: None, stage: FollowStage::Reading };
    let frames = unfold(state, |mut state| async move {
        let frame = state.next().await?;
        Some((Ok::<Frame<Bytes>, Infallible>(frame), state))
    });
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(kind)),
        (header::TRAILER, HeaderValue::from_static("evenbeat-log-next")),
        (X_ACCEL_BUFFERING, HeaderValue::from_static("no")),
    ];
    (headers, Body::new(StreamBody::new(frames))).into_response()
}

impl FollowState {
    async fn next(&mut self) -> Option<Frame<Bytes>> {
        loop {
            match self.stage {
                FollowStage::Done => return None,
                FollowStage::Over => {
                    self.stage = FollowStage::Done;
                    let mut trailers = HeaderMap::new();
                    trailers.insert(LOG_NEXT, HeaderValue::from(self.log.from));
                    return Some(Frame::trailers(trailers));
                }
                FollowStage::Reading => {}
            }
            match self.read().await {
                Ok(Some(part)) => {
                    let is_over = part.is_over;
                    let bytes = self.taken(part);
                    if is_over {
                        self.stage = FollowStage::Over;
                    }
                    if !bytes.is_empty() {
                        self.pause = PAUSE_MIN;
                        return Some(Frame::data(bytes));
                    }
                }
                // It wrote nothing so far.
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(%error, run = ?self.log.run, "a log could not be read");
                    self.stage = FollowStage::Over;
                }
            }
            if matches!(self.stage, FollowStage::Reading) && !self.wait().await {
                self.stage = FollowStage::Over;
            }
        }
    }

    /// What there is after what was read; none if there is no log.
    async fn read(&self) -> io::Result<Option<LogPart>> {
        let Some(run) = self.log.run else { return Ok(None) };
        let (logs, from) = (Arc::clone(&self.log.api.logs), self.log.from);
        let read = tokio::task::spawn_blocking(move || logs.read(run, from, PART_MAX)).await;
        read.unwrap_or_else(|fault| std::panic::resume_unwind(fault.into_panic()))
    }

    /// What the reader gets of a part. A character whose last bytes have not arrived yet is read again.
    fn taken(&mut self, part: LogPart) -> Bytes {
        if self.log.is_raw {
            self.log.from = part.next;
            return part.bytes.into();
        }
        let (text, n_used) = printable::output(&part.bytes, part.is_over);
        self.log.from = part.next - (part.bytes.len() - n_used) as u64;
        text.into()
    }

    /// Waits a moment. Returns whether more output can follow.
    async fn wait(&mut self) -> bool {
        tokio::select! {
            () = self.log.stopping.stopped() => return false,
            () = sleep(self.pause) => {}
        }
        self.pause = (self.pause * 2).min(PAUSE_MAX);
        let now = Instant::now();
        if self.asked_at.is_some_and(|at| now < at + ASK_EVERY) {
            return true;
        }
        self.asked_at = Some(now);
        // A store that does not answer now may do so later.
        let Ok(found) = find(&self.log.api.app, self.log.ids).await else { return true };
        match found.run {
            Some(row) => {
                let was_known = self.log.run.replace(row.run).is_some();
                // What a run wrote last is on the disk before its end is on record: one more look sees it.
                if row.ended.is_some() && was_known {
                    if let Ok(Some(part)) = self.read().await
                        && !part.bytes.is_empty()
                    {
                        return true;
                    }
                    return false;
                }
                true
            }
            None => found.waiting.is_some(),
        }
    }
}
