//! Metrics of runs: how late they started, how they ended, and occurrences without a run.

use evenbeat_core::ids::Pool;
use evenbeat_core::occurrence::{Record, RecordKind};
use evenbeat_core::run::{Outcome, Trigger};
use evenbeat_core::time::Duration;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::{HistogramFamily, Metrics, PoolLabels, registered};

/// From a start on time to one that is a day late.
const LATENESS_SECONDS: [f64; 14] =
    [0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3_600.0, 21_600.0, 86_400.0];

#[derive(Debug)]
pub(super) struct RunMetrics {
    lateness: HistogramFamily<PoolLabels>,
    finals: Family<OutcomeLabels, Counter>,
    attempts: Family<OutcomeLabels, Counter>,
    missed: Family<MissedLabels, Counter>,
    skipped: Family<MissedLabels, Counter>,
    takeovers: Counter,
    adopted: Counter,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabels {
    pool: String,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct MissedLabels {
    reason: &'static str,
}

impl RunMetrics {
    pub(super) fn register(registry: &mut Registry) -> RunMetrics {
        let metrics = RunMetrics {
            lateness: registered(
                registry,
                "evenbeat_start_lateness_seconds",
                "How long after its due time a run began to execute, by `pool`; not for triggers, retries and backfills",
                Family::new_with_constructor(|| Histogram::new(LATENESS_SECONDS)),
            ),
            finals: registered(
                registry,
                "evenbeat_runs",
                "Occurrences that ended in a run, by `pool` and `outcome` of the last attempt",
                Family::default(),
            ),
            attempts: registered(
                registry,
                "evenbeat_attempts",
                "Runs that ended, retries included, by `pool` and `outcome`",
                Family::default(),
            ),
            missed: registered(
                registry,
                "evenbeat_missed",
                "Occurrences that got no run though they should have, by `reason`",
                Family::default(),
            ),
            skipped: registered(
                registry,
                "evenbeat_skipped",
                "Occurrences that got no run and were not meant to, by `reason`: the job was running, paused or changed",
                Family::default(),
            ),
            takeovers: registered(
                registry,
                "evenbeat_takeovers",
                "Silent nodes that this node fenced off, to take over their runs",
                Counter::default(),
            ),
            adopted: registered(
                registry,
                "evenbeat_runs_adopted",
                "Runs that this process took over from an earlier process of its node",
                Counter::default(),
            ),
        };
        // A rate needs a first value, so counters that alerts look at begin with 0.
        for kind in RecordKind::ALL {
            let labels = MissedLabels { reason: kind.reason() };
            let family = if is_missed(kind) { &metrics.missed } else { &metrics.skipped };
            let _ = family.get_or_create(&labels);
        }
        metrics
    }
}

/// Whether occurrences without a run were owed one. A pause, an edit or a run that goes on is no miss.
fn is_missed(kind: RecordKind) -> bool {
    match kind {
        RecordKind::MissedLate | RecordKind::MissedBackoff => true,
        RecordKind::SkippedOverlap | RecordKind::MissedPaused | RecordKind::MissedReplaced => false,
    }
}

impl Metrics {
    /// These are the pools of this node. Nothing has happened in them yet, which is worth a 0: a rate needs a first value.
    pub(in crate::node) fn know_pools<'a>(&self, pools: impl Iterator<Item = &'a Pool>) {
        for pool in pools.map(ToString::to_string) {
            let _ = self.0.runs.lateness.get_or_create(&PoolLabels { pool: pool.clone() });
            for outcome in Outcome::ALL.map(Outcome::as_str) {
                let labels = OutcomeLabels { pool: pool.clone(), outcome };
                let _ = self.0.runs.finals.get_or_create(&labels);
                let _ = self.0.runs.attempts.get_or_create(&labels);
            }
        }
    }

    /// A run began to execute.
    pub(in crate::node) fn run_started(&self, pool: &Pool, trigger: Trigger, late_by: Duration) {
        if !matches!(trigger, Trigger::Scheduler | Trigger::Catchup) {
            return;
        }
        let labels = PoolLabels { pool: pool.to_string() };
        self.0.runs.lateness.get_or_create(&labels).observe(seconds(late_by.max(Duration::ZERO)));
    }

    /// A run is over; perhaps its occurrence gets another one.
    pub(in crate::node) fn run_ended(&self, pool: &Pool, outcome: Outcome, is_final: bool) {
        let labels = OutcomeLabels { pool: pool.to_string(), outcome: outcome.as_str() };
        self.0.runs.attempts.get_or_create(&labels).inc();
        if is_final {
            self.0.runs.finals.get_or_create(&labels).inc();
        }
    }

    pub(in crate::node) fn not_run(&self, record: &Record) {
        let labels = MissedLabels { reason: record.what.reason() };
        let runs = &self.0.runs;
        let family = if is_missed(record.what) { &runs.missed } else { &runs.skipped };
        family.get_or_create(&labels).inc_by(record.range.count);
    }

    pub(in crate::node) fn took_over(&self) {
        self.0.runs.takeovers.inc();
    }

    pub(in crate::node) fn adopted(&self, n_runs: usize) {
        self.0.runs.adopted.inc_by(n_runs as u64);
    }
}

/// A length as Prometheus counts it.
#[expect(clippy::cast_precision_loss, reason = "milliseconds of some centuries fit")]
pub(super) fn seconds(length: Duration) -> f64 {
    length.as_millis() as f64 / 1_000.0
}
