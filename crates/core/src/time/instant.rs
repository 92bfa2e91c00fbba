//! An instant: milliseconds since 1970-01-01T00:00:00Z.

use std::fmt;
use std::num::NonZeroI64;
use std::ops::{Add, Sub};
use std::str::FromStr;

use super::Duration;
use crate::nearest::shortened;

/// A UTC instant of whole milliseconds.
///
/// Always between [`Timestamp::MIN`] and [`Timestamp::MAX`]; arithmetic stops there. A deadline at
/// the end of the calendar is as good as none, while one that wrapped around would be long past.
///
/// One that may be missing takes no more room than one that is there: a job remembers half a dozen
/// such, and a node remembers a million jobs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(NonZeroI64);

const MIN_MILLIS: i64 = -62_135_596_800_000;
const MAX_MILLIS: i64 = 253_402_128_000_000;
/// The number that is kept is counted from just before the calendar: never 0, and in the same order.
const KEPT_FROM_MILLIS: i64 = MIN_MILLIS - 1;

impl Timestamp {
    /// 0001-01-01T00:00:00Z.
    pub const MIN: Timestamp = Timestamp::from_millis(MIN_MILLIS);
    /// 9999-12-30T00:00:00Z; every zone can still show it.
    pub const MAX: Timestamp = Timestamp::from_millis(MAX_MILLIS);
    /// 1970-01-01T00:00:00Z.
    pub const UNIX_EPOCH: Timestamp = Timestamp::from_millis(0);

    /// The instant this many milliseconds after the epoch, or the nearest end of the calendar.
    pub const fn from_millis(millis: i64) -> Timestamp {
        let millis = if millis < MIN_MILLIS {
            MIN_MILLIS
        } else if millis > MAX_MILLIS {
            MAX_MILLIS
        } else {
            millis
        };
        match NonZeroI64::new(millis - KEPT_FROM_MILLIS) {
            Some(kept) => Timestamp(kept),
            // Nothing in the calendar is kept as 0.
            None => Timestamp(NonZeroI64::MIN),
        }
    }

    /// The instant this many whole seconds after the epoch, or the nearest end of the calendar.
    pub const fn from_second(second: i64) -> Timestamp {
        Timestamp::from_millis(second.saturating_mul(1_000))
    }

    /// Milliseconds since the epoch.
    pub const fn as_millis(self) -> i64 {
        self.0.get() + KEPT_FROM_MILLIS
    }

    /// The whole second that this instant lies in, counted from the epoch (rounded down).
    pub const fn as_second(self) -> i64 {
        self.as_millis().div_euclid(1_000)
    }

    /// How far `self` lies after `earlier`; negative if it lies before it.
    pub const fn since(self, earlier: Timestamp) -> Duration {
        Duration::from_millis(self.as_millis() - earlier.as_millis())
    }

    pub(crate) fn to_jiff(self) -> jiff::Timestamp {
        // Every instant between MIN and MAX is one of jiff's, so the fallback is never taken.
        jiff::Timestamp::from_millisecond(self.as_millis()).unwrap_or(jiff::Timestamp::UNIX_EPOCH)
    }

    pub(crate) fn from_jiff(at: jiff::Timestamp) -> Timestamp {
        Timestamp::from_millis(at.as_nanosecond().div_euclid(1_000_000).try_into().unwrap_or(i64::MAX))
    }
}

impl Add<Duration> for Timestamp {
    type Output = Timestamp;

    fn add(self, length: Duration) -> Timestamp {
        Timestamp::from_millis(self.as_millis().saturating_add(length.as_millis()))
    }
}

impl Sub<Duration> for Timestamp {
    type Output = Timestamp;

    fn sub(self, length: Duration) -> Timestamp {
        Timestamp::from_millis(self.as_millis().saturating_sub(length.as_millis()))
    }
}

impl Sub for Timestamp {
    type Output = Duration;

    fn sub(self, earlier: Timestamp) -> Duration {
        self.since(earlier)
    }
}

/// RFC 3339 in UTC; milliseconds only where there are any.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.to_jiff(), f)
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Why a text is not an instant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimestampError {
    /// There is a date and a time, but no offset from UTC, so it names no one instant.
    #[error("instant `{text}` has no offset from UTC (write `{text}Z`, or `{text}+01:00`)")]
    NoOffset {
        /// What was written.
        text: String,
    },
    /// There is a date alone.
    #[error("instant `{text}` has no time of day (write `{text}T00:00:00Z`)")]
    NoTime {
        /// What was written.
        text: String,
    },
    /// The text has the right shape and lies outside the calendar.
    #[error("instant `{text}` is outside the calendar (years 1 to 9999)")]
    OutOfRange {
        /// What was written.
        text: String,
    },
    /// Anything else.
    #[error("`{text}` is not an instant (write it as RFC 3339, `2026-12-01T09:00:00+01:00`)")]
    Malformed {
        /// What was written.
        text: String,
    },
}

