//! Measuring: rounds of something slow, single calls, and calls too fast to be timed one by one.

use std::hint::black_box;
use std::time::Instant;

const N_ROUNDS_MIN: usize = 5;
const N_ROUNDS_MAX: usize = 200;
const ROUNDS_NS_MAX: u64 = 1_500_000_000;
const N_CALLS: usize = 20_000;
const N_BATCHES: usize = 5_000;
const N_IN_BATCH: u32 = 100;
const SEED: u64 = 19_990_401;

/// How long something took, half of the time, and when it was slow.
#[derive(Clone, Copy)]
pub(crate) struct Spread {
    pub(crate) p50: f64,
    pub(crate) p95: f64,
    pub(crate) p99: f64,
}

impl Spread {
    pub(crate) fn of(mut times_ns: Vec<u64>) -> Spread {
        times_ns.sort_unstable();
        let at_share = |share: usize| {
            let idx = (times_ns.len() * share / 100).min(times_ns.len().saturating_sub(1));
            as_f64(times_ns.get(idx).copied().unwrap_or(0))
        };
        Spread { p50: at_share(50), p95: at_share(95), p99: at_share(99) }
    }

    /// The same divided by `n`, for one of `n` or in a larger unit.
    pub(crate) fn each_of(self, n: f64) -> Spread {
        Spread { p50: self.p50 / n, p95: self.p95 / n, p99: self.p99 / n }
    }
}

/// Times the work alone: neither what makes it ready nor what frees its result.
pub(crate) fn rounds<I, O>(ready: impl Fn() -> I, work: impl Fn(I) -> O) -> Spread {
    let began = Instant::now();
    let mut times_ns = Vec::new();
    while times_ns.len() < N_ROUNDS_MAX
        && (times_ns.len() < N_ROUNDS_MIN || elapsed_ns(began) < ROUNDS_NS_MAX)
    {
        let input = black_box(ready());
        let started = Instant::now();
        let output = work(input);
        times_ns.push(elapsed_ns(started));
        drop(black_box(output));
    }
    Spread::of(times_ns)
}

/// Each call timed on its own, after a drawn argument.
pub(crate) fn single<A: Copy, O>(draw: impl Fn(&mut u64) -> A, call: impl Fn(A) -> O) -> Spread {
    let mut seed = SEED;
    let times_ns = (0..N_CALLS).map(|_| {
        let argument = draw(&mut seed);
        let started = Instant::now();
        black_box(call(black_box(argument)));
        elapsed_ns(started)
    });
    Spread::of(times_ns.collect())
}

/// Calls timed a hundred at a time: the spread is that of their means.
pub(crate) fn batched<A: Copy, O>(draw: impl Fn(&mut u64) -> A, call: impl Fn(A) -> O) -> Spread {
    let mut seed = SEED;
    let times_ns = (0..N_BATCHES).map(|_| {
        let arguments: Vec<A> = (0..N_IN_BATCH).map(|_| draw(&mut seed)).collect();
        let started = Instant::now();
        for argument in &arguments {
            black_box(call(black_box(*argument)));
        }
        elapsed_ns(started)
    });
    Spread::of(times_ns.collect()).each_of(f64::from(N_IN_BATCH))
}

/// What reading the clock twice takes, most of the time.
pub(crate) fn clock_ns() -> u64 {
    const N_READINGS: usize = 10_001;
    let mut times_ns: Vec<u64> = (0..N_READINGS).map(|_| elapsed_ns(Instant::now())).collect();
    times_ns.sort_unstable();
    times_ns.get(N_READINGS / 2).copied().unwrap_or(0)
}

pub(crate) fn elapsed_ns(started: Instant) -> u64 {
    u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

pub(crate) fn random_below(seed: &mut u64, limit: i64) -> i64 {
    i64::try_from(random(seed) % limit.unsigned_abs().max(1)).unwrap_or(0)
}

/// The splitmix64 generator: the same numbers in each run.
pub(crate) fn random(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *seed;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[allow(clippy::cast_precision_loss, reason = "no figure here has 16 digits")]
fn as_f64(figure: u64) -> f64 {
    figure as f64
}
