//! When a job recurs: `every`, `fresh`, `cron`, `once`, `manual` (J3).
//!
//! A [`Schedule`] is a rule; a [`Placement`] is where the rule was set down on the time line. Only
//! both together are a [`Rhythm`]: a row of instants that can be walked, counted and looked up. An
//! interval has no instants before it is placed, and neither has `H * * * *`.

pub mod cron;
mod choices;
mod preset;
mod rhythm;

use std::fmt;
use std::sync::Arc;

pub use choices::Choices;
pub use preset::Preset;
pub use rhythm::Rhythm;

use crate::schedule::cron::{CronExpr, CronPlan};
use crate::time::{Duration, Timestamp};
use crate::zone::Zone;

/// The shortest interval: anything less is a loop, not a schedule.
pub const INTERVAL_MIN: Duration = Duration::from_secs(1);

/// How long after its instant a `once` job must be complete, unless it says otherwise.
pub const ONCE_FINISH_WITHIN: Duration = Duration::from_hours(1);

/// A job's rule of recurrence.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Schedule {
    /// At a fixed distance, in a phase chosen by placement.
    Every {
        /// The distance; never rounded to a slot.
        interval: Duration,
        /// How long after its occurrence a run must be complete; one interval if nothing is said.
        finish_within: Option<Duration>,
    },
    /// As often as it takes to keep data younger than this.
    Fresh {
        /// The oldest that data may become, from the start of the last good run.
        max_age: Duration,
        /// The rest between the end of a good run and the next start.
        cooldown: Duration,
    },
    /// At the times that an expression names.
    Cron(Cron),
    /// One time only.
    Once {
        at: OnceAt,
        /// How long after its instant the run must be complete.
        finish_within: Option<Duration>,
    },
    /// Only when triggered.
    Manual,
}

/// When a `once` job is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OnceAt {
    /// As soon as it is known.
    Now,
    /// At this instant.
    Instant(Timestamp),
}

/// A cron expression and its allowance.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cron {
    expr: Arc<CronExpr>,
    /// Ready to walk, unless a placement must first choose the values of `H`.
    plan: Option<CronPlan>,
    /// How long after the scheduled start a run must be complete; until the next occurrence if
    /// nothing is said.
    pub finish_within: Option<Duration>,
}

impl Cron {
    /// The schedule of an expression.
    pub fn new(expr: CronExpr, finish_within: Option<Duration>) -> Cron {
        Cron { plan: expr.plan(), expr: Arc::new(expr), finish_within }
    }

    /// The expression as it was written.
    pub fn expr(&self) -> &CronExpr {
        &self.expr
    }

    /// The bit sets to walk: those of the expression or, where it has `H`, of the choices made.
    pub fn plan(&self, choices: &[u8]) -> Option<CronPlan> {
        self.plan.or_else(|| self.expr.resolve(choices))
    }

    /// Whether a placement has something to choose.
    pub fn is_hashed(&self) -> bool {
        self.plan.is_none()
    }
}

/// Where a schedule was set down on the time line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// When this was decided. Written only by a real placement or move.
    pub placed_at: Timestamp,
    /// The first occurrence since then. An interval counts on from it, and nothing was ever due
    /// before it: a job that has never succeeded owes its first run here.
    pub anchor_at: Timestamp,
    /// What was chosen for each `H` of a cron expression, in order of appearance.
    pub choices: Choices,
}

impl Placement {
    /// A placement of anything without `H`.
    pub fn at(anchor_at: Timestamp, placed_at: Timestamp) -> Placement {
        Placement { placed_at, anchor_at, choices: Choices::default() }
    }
}

/// Between which instants, and how often, a schedule of any kind is in force.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Bounds {
    /// Nothing is due before it.
    pub starts_at: Option<Timestamp>,
    /// Nothing is due at it or later.
    pub ends_at: Option<Timestamp>,
    /// The number of occurrences with a run after which the schedule ends.
    pub max_runs: Option<u64>,
}

impl Schedule {
    /// Whether the time of its occurrences is chosen by placement, and may be chosen again.
    pub fn is_movable(&self) -> bool {
        match self {
            Schedule::Every { .. } => true,
            Schedule::Cron(cron) => cron.is_hashed(),
            Schedule::Fresh { .. } | Schedule::Once { .. } | Schedule::Manual => false,
        }
    }

    /// The kind, in the word that files and pages use.
    pub fn kind(&self) -> &'static str {
        match self {
            Schedule::Every { .. } => "every",
            Schedule::Fresh { .. } => "fresh",
            Schedule::Cron(_) => "cron",
            Schedule::Once { .. } => "once",
            Schedule::Manual => "manual",
        }
    }

    /// The instants of this schedule, placed so, within its bounds.
    ///
    /// `fresh` has only the first of them: each later one is minted when a run succeeds
    /// ([`Schedule::next_after_good_run`]). `manual` has none.
    pub fn rhythm<'a>(&self, placement: &Placement, bounds: Bounds, zone: &'a Zone) -> Rhythm<'a> {
        let rhythm = match self {
            Schedule::Every { interval, .. } => Rhythm::grid(placement.anchor_at, *interval),
            Schedule::Cron(cron) => match cron.plan(&placement.choices) {
                Some(plan) => Rhythm::cron(plan, zone).starting_at(placement.anchor_at),
                None => Rhythm::empty(),
            },
            Schedule::Fresh { .. } | Schedule::Once { at: OnceAt::Now, .. } => {
                Rhythm::single(placement.anchor_at)
            }
            Schedule::Once { at: OnceAt::Instant(at), .. } => Rhythm::single(*at),
            Schedule::Manual => Rhythm::empty(),
        };
        rhythm.starting_at(bounds.starts_at.unwrap_or(Timestamp::MIN)).ending_at(bounds.ends_at)
    }

    /// The occurrence that a good run of a `fresh` job mints: its end plus the cooldown.
    pub fn next_after_good_run(&self, ended_at: Timestamp) -> Option<Timestamp> {
        match self {
            Schedule::Fresh { cooldown, .. } => Some(ended_at + *cooldown),
            _ => None,
        }
    }
}

/// As it would be written in a job file.
impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Schedule::Every { interval, .. } => write!(f, "every {interval}"),
            Schedule::Fresh { max_age, cooldown } => write!(f, "fresh {max_age}, cooldown {cooldown}"),
            Schedule::Cron(cron) => write!(f, "cron {}", cron.expr()),
            Schedule::Once { at: OnceAt::Now, .. } => f.write_str("once, now"),
            Schedule::Once { at: OnceAt::Instant(at), .. } => write!(f, "once, at {at}"),
            Schedule::Manual => f.write_str("manual"),
        }
    }
}
