//! A placed schedule as a row of instants.
//!
//! Everything that asks "when" asks a rhythm: the next occurrence, how many there were, which was
//! the last. Answers for an interval cost the same for one occurrence and for a billion; those for
//! cron cost a few nanoseconds a day.

use crate::schedule::cron::CronPlan;
use crate::time::{Duration, TimeWindow, Timestamp};
use crate::zone::Zone;

/// How far back an earlier instant of a cron expression is looked for.
const CRON_REACH_DAYS: i64 = 40 * 366;

/// A row of instants, strictly ascending, within `[start, end)`.
#[derive(Clone, Debug)]
pub struct Rhythm<'a> {
    pattern: Pattern<'a>,
    within: TimeWindow,
}

#[derive(Clone, Debug)]
enum Pattern<'a> {
    None,
    Single(Timestamp),
    Grid { anchor_at: Timestamp, interval: Duration },
    Cron { plan: CronPlan, zone: &'a Zone },
}

impl<'a> Rhythm<'a> {
    /// No instants at all.
    pub fn empty() -> Rhythm<'a> {
        Rhythm::of(Pattern::None)
    }

    /// One instant.
    pub fn single(at: Timestamp) -> Rhythm<'a> {
        Rhythm::of(Pattern::Single(at))
    }

    /// `anchor_at`, and on from there at a fixed distance.
    ///
    /// # Panics
    ///
    /// If the interval is not longer than nothing; no schedule has such a one.
    pub fn grid(anchor_at: Timestamp, interval: Duration) -> Rhythm<'a> {
        assert!(Duration::ZERO < interval, "an interval of {interval} has no instants");
        Rhythm::of(Pattern::Grid { anchor_at, interval }).starting_at(anchor_at)
    }

    /// The instants of a cron plan in a zone.
    pub fn cron(plan: CronPlan, zone: &'a Zone) -> Rhythm<'a> {
        Rhythm::of(Pattern::Cron { plan, zone })
    }

    fn of(pattern: Pattern<'a>) -> Rhythm<'a> {
        Rhythm { pattern, within: TimeWindow::new(Timestamp::MIN, Timestamp::MAX) }
    }

    /// The same without what lies before `start`.
    #[must_use]
    pub fn starting_at(self, start: Timestamp) -> Rhythm<'a> {
        let within = TimeWindow::new(self.within.start().max(start), self.within.end());
        Rhythm { within, ..self }
    }

    /// The same without what lies at `end` or later.
    #[must_use]
    pub fn ending_at(self, end: Option<Timestamp>) -> Rhythm<'a> {
        let end = end.map_or(self.within.end(), |end| end.min(self.within.end()));
        Rhythm { within: TimeWindow::new(self.within.start(), end), ..self }
    }

    /// The same as if it never ended. What must be complete "before the next occurrence" still has
    /// that time when there will be no next one.
    #[must_use]
    pub fn without_end(self) -> Rhythm<'a> {
        Rhythm { within: TimeWindow::new(self.within.start(), Timestamp::MAX), ..self }
    }

    /// The same as if it had begun earlier: an interval or a cron expression goes on into the past.
    #[must_use]
    pub fn beginning_at(self, start: Timestamp) -> Rhythm<'a> {
        let pattern = match self.pattern {
            Pattern::Grid { anchor_at, interval } if start < anchor_at => {
                let before = (anchor_at - start).as_millis().rem_euclid(interval.as_millis());
                Pattern::Grid { anchor_at: start + Duration::from_millis(before), interval }
            }
            pattern => pattern,
        };
        Rhythm { pattern, within: TimeWindow::new(start.min(self.within.start()), self.within.end()) }
    }

    /// The first instant of all.
    pub fn first(&self) -> Option<Timestamp> {
        // The start is inside, and "after" is strict.
        self.next_after(self.within.start() - Duration::from_millis(1))
    }

    /// The first instant strictly later than `after`, or none if there never is one.
    pub fn next_after(&self, after: Timestamp) -> Option<Timestamp> {
        let after = after.max(self.within.start() - Duration::from_millis(1));
        let next = match &self.pattern {
            Pattern::None => None,
            Pattern::Single(at) => (after < *at).then_some(*at),
            Pattern::Grid { anchor_at, interval } => next_on_grid(*anchor_at, *interval, after),
            Pattern::Cron { plan, zone } => plan.next_after(zone, after),
        };
        next.filter(|at| after < *at && self.within.contains(*at))
    }

    /// How many instants lie in the window.
    pub fn count_in(&self, window: TimeWindow) -> u64 {
        let window = self.clipped(window);
        match &self.pattern {
            Pattern::None => 0,
            Pattern::Single(at) => u64::from(window.contains(*at)),
            Pattern::Grid { anchor_at, interval } => n_on_grid_before(*anchor_at, *interval, window.end())
                .saturating_sub(n_on_grid_before(*anchor_at, *interval, window.start())),
            Pattern::Cron { plan, zone } => plan.count_in(zone, window),
        }
    }

    /// The instant with the number `n` in the window, the first being 0.
    pub fn nth_in(&self, window: TimeWindow, n: u64) -> Option<Timestamp> {
        let window = self.clipped(window);
        match &self.pattern {
            Pattern::None => None,
            Pattern::Single(at) => (n == 0 && window.contains(*at)).then_some(*at),
            Pattern::Grid { anchor_at, interval } => {
                let before = n_on_grid_before(*anchor_at, *interval, window.start());
                let steps = i64::try_from(before.checked_add(n)?).ok()?;
                let at = *anchor_at + Duration::from_millis(interval.as_millis().checked_mul(steps)?);
                window.contains(at).then_some(at)
            }
            Pattern::Cron { plan, zone } => plan.nth_in(zone, window, n),
        }
    }

    /// The last instant in the window.
    pub fn last_in(&self, window: TimeWindow) -> Option<Timestamp> {
        let n_last = self.count_in(window).checked_sub(1)?;
        self.nth_in(window, n_last)
    }

    /// The instant that lies `n` before one of its own, as if it had always gone on; none before a single one.
    pub(crate) fn nth_before(&self, own: Timestamp, n: u32) -> Option<Timestamp> {
        match &self.pattern {
            Pattern::None | Pattern::Single(_) => None,
            Pattern::Grid { interval, .. } => Some(own - *interval * i64::from(n)),
            Pattern::Cron { plan, zone } => {
                // Four times as far each time: what comes every minute is near, a leap day is years away.
                let mut days = 1;
                while days < CRON_REACH_DAYS {
                    let behind = TimeWindow::new(own - Duration::from_days(days), own);
                    if let Some(idx) = plan.count_in(zone, behind).checked_sub(u64::from(n)) {
                        return plan.nth_in(zone, behind, idx);
                    }
                    days *= 4;
                }
                None
            }
        }
    }

    /// Visits the instants of the window in order.
    pub fn for_each_in(&self, window: TimeWindow, mut visit: impl FnMut(Timestamp)) {
        let window = self.clipped(window);
        match &self.pattern {
            Pattern::Cron { plan, zone } => plan.for_each_in(zone, window, visit),
            Pattern::None => {}
            Pattern::Single(at) => {
                if window.contains(*at) {
                    visit(*at);
                }
            }
            Pattern::Grid { interval, .. } => {
                // From the first one on it is enough to add: the sum stops at the end of the
                // calendar, which no window contains.
                let mut at = self.nth_in(window, 0).unwrap_or(window.end());
                while at < window.end() {
                    visit(at);
                    at = at + *interval;
                }
            }
        }
    }

    fn clipped(&self, window: TimeWindow) -> TimeWindow {
        TimeWindow::new(window.start().max(self.within.start()), window.end().min(self.within.end()))
    }
}

