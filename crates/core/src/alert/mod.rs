//! Who is told what, and when (G6): every decision about alerts, as a function of what is stored and what time it is.
//!
//! Nothing is stored ahead. At each look ([`AlertState::look`]) the conditions of all jobs are held against the open
//! incidents, and what follows from that is announced:
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
//! - **Flapping is announced once.** An incident whose job turns to and fro stays open until the job has been calm.
//! - **Our own outage is one alert.** If nobody looked for a while, jobs that are late because of that are held back while
//!   the fleet catches up; the scheduler itself has an incident instead.

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
