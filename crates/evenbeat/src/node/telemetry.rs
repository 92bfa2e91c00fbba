//! What happened becomes a log line, a metric and an event, in one place.

use std::sync::Arc;

use evenbeat_core::condition::{Condition, Reason};
use evenbeat_core::ids::{Pool, RunId};
use evenbeat_core::job::RunEnd;
use evenbeat_core::notice::Notice;
use evenbeat_core::occurrence::RecordKind;
use evenbeat_core::time::{Duration, Timestamp};
use tokio::sync::broadcast;
use tracing::{debug, error, info, warn};

use super::events::{EventLog, FleetEvent};
use super::metrics::Metrics;
use super::open_runs::{EndingRun, OpenRunFacts};
use super::traces::TraceSink;
use crate::config::HttpEndpoint;

/// The log target of everything about placement and balance (A14), so that it can be filtered.
const PLACEMENT: &str = "evenbeat::placement";

/// Notices that wait for a slow listener; after that it misses the oldest.
const NOTICES_MAX: usize = 1_024;

/// Tells people what happened. Copies share everything.
#[derive(Clone, Debug)]
pub struct Telemetry {
    notices: broadcast::Sender<Arc<Notice>>,
    events: EventLog,
    metrics: Metrics,
    traces: Option<TraceSink>,
}

impl Telemetry {
    /// Of a process that began then.
    pub fn since(started_at: Timestamp) -> Telemetry {
        Telemetry {
            notices: broadcast::channel(NOTICES_MAX).0,
            events: EventLog::new(started_at.as_millis().unsigned_abs()),
            metrics: Metrics::default(),
            traces: None,
        }
    }

    /// Also sends traces of runs to a collector. Must be called within the runtime.
    #[must_use]
    pub fn with_traces(self, collector: Option<HttpEndpoint>, node: String) -> Telemetry {
        let traces = collector.map(|endpoint| TraceSink::to(endpoint, node, self.metrics.clone()));
        Telemetry { traces, ..self }
    }

    /// Waits until what was traced so far is sent or given up.
    pub(crate) async fn flush_traces(&self) {
        if let Some(traces) = &self.traces {
            traces.flush().await;
        }
    }

    /// Every notice from now on.
    pub fn listen(&self) -> broadcast::Receiver<Arc<Notice>> {
        self.notices.subscribe()
    }

    /// What readers of events hear.
    pub fn events(&self) -> &EventLog {
        &self.events
    }

    /// The numbers.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Tells of several, in order.
    pub(crate) fn tell_all(&self, notices: Vec<Notice>) {
        for notice in notices {
            self.tell(notice);
        }
    }

    /// Tells of one.
    pub fn tell(&self, notice: Notice) {
        self.metrics.count(&notice);
        log_and_measure(&notice, &self.metrics);
        let notice = Arc::new(notice);
        if self.events.is_open()
            && let Some(event) = FleetEvent::of_notice(&notice)
        {
            self.events.tell(event);
        }
        // Without a listener nothing is sent, and that is fine.
        let _ = self.notices.send(notice);
    }
}

impl Telemetry {
    /// A run began to execute. Good runs have no log line (K4).
    pub(super) fn run_started(&self, run: RunId, known: &OpenRunFacts, at: Timestamp) {
        if let Some(pool) = &known.pool {
            self.metrics.run_started(pool, known.trigger, at - known.due_at);
        }
        if self.events.is_open() {
            let OpenRunFacts { key, due_at, trigger, .. } = known.clone();
            self.events.tell(FleetEvent::RunStarted { key, run, due_at, trigger, at });
        }
    }

    /// The end of a run is on record.
    pub(super) fn run_ended(&self, ending: &EndingRun, pool: &Pool) {
        let RunEnd { run, outcome, exit_code, started_at, ended_at: at, .. } = ending.end;
        self.metrics.run_ended(pool, outcome, ending.is_final);
        if let Some(traces) = &self.traces {
            traces.ended(ending, pool);
        }
        if self.events.is_open() {
            let key = ending.key.clone();
            self.events.tell(FleetEvent::RunEnded { key, run, outcome, exit_code, started_at, at });
        }
    }
}

