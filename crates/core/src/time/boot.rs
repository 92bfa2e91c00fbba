//! Time since a machine was started, for leases.

use std::fmt;
use std::ops::{Add, Sub};

use super::Duration;

/// A reading of one machine's boot clock, in milliseconds since it was started.
///
/// It never steps, and it counts time spent asleep. Readings of two machines have nothing to do with
/// each other: no text shows one, nothing stores one, and nothing compares two of different origin.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BootTime(i64);

impl BootTime {
    /// Later than any.
    pub const MAX: BootTime = BootTime::from_millis(i64::MAX);

    /// This many milliseconds after the start of the machine.
    pub const fn from_millis(millis: i64) -> BootTime {
        BootTime(millis)
    }

    /// Milliseconds since the start of the machine.
    pub const fn as_millis(self) -> i64 {
        self.0
    }
}

impl Add<Duration> for BootTime {
    type Output = BootTime;

    fn add(self, length: Duration) -> BootTime {
        BootTime(self.0.saturating_add(length.as_millis()))
    }
}

impl Sub for BootTime {
    type Output = Duration;

    fn sub(self, earlier: BootTime) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

impl fmt::Debug for BootTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "boot+{}", Duration::from_millis(self.0))
    }
}
