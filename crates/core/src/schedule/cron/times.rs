//! The times of a day that a plan matches: listed, counted, and picked by number.
//!
//! They are the same on every matching day, which is what makes counting a century cheap.

use super::CronPlan;

impl CronPlan {
    /// How many times a matching day has; never 0.
    pub(super) fn n_times(&self) -> u64 {
        let n = self.hours.count_ones() * self.minutes.count_ones() * self.seconds.count_ones();
        u64::from(n).max(1)
    }

    /// How many of them lie before a second of the day (0 to 86400).
    pub(super) fn n_times_before(&self, second_of_day: i64) -> u64 {
        let (hour, minute, second) = parts_of(second_of_day);
        let n_seconds = u64::from(self.seconds.count_ones());
        let n_minutes = u64::from(self.minutes.count_ones());
        let hours = u64::from(self.hours);
        let mut n = n_below(hours, hour) * n_minutes * n_seconds;
        if contains(hours, hour) {
            n += n_below(self.minutes, minute) * n_seconds;
            if contains(self.minutes, minute) {
                n += n_below(self.seconds, second);
            }
        }
        n
    }

    /// The second of the day of the n-th of them, from 0.
    pub(super) fn nth_time(&self, n: u64) -> Option<i64> {
        let n_seconds = u64::from(self.seconds.count_ones()).max(1);
        let n_minutes = u64::from(self.minutes.count_ones()).max(1);
        let hour = nth_bit(u64::from(self.hours), n / (n_minutes * n_seconds))?;
        let minute = nth_bit(self.minutes, n / n_seconds % n_minutes)?;
        let second = nth_bit(self.seconds, n % n_seconds)?;
        Some(hour * 3600 + minute * 60 + second)
    }

    /// Whether an hour that `[from, to)` touches, which lies within one day, is among the hours.
    pub(super) fn has_hour_in(&self, from: i64, to: i64) -> bool {
        u64::from(self.hours) & not_below(from / 3600) & not_above((to - 1) / 3600) != 0
    }

    /// Calls `f` with each of them in `[from, to)`, which lies within one day.
    #[inline]
    pub(super) fn for_each_time(&self, from: i64, to: i64, mut f: impl FnMut(i64)) {
        if to <= from {
            return;
        }
        let (first_hour, first_minute, first_second) = parts_of(from);
        let (last_hour, last_minute, last_second) = parts_of(to - 1);
        for hour in Bits(u64::from(self.hours) & not_below(first_hour) & not_above(last_hour)) {
            let mut minutes = self.minutes;
            if hour == first_hour {
                minutes &= not_below(first_minute);
            }
            if hour == last_hour {
                minutes &= not_above(last_minute);
            }
            for minute in Bits(minutes) {
                let mut seconds = self.seconds;
                if hour == first_hour && minute == first_minute {
                    seconds &= not_below(first_second);
                }
                if hour == last_hour && minute == last_minute {
                    seconds &= not_above(last_second);
                }
                for second in Bits(seconds) {
                    f(hour * 3600 + minute * 60 + second);
                }
            }
        }
    }
}

/// The members of a bit set, ascending.
pub(super) struct Bits(pub(super) u64);

impl Iterator for Bits {
    type Item = i64;

    #[inline]
    fn next(&mut self) -> Option<i64> {
        if self.0 == 0 {
            return None;
        }
        let bit = self.0.trailing_zeros();
        self.0 &= self.0 - 1;
        Some(i64::from(bit))
    }
}

/// The n-th member of a bit set, from 0.
pub(super) fn nth_bit(set: u64, n: u64) -> Option<i64> {
    Bits(set).nth(usize::try_from(n).ok()?)
}

fn parts_of(second_of_day: i64) -> (i64, i64, i64) {
    (second_of_day / 3600, second_of_day / 60 % 60, second_of_day % 60)
}

fn contains(set: u64, bit: i64) -> bool {
    set & (1 << bit) != 0
}

fn n_below(set: u64, bit: i64) -> u64 {
    u64::from((set & !not_below(bit)).count_ones())
}

fn not_below(bit: i64) -> u64 {
    u64::MAX << bit
}

fn not_above(bit: i64) -> u64 {
    u64::MAX >> (63 - bit)
}
