//! What the engine costs: events a second, and memory a job.
//!
//! Run by `scripts/bench engine`. Nothing here passes or fails: a figure that misses its target is printed with it.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "no figure here has 16 digits or a sign"
)]

#[path = "engine/drive.rs"]
mod drive;
#[path = "../../core/benches/common/fleet.rs"]
mod fleet;
#[path = "../../core/benches/common/machine.rs"]
mod machine;

use std::fmt::Write as _;

fn main() {
    // `cargo test --all-targets` starts benchmarks too, without this flag and without optimisation: then small
    // fleets are enough to see that all of this still works.
    let is_bench = std::env::args().any(|arg| arg == "--bench");
    println!("engine: {}", machine::machine());
    let mut figures: Vec<(String, f64)> = Vec::new();
    println!();
    println!("{:>9} {:>12} {:>12} {:>12} {:>14}", "jobs", "bytes a job", "load s", "events", "events a s");
    let sizes: &[usize] = if is_bench { &[10_000, 100_000, 1_000_000] } else { &[100] };
    for n_jobs in sizes {
        let driven = drive::drive(*n_jobs, if is_bench { 200_000 } else { 500 });
        let per_second = driven.n_events as f64 / driven.handling.as_secs_f64();
        let bytes = driven.view_bytes as f64 / *n_jobs as f64;
        println!(
            "{n_jobs:>9} {bytes:>12.0} {:>12.3} {:>12} {per_second:>14.0}",
            driven.loading.as_secs_f64(),
            driven.n_events
        );
        figures.push((format!("bytes_per_job_{n_jobs}"), bytes));
        figures.push((format!("events_per_second_{n_jobs}"), per_second));
    }
    println!("target: under 300 bytes a job (by resident memory, which small fleets blur)");
    let mut json = format!("{{\n  {}", machine::machine_json());
    for (name, value) in &figures {
        let _ = write!(json, ",\n  \"{name}\": {value}");
    }
    json.push_str("\n}\n");
    machine::write_json("engine", &json);
}
