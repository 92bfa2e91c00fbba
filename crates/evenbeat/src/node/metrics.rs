//! The numbers that notices add up to, in the format of Prometheus.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use evenbeat_core::notice::Notice;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// What is served as the type of [`Metrics::to_text`].
pub const METRICS_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// All metrics of a process. Copies share everything.
#[derive(Clone)]
pub struct Metrics {
    registry: Arc<Registry>,
    score: Gauge<f64, AtomicU64>,
    jobs_moved: Gauge,
    jobs_skipped: Gauge,
    placements: Family<PlacementLabels, Counter>,
    rebalances: Counter,
    notices: Family<NoticeLabels, Counter>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PlacementLabels {
    r#type: PlacementType,
}

/// Why a job got its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelValue)]
#[expect(non_camel_case_types, reason = "these are the values of the label")]
enum PlacementType {
    /// It is new, was resumed, or has another interval.
    new,
    /// Its next occurrence was set, in its rhythm.
    reschedule,
    /// A rebalance moved it.
    rebalance,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct NoticeLabels {
    kind: &'static str,
}

impl Default for Metrics {
    fn default() -> Metrics {
        let mut registry = Registry::default();
        let score = Gauge::default();
        registry.register(
            "scheduler_distribution_score",
            "How evenly the starts of the next 24 hours are spread, from 0 to 1",
            score.clone(),
        );
        let jobs_moved = Gauge::default();
        registry.register(
            "scheduler_rebalance_jobs_moved",
            "Jobs that the last rebalance moved",
            jobs_moved.clone(),
        );
        let jobs_skipped = Gauge::default();
        registry.register(
            "scheduler_rebalance_jobs_skipped",
            "Jobs that the last rebalance left alone for a reason",
            jobs_skipped.clone(),
        );
        let placements = Family::default();
        registry.register("scheduler_placements", "Placements of jobs", placements.clone());
        let rebalances = Counter::default();
        registry.register("scheduler_rebalance", "Rebalances that were applied", rebalances.clone());
        let notices = Family::default();
        registry.register(
            "evenbeat_notices",
            "Log lines by kind: failed runs, missed occurrences, takeovers, and so on",
            notices.clone(),
        );
        let registry = Arc::new(registry);
        Metrics { registry, score, jobs_moved, jobs_skipped, placements, rebalances, notices }
    }
}

impl Metrics {
    /// Counts a notice.
    pub(super) fn count(&self, notice: &Notice) {
        self.notices.get_or_create(&NoticeLabels { kind: notice.kind() }).inc();
    }

    /// How many notices of a kind there were.
    pub fn n_notices(&self, kind: &'static str) -> u64 {
        self.notices.get_or_create(&NoticeLabels { kind }).get()
    }

    /// Sets the score of the next 24 hours.
    pub(crate) fn scored(&self, score: f64) {
        self.score.set(score);
    }

    pub(super) fn placed(&self) {
        self.placements.get_or_create(&PlacementLabels { r#type: PlacementType::new }).inc();
    }

    pub(super) fn rescheduled(&self) {
        self.placements.get_or_create(&PlacementLabels { r#type: PlacementType::reschedule }).inc();
    }

    pub(super) fn rebalanced(&self, n_moved: usize, n_skipped: usize) {
        let labels = PlacementLabels { r#type: PlacementType::rebalance };
        self.placements.get_or_create(&labels).inc_by(n_moved as u64);
        self.rebalances.inc();
        self.jobs_moved.set(i64::try_from(n_moved).unwrap_or(i64::MAX));
        self.jobs_skipped.set(i64::try_from(n_skipped).unwrap_or(i64::MAX));
    }

    /// All of them, as a scraper reads them.
    pub fn to_text(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}
