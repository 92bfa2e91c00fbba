//! Blackouts as stretches of one local week, ready to be looked up.

use super::BlackoutPeriod;
use crate::civil::DAY_S;

/// Seconds of a week that no clock change touches.
pub(super) const WEEK_S: i64 = 7 * DAY_S;

/// A second is inside a blackout or outside all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Inside,
    Outside,
}

/// What the week says about one of its seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WeekReading {
    pub(super) side: Side,
    /// Seconds until it may be otherwise; at least one, at most a week.
    pub(super) lasts_s: i64,
}

/// The blackouts of a week that begins on Sunday and repeats.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Week(Box<[WeekSpan]>);

/// `[start_s, end_s)` in seconds of the week. They are sorted and do not touch; only the last may
/// reach beyond the end of the week, and then lasts into the beginning of the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct WeekSpan {
    start_s: i64,
    end_s: i64,
}

/// Where a local second, counted from 1970-01-01T00:00:00 on the wall, lies in its week.
pub(super) fn second_of_week(local_s: i64) -> i64 {
    // 1970 began on a Thursday, four days into a week.
    (local_s + 4 * DAY_S).rem_euclid(WEEK_S)
}

impl Week {
    pub(super) fn of(periods: &[BlackoutPeriod]) -> Week {
        let mut pieces: Vec<WeekSpan> = periods.iter().flat_map(pieces_of).collect();
        pieces.sort_unstable();
        let mut stretches: Vec<WeekSpan> = Vec::new();
        for piece in pieces {
            match stretches.last_mut() {
                Some(last) if piece.start_s <= last.end_s => last.end_s = last.end_s.max(piece.end_s),
                _ => stretches.push(piece),
            }
        }
        join_over_the_end(&mut stretches);
        Week(stretches.into())
    }

    /// Whether some second of the week is on this side.
    pub(super) fn has(&self, side: Side) -> bool {
        match side {
            Side::Inside => !self.0.is_empty(),
            Side::Outside => !matches!(*self.0, [WeekSpan { start_s: 0, end_s: WEEK_S }]),
        }
    }

    /// What holds at a second of the week, and for how long.
    pub(super) fn look(&self, second: i64) -> WeekReading {
        let n_begun = self.0.partition_point(|stretch| stretch.start_s <= second);
        let latest_end_s = match n_begun.checked_sub(1) {
            Some(idx) => self.0.get(idx).map(|stretch| stretch.end_s),
            // The last one of the week before may still be going on.
            None => self.0.last().map(|stretch| stretch.end_s - WEEK_S),
        };
        if let Some(end_s) = latest_end_s.filter(|end_s| second < *end_s) {
            return WeekReading { side: Side::Inside, lasts_s: end_s - second };
        }
        let next_start_s = match self.0.get(n_begun) {
            Some(stretch) => stretch.start_s,
            None => self.0.first().map_or(second, |stretch| stretch.start_s) + WEEK_S,
        };
        WeekReading { side: Side::Outside, lasts_s: next_start_s - second }
    }

    /// The longest row of seconds outside; none if that is endless.
    pub(super) fn longest_gap_s(&self) -> Option<i64> {
        let first = self.0.first()?;
        let next_starts = self.0.iter().skip(1).map(|next| next.start_s).chain([first.start_s + WEEK_S]);
        self.0.iter().zip(next_starts).map(|(stretch, next_start_s)| next_start_s - stretch.end_s).max()
    }
}

/// The windows of one period, cut where the week ends.
fn pieces_of(period: &BlackoutPeriod) -> Vec<WeekSpan> {
    let mut pieces = Vec::new();
    for day in (0..7).filter(|day| period.days.contains(*day)) {
        let midnight_s = i64::from(day) * DAY_S;
        let start_s = midnight_s + i64::from(period.start.as_second());
        let days_more_s = if period.crosses_midnight() { DAY_S } else { 0 };
        let end_s = midnight_s + i64::from(period.end.as_second()) + days_more_s;
        pieces.push(WeekSpan { start_s, end_s: end_s.min(WEEK_S) });
        if WEEK_S < end_s {
            pieces.push(WeekSpan { start_s: 0, end_s: end_s - WEEK_S });
        }
    }
    pieces
}

