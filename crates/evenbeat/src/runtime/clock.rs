//! The only place that reads a clock. Everything else is handed the time.

use std::time::{SystemTime, UNIX_EPOCH};

use evenbeat_core::time::Timestamp;

/// The wall clock's time, cut off to whole milliseconds.
pub(crate) fn now() -> Timestamp {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
    let millis = since_epoch.map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX));
    Timestamp::from_millis(millis)
}
