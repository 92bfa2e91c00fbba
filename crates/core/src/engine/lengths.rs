//! The usual length of runs in a pool: for jobs without any history (B1).

use std::collections::BTreeMap;

use crate::time::Duration;

/// How many steps there are from a length to its double.
const STEPS: f64 = 8.0;

/// Estimates of all jobs of a pool, counted in steps of a ninth: their median is cheap to keep and to read, and
/// is off by a twentieth at most.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lengths {
    counts: BTreeMap<i32, u32>,
    n: u32,
    median: Option<Duration>,
}

impl Lengths {
    pub(crate) fn add(&mut self, length: Duration) {
        *self.counts.entry(step_of(length)).or_default() += 1;
        self.n += 1;
        self.median = self.find_median();
    }

    pub(crate) fn remove(&mut self, length: Duration) {
        let step = step_of(length);
        if let Some(count) = self.counts.get_mut(&step) {
            *count -= 1;
            self.n = self.n.saturating_sub(1);
            if *count == 0 {
                self.counts.remove(&step);
            }
            self.median = self.find_median();
        }
    }

    pub(crate) fn median(&self) -> Option<Duration> {
        self.median
    }

    fn find_median(&self) -> Option<Duration> {
        let mut left = self.n.checked_add(1)? / 2;
        self.counts.iter().find_map(|(step, count)| match left.checked_sub(*count) {
            Some(0) | None => Some(length_of(*step)),
            Some(rest) => {
                left = rest;
                None
            }
        })
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the logarithm of a length has at most three digits")]
fn step_of(length: Duration) -> i32 {
    (length.as_millis_f64().max(1.0).log2() * STEPS).round() as i32
}

fn length_of(step: i32) -> Duration {
    Duration::from_millis_f64((f64::from(step) / STEPS).exp2())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn median_of(seconds: &[i64]) -> Option<f64> {
        let mut lengths = Lengths::default();
        for it in seconds {
            lengths.add(Duration::from_secs(*it));
        }
        lengths.median().map(|it| it.as_millis_f64() / 1_000.0)
    }

    #[track_caller]
    fn check(seconds: &[i64], expected: f64) {
        let median = median_of(seconds).unwrap();
        assert!((median / expected - 1.0).abs() < 0.05, "{median} is not about {expected}");
    }

    #[test]
    fn the_median_is_about_right() {
        check(&[10], 10.0);
        check(&[1, 10, 100], 10.0);
        check(&[1, 10, 100, 1_000], 10.0);
        check(&[3, 3, 3, 3, 500, 500, 500], 3.0);
        assert_eq!(median_of(&[]), None);
    }

    #[test]
    fn what_is_removed_no_longer_counts() {
        let mut lengths = Lengths::default();
        for it in [5, 50, 500] {
            lengths.add(Duration::from_secs(it));
        }
        lengths.remove(Duration::from_secs(5));
        lengths.remove(Duration::from_secs(50));
        let median = lengths.median().unwrap().as_millis_f64();
        assert!((median / 500_000.0 - 1.0).abs() < 0.05);
        lengths.remove(Duration::from_secs(500));
        assert_eq!(lengths.median(), None);
    }
}
