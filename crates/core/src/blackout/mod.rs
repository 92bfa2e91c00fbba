//! Times at which a job may not run: `22:00 to 06:00 on mon-fri`, by the clock on the wall (B8).
//!
//! An instant is inside a blackout if, and only if, its local weekday and time of day are, with the
//! offset then in force. That one sentence decides every clock change: a window inside a spring gap
//! does not happen that day, one inside an autumn fold happens twice, and a day that a zone left out
//! takes its windows with it.
//!
//! This is a calendar and nothing more: what happens to a run that is found inside is decided by
//! those who ask.

mod calendar;
mod error;
mod period;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod sample;
mod time_of_day;
mod week;
mod weekdays;

pub use calendar::{Blackouts, PERIODS_MAX};
pub use error::BlackoutError;
pub use period::BlackoutPeriod;
pub use time_of_day::TimeOfDay;
pub use weekdays::Weekdays;
