//! A plan in a zone: where the straight lines of local time meet, and what happens there.

use std::ops::Range;

use super::CronPlan;
use crate::civil::DAY_S;
use crate::time::{TimeWindow, Timestamp};
use crate::zone::{Segment, Zone};

/// How far back a clock change can still matter: no zone ever set its clocks back by more than a
/// day and some minutes.
const LOOK_BACK_S: i64 = 2 * DAY_S;
/// Local time is never further from UTC than this.
const OFFSET_MAX_S: i64 = 26 * 3600;
/// How much of the time line is looked at before asking the calendar where to go on; more than
/// `2 * OFFSET_MAX_S`, so that a match found there is inside.
const STRIDE_S: i64 = 4 * DAY_S;
/// After 400 years dates fall on the same weekdays again.
const CALENDAR_CYCLE_S: i64 = 146_097 * DAY_S;
/// 2200-01-01: from here on every zone follows a yearly rule, so that it repeats with the calendar.
const ZONES_REGULAR_S: i64 = 7_258_118_400;

/// What a clock change has to do with an occurrence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DstNote {
    /// The clocks skipped a match, so it happens at the first instant after the gap. Also given where
    /// a match of that instant itself is merged into it.
    MovedOutOfGap {
        /// The first match that was skipped, in local seconds since 1970-01-01 00:00 on the wall.
        skipped_local_s: i64,
    },
    /// The clocks show this local time twice, and this is the first pass.
    FirstOfTwo,
    /// The clocks show this local time twice, and this is the second pass.
    SecondOfTwo,
}

impl CronPlan {
    /// The first occurrence strictly later than `after`; `None` if there is none, ever or before the
    /// end of the calendar.
    ///
    /// "Ever" is exact: calendar and zones repeat after 400 years, and the search goes that far.
    pub fn next_after(&self, zone: &Zone, after: Timestamp) -> Option<Timestamp> {
        let mut from_s = after.as_second() + 1;
        let cycle_end_s = from_s.max(ZONES_REGULAR_S) + CALENDAR_CYCLE_S + STRIDE_S;
        let end_s = cycle_end_s.min(Timestamp::MAX.as_second() + 1);
        while from_s < end_s {
            let stride_end_s = end_s.min(from_s + STRIDE_S);
            let found = Stretches::new(self, zone, from_s, stride_end_s).find_map(|it| {
                let natural = || Some(self.first_local(it.from, it.to)? - it.offset_s);
                it.moved_s.or_else(natural)
            });
            if let Some(at_s) = found {
                return Some(Timestamp::from_second(at_s));
            }
            let local_min = stride_end_s - OFFSET_MAX_S;
            let local_s = self.first_local(local_min, local_min + CALENDAR_CYCLE_S + DAY_S)?;
            from_s = stride_end_s.max(local_s - OFFSET_MAX_S);
        }
        None
    }

    /// Calls `f` with every occurrence in the window, ascending.
    pub fn for_each_in(&self, zone: &Zone, window: TimeWindow, mut f: impl FnMut(Timestamp)) {
        let Range { start, end } = seconds_of(window);
        self.for_each_second(zone, start, end, |at_s| f(Timestamp::from_second(at_s)));
    }

    /// Calls `f` with every occurrence in the UTC seconds `[from_s, to_s)`, ascending.
    #[inline]
    pub(super) fn for_each_second(
        &self,
        clocks: &impl Clocks,
        from_s: i64,
        to_s: i64,
        mut f: impl FnMut(i64),
    ) {
        for it in Stretches::new(self, clocks, from_s, to_s) {
            it.moved_s.into_iter().for_each(&mut f);
            self.for_each_local(it.from, it.to, |local_s| f(local_s - it.offset_s));
        }
    }

    /// How many occurrences the window has; the work is by months, not by occurrences.
    pub fn count_in(&self, zone: &Zone, window: TimeWindow) -> u64 {
        self.stretches(zone, window)
            .map(|it| u64::from(it.moved_s.is_some()) + self.count_local(it.from, it.to))
            .sum()
    }

    /// The n-th occurrence of the window, 0 being the first; the work is by months.
    pub fn nth_in(&self, zone: &Zone, window: TimeWindow, n: u64) -> Option<Timestamp> {
        let mut n = n;
        for it in self.stretches(zone, window) {
            if let Some(at_s) = it.moved_s {
                if n == 0 {
                    return Some(Timestamp::from_second(at_s));
                }
                n -= 1;
            }
            let n_here = self.count_local(it.from, it.to);
            if n < n_here {
                return Some(Timestamp::from_second(self.nth_local(it.from, it.to, n)? - it.offset_s));
            }
            n -= n_here;
        }
        None
    }

