//! A limit that spans nodes, counted.

use std::collections::VecDeque;

use evenbeat_core::store::CounterLimit;
use evenbeat_core::time::{Duration, Timestamp};

const HOUR: Duration = Duration::from_hours(1);

#[derive(Default)]
pub(super) struct Counter {
    n_open: u32,
    /// The latest claim and those up to an hour before it, oldest first.
    claimed_at: VecDeque<Timestamp>,
}

impl Counter {
    /// Checks that there is room for one more run. The error is when to ask again, if time alone makes room.
    pub(super) fn check(&self, limit: &CounterLimit, now: Timestamp) -> Result<(), Option<Timestamp>> {
        if limit.max_open.is_some_and(|most| most <= self.n_open) || limit.max_per_hour == Some(0) {
            return Err(None);
        }
        let after_gap = limit.min_gap.and_then(|gap| Some(*self.claimed_at.back()? + gap));
        // The claim that must be an hour old before the next one.
        let after_hour = limit.max_per_hour.and_then(|most| {
            let idx = self.claimed_at.len().checked_sub(usize::try_from(most).ok()?)?;
            Some(*self.claimed_at.get(idx)? + HOUR)
        });
        let free_at = after_gap.max(after_hour);
        if free_at.is_some_and(|at| now < at) { Err(free_at) } else { Ok(()) }
    }

    pub(super) fn take(&mut self, now: Timestamp) {
        self.n_open += 1;
        while self.claimed_at.pop_front_if(|at| *at + HOUR <= now).is_some() {}
        self.claimed_at.push_back(now);
    }

    pub(super) fn release(&mut self) {
        self.n_open = self.n_open.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(minutes: i64) -> Timestamp {
        Timestamp::from_second(minutes * 60)
    }

    /// Claims at these minutes; then asks at minute `now`.
    #[track_caller]
    fn check(limit: CounterLimit, claims: &[i64], now: i64, expected: Result<(), Option<i64>>) {
        let mut counter = Counter::default();
        for minute in claims {
            counter.take(at(*minute));
        }
        assert_eq!(counter.check(&limit, at(now)), expected.map_err(|until| until.map(at)));
    }

    #[test]
    fn open_runs_are_limited_until_one_ends() {
        let limit = CounterLimit { max_open: Some(2), ..CounterLimit::default() };
        check(limit, &[0], 1, Ok(()));
        check(limit, &[0, 0], 1_000, Err(None));
        let mut counter = Counter::default();
        counter.take(at(0));
        counter.take(at(0));
        counter.release();
        assert_eq!(counter.check(&limit, at(0)), Ok(()));
    }

    #[test]
    fn claims_keep_their_distance() {
        let limit = CounterLimit { min_gap: Some(Duration::from_mins(90)), ..CounterLimit::default() };
        check(limit, &[], 0, Ok(()));
        check(limit, &[0], 89, Err(Some(90)));
        check(limit, &[0], 90, Ok(()));
    }

    #[test]
    fn an_hour_holds_so_many_claims() {
        let limit = |most| CounterLimit { max_per_hour: Some(most), ..CounterLimit::default() };
        check(limit(0), &[], 0, Err(None));
        check(limit(2), &[0], 1, Ok(()));
        check(limit(2), &[0, 10], 59, Err(Some(60)));
        check(limit(2), &[0, 10], 60, Ok(()));
        check(limit(2), &[0, 10, 60], 61, Err(Some(70)));
        // The limit was lowered: all but one of these must be an hour old.
        check(limit(2), &[0, 10, 20], 21, Err(Some(70)));
    }
}