/// Saturday's midnight is not a border: a window over it is one window, with one end.
fn join_over_the_end(stretches: &mut Vec<WeekSpan>) {
    let [first, .., last] = stretches.as_mut_slice() else { return };
    if first.start_s == 0 && last.end_s == WEEK_S {
        last.end_s += first.end_s;
        stretches.remove(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blackout::sample;

    /// `sun 22:00-26:00`, hours of the stretch's own day, so that a join is seen.
    fn shown(week: &Week) -> String {
        let names = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
        let show = |stretch: &WeekSpan| {
            let day = names[usize::try_from(stretch.start_s / DAY_S).unwrap()];
            let clock = |second: i64| {
                let since = second - stretch.start_s / DAY_S * DAY_S;
                format!("{:02}:{:02}", since / 3_600, since / 60 % 60)
            };
            format!("{day} {}-{}", clock(stretch.start_s), clock(stretch.end_s))
        };
        week.0.iter().map(show).collect::<Vec<_>>().join(", ")
    }

    fn week(written: &str) -> Week {
        Week::of(&sample::periods(written))
    }

    #[track_caller]
    fn check(written: &str, expected: &str) {
        assert_eq!(shown(&week(written)), expected);
    }

    #[test]
    fn what_touches_or_overlaps_is_one_stretch() {
        check("01:00-02:00 mon; 02:00-03:00 mon", "mon 01:00-03:00");
        check("01:00-03:00 mon; 02:00-04:00 mon", "mon 01:00-04:00");
        check("01:00-05:00 mon; 02:00-03:00 mon", "mon 01:00-05:00");
        check("02:00-03:00 mon; 00:30-01:00 mon", "mon 00:30-01:00, mon 02:00-03:00");
        check("00:00-24:00 mon tue", "mon 00:00-48:00");
        check("", "");
    }

    #[test]
    fn midnight_is_crossed_from_the_day_that_is_named() {
        check("22:00-06:00 mon", "mon 22:00-30:00");
        check("22:00-00:00 mon", "mon 22:00-24:00");
        check("22:00-24:00 mon", "mon 22:00-24:00");
        check("22:00-06:00 sun", "sun 22:00-30:00");
        check("22:00-24:00 sun; 00:00-02:00 mon", "sun 22:00-26:00");
    }

    #[test]
    fn the_end_of_the_week_is_no_border() {
        check("22:00-06:00 sat", "sat 22:00-30:00");
        check("22:00-24:00 sat; 00:00-02:00 sun", "sat 22:00-26:00");
        check("00:00-24:00 fri sat sun", "fri 00:00-72:00");
        check("22:00-24:00 sat; 00:01-02:00 sun", "sun 00:01-02:00, sat 22:00-24:00");
    }

    #[test]
    fn all_week_is_seen_however_it_is_written() {
        let all = [
            "00:00-24:00",
            "06:00-18:00; 18:00-06:00",
            "00:00-24:00 mon wed fri sun; 00:00-24:00 tue thu sat",
            "12:00-11:59:59; 11:00-12:00",
        ];
        for written in all {
            check(written, "sun 00:00-168:00");
            assert!(!week(written).has(Side::Outside));
            assert_eq!(week(written).longest_gap_s(), Some(0));
        }
        let nearly = week("00:00:01-00:00 sat; 00:00-24:00 sun mon tue wed thu fri");
        assert!(nearly.has(Side::Outside));
        assert_eq!(nearly.longest_gap_s(), Some(1));
    }

    #[test]
    fn the_longest_gap_may_lie_over_the_end_of_the_week() {
        let hours = |written: &str| week(written).longest_gap_s().map(|gap_s| gap_s / 3_600);
        assert_eq!(hours(""), None);
        assert_eq!(hours("00:00-01:00"), Some(23));
        assert_eq!(hours("00:00-24:00 wed"), Some(144));
        assert_eq!(hours("22:00-06:00 sat"), Some(160));
        assert_eq!(hours("10:00-12:00 sun; 10:00-12:00 thu"), Some(94));
    }

    /// Second by second over the whole week: the end is outside, and the reading lasts as it says.
    #[test]
    fn a_reading_lasts_exactly_as_long_as_it_says() {
        let weeks = [
            week("22:00-06:00:01 sat; 12:00:30-12:00:31 mon thu"),
            week("00:00-00:00:01"),
            week("00:00:01-00:00 sun"),
        ];
        for week in weeks {
            let mut changes_at = week.look(0).lasts_s;
            for second in 1..WEEK_S {
                let (before, here) = (week.look(second - 1), week.look(second));
                assert_eq!(before.side != here.side, second == changes_at, "{second}");
                if second == changes_at {
                    changes_at += here.lasts_s;
                }
                assert_eq!(second + here.lasts_s, changes_at, "{second}");
            }
        }
    }
}