    /// Why an occurrence is where it is, if a clock change has to do with it. `None` for an instant
    /// that is not an occurrence.
    pub fn dst_note(&self, zone: &Zone, at: Timestamp) -> Option<DstNote> {
        let at_s = at.as_second();
        let this = Stretches::new(self, zone, at_s, at_s + 1).next()?;
        let segment = zone.segment_at(at_s);
        let local_s = at_s + segment.offset_s;
        if at.as_millis() != at_s * 1000 {
            return None;
        }
        if this.moved_s.is_some() {
            let shown_until = shown_before(zone, segment)?;
            let skipped_local_s = self.first_local(shown_until, segment.local_start())?;
            return Some(DstNote::MovedOutOfGap { skipped_local_s });
        }
        self.first_local(this.from, this.to)?;
        if shown_before(zone, segment).is_some_and(|shown_until| local_s < shown_until) {
            return Some(DstNote::SecondOfTwo);
        }
        let mut later = segment;
        while let Some(next) = zone.segment_after(later)
            && next.start_s < at_s + LOOK_BACK_S
        {
            if next.local_start() <= local_s && local_s < next.local_end() {
                return Some(DstNote::FirstOfTwo);
            }
            later = next;
        }
        None
    }

    fn stretches<'a>(&'a self, zone: &'a Zone, window: TimeWindow) -> Stretches<'a, Zone> {
        let Range { start, end } = seconds_of(window);
        Stretches::new(self, zone, start, end)
    }
}

/// Where segments come from: a zone, or clocks that a test has made up.
pub(super) trait Clocks {
    /// The segment that a UTC second lies in.
    fn segment_at(&self, utc_s: i64) -> Segment;
}

impl Clocks for Zone {
    fn segment_at(&self, utc_s: i64) -> Segment {
        Zone::segment_at(self, utc_s)
    }
}

/// The whole seconds inside of a window.
fn seconds_of(window: TimeWindow) -> Range<i64> {
    let rounded_up = |at: Timestamp| (at.as_millis() + 999).div_euclid(1000);
    rounded_up(window.start())..rounded_up(window.end())
}

/// Part of a segment in which every match of a straight line of local time is an occurrence.
struct Stretch {
    /// An occurrence in front of all others, in UTC seconds: what a gap before the segment skipped.
    moved_s: Option<i64>,
    /// Local seconds `[from, to)`; empty if `to <= from`.
    from: i64,
    to: i64,
    offset_s: i64,
}

/// The stretches of the UTC seconds `[at_s, end_s)`, in order.
struct Stretches<'a, C> {
    plan: &'a CronPlan,
    clocks: &'a C,
    at_s: i64,
    end_s: i64,
    segment: Segment,
    /// The clocks have shown every local time before this in some earlier segment, or skipped it.
    /// Known only where it matters: for wall-clock plans, near the beginning of a segment.
    shown_until: Option<i64>,
}

impl<'a, C: Clocks> Stretches<'a, C> {
    fn new(plan: &'a CronPlan, clocks: &'a C, at_s: i64, end_s: i64) -> Stretches<'a, C> {
        let segment = clocks.segment_at(at_s);
        let is_near_change = at_s < segment.start_s.saturating_add(LOOK_BACK_S);
        let shown_until =
            if plan.wall_clock && is_near_change { shown_before(clocks, segment) } else { None };
        Stretches { plan, clocks, at_s, end_s, segment, shown_until }
    }
}

impl<C: Clocks> Iterator for Stretches<'_, C> {
    type Item = Stretch;

    #[inline]
    fn next(&mut self) -> Option<Stretch> {
        if self.end_s <= self.at_s {
            return None;
        }
        let segment = self.segment;
        let until_s = self.end_s.min(segment.end_s);
        let offset_s = segment.offset_s;
        let mut this =
            Stretch { moved_s: None, from: self.at_s + offset_s, to: until_s + offset_s, offset_s };
        if let Some(shown_until) = self.shown_until {
            let skips_match = self.at_s == segment.start_s
                && self.plan.first_local(shown_until, segment.local_start()).is_some();
            if skips_match {
                this.moved_s = Some(self.at_s);
                // A match of this very second is the same occurrence.
                this.from += 1;
            }
            this.from = this.from.max(shown_until);
        }
        // More of the window is left, so the segment ended first and there is a next one.
        if until_s < self.end_s {
            if self.plan.wall_clock {
                self.shown_until = self.shown_until.max(Some(segment.local_end()));
            }
            self.segment = self.clocks.segment_at(until_s);
        }
        self.at_s = until_s;
        Some(this)
    }
}

/// How far the clocks on the wall had been before a segment began, as far back as it matters.
fn shown_before(clocks: &impl Clocks, segment: Segment) -> Option<i64> {
    let oldest_s = segment.start_s.saturating_sub(LOOK_BACK_S);
    let mut shown_until = None;
    let mut start_s = segment.start_s;
    while oldest_s < start_s {
        let earlier = clocks.segment_at(start_s - 1);
        shown_until = shown_until.max(Some(earlier.local_end()));
        start_s = earlier.start_s;
    }
    shown_until
}
