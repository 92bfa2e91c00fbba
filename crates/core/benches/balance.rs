//! How evenly fleets are spread, and what it costs to spread them.
//!
//! Run by `scripts/bench balance`. Mixed fleets of 100 to 100,000 jobs, a tenth of them pinned by cron
//! at :00, placed in four ways; then the time that placement and rebalance take. Nothing here passes
//! or fails: a figure that misses its target is printed with it.

#![allow(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a benchmark reads the clock, prints and writes a file"
)]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "the fleets are made here, there is nobody to tell"
)]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "no figure here has 16 digits or a sign"
)]

#[path = "common/machine.rs"]
mod machine;
#[path = "balance/fleet.rs"]
mod fleet;
#[path = "balance/fleet_jobs.rs"]
mod fleet_jobs;
#[path = "balance/quality.rs"]
mod quality;
#[path = "balance/speed.rs"]
mod speed;

use std::fmt::Write as _;

fn main() {
    // `cargo test --all-targets` starts benchmarks too, without this flag and without optimisation:
    // then small fleets are enough to see that all of this still works.
    let is_bench = std::env::args().any(|arg| arg == "--bench");
    println!("balance: {}", machine::machine());
    let mut figures: Vec<(String, f64)> = Vec::new();
    let quality_sizes: &[usize] = if is_bench { &[100, 1_000, 10_000, 100_000] } else { &[100] };
    // `cargo bench --bench balance -- rebalance` runs that part alone.
    let parts: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    let wants = |part: &str| parts.is_empty() || parts.iter().any(|it| it == part);
    if wants("quality") {
        quality::run(quality_sizes, &mut figures);
    }
    let (placement_sizes, rebalance_sizes): (&[usize], &[usize]) =
        if is_bench { (&[1_000, 100_000, 1_000_000], &[10_000, 100_000]) } else { (&[100], &[100]) };
    if wants("placement") {
        speed::placement(placement_sizes, &mut figures);
    }
    if wants("rebalance") {
        speed::rebalance(rebalance_sizes, &mut figures);
    }
    machine::write_json("balance", &to_json(&figures));
}

fn to_json(figures: &[(String, f64)]) -> String {
    let mut json = format!("{{\n  {}", machine::machine_json());
    for (name, value) in figures {
        let _ = write!(json, ",\n  \"{name}\": {value}");
    }
    json.push_str("\n}\n");
    json
}