fn next_on_grid(anchor_at: Timestamp, interval: Duration, after: Timestamp) -> Option<Timestamp> {
    if after < anchor_at {
        return Some(anchor_at);
    }
    let steps = (after - anchor_at).as_millis().div_euclid(interval.as_millis()) + 1;
    let millis = steps.checked_mul(interval.as_millis())?.checked_add(anchor_at.as_millis())?;
    (millis <= Timestamp::MAX.as_millis()).then(|| Timestamp::from_millis(millis))
}

/// How many instants of the grid lie strictly before `end`.
fn n_on_grid_before(anchor_at: Timestamp, interval: Duration, end: Timestamp) -> u64 {
    if end <= anchor_at {
        return 0;
    }
    let whole = (end - anchor_at).as_millis() - 1;
    whole.div_euclid(interval.as_millis()).unsigned_abs() + 1
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[track_caller]
    fn check_next(anchor: &str, interval: &str, after: &str, expected: &str) {
        let rhythm = Rhythm::grid(at(anchor), interval.parse().unwrap());
        assert_eq!(rhythm.next_after(at(after)).unwrap().to_string(), expected);
    }

    #[test]
    fn an_interval_keeps_its_rhythm_exactly() {
        let anchor = "2026-02-04T10:07:30.250Z";
        check_next(anchor, "20m", "2026-02-04T10:07:30.249Z", "2026-02-04T10:07:30.25Z");
        check_next(anchor, "20m", "2026-02-04T10:07:30.250Z", "2026-02-04T10:27:30.25Z");
        check_next(anchor, "20m", "2026-02-04T10:28:00Z", "2026-02-04T10:47:30.25Z");
        check_next(anchor, "7m", "2026-02-04T10:07:31Z", "2026-02-04T10:14:30.25Z");
        check_next(anchor, "36h", "2026-02-05T00:00:00Z", "2026-02-05T22:07:30.25Z");
        check_next(anchor, "50m", "2026-02-04T23:59:00Z", "2026-02-05T00:17:30.25Z");
        check_next(anchor, "5h", "2026-02-04T23:59:00Z", "2026-02-05T01:07:30.25Z");
        check_next(anchor, "1s", "2026-02-11T00:00:00Z", "2026-02-11T00:00:00.25Z");
        // A week of downtime shifts nothing: 504 times 20 minutes later.
        check_next(anchor, "20m", "2026-02-11T10:07:30.250Z", "2026-02-11T10:27:30.25Z");
    }

    #[test]
    fn daylight_saving_does_not_touch_an_interval() {
        check_next("2026-03-28T02:30:00Z", "1d", "2026-03-28T02:30:00Z", "2026-03-29T02:30:00Z");
    }

    #[test]
    fn nothing_is_due_before_the_anchor_or_outside_the_bounds() {
        let rhythm = Rhythm::grid(at("2026-02-04T10:00:00Z"), Duration::from_hours(1))
            .starting_at(at("2026-02-04T11:30:00Z"))
            .ending_at(Some(at("2026-02-04T14:00:00Z")));
        assert_eq!(rhythm.first(), Some(at("2026-02-04T12:00:00Z")));
        assert_eq!(rhythm.next_after(at("2026-02-04T12:00:00Z")), Some(at("2026-02-04T13:00:00Z")));
        assert_eq!(rhythm.next_after(at("2026-02-04T13:00:00Z")), None);
        let day = TimeWindow::starting_at(at("2026-02-04T00:00:00Z"), Duration::from_days(1));
        assert_eq!(rhythm.count_in(day), 2);
        assert_eq!(rhythm.last_in(day), Some(at("2026-02-04T13:00:00Z")));
        assert_eq!(
            rhythm.without_end().next_after(at("2026-02-04T13:00:00Z")),
            Some(at("2026-02-04T14:00:00Z"))
        );
    }

    #[test]
    fn a_rhythm_goes_on_into_the_past() {
        let grid = Rhythm::grid(at("2026-02-04T10:20:00Z"), Duration::from_mins(20));
        let earlier = grid.clone().beginning_at(at("2026-02-04T09:30:00Z"));
        assert_eq!(earlier.first(), Some(at("2026-02-04T09:40:00Z")));
        assert_eq!(earlier.next_after(at("2026-02-04T10:00:00Z")), grid.first());
        let on_it = grid.beginning_at(at("2026-02-04T10:00:00Z"));
        assert_eq!(on_it.first(), Some(at("2026-02-04T10:00:00Z")));
    }

    #[test]
    fn a_billion_occurrences_are_counted_not_visited() {
        let rhythm = Rhythm::grid(at("1990-01-01T00:00:00Z"), Duration::from_secs(1));
        let window = TimeWindow::new(at("1990-01-01T00:00:00Z"), at("2026-01-01T00:00:00Z"));
        assert_eq!(rhythm.count_in(window), 1_136_073_600);
        assert_eq!(rhythm.last_in(window), Some(at("2025-12-31T23:59:59Z")));
    }

    #[test]
    fn the_end_of_the_calendar_is_an_end() {
        let rhythm = Rhythm::grid(Timestamp::MAX - Duration::from_millis(1), Duration::LONGEST);
        assert_eq!(rhythm.next_after(rhythm.first().unwrap()), None);
        let mut n_walked = 0;
        rhythm.for_each_in(TimeWindow::new(Timestamp::MIN, Timestamp::MAX), |_| n_walked += 1);
        assert_eq!(n_walked, 1);
        assert_eq!(Rhythm::empty().first(), None);
        let once = Rhythm::single(at("2026-12-01T08:00:00Z"));
        assert_eq!(once.first(), Some(at("2026-12-01T08:00:00Z")));
        assert_eq!(once.next_after(at("2026-12-01T08:00:00Z")), None);
    }

    #[test]
    fn what_came_before_is_found_as_if_it_had_always_gone_on() {
        let check = |rhythm: &Rhythm<'_>, n: u32, expected: Option<&str>| {
            let own = rhythm.first().unwrap();
            assert_eq!(
                rhythm.nth_before(own, n).map(|at| at.to_string()).as_deref(),
                expected,
                "{n} before {own}"
            );
        };
        let grid = Rhythm::grid(at("2026-02-04T10:20:00Z"), Duration::from_mins(20));
        check(&grid, 1, Some("2026-02-04T10:00:00Z"));
        check(&grid, 2, Some("2026-02-04T09:40:00Z"));
        let zone = Zone::utc();
        let cron = |text: &str, from: &str| {
            let plan = crate::schedule::cron::CronExpr::parse(text).unwrap().plan().unwrap();
            Rhythm::cron(plan, &zone).starting_at(at(from))
        };
        check(&cron("0 3 * * 1", "2026-02-04T00:00:00Z"), 1, Some("2026-02-02T03:00:00Z"));
        check(&cron("0 3 * * 1", "2026-02-04T00:00:00Z"), 2, Some("2026-01-26T03:00:00Z"));
        check(&cron("0 0 29 2 *", "2026-02-04T00:00:00Z"), 1, Some("2024-02-29T00:00:00Z"));
        check(&Rhythm::single(at("2026-02-04T10:00:00Z")), 1, None);
    }

    proptest! {
        #[test]
        fn count_nth_and_walk_agree(
            anchor in -1_000_000_i64..1_000_000,
            interval in 1_i64..50_000,
            start in -1_000_000_i64..1_000_000,
            length in 0_i64..1_000_000,
        ) {
            let rhythm = Rhythm::grid(Timestamp::from_millis(anchor), Duration::from_millis(interval));
            let window = TimeWindow::starting_at(Timestamp::from_millis(start), Duration::from_millis(length));
            let mut walked = Vec::new();
            rhythm.for_each_in(window, |at| walked.push(at));
            prop_assert_eq!(rhythm.count_in(window), walked.len() as u64);
            prop_assert_eq!(rhythm.last_in(window), walked.last().copied());
            for (n, expected) in walked.iter().enumerate() {
                prop_assert_eq!(rhythm.nth_in(window, n as u64), Some(*expected));
                prop_assert_eq!((expected.as_millis() - anchor).rem_euclid(interval), 0);
            }
            prop_assert_eq!(rhythm.nth_in(window, walked.len() as u64), None);
        }

        #[test]
        fn next_is_strictly_later_and_nothing_lies_between(
            anchor in -1_000_000_i64..1_000_000,
            interval in 1_i64..50_000,
            after in -2_000_000_i64..2_000_000,
        ) {
            let rhythm = Rhythm::grid(Timestamp::from_millis(anchor), Duration::from_millis(interval));
            let after = Timestamp::from_millis(after);
            let next = rhythm.next_after(after).unwrap();
            prop_assert!(after < next);
            prop_assert_eq!(rhythm.count_in(TimeWindow::new(after + Duration::from_millis(1), next)), 0);
        }
    }
}
