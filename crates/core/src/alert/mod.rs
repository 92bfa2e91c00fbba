//! Decides who is alerted about what, and when (G6). Every decision is a function of the stored state and the current
//! time.
//!
//! Alerts are never scheduled ahead. Each look ([`AlertState::look`]) compares the conditions of all jobs with the open
//! incidents and announces the difference:
//!
//! ```text
//!   conditions --> incidents: one per job, open until it is well again
//!                      |
//!                      v
//!   what each channel should know  -  what it was told  =  announcements, grouped by cause
//! ```
//!
//! - **One incident per job.** Later causes update it. A worse one (warning to error) is announced again, and so is its
//!   end. Failed runs count only once retries are exhausted or too many failed in a row; a missed deadline never waits.
//! - **What a channel was told is kept with the incident**, so nothing is announced twice, a mute hides only what changed
//!   during it and changed back, and a channel that has reached its hourly limit catches up with one summary.
//! - **Flapping is announced once.** The incident of a flapping job stays open until the job has been stable for a while.
//! - **An outage of the scheduler is one alert.** After a gap between two looks, alerts about late jobs are held back while
//!   the fleet catches up. The scheduler itself has an incident instead.

mod cause;
mod incident;
mod look;
mod mute;
mod route;
mod text;

#[cfg(test)]
mod tests;

pub use cause::{AlertEvent, AlertSubject, Cause, Severity, SystemPart};
pub use incident::{Incident, IncidentEnd, Told, ToldWhat};
pub use look::{AlertState, Announced, AnnouncedItem, AnnouncementKind, JobHealth, Looked, next_reminder};
pub use mute::{MUTE_MAX, Mute, MuteScope};
pub use route::{AlertRoute, AlertRules, KeyPattern};
pub use text::{AlertText, EventText, JobFacts, LISTED_MAX, compose, compose_event};
