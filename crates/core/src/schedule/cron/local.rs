//! A plan on a straight line of local time, where no clock ever changes.
//!
//! Local seconds are counted from 1970-01-01 00:00 on the wall. Months are the unit of the walk:
//! one bit set says which of its days match.

use super::CronPlan;
use super::times::{Bits, nth_bit};
use crate::civil::{self, DAY_S};

/// A month of the calendar.
#[derive(Clone, Copy, Debug)]
pub(super) struct Month {
    pub(super) number: u8,
    pub(super) n_days: u8,
    year: i32,
    /// The day before its first one, so that adding a day of the month gives that day.
    day_zero: i64,
}

impl Month {
    pub(super) fn of_day(day: i64) -> Month {
        let date = civil::date_of(day);
        Month {
            number: date.month,
            n_days: civil::days_in_month(date.year, date.month),
            year: date.year,
            day_zero: day - i64::from(date.day),
        }
    }

    fn following(self) -> Month {
        let (year, number) =
            if self.number == 12 { (self.year + 1, 1) } else { (self.year, self.number + 1) };
        Month {
            number,
            n_days: civil::days_in_month(year, number),
            year,
            day_zero: self.day_zero + i64::from(self.n_days),
        }
    }

    /// The weekday of its first day; 0 is Sunday.
    pub(super) fn first_weekday(&self) -> u8 {
        civil::weekday(self.day_zero + 1)
    }
}

impl CronPlan {
    /// How many matches lie in the local seconds `[from, to)`.
    pub(super) fn count_local(&self, from: i64, to: i64) -> u64 {
        let Some(days) = Days::of(from, to) else { return 0 };
        let mut n_days = 0;
        let mut n_cut_off = 0;
        for (day_zero, set) in self.months(days) {
            n_days += u64::from(set.count_ones());
            if is_in(set, days.first - day_zero) {
                n_cut_off += self.n_times_before(from - days.first * DAY_S);
            }
            if is_in(set, days.last - day_zero) {
                n_cut_off += self.n_times() - self.n_times_before(to - days.last * DAY_S);
            }
        }
        n_days * self.n_times() - n_cut_off
    }

    /// The n-th match (from 0) in the local seconds `[from, to)`.
    pub(super) fn nth_local(&self, from: i64, to: i64, n: u64) -> Option<i64> {
        let days = Days::of(from, to)?;
        let mut n = n;
        for (day_zero, set) in self.months(days) {
            if is_in(set, days.first - day_zero) {
                // Counted from the first day's midnight, like every other day's.
                n += self.n_times_before(from - days.first * DAY_S);
            }
            let n_here = u64::from(set.count_ones()) * self.n_times();
            if n < n_here {
                let day = day_zero + nth_bit(u64::from(set), n / self.n_times())?;
                let local_s = day * DAY_S + self.nth_time(n % self.n_times())?;
                return (local_s < to).then_some(local_s);
            }
            n -= n_here;
        }
        None
    }

    /// The first match in the local seconds `[from, to)`.
    pub(super) fn first_local(&self, from: i64, to: i64) -> Option<i64> {
        self.nth_local(from, to, 0)
    }

    /// Calls `f` with every match in the local seconds `[from, to)`, ascending.
    #[inline]
    pub(super) fn for_each_local(&self, from: i64, to: i64, mut f: impl FnMut(i64)) {
        let Some(days) = Days::of(from, to) else { return };
        let mut on_day = |day: i64| {
            let midnight = day * DAY_S;
            let begin = if day == days.first { from - midnight } else { 0 };
            let end = if day == days.last { to - midnight } else { DAY_S };
            self.for_each_time(begin, end, |second| f(midnight + second));
        };
        // An agenda asks for an hour at a time, and most plans have nothing in it: neither they nor
        // those of every day need the calendar.
        let midnight = days.first * DAY_S;
        if days.first == days.last && !self.has_hour_in(from - midnight, to - midnight) {
            return;
        }
        if self.is_every_day() {
            (days.first..=days.last).for_each(on_day);
            return;
        }
        for (day_zero, set) in self.months(days) {
            for day_of_month in Bits(u64::from(set)) {
                on_day(day_zero + day_of_month);
            }
        }
    }

    /// For each month that the days touch: its day zero, and those of the days in it that match.
    fn months(&self, days: Days) -> impl Iterator<Item = (i64, u32)> {
        let mut month = Month::of_day(days.first);
        std::iter::from_fn(move || {
            if days.last <= month.day_zero {
                return None;
            }
            let mut set = self.days_in(&month);
            if month.day_zero < days.first {
                set &= u32::MAX << (days.first - month.day_zero);
            }
            if days.last < month.day_zero + i64::from(month.n_days) {
                set &= u32::MAX >> (31 - (days.last - month.day_zero));
            }
            let day_zero = month.day_zero;
            month = month.following();
            Some((day_zero, set))
        })
    }
}

/// The days that a stretch of local seconds touches, both ends included.
#[derive(Clone, Copy)]
struct Days {
    first: i64,
    last: i64,
}

impl Days {
    fn of(from: i64, to: i64) -> Option<Days> {
        (from < to).then(|| Days { first: from.div_euclid(DAY_S), last: (to - 1).div_euclid(DAY_S) })
    }
}

/// Whether a day of the month is in the set; any other number is not.
fn is_in(set: u32, day_of_month: i64) -> bool {
    (1..=31).contains(&day_of_month) && set & (1 << day_of_month) != 0
}
