//! One blackout as it was written: from, to, and on which days it begins.

use std::fmt;

use super::{BlackoutError, TimeOfDay, Weekdays};

/// A daily or weekly window, half-open, in local time.
///
/// Where `end` is before `start`, the window lasts until that time of the next day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlackoutPeriod {
    /// The first second inside.
    pub start: TimeOfDay,
    /// The first second no longer inside.
    pub end: TimeOfDay,
    /// The days on which the window begins.
    pub days: Weekdays,
}

impl BlackoutPeriod {
    /// The period, if it has a length and begins within a day.
    pub fn new(start: TimeOfDay, end: TimeOfDay, days: Weekdays) -> Result<BlackoutPeriod, BlackoutError> {
        if start == end {
            return Err(BlackoutError::NoLength { time: start.to_string() });
        }
        if start == TimeOfDay::DAY_END {
            return Err(BlackoutError::StartsAtDayEnd);
        }
        Ok(BlackoutPeriod { start, end, days })
    }

    /// Whether the window ends on the day after the one on which it begins.
    pub fn crosses_midnight(&self) -> bool {
        self.end < self.start
    }
}

/// `22:00 to 06:00 on mon-fri`, `00:00 to 01:00 every day`.
impl fmt::Display for BlackoutPeriod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let on = if self.days == Weekdays::ALL { "" } else { "on " };
        write!(f, "{} to {} {on}{}", self.start, self.end, self.days)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(start: &str, end: &str, days: Weekdays, expected: &str) {
        let shown = match BlackoutPeriod::new(start.parse().unwrap(), end.parse().unwrap(), days) {
            Ok(period) => period.to_string(),
            Err(error) => error.to_string(),
        };
        assert_eq!(shown, expected);
    }

    #[test]
    fn periods_are_shown_as_people_write_them() {
        let workdays = Weekdays::from_names(&["mon", "tue", "wed", "thu", "fri"]).unwrap();
        let pair = Weekdays::from_names(&["mon", "thu"]).unwrap();
        check("22:00:00", "06:00", workdays, "22:00 to 06:00 on mon-fri");
        check("00:00", "01:00:30", pair, "00:00 to 01:00:30 on mon, thu");
        check("00:00", "24:00", Weekdays::ALL, "00:00 to 24:00 every day");
        check("22:00", "00:00", Weekdays::ALL, "22:00 to 00:00 every day");
    }

    #[test]
    fn a_period_has_a_length_and_begins_within_a_day() {
        for time in ["00:00", "08:00", "24:00"] {
            check(
                time,
                time,
                Weekdays::ALL,
                &format!(
                    "a blackout from `{time}` to `{time}` has no length (write `00:00` to `24:00` for the whole day)"
                ),
            );
        }
        check(
            "24:00",
            "06:00",
            Weekdays::ALL,
            "a blackout cannot start at `24:00` (write `00:00`, and the day after if it has `days`)",
        );
    }
}
