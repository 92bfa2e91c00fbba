//! Measuring one contender.

use std::hint::black_box;
use std::time::Instant;

use crate::contenders::Contender;

/// Instants to ask each expression from.
const N_ASKED_EACH: usize = 10;
/// One in this many lies on a day on which New York's clocks change.
const ON_CHANGE_DAY_EVERY: u64 = 5;
const YEAR_2026_S: i64 = 1_767_225_600;
const YEAR_S: u64 = 365 * 86_400;
const CHANGE_DAYS_S: [i64; 2] = [1_772_946_000, 1_793_505_600];
const N_ASKED_AGAIN: usize = 4;
const SEED: u64 = 20_261_115;

/// A pass over all expressions is repeated, and the fastest counts: whatever else the machine did
/// can only have made it slower. A contender that needs long gets fewer passes.
const N_PASSES_MAX: usize = 9;
const PASSES_NS_MAX: u64 = 2_000_000_000;

/// A half-open window in a zone.
#[derive(Clone, Copy)]
pub(crate) struct Window {
    pub(crate) name: &'static str,
    zone: &'static str,
    start_s: i64,
    end_s: i64,
}

impl Window {
    pub(crate) const fn of(name: &'static str, zone: &'static str, start_s: i64, end_s: i64) -> Window {
        Window { name, zone, start_s, end_s }
    }
}

/// Nanoseconds of single calls.
pub(crate) struct Latency {
    pub(crate) p50: u64,
    pub(crate) p99: u64,
    pub(crate) max: u64,
    /// The slowest question, each one asked several times and its fastest answer taken: a longest
    /// call that is not just one during which the machine did something else.
    pub(crate) worst: u64,
}

/// One pass over all expressions.
pub(crate) struct Expansion {
    total_ns: u64,
    pub(crate) n_occurrences: u64,
}

#[allow(clippy::cast_precision_loss, reason = "a few digits are shown")]
impl Expansion {
    pub(crate) fn total_ms(&self) -> f64 {
        self.total_ns as f64 / 1e6
    }

    pub(crate) fn ns_each(&self) -> f64 {
        self.total_ns as f64 / self.n_occurrences.max(1) as f64
    }
}

/// Each call of `next_after` timed on its own, from the same instants for every contender.
pub(crate) fn next_after<C: Contender>(texts: &[&str], zone_name: &str) -> Latency {
    let zone = C::zone(zone_name);
    let mut seed = SEED;
    let mut worst = 0;
    let mut times_ns = Vec::with_capacity(texts.len() * N_ASKED_EACH);
    for plan in plans::<C>(texts, zone_name) {
        for _ in 0..N_ASKED_EACH {
            let after = C::instant(&zone, random_second(&mut seed));
            let ask = || {
                let started = Instant::now();
                black_box(plan.next_after(&zone, black_box(&after)));
                elapsed_ns(started)
            };
            let first_ns = ask();
            times_ns.push(first_ns);
            worst = worst.max((0..N_ASKED_AGAIN).map(|_| ask()).fold(first_ns, u64::min));
        }
    }
    times_ns.sort_unstable();
    let at_share = |share: usize| times_ns.get(times_ns.len() * share / 100).copied().unwrap_or(0);
    Latency { p50: at_share(50), p99: at_share(99), max: times_ns.last().copied().unwrap_or(0), worst }
}

/// All expressions over one window.
pub(crate) fn expansion<C: Contender>(texts: &[&str], window: Window) -> Expansion {
    let zone = C::zone(window.zone);
    let plans = plans::<C>(texts, window.zone);
    let mut n_occurrences = 0;
    let total_ns = fastest_pass(|| {
        n_occurrences = plans.iter().map(|plan| plan.expand(&zone, window.start_s, window.end_s)).sum();
    });
    Expansion { total_ns, n_occurrences }
}

/// Nanoseconds to make one expression ready to be asked.
pub(crate) fn parse<C: Contender>(texts: &[&str]) -> u64 {
    let texts: Vec<String> = texts.iter().map(|text| C::text(text, "UTC")).collect();
    let total_ns = fastest_pass(|| {
        for text in &texts {
            black_box(C::parse(black_box(text)));
        }
    });
    total_ns / u64::try_from(texts.len().max(1)).unwrap_or(1)
}

/// What reading the clock twice takes, most of the time.
pub(crate) fn clock_ns() -> u64 {
    const N_READINGS: usize = 10_001;
    let mut times_ns: Vec<u64> = (0..N_READINGS).map(|_| elapsed_ns(Instant::now())).collect();
    times_ns.sort_unstable();
    times_ns.get(N_READINGS / 2).copied().unwrap_or(0)
}

fn plans<C: Contender>(texts: &[&str], zone_name: &str) -> Vec<C> {
    texts.iter().map(|text| C::parse(&C::text(text, zone_name))).collect()
}

fn fastest_pass(mut pass: impl FnMut()) -> u64 {
    let began = Instant::now();
    let mut fastest_ns = u64::MAX;
    for _ in 0..N_PASSES_MAX {
        let started = Instant::now();
        pass();
        fastest_ns = fastest_ns.min(elapsed_ns(started));
        if PASSES_NS_MAX < elapsed_ns(began) {
            break;
        }
    }
    fastest_ns
}

fn elapsed_ns(started: Instant) -> u64 {
    u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// A second of 2026, now and then one of a day on which the clocks change.
fn random_second(seed: &mut u64) -> i64 {
    let drawn = random(seed);
    if drawn.is_multiple_of(ON_CHANGE_DAY_EVERY) {
        let [spring, autumn] = CHANGE_DAYS_S;
        let day_s = if random(seed).is_multiple_of(2) { spring } else { autumn };
        return day_s + below(random(seed), 25 * 3_600);
    }
    YEAR_2026_S + below(random(seed), YEAR_S)
}

fn below(drawn: u64, limit: u64) -> i64 {
    i64::try_from(drawn % limit).unwrap_or(0)
}

/// The splitmix64 generator: the same numbers in each run.
fn random(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *seed;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
