//! The time line in slots, and how much each of them carries (A1, A2, A4).
//!
//! A slot is a cell of the time line, 15 minutes wide unless configured otherwise: its key is the
//! number of whole widths since 1970, and its window is half-open. Load is levelled over slots first,
//! then over the minutes of a slot, then over the seconds of a minute, so that a slot's jobs do not
//! fire in its first second.

mod load;
mod work;

use std::fmt;

pub use load::SlotLoad;
pub use work::{BalanceBy, JobLoad, RunWork};

use crate::time::{Duration, TimeWindow, Timestamp};

/// How wide slots are. They tile an hour, and an hour tiles a day: no slot lies across either.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SlotWidth(u16);

impl SlotWidth {
    /// 15 minutes.
    pub const DEFAULT: SlotWidth = SlotWidth(15);

    /// A width of whole minutes, a divisor of 60.
    pub fn from_mins(minutes: u16) -> Result<SlotWidth, SlotWidthError> {
        if minutes == 0 || 60 % minutes != 0 {
            return Err(SlotWidthError { minutes });
        }
        Ok(SlotWidth(minutes))
    }

    /// The width in minutes.
    pub fn as_mins(self) -> u16 {
        self.0
    }

    /// The width.
    pub fn length(self) -> Duration {
        Duration::from_mins(i64::from(self.0))
    }

    /// How many slots an hour has.
    pub fn n_an_hour(self) -> usize {
        usize::from(60 / self.0)
    }
}

impl Default for SlotWidth {
    fn default() -> SlotWidth {
        SlotWidth::DEFAULT
    }
}

/// The width does not tile an hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a slot of {minutes} minutes does not divide an hour (use 1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30 or 60)"
)]
pub struct SlotWidthError {
    /// The requested width.
    pub minutes: u16,
}

/// One cell of the time line.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(i64);

impl Slot {
    /// The slot that an instant lies in.
    pub fn of(at: Timestamp, width: SlotWidth) -> Slot {
        Slot(at.as_millis().div_euclid(width.length().as_millis()))
    }

    /// Its number, counted from 1970.
    pub fn key(self) -> i64 {
        self.0
    }

    /// The slot `n` further on.
    #[must_use]
    pub fn plus(self, n_slots: i64) -> Slot {
        Slot(self.0 + n_slots)
    }

    /// Its first instant.
    pub fn start(self, width: SlotWidth) -> Timestamp {
        Timestamp::UNIX_EPOCH + width.length() * self.0
    }

    /// All of it.
    pub fn window(self, width: SlotWidth) -> TimeWindow {
        TimeWindow::starting_at(self.start(width), width.length())
    }
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Slot({})", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(time: &str) -> Slot {
        Slot::of(format!("2026-02-04T{time}Z").parse().unwrap(), SlotWidth::DEFAULT)
    }

    #[test]
    fn a_slot_is_half_open() {
        assert_eq!(slot("10:00:00"), slot("10:14:59.999"));
        assert_ne!(slot("10:00:00"), slot("10:15:00"));
        assert_eq!(slot("10:07:30").start(SlotWidth::DEFAULT).to_string(), "2026-02-04T10:00:00Z");
        assert!(
            slot("10:00:00").window(SlotWidth::DEFAULT).contains("2026-02-04T10:14:59.999Z".parse().unwrap())
        );
    }

    #[test]
    fn an_hour_is_four_slots() {
        assert_eq!(slot("10:00:00").plus(4), slot("11:00:00"));
        assert_eq!(slot("10:00:00").key(), 1_770_199_200 / 900);
    }

    #[test]
    fn slots_before_1970_are_rounded_down_too() {
        let before: Timestamp = "1969-12-31T23:59:59Z".parse().unwrap();
        assert_eq!(Slot::of(before, SlotWidth::DEFAULT).key(), -1);
    }

    #[test]
    fn a_width_tiles_an_hour_or_is_refused() {
        assert_eq!(SlotWidth::from_mins(15), Ok(SlotWidth::DEFAULT));
        assert_eq!(
            SlotWidth::from_mins(0).unwrap_err().to_string(),
            "a slot of 0 minutes does not divide an hour (use 1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30 or 60)"
        );
        assert!(SlotWidth::from_mins(7).is_err());
        assert!(SlotWidth::from_mins(120).is_err());
    }
}
