//! What a roster of a million jobs costs beside the engine that it reads: time and memory.
//!
//! Run by `scripts/bench roster`. Nothing here passes or fails: a figure that misses its target is printed with
//! it.

#![allow(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a benchmark reads the clock, prints and writes a file"
)]
#![allow(clippy::expect_used, reason = "the fleet is made here, there is nobody to tell")]
#![allow(clippy::cast_precision_loss, reason = "no figure here has 16 digits")]

#[path = "common/machine.rs"]
mod machine;
#[path = "roster/fleet.rs"]
mod fleet;

use std::fmt::Write as _;
use std::hint::black_box;
use std::time::Instant;

use evenbeat_core::condition::{Condition, Reason};
use evenbeat_core::engine::Engine;
use evenbeat_core::ids::JobKey;
use evenbeat_core::roster::{Roster, Which};
use evenbeat_core::time::{Duration, Timestamp};

const BYTES_TARGET: f64 = 150.0;
const N_STEPS: usize = 3_600;
const N_ASKED: usize = 10_000;

fn main() {
    // `cargo test --all-targets` starts benchmarks too, without this flag and without optimisation: then a
    // small fleet is enough to see that all of this still works.
    let is_bench = std::env::args().any(|arg| arg == "--bench");
    let n_jobs = if is_bench { 1_000_000 } else { 1_000 };
    println!("roster: {}", machine::machine());
    let mut figures = Figures::default();
    let start = fleet::start();

    let before = resident();
    let engine = fleet::engine(n_jobs);
    let jobs = engine.jobs().expect("all was read");
    figures.tell("engine, bytes a job", bytes_each(before, n_jobs));

    // In one go, as after a start.
    let before = resident();
    let mut roster = Roster::new(start);
    let took = timed(|| drop(black_box(roster.reassess(start, &jobs))));
    figures.tell("reassess all, s", took);
    figures.tell("bytes a job, in one go", bytes_each(before, n_jobs));

    // Change by change, in an order that is not that of keys, as a feed tells them.
    let keys = fleet::shuffled_keys(n_jobs);
    let before = resident();
    let mut grown = Roster::new(start);
    let took = timed(|| {
        for page in keys.chunks(1_000) {
            black_box(grown.apply(start, &jobs, page));
        }
    });
    figures.tell("apply all, us each", took * 1e6 / n_jobs as f64);
    let bytes = bytes_each(before, n_jobs);
    figures.tell("bytes a job, change by change", bytes);
    if BYTES_TARGET < bytes {
        println!("note: the target is under {BYTES_TARGET} bytes a job");
    }
    assert_eq!(grown.counts(), roster.counts(), "both ways lead to the same roster");
    let took = timed(|| {
        for page in keys.chunks(1_000) {
            black_box(grown.apply(start, &jobs, page));
        }
    });
    figures.tell("apply all again, us each", took * 1e6 / n_jobs as f64);
    drop(grown);

    an_hour(&mut figures, &mut roster, &engine, start);
    asked(&mut figures, &roster, &keys);

    let now = roster.now() - Duration::from_mins(30);
    let took = timed(|| drop(black_box(roster.advance(now, &jobs))));
    figures.tell("clock half an hour back, s", took);
    figures.write();
}

/// An hour in steps of a second, in which nothing runs: jobs that are due become late.
fn an_hour(figures: &mut Figures, roster: &mut Roster, engine: &Engine, start: Timestamp) {
    let jobs = engine.jobs().expect("all was read");
    let mut n_turned = 0;
    let mut steps_ms: Vec<f64> = Vec::with_capacity(N_STEPS);
    let mut now = start;
    for _ in 0..N_STEPS {
        now = now + Duration::from_secs(1);
        steps_ms.push(timed(|| n_turned += black_box(roster.advance(now, &jobs)).len()) * 1e3);
    }
    steps_ms.sort_by(f64::total_cmp);
    figures.tell("an hour in seconds, s", steps_ms.iter().sum::<f64>() / 1e3);
    figures.tell("  of them turned", n_turned as f64);
    figures.tell("  us a turn", steps_ms.iter().sum::<f64>() * 1e3 / (n_turned as f64).max(1.0));
    figures.tell("  a second, p50 ms", percentile(&steps_ms, 50));
    figures.tell("  a second, p99 ms", percentile(&steps_ms, 99));
    for condition in [Condition::Ok, Condition::Warning, Condition::Error] {
        figures.tell(&format!("  then {condition}"), f64::from(roster.counts().in_condition(condition)));
    }
}

/// What pages ask.
fn asked(figures: &mut Figures, roster: &Roster, keys: &[JobKey]) {
    let asked: Vec<&JobKey> = keys.iter().take(N_ASKED).collect();
    let mut each = |what: &str, ask: &dyn Fn(&JobKey)| {
        let took = timed(|| asked.iter().for_each(|key| ask(key)));
        figures.tell(what, took * 1e6 / asked.len() as f64);
    };
    for (what, which) in [
        ("page of 100 ok, us", Which::Condition(Condition::Ok)),
        ("page of 100 warning, us", Which::Condition(Condition::Warning)),
        ("page of 100 error, us", Which::Condition(Condition::Error)),
        ("page of 100 deadline_passed, us", Which::Reason(Reason::DeadlinePassed)),
        ("page of 100 of all, us", Which::All),
    ] {
        each(what, &|key| drop(black_box(roster.page(which, Some(key), 100))));
    }
    each("of one job, us", &|key| {
        black_box(roster.of(key));
    });
    each("counts, us", &|_| {
        black_box(*roster.counts());
    });
    each("counts by pool, us", &|_| {
        black_box(roster.counts_by_pool().map(|(_, counts)| counts.n_jobs()).sum::<u32>());
    });
}

/// Figures, printed and written to a file.
#[derive(Default)]
struct Figures(Vec<(String, f64)>);

impl Figures {
    fn tell(&mut self, what: &str, figure: f64) {
        println!("{what:<34} {figure:>14.3}");
        self.0.push((what.trim().to_owned(), figure));
    }

    fn write(&self) {
        let mut json = format!("{{\n  {}", machine::machine_json());
        for (what, figure) in &self.0 {
            let _ = write!(json, ",\n  \"{what}\": {figure}");
        }
        json.push_str("\n}\n");
        machine::write_json("roster", &json);
    }
}

fn timed(work: impl FnOnce()) -> f64 {
    let began = Instant::now();
    work();
    began.elapsed().as_secs_f64()
}

fn percentile(sorted: &[f64], share: usize) -> f64 {
    sorted.get(sorted.len() * share / 100).copied().unwrap_or(0.0)
}

fn bytes_each(before: u64, n_jobs: usize) -> f64 {
    resident().saturating_sub(before) as f64 / n_jobs as f64
}

/// Bytes of memory that this process has in use.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = text.split_whitespace().nth(1).and_then(|it| it.parse().ok()).unwrap_or(0);
    pages * 4_096
}
