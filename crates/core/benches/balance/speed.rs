//! What one placement and a whole rebalance take.

use std::time::Instant;

use evenbeat_core::distribution::Distribution;
use evenbeat_core::placement::{Balance, place_every, place_fleet, plan_rebalance};
use evenbeat_core::slot::{BalanceBy, JobLoad, RunWork, SlotLoad};
use evenbeat_core::time::{Duration, TimeWindow};

use super::fleet::{Dice, Made, WIDTH, Way, mixed, now};
use super::fleet_jobs;

/// Targets of one placement among this many jobs, in microseconds.
const PLACEMENT_TARGETS_US: [(usize, f64); 3] = [(1_000, 1.0), (100_000, 2.0), (1_000_000, 5.0)];
const REBALANCE_TARGET_MS: (usize, f64) = (100_000, 500.0);

pub(crate) fn placement(sizes: &[usize], figures: &mut Vec<(String, f64)>) {
    println!("\none placement (search, and putting it into the load), microseconds");
    println!("{:>8} {:>10} {:>8} {:>8} {:>8} {:>8}", "among", "interval", "p50", "p95", "p99", "add p50");
    for n_jobs in sizes {
        let mut load = SlotLoad::new(now(), WIDTH, BalanceBy::Runs);
        let mut dice = Dice(11);
        for one in mixed(*n_jobs) {
            match one {
                Made::Pinned { load: pinned } => load.add(&pinned),
                Made::Every { name, interval, work } => {
                    load.add(&JobLoad::every(Way::Jitter.first(&name, interval, &mut dice), interval, work));
                }
            }
        }
        for interval in ["15m", "20m", "1h", "6h", "1d", "1w"] {
            let interval: Duration = interval.parse().expect("an interval");
            let tick = Duration::from_millis(1);
            let first_in = TimeWindow::new(now() + tick, now() + interval + tick);
            let mut searches: Vec<f64> = Vec::new();
            let mut adds: Vec<f64> = Vec::new();
            for _ in 0..2_000 {
                let started = Instant::now();
                let spot = place_every(&load, interval, first_in, RunWork::default(), None).expect("a place");
                searches.push(started.elapsed().as_nanos() as f64 / 1_000.0);
                let one = JobLoad::every(spot.at, interval, RunWork::default());
                let started = Instant::now();
                load.add(&one);
                adds.push(started.elapsed().as_nanos() as f64 / 1_000.0);
                load.remove(&one);
            }
            let [p50, p95, p99] = percentiles(&mut searches);
            let [add, ..] = percentiles(&mut adds);
            println!(
                "{n_jobs:>8} {interval:>10} {p50:>8.2} {p95:>8.2} {p99:>8.2} {add:>8.2}",
                interval = interval.to_string()
            );
            figures.push((format!("placement_us_{n_jobs}_{interval}"), p50));
            let target =
                PLACEMENT_TARGETS_US.iter().find(|(size, _)| size == n_jobs).map(|(_, target)| *target);
            if let Some(target) = target.filter(|target| *target < p50) {
                println!("note: the target is {target} microseconds");
            }
        }
    }
}

pub(crate) fn rebalance(sizes: &[usize], figures: &mut Vec<(String, f64)>) {
    println!("\nfull rebalance");
    println!(
        "{:>8} {:>14} {:>9} {:>8} {:>15} {:>15} {:>15}",
        "jobs", "placed by", "ms", "moves", "score", "peak/slot", "from scratch"
    );
    for n_jobs in sizes {
        for way in [Way::AtZero, Way::Jitter] {
            let jobs = fleet_jobs::of(*n_jobs, way);
            let refs: Vec<_> = jobs.iter().map(|(job, state)| (job, state)).collect();
            let mut best_ms = f64::MAX;
            let mut plan = None;
            for _ in 0..3 {
                let started = Instant::now();
                plan = Some(plan_rebalance(Balance::default(), now(), &refs));
                best_ms = best_ms.min(started.elapsed().as_secs_f64() * 1_000.0);
            }
            let plan = plan.expect("three of them");
            let owned: Vec<_> = jobs.iter().map(|(job, _)| job.clone()).collect();
            let states = place_fleet(Balance::default(), now(), &owned);
            let loads: Vec<JobLoad> = owned.iter().zip(&states).filter_map(fleet_jobs::load_of).collect();
            let scratch = Distribution::of(now(), 24, WIDTH, &loads).expect("a day").peak_slot().1;
            println!(
                "{n_jobs:>8} {:>14} {best_ms:>9.1} {:>8} {:>6.3} -> {:.3} {:>6} -> {:<6} {scratch:>12}",
                way.name(),
                plan.moves.len(),
                plan.before.score(),
                plan.after.score(),
                plan.before.peak_slot().1,
                plan.after.peak_slot().1,
            );
            figures.push((format!("rebalance_ms_{n_jobs}_{}", way.name()), best_ms));
            if *n_jobs == REBALANCE_TARGET_MS.0 && REBALANCE_TARGET_MS.1 < best_ms {
                println!("note: the target is {} ms", REBALANCE_TARGET_MS.1);
            }
        }
    }
}

fn percentiles(samples: &mut [f64]) -> [f64; 3] {
    samples.sort_by(f64::total_cmp);
    [50, 95, 99].map(|percent| samples[(samples.len() - 1) * percent / 100])
}
