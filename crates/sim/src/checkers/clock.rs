//! The store's clock, as facts let it be seen from outside.

use evenbeat_core::time::{Duration, Timestamp};

use crate::fact::{Fact, RealTime, What};

/// A clock that runs at the speed of real time moves by less than this in a hundredth of a second; more
/// is a step.
const STEP_MIN_MS: i64 = 100;

/// What is known of the store's clock.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StoreClock {
    last: Option<(RealTime, Timestamp)>,
    stepped_at: Option<RealTime>,
    has_stepped_back: bool,
}

impl StoreClock {
    /// Reads the clock off a fact that shows it. What the clock showed is true also if what was
    /// committed then is lost later.
    pub(super) fn see(&mut self, fact: &Fact) {
        let shown = match &fact.what {
            What::Granted { store_now, .. }
            | What::Put { store_now, .. }
            | What::Removed { store_now, .. } => *store_now,
            _ => return,
        };
        if let Some(expected) = self.at(fact.at) {
            let off = (shown - expected).as_millis();
            // One part in fifty for a clock that is itself fast or slow.
            let allowed = STEP_MIN_MS + self.last.map_or(0, |(at, _)| fact.at.since(at).as_millis() / 50);
            if allowed < off.abs() {
                self.stepped_at = Some(fact.at);
                self.has_stepped_back |= off < 0;
            }
        }
        self.last = Some((fact.at, shown));
    }

    /// What it shows at an instant, if it has not stepped since it was last seen.
    pub(super) fn at(&self, at: RealTime) -> Option<Timestamp> {
        self.last.map(|(seen_at, shown)| shown + at.since(seen_at))
    }

    /// Whether it was seen to step within this time before an instant.
    pub(super) fn has_stepped_within(&self, length: Duration, at: RealTime) -> bool {
        self.stepped_at.is_some_and(|stepped_at| at.since(stepped_at) <= length)
    }

    /// Whether it ever went back.
    pub(super) fn has_stepped_back(&self) -> bool {
        self.has_stepped_back
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkers::fact_builder::{FactBuilder, every};

    #[track_caller]
    fn check(seen: &[(i64, i64)], expected: (bool, bool)) {
        let mut clock = StoreClock::default();
        for (at, offset) in seen {
            let fact_builder = FactBuilder::new().store_ahead(*offset).at(*at).put(every("a", 60_000));
            fact_builder.facts().iter().for_each(|fact| clock.see(fact));
        }
        let last_at = RealTime(seen.last().unwrap().0);
        assert_eq!((clock.has_stepped_within(Duration::ZERO, last_at), clock.has_stepped_back()), expected);
    }

    #[test]
    fn steps_are_told_from_a_slow_clock() {
        check(&[(1_000, 0), (61_000, 600)], (false, false));
        check(&[(1_000, 0), (61_000, -600)], (false, false));
        check(&[(1_000, 0), (2_000, 5_000)], (true, false));
        check(&[(1_000, 0), (2_000, -5_000)], (true, true));
        check(&[(1_000, 0), (2_000, -5_000), (3_000, -5_000)], (false, true));
    }
}
