//! Sends traces to a collector, in batches.

use std::time::Duration as Length;

use http_body_util::Full;
use hyper::Request;
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{CONTENT_TYPE, HOST};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::{RunTrace, TraceMessage, otlp};
use crate::config::HttpEndpoint;
use crate::node::metrics::Metrics;

/// Traces of one request.
const BATCH_MAX: usize = 256;

/// How long the first trace of a batch waits for others.
const BATCH_WITHIN: Length = Length::from_secs(2);

/// How long a request may take.
const REQUEST_WITHIN: Length = Length::from_secs(5);

/// How often a batch is tried, and the pause before the second time; it doubles.
const N_TRIES: u32 = 4;
const PAUSE: Length = Length::from_secs(1);

/// Sends until the sink is gone.
pub(super) async fn send_all(
    endpoint: HttpEndpoint,
    node: String,
    mut messages: mpsc::Receiver<TraceMessage>,
    metrics: Metrics,
) {
    let mut is_failing = false;
    while let Some((batch, flushed)) = next_batch(&mut messages).await {
        if !batch.is_empty() {
            let body = Bytes::from(otlp::request(&node, &batch).to_string());
            // Who waits for the end waits for one attempt.
            let n_tries = if flushed.is_empty() { N_TRIES } else { 1 };
            let sent = send(&endpoint, &body, n_tries).await;
            metrics.traced(batch.len(), sent.is_ok());
            match &sent {
                Ok(()) if is_failing => tracing::info!(%endpoint, "traces are sent again"),
                Err(why) if !is_failing => {
                    tracing::warn!(%endpoint, why, "traces cannot be sent, dropping them");
                }
                _ => {}
            }
            is_failing = sent.is_err();
        }
        for done in flushed {
            let _ = done.send(());
        }
    }
}

/// The next traces, and the callers that wait until they are sent. None once the sink is gone.
async fn next_batch(
    messages: &mut mpsc::Receiver<TraceMessage>,
) -> Option<(Vec<RunTrace>, Vec<oneshot::Sender<()>>)> {
    let (mut batch, mut flushed) = (Vec::new(), Vec::new());
    let mut message = messages.recv().await?;
    let until = Instant::now() + BATCH_WITHIN;
    loop {
        match message {
            TraceMessage::Trace(trace) => batch.push(*trace),
            TraceMessage::Flush(done) => {
                flushed.push(done);
                return Some((batch, flushed));
            }
        }
        if BATCH_MAX <= batch.len() {
            return Some((batch, flushed));
        }
        match timeout_at(until, messages.recv()).await {
            Ok(Some(next)) => message = next,
            Ok(None) | Err(_) => return Some((batch, flushed)),
        }
    }
}

async fn send(endpoint: &HttpEndpoint, body: &Bytes, n_tries: u32) -> Result<(), String> {
    let mut pause = PAUSE;
    let mut last = String::new();
    for n in 0..n_tries {
        if 0 < n {
            sleep(pause).await;
            pause *= 2;
        }
        match timeout(REQUEST_WITHIN, post(endpoint, body.clone())).await {
            Ok(Ok(status)) if status.is_success() => return Ok(()),
            // It understood and does not want it: to say it again is no use.
            Ok(Ok(status)) if status.is_client_error() && status.as_u16() != 429 => {
                return Err(format!("the collector answered {status}"));
            }
            Ok(Ok(status)) => last = format!("the collector answered {status}"),
            Ok(Err(why)) => last = why,
            Err(_) => last = format!("no answer within {} s", REQUEST_WITHIN.as_secs()),
        }
    }
    Err(last)
}

async fn post(endpoint: &HttpEndpoint, body: Bytes) -> Result<hyper::StatusCode, String> {
    let host = endpoint.host.trim_start_matches('[').trim_end_matches(']');
    let stream = TcpStream::connect((host, endpoint.port)).await.map_err(|error| error.to_string())?;
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|error| error.to_string())?;
    let talking = tokio::spawn(connection);
    let request = Request::post(format!("{}/v1/traces", endpoint.path))
        .header(HOST, format!("{}:{}", endpoint.host, endpoint.port))
        .header(CONTENT_TYPE, "application/json")
        .body(Full::new(body))
        .map_err(|error| error.to_string())?;
    let answer = sender.send_request(request).await.map_err(|error| error.to_string());
    talking.abort();
    Ok(answer?.status())
}
