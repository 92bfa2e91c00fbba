//! Chance, drawn from a seed: the same seed gives the same throws, on every machine and in every release.
//!
//! Whole numbers only: the last digit of a logarithm may differ from one machine to the next.

/// A seeded generator (xoshiro256**, seeded by `SplitMix64`).
#[derive(Clone, Debug)]
pub struct Dice {
    state: [u64; 4],
}

impl Dice {
    /// The dice of a seed.
    pub fn new(seed: u64) -> Dice {
        let mut mixed = seed;
        let mut next = || {
            mixed = mixed.wrapping_add(0x9e37_79b9_7f4a_7c15);
            finish(mixed)
        };
        Dice { state: [next(), next(), next(), next()] }
    }

    /// Other dice of the same seed, for a purpose of their own: what is drawn there changes nothing here.
    #[must_use]
    pub fn fork(&self, purpose: u64) -> Dice {
        Dice::new(self.state[0] ^ finish(purpose))
    }

    /// Any number.
    pub fn number(&mut self) -> u64 {
        let [a, b, c, d] = &mut self.state;
        let drawn = b.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let shifted = *b << 17;
        *c ^= *a;
        *d ^= *b;
        *b ^= *c;
        *a ^= *d;
        *c ^= shifted;
        *d = d.rotate_left(45);
        drawn
    }

    /// Any number of 128 bits.
    pub fn wide_number(&mut self) -> u128 {
        u128::from(self.number()) << 64 | u128::from(self.number())
    }

    /// One of `0..n`.
    pub fn below(&mut self, n: usize) -> usize {
        assert!(0 < n, "nothing can be drawn from nothing");
        let wide = u128::from(self.number()) * n as u128;
        usize::try_from(wide >> 64).unwrap_or(0)
    }

    /// One of `least..=most`, all alike.
    pub fn between(&mut self, least: i64, most: i64) -> i64 {
        assert!(least <= most, "nothing lies between {least} and {most}");
        let n = u128::from(most.abs_diff(least)) + 1;
        let drawn = (u128::from(self.number()) * n) >> 64;
        least.wrapping_add(i64::try_from(drawn).unwrap_or(i64::MAX))
    }

    /// One of `least..=most`, small ones as often as large ones: each doubling has the same share.
    pub fn spread(&mut self, least: i64, most: i64) -> i64 {
        assert!(0 < least, "doubling {least} leads nowhere");
        assert!(least <= most, "nothing lies between {least} and {most}");
        let n_doublings = i64::from((most / least).ilog2());
        let lower = least << self.between(0, n_doublings);
        self.between(lower, most.min(lower.saturating_mul(2)))
    }

    /// Whether something happens that does so this often, in percent.
    pub fn chance(&mut self, percent: u32) -> bool {
        self.below(100) < percent as usize
    }

    /// One of these.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// One of these, by their weights.
    pub fn weighted<T: Copy>(&mut self, from: &[(usize, T)]) -> T {
        let mut left = self.below(from.iter().map(|(weight, _)| weight).sum());
        for (weight, it) in from {
            if left < *weight {
                return *it;
            }
            left -= weight;
        }
        unreachable!("a number below the sum of weights lies in one of them")
    }
}

fn finish(mixed: u64) -> u64 {
    let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn throws_never_change() {
        let mut dice = Dice::new(42);
        let thrown = [dice.number(), dice.number(), dice.number()];
        assert_eq!(thrown, [0x1578_0b2e_0c2e_c716, 0x6104_d986_6d11_3a7e, 0xae17_5332_39e4_99a1]);
        let other = Dice::new(42).fork(1).number();
        assert_ne!(other, Dice::new(42).number());
        assert_ne!(other, Dice::new(42).fork(2).number());
    }

    #[test]
    fn every_number_is_drawn_and_no_other() {
        let mut dice = Dice::new(7);
        let mut n_seen = [0_u32; 5];
        for _ in 0..1_000 {
            n_seen[usize::try_from(dice.between(-2, 2) + 2).unwrap()] += 1;
        }
        assert!(n_seen.iter().all(|n| 150 < *n && *n < 250), "{n_seen:?}");
        assert_eq!(dice.between(3, 3), 3);
        assert_eq!(dice.below(1), 0);
        assert!(!dice.chance(0));
        assert!(dice.chance(100));
    }

    #[test]
    fn spread_numbers_are_small_as_often_as_large() {
        let mut dice = Dice::new(7);
        let drawn: Vec<i64> = (0..1_000).map(|_| dice.spread(10, 10_000)).collect();
        assert!(drawn.iter().all(|it| (10..=10_000).contains(it)));
        let n_small = drawn.iter().filter(|it| **it < 320).count();
        assert!(400 < n_small && n_small < 600, "{n_small} of 1000 lie below the middle");
    }

    #[test]
    fn weights_decide_how_often() {
        let mut dice = Dice::new(7);
        let n_rare = (0..1_000).filter(|_| dice.weighted(&[(9, false), (1, true)])).count();
        assert!(60 < n_rare && n_rare < 140, "{n_rare} of 1000 are rare");
    }
}