/// Writes the log line, and sets the numbers that go with it. Fields have types of their own, so that numbers stay
/// numbers in JSON.
fn log_and_measure(notice: &Notice, metrics: &Metrics) {
    let said = notice.sentence();
    match notice {
        Notice::LedgerRebuilt { n_jobs, score } => {
            metrics.scored(*score);
            info!(target: PLACEMENT, job_count = n_jobs, distribution_score = score, "{said}");
        }
        Notice::Placed { key, slot, load } => {
            metrics.placed();
            info!(target: PLACEMENT, job_id = %key, %slot, load, "{said}");
        }
        Notice::Rescheduled { key, old_slot, new_slot } => {
            metrics.rescheduled();
            info!(target: PLACEMENT, job_id = %key, %old_slot, %new_slot, "{said}");
        }
        Notice::Rebalanced { n_moved, n_skipped, old_score, new_score } => {
            metrics.rebalanced(*n_moved, *n_skipped);
            metrics.scored(*new_score);
            info!(target: PLACEMENT, moved = n_moved, skipped = n_skipped, old_score, new_score, "{said}");
        }
        Notice::SkippedByRebalance { key, reason } => {
            warn!(target: PLACEMENT, job_id = %key, %reason, "{said}");
        }
        Notice::SessionLost { n_runs } => error!(runs = n_runs, "{said}"),
        Notice::SessionFenced { session, node } => {
            metrics.took_over();
            warn!(node = node.as_ref().map(tracing::field::display), %session, "{said}");
        }
        Notice::RunsAdopted { n_runs } => {
            metrics.adopted(*n_runs);
            info!(count = n_runs, "{said}");
        }
        Notice::DrainChanged { node, actor, .. } => info!(%node, actor, "{said}"),
        Notice::RunFailed { key, run, outcome, exit_code, took, error } => {
            let took = rounded(*took);
            warn!(job = %key, %run, %outcome, exit_code, took, error, "{said}");
        }
        Notice::NotRun { key, record } => {
            metrics.not_run(record);
            let (reason, range) = (record.what.reason(), record.range);
            let (count, first, last) = (range.count, range.first, range.last);
            match record.what {
                RecordKind::SkippedOverlap | RecordKind::MissedLate | RecordKind::MissedBackoff => {
                    warn!(job = %key, reason, count, %first, %last, "{said}");
                }
                // A person paused or edited the job, and knows.
                RecordKind::MissedPaused | RecordKind::MissedReplaced => {
                    info!(job = %key, reason, count, %first, %last, "{said}");
                }
            }
        }
        Notice::Disabled { key, reason } => error!(job = %key, reason, "{said}"),
        // The run's failure and the record of its occurrences tell the same once it is over.
        Notice::EndedByBlackout { key, run }
        | Notice::TookTooLong { key, run }
        | Notice::NotTakenUp { key, run } => debug!(job = %key, %run, "{said}"),
        Notice::SkippedByOverlap { key, due_at } => debug!(job = %key, %due_at, "{said}"),
        Notice::Overrunning { key, run } => warn!(job = %key, %run, "{said}"),
        Notice::RunSlow { key, run, slow, usual } => {
            warn!(job = %key, %run, running_for = %slow, usual = %usual, "{said}");
        }
        Notice::PausedBySystem { key, reason } => warn!(job = %key, reason, "{said}"),
        Notice::Mended { key, fault, next } => {
            warn!(job = %key, %fault, next_run_at = next.as_ref().map(tracing::field::display), "{said}");
        }
        Notice::ClockWasAhead { n_jobs, latest, example } => {
            let latest = latest.as_ref().map(tracing::field::display);
            warn!(job_count = n_jobs, latest, job = %example, "{said}");
        }
        Notice::TooManyFaults { n_faults, n_jobs, example } => {
            error!(faults = n_faults, job_count = n_jobs, job = %example, "{said}");
        }
        Notice::ConditionChanged { key, at, from, to } => {
            let is_error = to.is_some_and(|reason| reason.condition() == Condition::Error);
            let [from, to] = [from, to].map(|it| it.map_or("untracked", Reason::as_str));
            if is_error {
                warn!(job = %key, from, to, %at, "{said}");
            } else {
                info!(job = %key, from, to, %at, "{said}");
            }
        }
        Notice::RunNotStarted { run, why } => warn!(%run, why, "{said}"),
        Notice::RunFrozen { run } => warn!(%run, "{said}"),
        Notice::RunThawed { run } => info!(%run, "{said}"),
        Notice::RunUnkillable { run } => error!(%run, "{said}"),
        Notice::LateResultKept { key, run, outcome } => info!(%run, job = %key, %outcome, "{said}"),
        Notice::CancelRequested { run, actor } => info!(actor, %run, "{said}"),
        Notice::StoreUnreachable { why, again_in } => {
            warn!(why, again_in_ms = again_in.as_millis(), "{said}");
        }
        Notice::StoreFailing { why, .. } => warn!(why, "{said}"),
        Notice::StoreRecovered { .. } => info!("{said}"),
        Notice::ClockStepped { by, ahead } => {
            let ahead_ms = (Duration::ZERO < *ahead).then_some(ahead.as_millis());
            warn!(by_ms = by.as_millis(), ahead_ms, "{said}");
        }
    }
}