impl FromStr for Timestamp {
    type Err = TimestampError;

    fn from_str(text: &str) -> Result<Timestamp, TimestampError> {
        let text = text.trim();
        if let Ok(at) = text.parse::<jiff::Timestamp>()
            // A zone in brackets is not RFC 3339, and whether it agrees with the offset is a
            // question that should never come up.
            && !text.contains('[')
        {
            let millis = at.as_nanosecond().div_euclid(1_000_000);
            let in_calendar = i128::from(MIN_MILLIS) <= millis && millis <= i128::from(MAX_MILLIS);
            return if in_calendar {
                Ok(Timestamp::from_jiff(at))
            } else {
                Err(TimestampError::OutOfRange { text: shortened(text) })
            };
        }
        let text_shown = shortened(text);
        if text.parse::<jiff::civil::Date>().is_ok() && text.len() <= 10 {
            return Err(TimestampError::NoTime { text: text_shown });
        }
        if text.parse::<jiff::civil::DateTime>().is_ok() && !text.contains('[') {
            return Err(TimestampError::NoOffset { text: text_shown });
        }
        Err(TimestampError::Malformed { text: text_shown })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let shown = match text.parse::<Timestamp>() {
            Ok(at) => at.to_string(),
            Err(error) => error.to_string(),
        };
        assert_eq!(shown, expected);
    }

    #[test]
    fn text_becomes_utc() {
        check("2026-12-01T09:00:00+01:00", "2026-12-01T08:00:00Z");
        check("2026-12-01T09:00:00Z", "2026-12-01T09:00:00Z");
        check("2026-12-01 09:00:00.250Z", "2026-12-01T09:00:00.25Z");
        check("1969-12-31T23:59:59.999Z", "1969-12-31T23:59:59.999Z");
    }

    #[test]
    fn finer_than_a_millisecond_is_cut_off_towards_the_past() {
        check("2026-12-01T09:00:00.123999Z", "2026-12-01T09:00:00.123Z");
        check("1969-12-31T23:59:59.999999Z", "1969-12-31T23:59:59.999Z");
    }

    #[test]
    fn what_names_no_instant_is_refused_with_a_way_out() {
        check(
            "2026-12-01T09:00:00",
            "instant `2026-12-01T09:00:00` has no offset from UTC (write `2026-12-01T09:00:00Z`, or `2026-12-01T09:00:00+01:00`)",
        );
        check("2026-12-01", "instant `2026-12-01` has no time of day (write `2026-12-01T00:00:00Z`)");
        check("tomorrow", "`tomorrow` is not an instant (write it as RFC 3339, `2026-12-01T09:00:00+01:00`)");
        check(
            "2026-12-01T09:00:00+01:00[Europe/Berlin]",
            "`2026-12-01T09:00:00+01:00[Europe/Berlin]` is not an instant (write it as RFC 3339, `2026-12-01T09:00:00+01:00`)",
        );
        check(
            "9999-12-30T12:00:00Z",
            "instant `9999-12-30T12:00:00Z` is outside the calendar (years 1 to 9999)",
        );
    }

    #[test]
    fn arithmetic_stops_at_the_ends_of_the_calendar() {
        assert_eq!(Timestamp::MAX + Duration::from_millis(1), Timestamp::MAX);
        assert_eq!(Timestamp::MIN - Duration::from_millis(i64::MAX), Timestamp::MIN);
        assert_eq!(Timestamp::from_second(i64::MAX), Timestamp::MAX);
        assert_eq!(Timestamp::MAX.to_string(), "9999-12-30T00:00:00Z");
        assert_eq!(Timestamp::MIN.to_string(), "0001-01-01T00:00:00Z");
    }

    #[test]
    fn one_that_may_be_missing_takes_no_more_room() {
        assert_eq!(size_of::<Option<Timestamp>>(), 8);
        let row = [MIN_MILLIS, MIN_MILLIS + 1, -1, 0, 1, MAX_MILLIS - 1, MAX_MILLIS];
        let instants = row.map(Timestamp::from_millis);
        assert!(instants.is_sorted_by(|a, b| a < b), "{instants:?}");
        assert_eq!(instants.map(Timestamp::as_millis), row);
        assert_eq!(Timestamp::MAX - Timestamp::MIN, Duration::from_millis(MAX_MILLIS - MIN_MILLIS));
    }

    #[test]
    fn a_second_is_rounded_down_also_before_the_epoch() {
        assert_eq!(Timestamp::from_millis(-1).as_second(), -1);
        assert_eq!(Timestamp::from_millis(1_999).as_second(), 1);
    }
}
