//! The floor under the next start after a failure (B7).

use std::hash::{Hash, Hasher};

use crate::ids::{JobKey, stable_hash};
use crate::time::{Duration, Timestamp};

/// The delays if a job names none: soon, then less and less eager.
pub const DELAYS: [Duration; 3] = [Duration::from_mins(5), Duration::from_hours(1), Duration::from_hours(4)];

/// How much a delay is stretched or shortened at most when it is scaled by the length of the
/// failed run.
const SCALE_MAX: f64 = 4.0;

/// What happens after a failure.
#[derive(Clone, Debug)]
pub struct RetryPolicy {
    /// The delay after the first failure, the second …; the last one repeats. Never empty.
    pub delays: Vec<Duration>,
    /// The part of a delay that may be added to it, by identity: 0.1 is up to a tenth.
    pub jitter: f64,
    /// Whether a run that failed early is retried sooner, and one that failed late later.
    pub scale: bool,
    /// Whether a delay also holds up the regular occurrences of `every` and `cron`. If not, the next of
    /// them is tried on time, however long the delay.
    pub holds_schedule: bool,
    /// The number of failures in a row after which the job is paused.
    pub pause_after_failures: Option<u32>,
    /// Exit codes after which a retry is not worth it: the job waits for its next occurrence.
    pub not_on_exit_codes: Vec<i32>,
}

impl Default for RetryPolicy {
    fn default() -> RetryPolicy {
        RetryPolicy {
            delays: DELAYS.to_vec(),
            jitter: 0.0,
            scale: false,
            holds_schedule: false,
            pause_after_failures: None,
            not_on_exit_codes: Vec::new(),
        }
    }
}

impl RetryPolicy {
    /// All of it, each part comparable: a jitter is the same if its bits are.
    fn parts(&self) -> (&[Duration], u64, [bool; 2], Option<u32>, &[i32]) {
        let RetryPolicy { delays, jitter, scale, holds_schedule, pause_after_failures, not_on_exit_codes } =
            self;
        (delays, jitter.to_bits(), [*scale, *holds_schedule], *pause_after_failures, not_on_exit_codes)
    }
}

impl PartialEq for RetryPolicy {
    fn eq(&self, other: &RetryPolicy) -> bool {
        self.parts() == other.parts()
    }
}

impl Eq for RetryPolicy {}

impl Hash for RetryPolicy {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.parts().hash(state);
    }
}

/// The failures that a job has behind it, none good in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failures {
    /// How many; at least one.
    pub in_a_row: u32,
    /// How many of them were runs that a blackout ended.
    pub by_blackout: u32,
    /// When the last failed run ended.
    pub ended_at: Timestamp,
    /// How long it took.
    pub took: Duration,
    /// With which code it ended, where there was one.
    pub exit_code: Option<i32>,
    /// Whether a blackout ended it, so that its exit code and its length say nothing.
    pub is_last_by_blackout: bool,
    /// How long a good run takes, if that is known.
    pub usual: Option<Duration>,
}

impl Failures {
    /// How many were the job's own, and not a blackout's.
    pub fn of_the_job(&self) -> u32 {
        self.in_a_row.saturating_sub(self.by_blackout)
    }
}

impl RetryPolicy {
    /// Before this instant a job that has failed does not start again. It is a floor: a job in
    /// `error` waits for it like any other, or one broken site would take every slot.
    pub fn floor(&self, key: &JobKey, failures: &Failures) -> Timestamp {
        let failure_idx = usize::try_from(failures.in_a_row.saturating_sub(1)).unwrap_or(usize::MAX);
        let delay = self.delays.get(failure_idx).or(self.delays.last()).copied().unwrap_or(Duration::ZERO);
        let delay = if self.scale { scaled(delay, failures) } else { delay };
        failures.ended_at + delay + self.jitter_of(delay, key, failures.in_a_row)
    }

    /// Whether the last failure is worth another attempt at the same occurrence.
    pub fn retries(&self, failures: &Failures) -> bool {
        let is_worth_it = |code| !self.not_on_exit_codes.contains(&code);
        failures.is_last_by_blackout || failures.exit_code.is_none_or(is_worth_it)
    }

    /// Whether these failures in a row pause the job. A run that a blackout ended says nothing about the
    /// job, so it does not count here (B8).
    pub fn pauses(&self, failures: &Failures) -> bool {
        self.pause_after_failures.is_some_and(|most| most <= failures.of_the_job())
    }

