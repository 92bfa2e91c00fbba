//! The numbers of a process, in the format of Prometheus (A14, G4).
//!
//! Counters and histograms grow where things happen. Gauges are set right before they are read, from what is in memory.
//! Labels have few values: pools of this node, words of the product, routes. Only the gauges of single jobs, which are
//! off by default, name jobs.

mod job_gauges;
mod load;
mod placement;
mod process;
mod runs;

use std::fmt;
use std::sync::Arc;

use evenbeat_core::notice::Notice;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric, Registry};

pub use job_gauges::JobGauges;
pub use load::LoadSample;

use self::load::LoadMetrics;
use self::placement::PlacementMetrics;
use self::process::ProcessMetrics;
use self::runs::RunMetrics;

/// What is served as the type of [`Metrics::to_text`].
pub const METRICS_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// All metrics of a process. Copies share everything.
#[derive(Clone)]
pub struct Metrics(Arc<MetricsState>);

struct MetricsState {
    registry: Registry,
    notices: Family<NoticeLabels, Counter>,
    alert_deliveries: Family<DeliveryLabels, Counter>,
    placement: PlacementMetrics,
    runs: RunMetrics,
    load: LoadMetrics,
    process: ProcessMetrics,
    jobs: JobGauges,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct NoticeLabels {
    kind: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DeliveryLabels {
    channel: String,
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PoolLabels {
    pool: String,
}

/// A histogram for each value of its labels.
type HistogramFamily<L> = Family<L, Histogram, fn() -> Histogram>;

/// Registers a metric and returns it.
fn registered<M: Metric + Clone>(registry: &mut Registry, name: &str, help: &str, metric: M) -> M {
    registry.register(name, help, metric.clone());
    metric
}

impl Default for Metrics {
    fn default() -> Metrics {
        let mut registry = Registry::default();
        let placement = PlacementMetrics::register(&mut registry);
        let runs = RunMetrics::register(&mut registry);
        let load = LoadMetrics::register(&mut registry);
        let process = ProcessMetrics::register(&mut registry);
        let notices = registered(
            &mut registry,
            "evenbeat_notices",
            "Log lines by `kind`: failed runs, missed occurrences, takeovers, and so on",
            Family::default(),
        );
        let alert_deliveries = registered(
            &mut registry,
            "evenbeat_alert_deliveries",
            "Attempts to deliver alerts, by `channel` and `result`: `sent`, `retried` or `failed`",
            Family::default(),
        );
        let jobs = JobGauges::default();
        registry.register_collector(Box::new(jobs.clone()));
        Metrics(Arc::new(MetricsState {
            registry,
            notices,
            alert_deliveries,
            placement,
            runs,
            load,
            process,
            jobs,
        }))
    }
}

impl Metrics {
    /// Counts a notice.
    pub(super) fn count(&self, notice: &Notice) {
        self.0.notices.get_or_create(&NoticeLabels { kind: notice.kind() }).inc();
    }

    /// How many notices of a kind there were.
    pub fn n_notices(&self, kind: &'static str) -> u64 {
        self.0.notices.get_or_create(&NoticeLabels { kind }).get()
    }

    /// Counts an attempt to deliver an alert. Channels are those of the configuration, so they are few.
    pub(crate) fn alert_delivered(&self, channel: &str, result: &'static str) {
        self.0.alert_deliveries.get_or_create(&DeliveryLabels { channel: channel.to_owned(), result }).inc();
    }

    /// The gauges of single jobs.
    pub(crate) fn jobs(&self) -> &JobGauges {
        &self.0.jobs
    }

    /// All of them, as a scraper reads them.
    pub fn to_text(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        encode(&mut text, &self.0.registry)?;
        Ok(text)
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}
