//! What there is to do and to do it with: jobs by condition, pools, open runs. Set right before it is read.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use evenbeat_core::condition::Reason;
use evenbeat_core::engine::EngineGauges;
use evenbeat_core::job::Status;
use evenbeat_core::roster::Counts;
use evenbeat_core::time::{BootTime, Duration, Timestamp};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::runs::seconds;
use super::{Metrics, PoolLabels, registered};

#[derive(Debug)]
pub(super) struct LoadMetrics {
    jobs: Family<ConditionLabels, Gauge>,
    statuses: Family<StatusLabels, Gauge>,
    ready: Family<PoolLabels, Gauge>,
    oldest: Family<PoolLabels, Gauge<f64, AtomicU64>>,
    running: Family<PoolLabels, Gauge>,
    slots: Family<SlotLabels, Gauge>,
    parked: Gauge,
    open_runs: Gauge,
    unwritten_ends: Gauge,
    feed_lag: Gauge<f64, AtomicU64>,
    /// When the change feed was last read to its end, in milliseconds of the boot clock.
    feed_read_at: AtomicI64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ConditionLabels {
    condition: &'static str,
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StatusLabels {
    status: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SlotLabels {
    pool: String,
    state: &'static str,
}

/// What a node says of itself at one moment.
#[derive(Clone, Debug)]
pub struct LoadSample {
    /// How busy it is.
    pub engine: EngineGauges,
    /// How its jobs stand.
    pub counts: Counts,
    /// The time that occurrences go by.
    pub now: Timestamp,
    /// The same moment by the boot clock.
    pub boot: BootTime,
}

impl LoadMetrics {
    pub(super) fn register(registry: &mut Registry) -> LoadMetrics {
        LoadMetrics {
            jobs: registered(
                registry,
                "evenbeat_jobs",
                "Jobs of the whole fleet by `condition` and `reason`, without those that are paused or disabled",
                Family::default(),
            ),
            statuses: registered(
                registry,
                "evenbeat_jobs_by_status",
                "Jobs of the whole fleet by `status`",
                Family::default(),
            ),
            ready: registered(
                registry,
                "evenbeat_ready_jobs",
                "Jobs that may start and wait for room in a `pool` of this node",
                Family::default(),
            ),
            oldest: registered(
                registry,
                "evenbeat_ready_oldest_age_seconds",
                "How long the job that has waited longest for room in a `pool` could have started; 0 if none waits",
                Family::default(),
            ),
            running: registered(
                registry,
                "evenbeat_running_runs",
                "Runs that execute on this node, by `pool`",
                Family::default(),
            ),
            slots: registered(
                registry,
                "evenbeat_slots",
                "Capacity of this node in cost units, by `pool` and `state`: `used`, `free`, or `reserved` for manual and \
                 short runs",
                Family::default(),
            ),
            parked: registered(
                registry,
                "evenbeat_parked_jobs",
                "Jobs that may start and wait for the limit of a site, a tenant or a name",
                Gauge::default(),
            ),
            open_runs: registered(
                registry,
                "evenbeat_open_runs",
                "Runs that this node holds a lease for",
                Gauge::default(),
            ),
            unwritten_ends: registered(
                registry,
                "evenbeat_unwritten_ends",
                "Runs that have ended and whose end the store has not written yet",
                Gauge::default(),
            ),
            feed_lag: registered(
                registry,
                "evenbeat_feed_lag_seconds",
                "Time since the change feed of the store was last read to its end",
                Gauge::default(),
            ),
            feed_read_at: AtomicI64::new(i64::MIN),
        }
    }
}

impl Metrics {
    /// The change feed was read to its end.
    pub(in crate::node) fn feed_was_read(&self, at: BootTime) {
        self.0.load.feed_read_at.store(at.as_millis(), Ordering::Relaxed);
    }

    /// Sets what a node says of itself.
    pub(crate) fn sampled(&self, sample: &LoadSample) {
        let load = &self.0.load;
        let count = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
        for reason in Reason::ALL.into_iter().filter(|it| *it <= Reason::Ok) {
            let labels = ConditionLabels { condition: reason.condition().as_str(), reason: reason.as_str() };
            load.jobs.get_or_create(&labels).set(i64::from(sample.counts.with_reason(reason)));
        }
        for status in Status::ALL {
            let labels = StatusLabels { status: status.as_str() };
            load.statuses.get_or_create(&labels).set(i64::from(sample.counts.in_status(status)));
        }
        for (pool, gauges) in &sample.engine.pools {
            let labels = PoolLabels { pool: pool.to_string() };
            load.ready.get_or_create(&labels).set(count(gauges.n_ready));
            load.running.get_or_create(&labels).set(count(gauges.n_running));
            let age = gauges.oldest_ready.map_or(Duration::ZERO, |since| sample.now - since);
            load.oldest.get_or_create(&labels).set(seconds(age.max(Duration::ZERO)));
            for (state, units) in
                [("used", gauges.used), ("free", gauges.free), ("reserved", gauges.reserved)]
            {
                let labels = SlotLabels { pool: pool.to_string(), state };
                load.slots.get_or_create(&labels).set(i64::from(units));
            }
        }
        load.parked.set(count(sample.engine.n_parked));
        load.open_runs.set(count(sample.engine.n_open_runs));
        load.unwritten_ends.set(count(sample.engine.n_unwritten_ends));
        let read_at = load.feed_read_at.load(Ordering::Relaxed);
        if read_at != i64::MIN {
            let lag = sample.boot - BootTime::from_millis(read_at);
            load.feed_lag.set(seconds(lag.max(Duration::ZERO)));
        }
    }
}
