//! Gauges of single jobs, which are opt-in: one rule, `time() > evenbeat_job_deadline_timestamp_seconds`, covers
//! every job among them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use evenbeat_core::engine::JobTimes;
use evenbeat_core::ids::JobKey;
use evenbeat_core::time::Timestamp;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;

use super::process::unix_seconds;

/// The jobs that are shown, as they were last seen. Copies share them.
#[derive(Clone, Debug, Default)]
pub struct JobGauges(Arc<Mutex<ShownJobs>>);

#[derive(Debug, Default)]
struct ShownJobs {
    jobs: BTreeMap<JobKey, JobTimes>,
    n_omitted: usize,
}

/// The name of a gauge, its meaning, and where its value is.
type JobGauge = (&'static str, &'static str, fn(&JobTimes) -> Option<Timestamp>);

const GAUGES: [JobGauge; 4] = [
    (
        "evenbeat_job_deadline_timestamp_seconds",
        "When the data of a job (`job_name`) is too old, in seconds since 1970; known from its creation on, absent while \
         it is paused or owes nothing",
        |it| it.deadline,
    ),
    (
        "evenbeat_job_last_success_timestamp_seconds",
        "When the last good run of a job (`job_name`) ended, in seconds since 1970",
        |it| it.last_success,
    ),
    (
        "evenbeat_job_last_failure_timestamp_seconds",
        "When the last failed run of a job (`job_name`) ended, in seconds since 1970, as far as this process knows",
        |it| it.last_failure,
    ),
    (
        "evenbeat_job_next_start_timestamp_seconds",
        "When the next run of a job (`job_name`) may start, in seconds since 1970",
        |it| it.next_start,
    ),
];

impl JobGauges {
    /// Shows these jobs from now on, and counts the matching jobs that are left out.
    pub(crate) fn show(&self, jobs: Vec<(JobKey, JobTimes)>, n_omitted: usize) {
        let mut shown = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::take(&mut shown.jobs);
        // A job forgets its last failure when a run succeeds; here it is remembered.
        let kept = jobs.into_iter().map(|(key, times)| {
            let earlier = before.get(&key).and_then(|it| it.last_failure);
            let times = JobTimes { last_failure: times.last_failure.or(earlier), ..times };
            (key, times)
        });
        shown.jobs = kept.collect();
        shown.n_omitted = n_omitted;
    }
}

impl Collector for JobGauges {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let shown = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (name, help, value) in GAUGES {
            let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for (key, times) in &shown.jobs {
                let Some(at) = value(times) else { continue };
                let labels = [("job_name", key.as_str())];
                ConstGauge::new(unix_seconds(at)).encode(metric.encode_family(&labels)?)?;
            }
        }
        let help = "Jobs that match `metrics.jobs` and are left out because of `metrics.jobs_max`";
        let metric =
            encoder.encode_descriptor("evenbeat_job_metrics_omitted", help, None, MetricType::Gauge)?;
        ConstGauge::new(i64::try_from(shown.n_omitted).unwrap_or(i64::MAX)).encode(metric)
    }
}
