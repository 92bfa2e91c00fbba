//! Scenarios, lived through two at a time, with every run of them.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use evenbeat_core::ids::JobKey;
use evenbeat_core::run::Outcome;
use evenbeat_core::time::{Duration, Timestamp};
use evenbeat_whatif::{POINT, Report, Scenario, simulate_watched};

const N_THREADS: usize = 2;

/// What came of a scenario.
#[derive(Debug)]
pub(crate) struct Lived {
    pub(crate) report: Report,
    pub(crate) runs: Vec<Run>,
}

/// One run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    /// Which of the scenario's jobs.
    pub(crate) job_idx: usize,
    pub(crate) due_at: Timestamp,
    pub(crate) started_at: Timestamp,
    pub(crate) ended_at: Timestamp,
    pub(crate) is_good: bool,
    pub(crate) deadline: Option<Timestamp>,
}

pub(crate) fn live_all(scenarios: &[Scenario]) -> Vec<Lived> {
    let next = AtomicUsize::new(0);
    let places: Vec<Mutex<Option<Lived>>> = scenarios.iter().map(|_| Mutex::new(None)).collect();
    std::thread::scope(|scope| {
        for _ in 0..N_THREADS {
            scope.spawn(|| {
                while let Some((scenario, place)) = {
                    let idx = next.fetch_add(1, Ordering::Relaxed);
                    scenarios.get(idx).zip(places.get(idx))
                } {
                    *place.lock().expect("nobody panicked") = Some(live(scenario));
                }
            });
        }
    });
    places.into_iter().map(|it| it.into_inner().ok().flatten().expect("all were lived through")).collect()
}

fn live(scenario: &Scenario) -> Lived {
    let numbers: BTreeMap<&JobKey, usize> =
        scenario.jobs.iter().enumerate().map(|(idx, (job, _))| (&job.key, idx)).collect();
    let mut runs = Vec::new();
    let report = simulate_watched(scenario, &mut |_| {}, &mut |seen| {
        runs.push(Run {
            job_idx: numbers.get(&seen.job.key).copied().expect("a job of the scenario"),
            due_at: seen.due_at,
            started_at: seen.started_at,
            ended_at: seen.ended_at,
            is_good: seen.outcome == Some(Outcome::Succeeded),
            deadline: seen.deadline,
        });
    });
    Lived { report, runs }
}

impl Lived {
    /// Deadlines that passed after the first day without a good run: late runs, and jobs that are late at the end.
    pub(crate) fn n_misses(&self) -> f64 {
        self.counted().map(|it| f64::from(it.n_late)).sum()
    }

    /// The share of capacity that was in use after the first day.
    pub(crate) fn in_use(&self) -> f64 {
        let (sum, n) = self.counted().fold((0.0, 0.0), |(sum, n), it| (sum + it.in_use, n + 1.0));
        sum / n / f64::from(self.report.all.capacity)
    }

    fn counted(&self) -> impl Iterator<Item = &evenbeat_whatif::Point> {
        let day = Duration::from_days(1).as_millis() / POINT.as_millis();
        self.report.points.iter().skip(day as usize)
    }
}

/// A mean, and from where to where it ranged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Drawn {
    pub(crate) mean: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
}

pub(crate) fn mean(values: impl IntoIterator<Item = f64>) -> Drawn {
    let values: Vec<f64> = values.into_iter().collect();
    Drawn {
        mean: values.iter().sum::<f64>() / values.len().max(1) as f64,
        least: values.iter().copied().fold(f64::INFINITY, f64::min),
        most: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
    }
}

impl std::fmt::Display for Drawn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&format!("{:.0} ({:.0}..{:.0})", self.mean, self.least, self.most))
    }
}
