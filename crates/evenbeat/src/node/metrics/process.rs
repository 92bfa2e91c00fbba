//! How the process itself is doing: its store, its loop, its API, and what it sends to others.

use std::sync::atomic::AtomicU64;
use std::time::Duration as Length;

use evenbeat_core::time::{Duration, Timestamp};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::runs::seconds;
use super::{HistogramFamily, Metrics, registered};

/// From a write to a local file to what a lease cannot wait for.
const STORE_SECONDS: [f64; 12] =
    [0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 2.5, 10.0];

const LAG_SECONDS: [f64; 10] = [0.000_5, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 2.5];

/// What a node asks of its store.
const DUTIES: [&str; 10] =
    ["beat", "changes", "claim", "end", "fence", "join", "mark", "open_epoch", "settle", "watch"];

/// What requests for addresses outside the table of routes are counted as.
const NO_ROUTE: &str = "none";

#[derive(Debug)]
pub(super) struct ProcessMetrics {
    store: HistogramFamily<DutyLabels>,
    store_errors: Family<DutyLabels, Counter>,
    loop_lag: Histogram,
    last_tick: Gauge<f64, AtomicU64>,
    requests: Family<RequestLabels, Counter>,
    streams: Gauge,
    streams_cut: Counter,
    traces: Family<TraceLabels, Counter>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DutyLabels {
    duty: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    route: String,
    status: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct BuildLabels {
    version: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TraceLabels {
    result: &'static str,
}

impl ProcessMetrics {
    pub(super) fn register(registry: &mut Registry) -> ProcessMetrics {
        let build = registered(
            registry,
            "evenbeat_build_info",
            "Always 1; `version` is that of the program",
            Family::<BuildLabels, Gauge>::default(),
        );
        build.get_or_create(&BuildLabels { version: env!("CARGO_PKG_VERSION") }).set(1);
        let metrics = ProcessMetrics {
            store: registered(
                registry,
                "evenbeat_store_duration_seconds",
                "How long requests of this node to its store took, by `duty`",
                Family::new_with_constructor(|| Histogram::new(STORE_SECONDS)),
            ),
            store_errors: registered(
                registry,
                "evenbeat_store_errors",
                "Requests of this node that its store did not answer, by `duty`",
                Family::default(),
            ),
            loop_lag: registered(
                registry,
                "evenbeat_event_loop_lag_seconds",
                "How late the timer of the node's loop was",
                Histogram::new(LAG_SECONDS),
            ),
            last_tick: registered(
                registry,
                "evenbeat_last_tick_timestamp_seconds",
                "When the node's loop last handled an event, in seconds since 1970",
                Gauge::default(),
            ),
            requests: registered(
                registry,
                "evenbeat_api_requests",
                "Requests to the API, by `route` and class of `status`, such as `2xx`",
                Family::default(),
            ),
            streams: registered(
                registry,
                "evenbeat_api_streams",
                "Open streams of events and logs",
                Gauge::default(),
            ),
            streams_cut: registered(
                registry,
                "evenbeat_api_streams_cut_off",
                "Streams of events that were cut off because their reader was too slow",
                Counter::default(),
            ),
            traces: registered(
                registry,
                "evenbeat_traces",
                "Traces of runs by `result`: `sent`, or `dropped` because the collector did not take them",
                Family::default(),
            ),
        };
        // A rate needs a first value.
        for duty in DUTIES {
            let _ = metrics.store.get_or_create(&DutyLabels { duty });
            let _ = metrics.store_errors.get_or_create(&DutyLabels { duty });
        }
        for result in ["sent", "dropped"] {
            let _ = metrics.traces.get_or_create(&TraceLabels { result });
        }
        let labels = RequestLabels { route: NO_ROUTE.to_owned(), status: "4xx" };
        let _ = metrics.requests.get_or_create(&labels);
        metrics
    }
}

impl Metrics {
    /// The store answered, or did not, within this time.
    pub(in crate::node) fn store_answered(&self, duty: &'static str, took: Length, is_done: bool) {
        let labels = DutyLabels { duty };
        self.0.process.store.get_or_create(&labels).observe(took.as_secs_f64());
        if !is_done {
            self.0.process.store_errors.get_or_create(&labels).inc();
        }
    }

    /// The node's loop handled an event.
    pub(in crate::node) fn ticked(&self, at: Timestamp) {
        self.0.process.last_tick.set(unix_seconds(at));
    }

    /// The node's timer fired, this long after it should have.
    pub(in crate::node) fn woke_late_by(&self, lag: Duration) {
        self.0.process.loop_lag.observe(seconds(lag.max(Duration::ZERO)));
    }

    /// A request was answered.
    pub(crate) fn requested(&self, route: Option<&str>, status: u16) {
        let route = route.unwrap_or(NO_ROUTE);
        let status = match status / 100 {
            1 => "1xx",
            2 => "2xx",
            3 => "3xx",
            4 => "4xx",
            _ => "5xx",
        };
        self.0.process.requests.get_or_create(&RequestLabels { route: route.to_owned(), status }).inc();
    }

    /// A stream begins or ends.
    pub(crate) fn stream_opened(&self) {
        self.0.process.streams.inc();
    }

    /// The same at its end.
    pub(crate) fn stream_closed(&self) {
        self.0.process.streams.dec();
    }

    /// A reader was too slow.
    pub(crate) fn stream_cut_off(&self) {
        self.0.process.streams_cut.inc();
    }

    /// Traces went to the collector, or were given up.
    pub(crate) fn traced(&self, n: usize, is_sent: bool) {
        let labels = TraceLabels { result: if is_sent { "sent" } else { "dropped" } };
        self.0.process.traces.get_or_create(&labels).inc_by(n as u64);
    }
}

/// An instant as Prometheus writes it.
#[expect(clippy::cast_precision_loss, reason = "milliseconds of some centuries fit")]
pub(super) fn unix_seconds(at: Timestamp) -> f64 {
    at.as_millis() as f64 / 1_000.0
}
