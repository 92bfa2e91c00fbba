//! Chance that can be had again, and how much of it there is to be.

use std::time::{SystemTime, UNIX_EPOCH};

/// How often something is done: few times with every test run, many with `scripts/chaos node`, which sets
/// `EVENBEAT_CHAOS_<NAME>`.
pub(crate) fn bound(name: &str, short: u64) -> u64 {
    let variable = format!("EVENBEAT_CHAOS_{name}");
    match std::env::var(&variable) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{variable} is a number, not `{text}`")),
        Err(_) => short,
    }
}

/// Chance.
#[derive(Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    /// Of `EVENBEAT_CHAOS_SEED`, or of this moment; it is said which.
    pub(crate) fn new() -> Dice {
        let of_now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64 % 1_000_000;
        let seed = match std::env::var("EVENBEAT_CHAOS_SEED") {
            Ok(text) => text.parse().expect("EVENBEAT_CHAOS_SEED is a number"),
            Err(_) => of_now(),
        };
        eprintln!("EVENBEAT_CHAOS_SEED={seed}");
        Dice(seed)
    }

    /// Of a seed of its own.
    pub(crate) fn of(seed: u64) -> Dice {
        Dice(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// From 0 to below that.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    pub(crate) fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}
