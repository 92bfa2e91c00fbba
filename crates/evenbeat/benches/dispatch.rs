//! How many deadlines each order of dispatch misses (P10), how fleets come back from an outage, and whether
//! hopeless jobs starve the others.
//!
//! Run by `scripts/bench dispatch`. The real engine lives through days of the job files in `bench/fleets`, with
//! just enough capacity; only the order in which it starts runs differs. Nothing here passes or fails: a figure
//! that misses its target is printed with it.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "no figure here has 16 digits or a sign"
)]
#![allow(clippy::expect_used, reason = "the fleets are ours, there is nobody to tell")]

#[path = "dispatch/fleet.rs"]
mod fleet;
#[path = "dispatch/lived.rs"]
mod lived;
#[path = "../../core/benches/common/machine.rs"]
mod machine;
#[path = "dispatch/outage.rs"]
mod outage;
#[path = "dispatch/overload.rs"]
mod overload;
#[path = "dispatch/quality.rs"]
mod quality;
#[path = "dispatch/way.rs"]
mod way;

use std::fmt::Write as _;

/// How much is lived through.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    /// After a first day that does not count.
    days: i64,
    n_seeds: u64,
    /// Only so many jobs of each fleet.
    n_jobs_max: usize,
    n_copies: usize,
}

fn main() {
    // `cargo test --all-targets` starts benchmarks too, without this flag and without optimisation: then small
    // fleets are enough to see that all of this still works.
    let is_bench = std::env::args().any(|arg| arg == "--bench");
    let size = if is_bench {
        Size { days: 5, n_seeds: 5, n_jobs_max: usize::MAX, n_copies: 5 }
    } else {
        Size { days: 1, n_seeds: 1, n_jobs_max: 12, n_copies: 1 }
    };
    println!("dispatch: {}", machine::machine());
    let mut figures: Vec<(String, f64)> = Vec::new();
    // `cargo bench --bench dispatch -- outage` runs that part alone.
    let parts: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    let wants = |part: &str| parts.is_empty() || parts.iter().any(|it| it == part);
    if wants("quality") {
        quality::run(size, &mut figures);
    }
    if wants("outage") {
        outage::run(size, &mut figures);
    }
    if wants("overload") {
        overload::run(size, &mut figures);
    }
    let mut json = format!("{{\n  {}", machine::machine_json());
    for (name, value) in &figures {
        let _ = write!(json, ",\n  \"{name}\": {value}");
    }
    json.push_str("\n}\n");
    machine::write_json("dispatch", &json);
}