/// A length as people read it in a log: `1.2s`, or `3m20s` where tenths no longer matter.
fn rounded(length: Duration) -> String {
    let millis = length.as_millis();
    if millis < 60_000 {
        format!("{}.{}s", millis / 1_000, millis % 1_000 / 100)
    } else {
        Duration::from_secs(millis / 1_000).to_string()
    }
}

#[cfg(test)]
mod tests {
    use evenbeat_core::ids::JobKey;

    use super::*;

    #[test]
    fn a_notice_is_counted_and_heard() {
        let telemetry = Telemetry::since(Timestamp::UNIX_EPOCH);
        let mut events = telemetry.listen();
        let key: JobKey = "shop".parse().unwrap();
        let (slot, at) = (Timestamp::from_millis(0), Timestamp::from_millis(60_000));
        let notices = vec![
            Notice::LedgerRebuilt { n_jobs: 2, score: 0.75 },
            Notice::Placed { key: key.clone(), slot, load: 1 },
            Notice::Rescheduled { key: key.clone(), old_slot: slot, new_slot: at },
            Notice::Rescheduled { key, old_slot: slot, new_slot: at },
            Notice::Rebalanced { n_moved: 3, n_skipped: 1, old_score: 0.75, new_score: 0.5 },
        ];
        telemetry.tell_all(notices.clone());
        for notice in notices {
            assert_eq!(*events.try_recv().unwrap(), notice);
        }
        assert_eq!(telemetry.metrics().n_notices("job_rescheduled"), 2);
        let text = telemetry.metrics().to_text().unwrap();
        for line in [
            "scheduler_distribution_score 0.5",
            "scheduler_rebalance_jobs_moved 3",
            "scheduler_rebalance_jobs_skipped 1",
            "scheduler_rebalance_total 1",
            "scheduler_placements_total{type=\"new\"} 1",
            "scheduler_placements_total{type=\"reschedule\"} 2",
            "scheduler_placements_total{type=\"rebalance\"} 3",
            "evenbeat_notices_total{kind=\"job_rescheduled\"} 2",
        ] {
            assert!(text.lines().any(|it| it == line), "no line `{line}` in:\n{text}");
        }
    }

    #[track_caller]
    fn check(millis: i64, expected: &str) {
        assert_eq!(rounded(Duration::from_millis(millis)), expected);
    }

    #[test]
    fn lengths_in_logs_have_tenths_below_a_minute() {
        check(0, "0.0s");
        check(1_234, "1.2s");
        check(59_999, "59.9s");
        check(200_900, "3m20s");
    }
}
