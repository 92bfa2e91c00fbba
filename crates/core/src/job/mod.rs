//! A job: what to run, when, within which limits (J1), and what is remembered of it (J4).
//!
//! What people write becomes a [`Job`] in [`crate::spec`], and nothing behind that door checks it again.
//! Its parts are valid by their types: an invalid schedule, zone or key cannot be built.
//!
//! What a decision about it needs is apart, in its [`Terms`]: a node remembers [`JobState`] and terms of
//! a million jobs, and many of them share their terms.

mod alerts;
mod extra;
mod policy;
mod state;
mod target;
mod terms;
#[cfg(test)]
pub(crate) mod sample;

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};

pub use alerts::JobAlerts;
pub use extra::{EXTRAS_MAX, Extra, Extras};
pub use policy::{Exclusive, HourSet, Overlap, Where};
pub use state::{JobState, Owner, Pause, PausedBy, RunEnd, Status};
pub use target::{CommandTarget, HttpTarget, QueueTarget, Target};
pub use terms::Terms;

use crate::ids::JobKey;
use crate::schedule::Schedule;
use crate::time::{Duration, Timestamp};
use crate::value::Value;

/// A recurring duty, valid in all its parts. Its terms are read as if they were its own fields.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// `name` or `name@configuration`.
    pub key: JobKey,
    /// How its work is done.
    pub target: Target,
    /// When, where and within which limits.
    pub terms: Terms,
    /// The hours of the day, in its zone, that placement should use.
    pub preferred_hours: Option<HourSet>,
    /// The hours of the day, in its zone, that placement should leave free.
    pub avoid_hours: Option<HourSet>,
    /// How soon after it is placed its first run comes; one interval if nothing is said.
    pub first_run_within: Option<Duration>,
    /// When another scheduler would have run it next; placement keeps that rhythm.
    pub next_run_hint: Option<Timestamp>,
    /// Whether it begins its life paused, and why.
    pub paused: Option<Pause>,
    /// What it is for, in words for people.
    pub description: Option<String>,
    /// Whom to ask about it: a team, an address.
    pub contact: Option<String>,
    /// Who is told when something is wrong with it.
    pub alerts: JobAlerts,
    /// For people and filters.
    pub labels: BTreeMap<String, String>,
    /// Handed to every run.
    pub params: BTreeMap<String, Value>,
}

impl Job {
    /// A job with every policy at its default.
    pub fn new(key: JobKey, target: Target, schedule: Schedule) -> Job {
        Job {
            key,
            target,
            terms: Terms::new(schedule),
            preferred_hours: None,
            avoid_hours: None,
            first_run_within: None,
            next_run_hint: None,
            paused: None,
            description: None,
            contact: None,
            alerts: JobAlerts::default(),
            labels: BTreeMap::new(),
            params: BTreeMap::new(),
        }
    }
}

impl Deref for Job {
    type Target = Terms;

    fn deref(&self) -> &Terms {
        &self.terms
    }
}

impl DerefMut for Job {
    fn deref_mut(&mut self) -> &mut Terms {
        &mut self.terms
    }
}
