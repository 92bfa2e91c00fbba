//! How fast cron expressions are read, asked and expanded, beside two crates that do the same.
//!
//! Run by `scripts/bench cron`; the expressions are those of `bench/crons.txt`. Nothing here
//! passes or fails: a number that differs from its target is printed with it.

#![allow(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a benchmark reads the clock, prints and writes a file"
)]
#![allow(clippy::expect_used, reason = "the expressions and zones are given, there is nobody to tell")]

#[path = "common/machine.rs"]
mod machine;
#[path = "cron/contenders.rs"]
mod contenders;
#[path = "cron/measure.rs"]
mod measure;
#[path = "cron/report.rs"]
mod report;

use contenders::{Croner, Cronexpr, Ours};
use measure::{Expansion, Latency, Window, clock_ns, expansion, next_after, parse};
use report::{Report, Row};

const EXPRESSIONS: &str = include_str!("../../../bench/crons.txt");
const NEW_YORK: &str = "America/New_York";

const WINDOWS: [Window; 6] = [
    Window::of("utc1h", "UTC", 1_781_528_400, 1_781_532_000),
    Window::of("utc24h", "UTC", 1_781_481_600, 1_781_568_000),
    Window::of("ny1h", NEW_YORK, 1_781_542_800, 1_781_546_400),
    Window::of("ny24h", NEW_YORK, 1_781_496_000, 1_781_582_400),
    Window::of("nyspring", NEW_YORK, 1_772_946_000, 1_773_028_800),
    Window::of("nyfall", NEW_YORK, 1_793_505_600, 1_793_595_600),
];
/// How many occurrences all expressions together have in a window.
const N_OCCURRENCES: [(&str, u64); 2] = [("utc1h", 40_067), ("utc24h", 936_023)];
const NEXT_AFTER_P99_TARGET_NS: u64 = 20_000;
const EXPANSION_TARGETS_MS: [(&str, f64); 4] =
    [("utc1h", 0.5), ("utc24h", 5.0), ("ny1h", 0.5), ("ny24h", 5.0)];

fn main() {
    // `cargo test --all-targets` starts benchmarks too, without this flag and without optimisation:
    // then a few expressions are enough to see that all of this still works.
    let is_bench = std::env::args().any(|arg| arg == "--bench");
    let n_expressions_max = if is_bench { usize::MAX } else { 100 };
    let texts: Vec<&str> = EXPRESSIONS.lines().take(n_expressions_max).collect();

    let mut report = Report::new("cron", texts.len());

    for zone in ["UTC", NEW_YORK] {
        let ours = next_after::<Ours>(&texts, zone);
        if NEXT_AFTER_P99_TARGET_NS < ours.p99 {
            report.note(format!(
                "next_after {zone}: p99 is {} ns, the target is {NEXT_AFTER_P99_TARGET_NS} ns",
                ours.p99
            ));
        }
        let others = [next_after::<Croner>(&texts, zone), next_after::<Cronexpr>(&texts, zone)];
        for (what, pick) in [
            ("p50", (|it| it.p50) as fn(&Latency) -> u64),
            ("p99", |it| it.p99),
            ("max", |it| it.max),
            ("worst", |it| it.worst),
        ] {
            let name = format!("next_after {zone} {what}");
            report.row(Row::whole(name, "ns", pick(&ours), others.each_ref().map(pick)));
        }
    }

    for window in WINDOWS {
        let ours = expansion::<Ours>(&texts, window);
        let others = [expansion::<Croner>(&texts, window), expansion::<Cronexpr>(&texts, window)];
        let name = window.name;
        let each = |pick: fn(&Expansion) -> f64| (pick(&ours), others.each_ref().map(pick));
        report.row(Row::new(format!("expand {name}"), "ms", each(Expansion::total_ms)));
        report.row(Row::new(format!("expand {name}, an occurrence"), "ns", each(Expansion::ns_each)));
        report.row(Row::whole(
            format!("expand {name}, occurrences"),
            "",
            ours.n_occurrences,
            others.each_ref().map(|it| it.n_occurrences),
        ));
        for (_, target) in EXPANSION_TARGETS_MS.iter().filter(|(of, _)| *of == name) {
            if is_bench && *target < ours.total_ms() {
                report.note(format!("{name}: {:.2} ms, the target is {target} ms", ours.total_ms()));
            }
        }
        let expected = N_OCCURRENCES.iter().find(|(of, _)| *of == name).map(|(_, n)| *n);
        if is_bench && expected.is_some_and(|expected| expected != ours.n_occurrences) {
            report.note(format!("{name}: {} occurrences, expected {expected:?}", ours.n_occurrences));
        }
    }

    report.row(Row::whole(
        "parse, an expression".to_owned(),
        "ns",
        parse::<Ours>(&texts),
        [parse::<Croner>(&texts), parse::<Cronexpr>(&texts)],
    ));

    report.note(format!(
        "calls of next_after are timed one by one, of which {} ns are the clock's; max holds what else \
         the machine did, worst does not",
        clock_ns()
    ));
    report.print();
    report.write();
}