    /// From the job and the attempt, never from dice: replays and nodes agree, a fleet spreads out.
    fn jitter_of(&self, delay: Duration, key: &JobKey, failure_count: u32) -> Duration {
        let longest = Duration::from_millis_f64(delay.as_millis_f64() * self.jitter).as_millis();
        let Some(choices) = u64::try_from(longest).ok().and_then(|it| it.checked_add(1)) else {
            return Duration::ZERO;
        };
        let mut identity = key.as_str().as_bytes().to_vec();
        identity.extend(failure_count.to_le_bytes());
        Duration::from_millis(i64::try_from(stable_hash(&identity) % choices).unwrap_or(0))
    }
}

/// The delay times the failed run's length over the usual one, within reason.
fn scaled(delay: Duration, failures: &Failures) -> Duration {
    let usual = failures.usual.map_or(0.0, Duration::as_millis_f64);
    if usual <= 0.0 {
        return delay;
    }
    let factor = (failures.took.as_millis_f64() / usual).clamp(1.0 / SCALE_MAX, SCALE_MAX);
    Duration::from_millis_f64(delay.as_millis_f64() * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> JobKey {
        "shop".parse().unwrap()
    }

    /// The last run took a minute and ended at second 1000.
    fn failed(in_a_row: u32) -> Failures {
        let ended_at = Timestamp::from_second(1_000);
        Failures {
            in_a_row,
            by_blackout: 0,
            ended_at,
            took: Duration::from_mins(1),
            exit_code: None,
            is_last_by_blackout: false,
            usual: None,
        }
    }

    #[track_caller]
    fn check(policy: &RetryPolicy, failures: &Failures, expected_delay: &str) {
        let delay = policy.floor(&key(), failures) - failures.ended_at;
        assert_eq!(delay.to_string(), expected_delay);
    }

    #[test]
    fn delays_go_by_the_failure_count_and_the_last_repeats() {
        let policy = RetryPolicy::default();
        check(&policy, &failed(1), "5m");
        check(&policy, &failed(2), "1h");
        check(&policy, &failed(3), "4h");
        check(&policy, &failed(4), "4h");
        check(&policy, &failed(u32::MAX), "4h");
    }

    #[test]
    fn scaling_follows_the_length_of_the_failed_run() {
        let policy = RetryPolicy { scale: true, ..RetryPolicy::default() };
        let with_usual = |usual_s| Failures { usual: Some(Duration::from_secs(usual_s)), ..failed(1) };
        check(&policy, &with_usual(120), "2m30s");
        check(&policy, &with_usual(30), "10m");
        check(&policy, &with_usual(6_000), "1m15s");
        check(&policy, &with_usual(1), "20m");
        check(&policy, &failed(1), "5m");
    }

    #[test]
    fn jitter_comes_from_identity_and_stays_within_its_part() {
        let policy = RetryPolicy { jitter: 0.1, ..RetryPolicy::default() };
        let delay_of = |name: &str| {
            let key: JobKey = name.parse().unwrap();
            policy.floor(&key, &failed(1)) - Timestamp::from_second(1_000)
        };
        let delays: Vec<Duration> = (0..50).map(|it| delay_of(&format!("job{it}"))).collect();
        assert!(delays.iter().all(|it| (Duration::from_secs(300)..=Duration::from_secs(330)).contains(it)));
        assert!(delays.windows(2).any(|it| it.first() != it.last()));
        assert_eq!(delay_of("job7"), delay_of("job7"));
    }

    #[test]
    fn some_exit_codes_are_not_worth_a_retry() {
        let policy = RetryPolicy { not_on_exit_codes: vec![2, 64], ..RetryPolicy::default() };
        let with_code = |exit_code| Failures { exit_code, ..failed(1) };
        assert!(policy.retries(&with_code(Some(1))));
        assert!(policy.retries(&with_code(None)));
        assert!(!policy.retries(&with_code(Some(64))));
    }

    #[test]
    fn the_exit_code_of_a_run_that_a_blackout_ended_says_nothing() {
        let policy = RetryPolicy { not_on_exit_codes: vec![64], ..RetryPolicy::default() };
        let ended = Failures { exit_code: Some(64), is_last_by_blackout: true, ..failed(1) };
        assert!(policy.retries(&ended));
    }

    #[test]
    fn a_run_that_a_blackout_ended_does_not_count_towards_the_pause() {
        let policy = RetryPolicy { pause_after_failures: Some(3), ..RetryPolicy::default() };
        assert!(!policy.pauses(&Failures { by_blackout: 2, ..failed(4) }));
        assert!(policy.pauses(&Failures { by_blackout: 2, ..failed(5) }));
    }

    #[test]
    fn the_circuit_breaker_counts_failures_in_a_row() {
        let policy = RetryPolicy { pause_after_failures: Some(3), ..RetryPolicy::default() };
        assert!(!policy.pauses(&failed(2)));
        assert!(policy.pauses(&failed(3)));
        assert!(!RetryPolicy::default().pauses(&failed(1_000)));
    }
}
