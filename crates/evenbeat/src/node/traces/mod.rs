//! Traces of runs for OpenTelemetry, by option: a run is one trace from due to end (G4).
//!
//! The format is OTLP as JSON over HTTP, written by hand: it is a page of fields that do not change, where the libraries for
//! it are many and change often. Traces are a help, not a record: they are sent in batches from a bounded queue, and dropped,
//! counted, when the collector does not take them.

mod otlp;
mod send;

use evenbeat_core::ids::{JobKey, Pool};
use evenbeat_core::job::RunEnd;
use evenbeat_core::run::Trigger;
use evenbeat_core::time::Timestamp;
use tokio::sync::{mpsc, oneshot};

use super::metrics::Metrics;
use super::open_runs::EndingRun;
use crate::config::HttpEndpoint;

/// Traces that wait to be sent.
const QUEUE_MAX: usize = 4_096;

/// Takes traces. Copies share the queue.
#[derive(Clone, Debug)]
pub struct TraceSink {
    queue: mpsc::Sender<TraceMessage>,
    metrics: Metrics,
}

#[derive(Debug)]
enum TraceMessage {
    Trace(Box<RunTrace>),
    /// Send what is there now, and say so.
    Flush(oneshot::Sender<()>),
}

/// What is told of a run.
#[derive(Clone, Debug)]
pub(super) struct RunTrace {
    pub(super) key: JobKey,
    pub(super) pool: Pool,
    pub(super) trigger: Trigger,
    pub(super) due_at: Timestamp,
    pub(super) ordered_at: Timestamp,
    pub(super) end: RunEnd,
}

impl TraceSink {
    /// Sends to a collector until the process ends. Must be called within the runtime.
    pub fn to(endpoint: HttpEndpoint, node: String, metrics: Metrics) -> TraceSink {
        let (queue, messages) = mpsc::channel(QUEUE_MAX);
        tokio::spawn(send::send_all(endpoint, node, messages, metrics.clone()));
        TraceSink { queue, metrics }
    }

    /// Never waits: a trace for which there is no room is dropped.
    pub(super) fn ended(&self, ending: &EndingRun, pool: &Pool) {
        let Some(known) = &ending.known else { return };
        let trace = RunTrace {
            key: ending.key.clone(),
            pool: pool.clone(),
            trigger: known.trigger,
            due_at: known.due_at,
            ordered_at: known.ordered_at,
            end: ending.end,
        };
        if self.queue.try_send(TraceMessage::Trace(Box::new(trace))).is_err() {
            self.metrics.traced(1, false);
        }
    }

    /// Waits until what was told before is sent or given up.
    pub async fn flush(&self) {
        let (done, is_done) = oneshot::channel();
        if self.queue.send(TraceMessage::Flush(done)).await.is_ok() {
            let _ = is_done.await;
        }
    }
}
