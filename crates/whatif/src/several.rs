//! Several scenarios, a few at a time.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::{Report, Scenario, simulate};

/// Runs all scenarios, several at a time, and reports in their order. `progress` is called with the number of a
/// scenario and the share of it that is done, from 0 to 1.
pub fn simulate_all(
    scenarios: &[Scenario],
    n_threads: usize,
    progress: &(dyn Fn(usize, f64) + Sync),
) -> Vec<Report> {
    let next = AtomicUsize::new(0);
    let reports: Vec<Mutex<Option<Report>>> = scenarios.iter().map(|_| Mutex::new(None)).collect();
    thread::scope(|scope| {
        for _ in 0..n_threads.clamp(1, scenarios.len().max(1)) {
            scope.spawn(|| {
                loop {
                    let idx = next.fetch_add(1, Ordering::Relaxed);
                    let (Some(scenario), Some(place)) = (scenarios.get(idx), reports.get(idx)) else {
                        return;
                    };
                    let report = simulate(scenario, &mut |done| progress(idx, done));
                    if let Ok(mut place) = place.lock() {
                        *place = Some(report);
                    }
                }
            });
        }
    });
    let finished = |place: Mutex<Option<Report>>| match place.into_inner() {
        Ok(Some(report)) => report,
        _ => unreachable!("a thread that panics ends the scope"),
    };
    reports.into_iter().map(finished).collect()
}
