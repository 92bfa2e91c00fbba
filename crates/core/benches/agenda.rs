//! How fast an agenda is built and asked, beside two plain sorts of the same occurrences.
//!
//! Run by `scripts/bench agenda` (P3). Nothing here passes or fails: a number that misses its target is printed
//! with it.

#![allow(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a benchmark reads the clock, starts threads, prints and writes a file"
)]
#![allow(clippy::expect_used, reason = "the jobs are given, there is nobody to tell")]

#[path = "common/machine.rs"]
mod machine;
#[path = "agenda/jobs.rs"]
mod jobs;
#[path = "agenda/measure.rs"]
mod measure;
#[path = "agenda/report.rs"]
mod report;
#[path = "agenda/swap.rs"]
mod swap;

use std::hint::black_box;

use evenbeat_core::agenda::{Agenda, Source};
use evenbeat_core::time::{Duration, TimeWindow, Timestamp};

use jobs::{Expanded, START, Shape, every, key};
use measure::{batched, clock_ns, random_below, rounds, single};
use report::{Report, Row};

const WINDOWS: [(&str, Duration); 3] =
    [("1 min", Duration::from_mins(1)), ("1 h", Duration::from_hours(1)), ("1 day", Duration::from_days(1))];
const SIZES: [usize; 6] = [10, 100, 1_000, 10_000, 100_000, 1_000_000];
/// Of a build over an hour.
const BUILD_TARGETS_US: [(usize, f64); 3] = [(10_000, 100.0), (100_000, 1_000.0), (1_000_000, 10_000.0)];
const BYTES_EACH_TARGET: f64 = 8.0;
const QUERY_OF_100_TARGET_NS: f64 = 1_000.0;
const PEEK_TARGET_NS: f64 = 20.0;
const N_HOPS: u32 = 100;
const QUERY_DURING_REBUILD_P99_TARGET_NS: f64 = 5_000.0;
const HOUR: Duration = Duration::from_hours(1);

fn main() {
    // `cargo test --all-targets` starts benchmarks too, without this flag and without optimisation:
    // then small ones are enough to see that all of this still works.
    let is_bench = std::env::args().any(|arg| arg == "--bench");
    let n_max = if is_bench { 1_000_000 } else { 1_000 };
    let mut report = Report::new("agenda");

    for (window_name, length) in WINDOWS {
        for n in SIZES.into_iter().filter(|n| *n <= n_max) {
            report.row(build(&format!("build {n}, {window_name}"), n, length, Shape::Regular));
        }
    }
    for (n, target_us) in BUILD_TARGETS_US {
        report.expect(&format!("build {n}, 1 h"), target_us);
    }
    for (what, shape) in [
        ("in no order", Shape::Unsorted),
        ("of intervals of odd ms", Shape::Wandering),
        ("of as many jobs", Shape::Singles),
    ] {
        report.row(build(&format!("build {n_max}, 1 h, {what}"), n_max, HOUR, shape));
    }
    report.row(build(&format!("build {n_max}, 31 days"), n_max, Duration::from_days(31), Shape::Regular));
    rebuilds(&mut report, n_max);
    report.expect_bytes(BYTES_EACH_TARGET);
    queries(&mut report, n_max);

    let (spread, n_rebuilds) = swap::queries_during_rebuilds(if is_bench { 10_000 } else { 10 });
    report.row(Row::new("query 1 s of 10000 jobs a minute, during rebuilds", "ns", spread));
    report
        .expect_p99("query 1 s of 10000 jobs a minute, during rebuilds", QUERY_DURING_REBUILD_P99_TARGET_NS);
    report.note(format!("{n_rebuilds} agendas were built and swapped while those queries were asked"));
    report.note(format!("each agenda takes {} bytes more, and its keys", size_of::<Agenda>()));
    report.note(format!(
        "queries are timed one by one, of which {} ns are the clock's; peek and between a hundred at a time",
        clock_ns()
    ));
    report.print();
    report.write();
}

/// Building from occurrences that are grouped by job, beside sorting them.
fn build(what: &str, n: usize, length: Duration, shape: Shape) -> Row {
    let window = TimeWindow::starting_at(START, length);
    let expanded = Expanded::new(n, window, shape);
    let sources = expanded.sources();
    let ours =
        rounds(|| sources.as_slice(), |sources| Agenda::build(sources, window).expect("within limits"));
    let agenda = Agenda::build(&sources, window).expect("within limits");
    assert_eq!(agenda.len(), expanded.len(), "{what}");
    let packed = rounds(
        || (),
        |()| {
            let mut packed = expanded.packed();
            packed.sort_unstable();
            packed
        },
    );
    let pairs = rounds(
        || expanded.pairs(),
        |mut pairs| {
            pairs.sort_unstable();
            pairs
        },
    );
    Row::new(what, "us", ours.each_of(1e3))
        .beside(packed.each_of(1e3), pairs.each_of(1e3))
        .with_bytes(bytes_each(&agenda))
}

