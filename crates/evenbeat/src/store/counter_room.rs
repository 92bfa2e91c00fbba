//! When a counter has room for one more run.

use evenbeat_core::time::{Duration, Timestamp};

/// The window of limits on claims per hour.
pub(super) const HOUR: Duration = Duration::from_hours(1);

/// When a counter has room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CounterRoom {
    Now,
    From(Timestamp),
    /// Not before a run ends, or a limit is raised.
    NotByTime,
}

impl CounterRoom {
    /// Room from an instant on, or now if that is over.
    pub(super) fn after(at: Option<Timestamp>, now: Timestamp) -> CounterRoom {
        match at {
            Some(at) if now < at => CounterRoom::From(at),
            _ => CounterRoom::Now,
        }
    }
}
