//! A whole node at work: how late runs start (P2), how long it takes from the command to the first run (P6), and what it
//! costs to do nothing (P7).
//!
//! Run by `scripts/bench node`, or a part of it by `scripts/bench node -- sqlite placed 10000`. Nothing here passes or
//! fails: a figure that misses its target is printed with it.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "no figure here has 16 digits or a sign"
)]
#![allow(clippy::expect_used, reason = "the node is ours, there is nobody to tell")]

#[path = "store/fleet.rs"]
#[allow(dead_code, reason = "the stored fleet is the stores' benchmark's, and half of it is enough here")]
mod fleet;
#[path = "node/home.rs"]
mod home;
#[path = "node/lateness.rs"]
mod lateness;
#[path = "../../core/benches/common/machine.rs"]
mod machine;
#[path = "node/process.rs"]
mod process;
#[path = "node/startup.rs"]
mod startup;

use std::fmt::Write as _;

use home::{Backend, Home};

/// Names and values, as they go into the JSON.
pub(crate) type Figures = Vec<(String, f64)>;

fn main() {
    // `cargo test --all-targets` starts benchmarks too, without this flag and without optimisation.
    let is_bench = std::env::args().any(|arg| arg == "--bench");
    let asked = Asked::read(is_bench);
    println!("node: {}", machine::machine());
    let mut figures = Figures::new();
    for backend in backends().into_iter().filter(|it| asked.wants(&["sqlite", "postgres"], it.name())) {
        let minutes = if is_bench { 2 } else { 0 };
        for n_jobs in asked.sizes(&[1_000, 10_000, 100_000], 50) {
            for plan in [lateness::Plan::Placed, lateness::Plan::AtSecondZero] {
                if asked.wants(&PARTS, plan.name()) {
                    lateness::run(&Home::new(&backend), plan, n_jobs, minutes, &mut figures);
                }
            }
        }
        if asked.wants(&PARTS, "start") {
            for n_jobs in asked.sizes(&[1_000, 10_000, 100_000, 1_000_000], 50) {
                startup::run(&Home::new(&backend), n_jobs, is_bench, &mut figures);
            }
        }
    }
    println!("\n{}", machine::machine());
    let mut json = format!("{{\n  {}", machine::machine_json());
    for (name, value) in &figures {
        let _ = write!(json, ",\n  \"{name}\": {value}");
    }
    json.push_str("\n}\n");
    machine::write_json("node", &json);
}

const PARTS: [&str; 3] = ["placed", "pinned", "start"];

fn backends() -> Vec<Backend> {
    let mut backends = vec![Backend::Sqlite];
    match std::env::var("EVENBEAT_TEST_POSTGRES") {
        Ok(server) => backends.push(Backend::Postgres(server)),
        Err(_) => println!("note: SQLite only, there is no PostgreSQL here (run `scripts/bench node`)"),
    }
    backends
}

/// What was asked for on the command line: parts by name, sizes by number.
struct Asked {
    words: Vec<String>,
    is_bench: bool,
}

impl Asked {
    fn read(is_bench: bool) -> Asked {
        Asked { words: std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect(), is_bench }
    }

    /// Whether this one of some choices was asked for, or none of them.
    fn wants(&self, choices: &[&str], it: &str) -> bool {
        self.words.iter().all(|word| !choices.contains(&word.as_str()))
            || self.words.iter().any(|word| word == it)
    }

    fn sizes(&self, all: &[usize], tiny: usize) -> Vec<usize> {
        if !self.is_bench {
            return vec![tiny];
        }
        let named: Vec<usize> =
            self.words.iter().filter_map(|word| word.replace('_', "").parse().ok()).collect();
        if named.is_empty() { all.to_vec() } else { named }
    }
}
