//! What the two databases carry: run cycles a second beside raw SQL (P1), bytes a run, the feed, the load at start-up
//! (P6), and lists (P9).
//!
//! Run by `scripts/bench store`, which also starts a PostgreSQL server that writes through to the disk.
//! `EVENBEAT_BENCH_JOBS` and `EVENBEAT_BENCH_RUNS` say how many jobs and past runs are stored. Nothing here passes or
//! fails: a figure that misses its target is printed with it.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "no figure here has 16 digits or a sign"
)]
#![allow(clippy::expect_used, reason = "the stores are ours, there is nobody to tell")]

#[path = "store/cycles.rs"]
mod cycles;
#[path = "store/feed.rs"]
mod feed;
#[path = "store/fleet.rs"]
mod fleet;
#[path = "store/lists.rs"]
mod lists;
#[path = "../../core/benches/common/machine.rs"]
mod machine;
#[path = "store/postgres.rs"]
mod postgres;
#[path = "store/sqlite.rs"]
mod sqlite;
#[path = "store/subject.rs"]
mod subject;

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use subject::Subject;

/// How much is stored and asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    n_jobs: usize,
    n_runs: usize,
    /// Ours and raw SQL take turns.
    n_rounds: usize,
    turn_for: Duration,
    n_changed: usize,
    n_queries: usize,
    /// No kind of query is asked for longer.
    query_for_max: Duration,
}

const BENCH: Size = Size {
    n_jobs: 100_000,
    n_runs: 200_000,
    n_rounds: 4,
    turn_for: Duration::from_millis(400),
    n_changed: 1_000,
    n_queries: 200,
    query_for_max: Duration::from_secs(2),
};

/// To see that all of this still works.
const TINY: Size = Size {
    n_jobs: 60,
    n_runs: 90,
    n_rounds: 1,
    turn_for: Duration::ZERO,
    n_changed: 20,
    n_queries: 2,
    query_for_max: Duration::ZERO,
};

/// Names and values, as they go into the JSON.
pub(crate) type Figures = Vec<(String, f64)>;

fn main() {
    // `cargo test --all-targets` starts benchmarks too, without this flag and without optimisation.
    let is_bench = std::env::args().any(|arg| arg == "--bench");
    let size = if is_bench { asked(BENCH) } else { TINY };
    println!("store: {}", machine::machine());
    println!("{} jobs and {} past runs stored", size.n_jobs, size.n_runs);
    let mut figures: Figures =
        vec![("n_jobs".to_owned(), size.n_jobs as f64), ("n_runs".to_owned(), size.n_runs as f64)];
    // `cargo bench --bench store -- sqlite lists` measures that alone, and so does `-- postgres cycles 1x1000`.
    let parts: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    let began = Instant::now();
    if wants(&parts, &["sqlite", "postgres"], "sqlite") {
        measure(size, &parts, &mut figures, || sqlite::Sqlite::filled(size));
    }
    match std::env::var("EVENBEAT_TEST_POSTGRES") {
        Ok(server) if wants(&parts, &["sqlite", "postgres"], "postgres") => {
            measure(size, &parts, &mut figures, || postgres::Postgres::filled(&server, size));
        }
        Ok(_) => {}
        Err(_) => println!("\nnote: SQLite only, there is no PostgreSQL here (run `scripts/bench store`)"),
    }
    println!("\nall of it took {:.0} s; {}", began.elapsed().as_secs_f64(), machine::machine());
    let mut json = format!("{{\n  {}", machine::machine_json());
    for (name, value) in &figures {
        let _ = write!(json, ",\n  \"{name}\": {value}");
    }
    json.push_str("\n}\n");
    machine::write_json("store", &json);
}

/// Whether this one of some choices was asked for, or none of them.
fn wants(parts: &[String], choices: &[&str], it: &str) -> bool {
    parts.iter().all(|part| !choices.contains(&part.as_str())) || parts.iter().any(|part| part == it)
}

fn asked(size: Size) -> Size {
    let number = |name: &str, default: usize| match std::env::var(name) {
        Ok(text) => text.replace('_', "").parse().unwrap_or_else(|_| {
            println!("note: `{name}={text}` is no number, {default} is taken");
            default
        }),
        Err(_) => default,
    };
    Size {
        n_jobs: number("EVENBEAT_BENCH_JOBS", size.n_jobs).max(1_000),
        n_runs: number("EVENBEAT_BENCH_RUNS", size.n_runs),
        ..size
    }
}

fn measure<S: Subject>(size: Size, parts: &[String], figures: &mut Figures, filled: impl FnOnce() -> S) {
    let began = Instant::now();
    let subject = filled();
    println!("\n{} (filled in {:.0} s)", subject.title(), began.elapsed().as_secs_f64());
    let choices = ["cycles", "feed", "lists"];
    // First, as long as it is known which version each job has.
    if wants(parts, &choices, "cycles") {
        cycles::run(&subject, size, parts, figures);
    }
    if wants(parts, &choices, "feed") {
        feed::run(&subject, size, figures);
    }
    if wants(parts, &choices, "lists") {
        lists::run(&subject, size, figures);
    }
}
