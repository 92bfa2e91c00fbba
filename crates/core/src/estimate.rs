//! How long a run takes, learned from the good ones (B1).

use std::num::NonZeroU64;

use crate::time::Duration;

/// The weight of the newest sample unless a job says otherwise: three quarters of all weight lie
/// on the last three runs.
pub const WEIGHT_OF_LAST: f64 = 0.37;

/// A sample counts as at most this many times the mean, and at least the same part of it: one hung
/// run or one that found nothing to do must not move every deadline of the job.
const OUTLIER_FACTOR: f64 = 5.0;

/// Fewer good runs than this do not tell what is usual.
const USUAL_SAMPLES_MIN: u64 = 5;

/// A run shorter than this is never called slow: what usually takes a second may take a minute for many reasons.
const SLOW_FLOOR: Duration = Duration::from_mins(5);

/// What is known about the length of a job's runs. It begins with the first good run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    mean_ms: f64,
    variance_ms2: f64,
    n_samples: NonZeroU64,
}

impl Estimate {
    /// What one good run tells.
    pub fn first(sample: Duration) -> Estimate {
        Estimate { mean_ms: sample.as_millis_f64().max(0.0), variance_ms2: 0.0, n_samples: NonZeroU64::MIN }
    }

    /// What is known after one more good run.
    #[must_use]
    pub fn with_sample(self, sample: Duration, weight: f64) -> Estimate {
        let mean = self.mean_ms;
        let sample_ms = sample.as_millis_f64().max(0.0);
        // A mean of zero has no factor; whatever comes first then sets the scale.
        let sample_ms = if 0.0 < mean {
            sample_ms.clamp(mean / OUTLIER_FACTOR, mean * OUTLIER_FACTOR)
        } else {
            sample_ms
        };
        let difference = sample_ms - mean;
        Estimate {
            mean_ms: weight * sample_ms + (1.0 - weight) * mean,
            variance_ms2: (1.0 - weight) * (self.variance_ms2 + weight * difference * difference),
            n_samples: self.n_samples.saturating_add(1),
        }
    }

    /// The same after the first or after one more good run.
    pub fn learn(known: Option<Estimate>, sample: Duration, weight: f64) -> Estimate {
        match known {
            Some(estimate) => estimate.with_sample(sample, weight),
            None => Estimate::first(sample),
        }
    }

    /// The same, to the last digit: mean and variance in milliseconds and their square, and the number of runs.
    pub fn to_stored(&self) -> (f64, f64, u64) {
        (self.mean_ms, self.variance_ms2, self.n_samples.get())
    }

    /// What was [stored](Estimate::to_stored). Numbers that no run can have led to are taken as 0.
    pub fn from_stored(mean_ms: f64, variance_ms2: f64, n_samples: u64) -> Estimate {
        let sound = |number: f64| if number.is_finite() { number.max(0.0) } else { 0.0 };
        Estimate {
            mean_ms: sound(mean_ms),
            variance_ms2: sound(variance_ms2),
            n_samples: NonZeroU64::new(n_samples).unwrap_or(NonZeroU64::MIN),
        }
    }

    /// The expected length.
    pub fn mean(&self) -> Duration {
        Duration::from_millis_f64(self.mean_ms)
    }

    /// How far runs usually lie from the mean.
    pub fn deviation(&self) -> Duration {
        Duration::from_millis_f64(self.variance_ms2.sqrt())
    }

    /// How long a run must take to be called slow: three times the mean, and longer than nearly all runs before it. None
    /// until enough runs are known.
    pub fn slow_after(&self) -> Option<Duration> {
        let is_known = USUAL_SAMPLES_MIN <= self.n_samples();
        let slow_ms = (3.0 * self.mean_ms).max(self.mean_ms + 3.0 * self.variance_ms2.sqrt());
        is_known.then(|| Duration::from_millis_f64(slow_ms).max(SLOW_FLOOR))
    }

    /// How many good runs it was learned from.
    pub fn n_samples(&self) -> u64 {
        self.n_samples.get()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn secs(seconds: i64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn the_first_good_run_starts_it() {
        let estimate = Estimate::learn(None, secs(100), WEIGHT_OF_LAST);
        assert_eq!((estimate.mean(), estimate.deviation(), estimate.n_samples()), (secs(100), secs(0), 1));
    }

    #[test]
    fn a_run_is_slow_at_three_times_the_usual_length_if_that_is_known() {
        let after = |n: u64, seconds: i64| {
            let first = Estimate::first(secs(seconds));
            (1..n).fold(first, |it, _| it.with_sample(secs(seconds), WEIGHT_OF_LAST)).slow_after()
        };
        assert_eq!((after(4, 600), after(5, 600)), (None, Some(secs(1_800))));
        assert_eq!(after(9, 2), Some(secs(300)), "short jobs have a floor");
        // Where runs differ much, three times the mean is nothing unusual.
        let uneven = Estimate::from_stored(600_000.0, 900_000.0 * 900_000.0, 20);
        assert_eq!(uneven.slow_after(), Some(secs(3_300)));
    }

    #[test]
    fn later_runs_move_mean_and_deviation_by_the_formula() {
        // mean = 0.37*200 + 0.63*100 = 137; var = 0.63*(0 + 0.37*100^2) = 2331, sd = 48.280.
        let estimate = Estimate::first(secs(100)).with_sample(secs(200), WEIGHT_OF_LAST);
        assert_eq!(estimate.mean(), secs(137));
        assert_eq!(estimate.deviation(), Duration::from_millis(48_280));
    }

    #[test]
    fn three_quarters_of_the_weight_lie_on_the_last_three() {
        let weight_of_rest = (1.0 - WEIGHT_OF_LAST).powi(3);
        assert!((0.74..0.76).contains(&(1.0 - weight_of_rest)));
    }

    #[test]
    fn an_outlier_counts_as_five_times_or_a_fifth() {
        let known = Estimate::first(secs(100));
        assert_eq!(
            known.with_sample(secs(90_000), WEIGHT_OF_LAST),
            known.with_sample(secs(500), WEIGHT_OF_LAST)
        );
        assert_eq!(known.with_sample(secs(0), WEIGHT_OF_LAST), known.with_sample(secs(20), WEIGHT_OF_LAST));
        // A mean of nothing must be able to grow again.
        assert_eq!(Estimate::first(secs(0)).with_sample(secs(100), WEIGHT_OF_LAST).mean(), secs(37));
    }

    proptest! {
        #[test]
        fn the_mean_stays_among_the_samples(samples in prop::collection::vec(1_i64..100_000, 1..40)) {
            let (min, max) = (*samples.iter().min().unwrap(), *samples.iter().max().unwrap());
            let mut known = None;
            for sample in &samples {
                known = Some(Estimate::learn(known, Duration::from_millis(*sample), WEIGHT_OF_LAST));
            }
            let mean = known.unwrap().mean().as_millis();
            prop_assert!((min..=max).contains(&mean), "{mean} is not in {min}..={max}");
        }
    }
}
