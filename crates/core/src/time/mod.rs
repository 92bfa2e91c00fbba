//! Instants, lengths and windows of time, in whole milliseconds.
//!
//! The core keeps its own small types instead of a library's: eight bytes each (a fleet may be a
//! million jobs), ordered, and total: adding never panics and never wraps, it stops at the ends of
//! the calendar. Text is RFC 3339 for instants and `1h30m` or ISO 8601 for lengths.

mod boot;
mod duration;
mod instant;
mod steady;
mod window;

pub use boot::BootTime;
pub use duration::{Duration, DurationError};
pub use instant::{Timestamp, TimestampError};
pub use steady::{CLOCK_SLACK, Steady};
pub use window::TimeWindow;
