//! The six fields of an expression: their values, their names, and how they wrap around.

use std::fmt;

/// One field of a cron expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CronField {
    /// 0 to 59; only where six fields are written.
    Second,
    /// 0 to 59.
    Minute,
    /// 0 to 23.
    Hour,
    /// 1 to 31.
    DayOfMonth,
    /// 1 to 12, or JAN to DEC.
    Month,
    /// 0 to 7, both ends Sunday, or SUN to SAT.
    DayOfWeek,
}

const MONTHS: [&str; 12] =
    ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

impl CronField {
    /// The fields in the order in which six of them are written.
    pub(super) const ALL: [CronField; 6] = [
        CronField::Second,
        CronField::Minute,
        CronField::Hour,
        CronField::DayOfMonth,
        CronField::Month,
        CronField::DayOfWeek,
    ];

    /// The smallest number that may be written.
    pub fn first(self) -> u8 {
        match self {
            CronField::DayOfMonth | CronField::Month => 1,
            _ => 0,
        }
    }

    /// The largest number that may be written.
    pub fn last(self) -> u8 {
        match self {
            CronField::Second | CronField::Minute => 59,
            CronField::Hour => 23,
            CronField::DayOfMonth => 31,
            CronField::Month => 12,
            CronField::DayOfWeek => 7,
        }
    }

    /// How many different values there are; a range that wraps around comes back after this many.
    pub(super) fn n_values(self) -> u8 {
        match self {
            CronField::DayOfWeek => 7,
            _ => self.last() - self.first() + 1,
        }
    }

    /// The value that a number stands for which has run past the end of the field.
    pub(super) fn wrapped(self, number: u8) -> u8 {
        match self {
            CronField::DayOfWeek => number % 7,
            _ if number <= self.last() => number,
            _ => number - self.n_values(),
        }
    }

    /// The values that have a name, in order from the smallest.
    pub(super) fn names(self) -> &'static [&'static str] {
        match self {
            CronField::Month => &MONTHS,
            CronField::DayOfWeek => &WEEKDAYS,
            _ => &[],
        }
    }

    /// The last value that `H` chooses from: every month has a 28th, and Sunday counts once.
    pub(super) fn hashed_max(self) -> u8 {
        match self {
            CronField::DayOfMonth => 28,
            CronField::DayOfWeek => 6,
            _ => self.last(),
        }
    }

    pub(super) fn is_day(self) -> bool {
        matches!(self, CronField::DayOfMonth | CronField::DayOfWeek)
    }
}

impl fmt::Display for CronField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CronField::Second => "second",
            CronField::Minute => "minute",
            CronField::Hour => "hour",
            CronField::DayOfMonth => "day-of-month",
            CronField::Month => "month",
            CronField::DayOfWeek => "day-of-week",
        })
    }
}
