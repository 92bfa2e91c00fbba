//! Deadlines missed at 70, 90 and 100% load, by order (P10).

use evenbeat_whatif::Scenario;

use crate::Size;
use crate::fleet::fleets;
use crate::lived::{Lived, live_all, mean};
use crate::way::ways;

const LOADS: [u32; 3] = [70, 90, 100];

/// So many times fewer deadlines are to be missed at 90% than first come misses (P10).
const TARGET: f64 = 5.0;

pub(crate) fn run(size: Size, figures: &mut Vec<(String, f64)>) {
    println!();
    println!(
        "deadlines missed in {} days (after one that does not count), mean and range of {} draws; load = cost x \
         mean run length x starts / capacity, `used` is what came of it",
        size.days, size.n_seeds
    );
    println!(
        "{:<9} {:>5} {:>6} {:>6} {:<15} {:>19} {:>9} {:>9} {:>7}",
        "fleet", "load", "units", "used", "order", "missed", "fresh %", "p99 wait", "x ours"
    );
    for file in fleets(size) {
        for load in LOADS {
            let loaded = file.at(f64::from(load) / 100.0);
            let seeds = 1..=size.n_seeds;
            let scenarios: Vec<Scenario> = ways()
                .iter()
                .flat_map(|way| seeds.clone().map(|seed| loaded.scenario(way, seed, size.days + 1, &[])))
                .collect();
            let lived = live_all(&scenarios);
            let mut ours = 0.0;
            for (way, lived) in ways().iter().zip(lived.chunks(size.n_seeds as usize)) {
                let missed = mean(lived.iter().map(Lived::n_misses));
                let fresh = mean(lived.iter().map(|it| it.report.all.freshness * 100.0)).mean;
                let wait =
                    mean(lived.iter().map(|it| it.report.all.wait.p99.as_millis_f64() / 60_000.0)).mean;
                let used = mean(lived.iter().map(Lived::in_use)).mean;
                if way.code == "ours" {
                    ours = missed.mean;
                }
                let ratio = Ratio::of(missed.mean, ours, size.n_seeds);
                println!(
                    "{:<9} {load:>4}% {:>6} {:>5.1}% {:<15} {:>19} {fresh:>9.3} {wait:>7.1} m {:>7}",
                    loaded.name,
                    loaded.capacity,
                    used * 100.0,
                    way.name,
                    missed.to_string(),
                    ratio.to_string()
                );
                let name = format!("{}_{load}_{}", loaded.name, way.code);
                figures.push((format!("{name}_missed"), missed.mean));
                figures.push((format!("{name}_freshness"), fresh / 100.0));
                figures.push((format!("{name}_p99_wait_minutes"), wait));
                if load == 90 && way.code == "first_come" {
                    let verdict = if ratio.reaches(TARGET) { "pass" } else { "miss" };
                    println!(
                        "{:<9} P10: first come misses {} x as many as ours at 90% (target: {TARGET} x): {verdict}",
                        loaded.name, ratio
                    );
                }
            }
        }
    }
}

/// How many times as many as ours.
#[derive(Clone, Copy, Debug)]
enum Ratio {
    /// Nobody missed anything: there is nothing to compare.
    Neither,
    Times(f64),
    /// Ours missed none in all draws: as if it had missed the next one.
    MoreThan(f64),
}

impl Ratio {
    fn of(theirs: f64, ours: f64, n_draws: u64) -> Ratio {
        match (0.0 < theirs, 0.0 < ours) {
            (false, false) => Ratio::Neither,
            (_, true) => Ratio::Times(theirs / ours),
            (true, false) => Ratio::MoreThan(theirs * n_draws as f64),
        }
    }

    fn reaches(self, target: f64) -> bool {
        match self {
            Ratio::Neither => true,
            Ratio::Times(times) | Ratio::MoreThan(times) => target <= times,
        }
    }
}

impl std::fmt::Display for Ratio {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Ratio::Neither => f.pad("-"),
            Ratio::Times(times) => f.pad(&format!("{times:.1}")),
            Ratio::MoreThan(times) => f.pad(&format!("> {times:.0}")),
        }
    }
}
