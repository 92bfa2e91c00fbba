//! A half-open stretch of time.

use super::{Duration, Timestamp};

/// `[start, end)`: neighbours neither overlap nor leave a gap between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeWindow {
    start: Timestamp,
    end: Timestamp,
}

impl TimeWindow {
    /// The window from `start` up to, not including, `end`. A reversed one is empty, at `start`.
    pub fn new(start: Timestamp, end: Timestamp) -> TimeWindow {
        TimeWindow { start, end: end.max(start) }
    }

    /// The window of this length that begins at `start`.
    pub fn starting_at(start: Timestamp, length: Duration) -> TimeWindow {
        TimeWindow::new(start, start + length)
    }

    /// The first instant inside, unless the window is empty.
    pub fn start(&self) -> Timestamp {
        self.start
    }

    /// The first instant no longer inside.
    pub fn end(&self) -> Timestamp {
        self.end
    }

    /// How long the window is; never negative.
    pub fn length(&self) -> Duration {
        self.end - self.start
    }

    /// Whether nothing lies inside.
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Whether `at` lies inside.
    pub fn contains(&self, at: Timestamp) -> bool {
        self.start <= at && at < self.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_outside_and_a_reversed_window_is_empty() {
        let at = Timestamp::from_second;
        let window = TimeWindow::new(at(10), at(20));
        assert!(window.contains(at(10)));
        assert!(!window.contains(at(20)));
        let reversed = TimeWindow::new(at(20), at(10));
        assert!(reversed.is_empty());
        assert!(!reversed.contains(at(15)));
        assert_eq!(reversed.length(), Duration::ZERO);
    }
}
