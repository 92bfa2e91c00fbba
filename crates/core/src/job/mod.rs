//! A job: what to run, when, within which limits (J1), and what is remembered of it (J4).
//!
//! What people write becomes a [`Job`] in [`crate::spec`], and nothing behind that door checks it again.
//! Its parts are valid by their types: a schedule, a zone or a key that is none cannot be made.

mod policy;
mod state;
mod target;
#[cfg(test)]
pub(crate) mod sample;

use std::collections::BTreeMap;

pub use policy::{Exclusive, HourSet, Overlap, Where};
pub use state::{JobState, Owner, Pause, PausedBy, RunEnd, Status};
pub use target::{CommandTarget, HttpTarget, QueueTarget, Target};

use crate::blackout::Blackouts;
use crate::ids::{JobKey, Site, Tenant};
use crate::missed::MissedPolicy;
use crate::retry::RetryPolicy;
use crate::run::RunLimits;
use crate::schedule::{Bounds, Schedule};
use crate::time::{Duration, Timestamp};
use crate::value::Value;
use crate::zone::Zone;

/// A recurring duty, valid in all its parts.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// `name` or `name@configuration`.
    pub key: JobKey,
    /// How its work is done.
    pub target: Target,
    /// When it recurs.
    pub schedule: Schedule,
    /// Between which instants, and how often.
    pub bounds: Bounds,
    /// The zone of its cron expression and of its blackouts.
    pub zone: Zone,
    /// A job that is not enabled is stored and not placed.
    pub enabled: bool,
    /// When it must not run.
    pub blackouts: Blackouts,
    /// How long a run may take.
    pub limits: RunLimits,
    /// The length of a run as set by hand, which overrides what was learned.
    pub estimate: Option<Duration>,
    /// What happens after a failure.
    pub retry: RetryPolicy,
    /// What happens to occurrences that got no run in time.
    pub missed: MissedPolicy,
    /// What happens to occurrences that come due during a run.
    pub overlap: Overlap,
    /// What is promised about a second copy.
    pub exclusive: Exclusive,
    /// How many runs of all configurations of this name may go on at once.
    pub max_parallel_of_name: Option<u32>,
    /// Where it may run, and what it takes up there.
    pub place: Where,
    /// The shared limit it counts against.
    pub site: Option<Site>,
    /// Whose quota it counts against.
    pub tenant: Option<Tenant>,
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
            schedule,
            bounds: Bounds::default(),
            zone: Zone::utc(),
            enabled: true,
            blackouts: Blackouts::default(),
            limits: RunLimits::default(),
            estimate: None,
            retry: RetryPolicy::default(),
            missed: MissedPolicy::default(),
            overlap: Overlap::default(),
            exclusive: Exclusive::default(),
            max_parallel_of_name: None,
            place: Where::default(),
            site: None,
            tenant: None,
            preferred_hours: None,
            avoid_hours: None,
            first_run_within: None,
            next_run_hint: None,
            paused: None,
            labels: BTreeMap::new(),
            params: BTreeMap::new(),
        }
    }
}
