//! How fast runs may start: after an outage a fleet comes back as a stream, not as a flood.

use super::StartRate;
use crate::time::{BootTime, Duration};

/// A bucket that fills with the right to start runs.
#[derive(Clone, Debug)]
pub(crate) struct StartBucket {
    rate: Option<StartRate>,
    /// What is in it, in thousandths of a run, at `filled_at`.
    level: i64,
    filled_at: Option<BootTime>,
}

const RUN: i64 = 1_000;

impl StartBucket {
    pub(crate) fn new(rate: Option<StartRate>) -> StartBucket {
        StartBucket {
            rate,
            level: rate.map_or(0, |rate| i64::from(rate.burst.max(1)) * RUN),
            filled_at: None,
        }
    }

    /// How many runs may start now.
    pub(crate) fn available(&self, now: BootTime) -> usize {
        match self.rate {
            None => usize::MAX,
            Some(rate) => usize::try_from(self.level_at(rate, now) / RUN).unwrap_or(0),
        }
    }

    pub(crate) fn take(&mut self, now: BootTime, n: usize) {
        let Some(rate) = self.rate else { return };
        let taken = i64::try_from(n).unwrap_or(i64::MAX).saturating_mul(RUN);
        self.level = self.level_at(rate, now).saturating_sub(taken);
        self.filled_at = Some(now);
    }

    /// When the next run may start; none if one may now.
    pub(crate) fn next_at(&self, now: BootTime) -> Option<BootTime> {
        let rate = self.rate?;
        let lacking = RUN - self.level_at(rate, now);
        if lacking <= 0 {
            return None;
        }
        let per_second = i64::from(rate.per_second.max(1));
        // One run a thousandth of a run for each millisecond and run a second.
        Some(now + Duration::from_millis((lacking + per_second - 1) / per_second))
    }

    fn level_at(&self, rate: StartRate, now: BootTime) -> i64 {
        let most = i64::from(rate.burst.max(1)) * RUN;
        let since = self.filled_at.map_or(0, |filled_at| (now - filled_at).as_millis().max(0));
        self.level.saturating_add(since.saturating_mul(i64::from(rate.per_second))).min(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> BootTime {
        BootTime::from_millis(millis)
    }

    #[test]
    fn a_burst_then_a_stream() {
        let mut starts = StartBucket::new(Some(StartRate { per_second: 10, burst: 3 }));
        assert_eq!(starts.available(at(0)), 3);
        starts.take(at(0), 3);
        assert_eq!(starts.available(at(99)), 0);
        assert_eq!(starts.next_at(at(0)), Some(at(100)));
        assert_eq!(starts.available(at(100)), 1);
        assert_eq!(starts.next_at(at(100)), None);
        assert_eq!(starts.available(at(250)), 2);
        assert_eq!(starts.available(at(60_000)), 3, "what is not used is not saved up");
    }

    #[test]
    fn without_a_rate_there_is_no_end() {
        let mut starts = StartBucket::new(None);
        starts.take(at(0), 1_000_000);
        assert_eq!(starts.available(at(0)), usize::MAX);
        assert_eq!(starts.next_at(at(0)), None);
    }
}