/// What happens every half minute: the same jobs over the next hour.
fn rebuilds(report: &mut Report, n_max: usize) {
    let window = TimeWindow::starting_at(START, HOUR);
    let mut row = |sources: &[Source], from: &str| {
        let first = Agenda::build(sources, window).expect("within limits");
        let spread = rounds(|| &first, |first| first.rebuild(sources, window).expect("within limits"));
        let what = format!("rebuild {} of {} {from}, 1 h", first.len(), sources.len());
        report.row(Row::new(&what, "us", spread.each_of(1e3)).with_bytes(bytes_each(&first)));
    };
    for shape in [Shape::Regular, Shape::Singles] {
        row(&Expanded::new(n_max, window, shape).sources(), "expanded");
    }
    for (n_jobs, interval) in [(n_max / 100, Duration::from_mins(1)), (n_max, HOUR)] {
        let keys: Vec<_> = (0..n_jobs).map(key).collect();
        row(&every(&keys, interval), "rhythms");
    }
}

fn queries(report: &mut Report, n: usize) {
    let window = TimeWindow::starting_at(START, HOUR);
    let expanded = Expanded::new(n, window, Shape::Regular);
    let agenda = Agenda::build(&expanded.sources(), window).expect("within limits");
    for n_results in [10, 100, 1_000, 10_000].into_iter().filter(|n_results| *n_results < n) {
        let length_ms = window.length().as_millis() * i64::try_from(n_results).expect("small")
            / i64::try_from(n).expect("a million");
        let length = Duration::from_millis(length_ms);
        let last_start_ms = (window.length() - length).as_millis();
        let spread =
            single(|seed| random_instant(seed, last_start_ms), |start| walk(&agenda, start, start + length));
        report.row(Row::new(&format!("query {n_results} of {n}"), "ns", spread));
    }
    report.expect(&format!("query 100 of {n}"), QUERY_OF_100_TARGET_NS);

    let length_ms = window.length().as_millis();
    let between = batched(
        |seed| random_instant(seed, length_ms),
        |start| agenda.between(start, start + Duration::from_secs(1)).len(),
    );
    report.row(Row::new(&format!("between, without walking, of {n}"), "ns", between));
    // Each from where the last one was found, as a cursor goes.
    let hops = single(
        |seed| random_instant(seed, length_ms),
        |start| {
            (0..N_HOPS).fold(start, |at, _| agenda.peek(at).map_or(at, |it| it.at + Duration::from_millis(1)))
        },
    );
    let peeks = [
        ("on from the last", hops.each_of(f64::from(N_HOPS))),
        ("at a random second", batched(|seed| random_second(seed, length_ms), |at| agenda.peek(at))),
        ("at a random ms", batched(|seed| random_instant(seed, length_ms), |at| agenda.peek(at))),
    ];
    for (where_to, spread) in peeks {
        let what = format!("peek of {n}, {where_to}");
        report.row(Row::new(&what, "ns", spread));
        report.expect(&what, PEEK_TARGET_NS);
    }

    let month = TimeWindow::starting_at(START, Duration::from_days(31));
    let expanded = Expanded::new(n, month, Shape::Regular);
    let agenda = Agenda::build(&expanded.sources(), month).expect("within limits");
    let peek = batched(|seed| random_instant(seed, month.length().as_millis()), |at| agenda.peek(at));
    report.row(Row::new(&format!("peek of {n} in 31 days, at a random ms"), "ns", peek));
}

/// A query whose every result is looked at.
fn walk(agenda: &Agenda, start: Timestamp, end: Timestamp) -> usize {
    let mut n_results = 0;
    for occurrence in agenda.between(start, end) {
        black_box(occurrence);
        n_results += 1;
    }
    n_results
}

fn random_instant(seed: &mut u64, length_ms: i64) -> Timestamp {
    START + Duration::from_millis(random_below(seed, length_ms))
}

fn random_second(seed: &mut u64, length_ms: i64) -> Timestamp {
    START + Duration::from_secs(random_below(seed, length_ms / 1_000))
}

#[allow(clippy::cast_precision_loss, reason = "a few digits are shown")]
fn bytes_each(agenda: &Agenda) -> f64 {
    (agenda.bytes() - size_of::<Agenda>()) as f64 / agenda.len().max(1) as f64
}
