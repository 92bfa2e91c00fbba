//! How fast a simulated week passes.
//!
//! Run by `scripts/bench week`. Nothing here passes or fails: a figure that misses its target is printed with it.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "no figure here has 16 digits or a sign"
)]

#[path = "../../core/benches/common/fleet.rs"]
mod fleet;
#[path = "../../core/benches/common/machine.rs"]
mod machine;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Instant;

use evenbeat_core::engine::{DispatchSettings, PoolSettings};
use evenbeat_core::ids::Pool;
use evenbeat_core::job::Job;
use evenbeat_core::placement::{Balance, place_fleet};
use evenbeat_core::schedule::Schedule;
use evenbeat_core::store::CounterLimit;
use evenbeat_core::time::{Duration, TimeWindow};
use evenbeat_whatif::{NodePlan, RunModel, Scenario, simulate};

fn main() {
    // `cargo test --all-targets` starts benchmarks too, without this flag and without optimisation: then a small
    // fleet is enough to see that all of this still works.
    let is_bench = std::env::args().any(|arg| arg == "--bench");
    println!("week: {}", machine::machine());
    let mut figures: Vec<(String, f64)> = Vec::new();
    let (n_jobs, days) = if is_bench { (10_000, 7) } else { (50, 1) };
    for n_nodes in [1, 3] {
        let scenario = scenario(n_jobs, n_nodes, days);
        let began = Instant::now();
        let report = simulate(&scenario, &mut |_| {});
        let took = began.elapsed().as_secs_f64();
        println!(
            "{days} days of {n_jobs} jobs on {n_nodes} node(s): {took:.1} s for {} runs, {} late, {:.0} % used (target: 60 s)",
            report.all.n_runs,
            report.all.n_late,
            report.all.utilisation.unwrap_or(0.0) * 100.0
        );
        figures.push((format!("seconds_per_week_{n_nodes}_nodes"), took));
    }
    let mut json = format!("{{\n  {}", machine::machine_json());
    for (name, value) in &figures {
        let _ = write!(json, ",\n  \"{name}\": {value}");
    }
    json.push_str("\n}\n");
    machine::write_json("week", &json);
}

/// The fleet, placed by load.
fn scenario(n_jobs: usize, n_nodes: usize, days: i64) -> Scenario {
    let jobs: Vec<Job> = (0..n_jobs).map(fleet::job).collect();
    let states = place_fleet(Balance::default(), fleet::start(), &jobs);
    // About three quarters of what is there is used.
    let work: f64 = jobs
        .iter()
        .map(|job| match &job.schedule {
            Schedule::Every { interval, .. } => {
                job.estimate.unwrap_or_default().as_millis_f64() / interval.as_millis_f64()
            }
            _ => 0.0,
        })
        .sum();
    let capacity = ((work / 0.75 / n_nodes as f64).ceil() as u32).max(2);
    let nodes = (1..=n_nodes)
        .map(|n| NodePlan {
            name: format!("n{n}").parse().expect("a name"),
            pools: BTreeMap::from([(Pool::default_pool(), PoolSettings { capacity, reserved: 0 })]),
        })
        .collect();
    Scenario {
        jobs: jobs.into_iter().zip(states).collect(),
        window: TimeWindow::new(fleet::start(), fleet::start() + Duration::from_days(days)),
        nodes,
        sites: BTreeMap::new(),
        tenants: BTreeMap::new(),
        all_runs: CounterLimit::default(),
        dispatch: DispatchSettings::default(),
        runs: RunModel::default(),
        outages: Vec::new(),
    }
}
