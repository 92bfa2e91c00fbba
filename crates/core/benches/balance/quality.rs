//! Peaks of starts per slot and per minute over a day, against the best that is possible.

use evenbeat_core::distribution::Distribution;
use evenbeat_core::placement::place_every;
use evenbeat_core::slot::{BalanceBy, JobLoad, SlotLoad};
use evenbeat_core::time::{Duration, TimeWindow};

use super::fleet::{Dice, Made, WIDTH, Way, mixed, now};

/// Most that a peak may exceed the best possible by: one run, or this part of it.
const SLOT_TARGET: f64 = 1.01;
const MINUTE_TARGET: f64 = 1.05;

pub(crate) fn run(sizes: &[usize], figures: &mut Vec<(String, f64)>) {
    println!("\nstarts over 24 h, a tenth of the jobs pinned by cron; ratio = peak / best possible");
    println!(
        "{:>8} {:14} {:>10} {:>8} {:>7} {:>10} {:>8} {:>7} {:>10} {:>7}",
        "jobs", "placed by", "peak/slot", "best", "ratio", "peak/min", "best", "ratio", "peak/mean", "score"
    );
    for n_jobs in sizes {
        let made = mixed(*n_jobs);
        let best = Best::of(&made);
        for way in Way::ALL {
            let loads = placed(&made, way, BalanceBy::Runs);
            let found = Distribution::of(now(), 24, WIDTH, &loads).expect("a day");
            let (slot, minute) = (found.peak_slot().1, found.peak_minute());
            let mean = found.n_runs as f64 / found.slots.len() as f64;
            let slot_ratio = f64::from(slot) / best.slot as f64;
            let minute_ratio = f64::from(minute) / best.minute as f64;
            println!(
                "{n_jobs:>8} {:14} {slot:>10} {:>8} {slot_ratio:>7.3} {minute:>10} {:>8} {minute_ratio:>7.3} {:>10.3} {:>7.3}",
                way.name(),
                best.slot,
                best.minute,
                f64::from(slot) / mean,
                found.score(),
            );
            figures.push((format!("slot_ratio_{n_jobs}_{}", way.name()), slot_ratio));
            figures.push((format!("minute_ratio_{n_jobs}_{}", way.name()), minute_ratio));
            if way == Way::Phase {
                if u64::from(slot) > best.slot + 1 && SLOT_TARGET < slot_ratio {
                    println!("note: peak per slot is over the best possible by more than 1 run and 1%");
                }
                if u64::from(minute) > best.minute + 1 && MINUTE_TARGET < minute_ratio {
                    println!("note: peak per minute is over the best possible by more than 1 run and 5%");
                }
            }
        }
        for (by, name) in [(BalanceBy::Runs, "runs"), (BalanceBy::Work, "work")] {
            let peak = peak_concurrent(&placed(&made, Way::Phase, by));
            println!("{n_jobs:>8} most runs at once, levelled by {name}: {peak}");
            figures.push((format!("concurrent_{n_jobs}_{name}"), peak as f64));
        }
    }
}

fn placed(made: &[Made], way: Way, by: BalanceBy) -> Vec<JobLoad> {
    let mut load = SlotLoad::new(now(), WIDTH, by);
    let mut dice = Dice(7);
    let mut loads = Vec::with_capacity(made.len());
    // Pinned jobs are there first, as in a fleet that is taken over.
    for one in made {
        if let Made::Pinned { load: pinned } = one {
            load.add(pinned);
            loads.push(pinned.clone());
        }
    }
    for one in made {
        let Made::Every { name, interval, work } = one else { continue };
        let first = match way {
            Way::Phase => {
                let tick = Duration::from_millis(1);
                let first_in = TimeWindow::new(now() + tick, now() + *interval + tick);
                place_every(&load, *interval, first_in, *work, None).expect("a place").at
            }
            _ => way.first(name, *interval, &mut dice),
        };
        let one = JobLoad::every(first, *interval, *work);
        load.add(&one);
        loads.push(one);
    }
    loads
}

/// The smallest peaks that any placement could reach: what is pinned in a cell and what falls into
/// every cell cannot be avoided, and the mean cannot be undercut.
struct Best {
    slot: u64,
    minute: u64,
}

impl Best {
    fn of(made: &[Made]) -> Best {
        let pinned: Vec<&JobLoad> = made
            .iter()
            .filter_map(|one| match one {
                Made::Pinned { load } => Some(load),
                Made::Every { .. } => None,
            })
            .collect();
        let pinned = Distribution::of(now(), 24, WIDTH, pinned).expect("a day");
        let day_ms = Duration::from_days(1).as_millis() as f64;
        let mut n_runs = pinned.n_runs as f64;
        let mut in_every_slot = 0.0;
        for one in made {
            let Made::Every { interval, .. } = one else { continue };
            // A weekly job can stay out of the day.
            let a_day = (day_ms / interval.as_millis() as f64).floor();
            n_runs += a_day;
            if *interval <= WIDTH.length() {
                in_every_slot += WIDTH.length().as_millis() as f64 / interval.as_millis() as f64;
            }
        }
        let least = |cells: f64, pinned_peak: u32, in_every: f64| {
            (n_runs / cells).ceil().max((f64::from(pinned_peak) + in_every.floor()).floor()) as u64
        };
        Best {
            slot: least(96.0, pinned.peak_slot().1, in_every_slot),
            minute: least(1_440.0, pinned.peak_minute(), 0.0),
        }
    }
}

fn peak_concurrent(loads: &[JobLoad]) -> i64 {
    let day = TimeWindow::starting_at(now(), Duration::from_days(1));
    let mut changes: Vec<(i64, i64)> = Vec::new();
    for load in loads {
        load.rhythm().for_each_in(day, |at| {
            changes.push((at.as_millis(), 1));
            changes.push((at.as_millis() + load.work.length.as_millis(), -1));
        });
    }
    changes.sort_unstable();
    let mut running = 0;
    changes.iter().fold(0, |peak, (_, change)| {
        running += change;
        peak.max(running)
    })
}
