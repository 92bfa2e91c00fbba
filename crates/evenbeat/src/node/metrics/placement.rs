//! How evenly the fleet is spread, and what placement did. The names are fixed (A14).

use std::sync::atomic::AtomicU64;
use std::time::Duration as Length;

use evenbeat_core::distribution::Distribution;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::{Metrics, registered};

/// From a few microseconds, for a small fleet, to what would be noticed.
const PLACEMENT_SECONDS: [f64; 12] =
    [0.000_01, 0.000_05, 0.000_1, 0.000_5, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0];

#[derive(Debug)]
pub(super) struct PlacementMetrics {
    score: Gauge<f64, AtomicU64>,
    hours: Family<HourLabels, Gauge>,
    peak_hour: Gauge,
    jobs_moved: Gauge,
    jobs_skipped: Gauge,
    placements: Family<PlacementLabels, Counter>,
    rebalances: Counter,
    duration: Histogram,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct HourLabels {
    hour: u32,
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

impl PlacementMetrics {
    pub(super) fn register(registry: &mut Registry) -> PlacementMetrics {
        let metrics = PlacementMetrics {
            score: registered(
                registry,
                "scheduler_distribution_score",
                "How evenly the starts of the next 24 hours are spread, from 0 to 1",
                Gauge::default(),
            ),
            hours: registered(
                registry,
                "scheduler_slot_job_count",
                "Starts in each of the next 24 hours; `hour` counts from the current slot, 0 comes first",
                Family::default(),
            ),
            peak_hour: registered(
                registry,
                "scheduler_peak_hour_job_count",
                "Starts in the busiest of the next 24 hours",
                Gauge::default(),
            ),
            jobs_moved: registered(
                registry,
                "scheduler_rebalance_jobs_moved",
                "Jobs that the last rebalance moved",
                Gauge::default(),
            ),
            jobs_skipped: registered(
                registry,
                "scheduler_rebalance_jobs_skipped",
                "Jobs that the last rebalance left alone for a reason",
                Gauge::default(),
            ),
            placements: registered(
                registry,
                "scheduler_placements",
                "Placements of jobs; `type` is `new` (also resumed, or another interval), `reschedule` or `rebalance`",
                Family::default(),
            ),
            rebalances: registered(
                registry,
                "scheduler_rebalance",
                "Rebalances that were applied",
                Counter::default(),
            ),
            duration: registered(
                registry,
                "scheduler_placement_duration_seconds",
                "How long it took to find a place for a job",
                Histogram::new(PLACEMENT_SECONDS),
            ),
        };
        for r#type in [PlacementType::new, PlacementType::reschedule, PlacementType::rebalance] {
            let _ = metrics.placements.get_or_create(&PlacementLabels { r#type });
        }
        metrics
    }
}

impl Metrics {
    /// Sets the score of the next 24 hours.
    pub(crate) fn scored(&self, score: f64) {
        self.0.placement.score.set(score);
    }

    /// Sets everything that is known of the next 24 hours.
    pub(crate) fn spread(&self, day: &Distribution) {
        let placement = &self.0.placement;
        self.scored(day.score());
        for (hour, n_starts) in (0..).zip(&day.hours) {
            placement.hours.get_or_create(&HourLabels { hour }).set(i64::from(*n_starts));
        }
        placement.peak_hour.set(i64::from(day.peak_hour().1));
    }

    /// A place was found within this time.
    pub(crate) fn placed_within(&self, took: Length) {
        self.0.placement.duration.observe(took.as_secs_f64());
    }

    pub(in crate::node) fn placed(&self) {
        self.placements_of(PlacementType::new, 1);
    }

    pub(in crate::node) fn rescheduled(&self) {
        self.placements_of(PlacementType::reschedule, 1);
    }

    pub(in crate::node) fn rebalanced(&self, n_moved: usize, n_skipped: usize) {
        self.placements_of(PlacementType::rebalance, n_moved as u64);
        let placement = &self.0.placement;
        placement.rebalances.inc();
        placement.jobs_moved.set(i64::try_from(n_moved).unwrap_or(i64::MAX));
        placement.jobs_skipped.set(i64::try_from(n_skipped).unwrap_or(i64::MAX));
    }

    fn placements_of(&self, r#type: PlacementType, n: u64) {
        self.0.placement.placements.get_or_create(&PlacementLabels { r#type }).inc_by(n);
    }
}
