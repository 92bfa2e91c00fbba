//! Promises that cannot be kept, whatever happens (J6).
//!
//! Such a job is accepted, with a standing warning that says why: an operator may be about to
//! raise the limit, and a refusal would lose what was written.

use std::fmt;

use crate::job::Terms;
use crate::schedule::Schedule;
use crate::time::Duration;

/// Why no run of a job can ever be in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsatisfiable {
    /// From the start of a good run to the end of the next pass a run, a rest and a run, and that is
    /// longer than data may age.
    CooldownTooLong {
        /// The rest.
        cooldown: Duration,
        /// The length of a run.
        expected: Duration,
        /// How old data may become.
        max_age: Duration,
    },
    /// A run takes longer than it has until its deadline.
    RunTooLong {
        /// The length of a run.
        expected: Duration,
        /// The time from an occurrence to its deadline.
        allowed: Duration,
    },
    /// A run is ended before it can be complete.
    EndedTooEarly {
        /// The length of a run.
        expected: Duration,
        /// When it is ended.
        max_allowed: Duration,
    },
    /// Blackouts leave no moment of the week.
    BlackoutAllWeek,
    /// Every node that is wanted is also unwanted.
    NoNode,
}

/// Every reason why a job whose runs take this long cannot keep its promise; none for most.
pub fn unsatisfiable(terms: &Terms, expected: Duration) -> Vec<Unsatisfiable> {
    let mut found = Vec::new();
    let run_too_long =
        |allowed: Duration| (allowed < expected).then_some(Unsatisfiable::RunTooLong { expected, allowed });
    match &terms.schedule {
        // Age counts from the start of a good run, the rest from its end.
        Schedule::Fresh { max_age, cooldown }
            if max_age <= cooldown || *max_age < expected + *cooldown + expected =>
        {
            found.push(Unsatisfiable::CooldownTooLong { cooldown: *cooldown, expected, max_age: *max_age });
        }
        Schedule::Every { interval, finish_within } => {
            found.extend(run_too_long(finish_within.unwrap_or(*interval)));
        }
        // Without `finish_within` a cron job has until its next occurrence, which varies.
        Schedule::Cron(cron) => found.extend(cron.finish_within.and_then(run_too_long)),
        Schedule::Once { finish_within, .. } => found.extend(finish_within.and_then(run_too_long)),
        Schedule::Fresh { .. } | Schedule::Manual => {}
    }
    if let Some(max_allowed) = terms.limits.max_allowed.filter(|most| *most < expected) {
        found.push(Unsatisfiable::EndedTooEarly { expected, max_allowed });
    }
    if terms.blackouts.covers_all_week() {
        found.push(Unsatisfiable::BlackoutAllWeek);
    }
    if terms.place.excludes_all() {
        found.push(Unsatisfiable::NoNode);
    }
    found
}

impl Unsatisfiable {
    /// The way out.
    pub fn hint(&self) -> &'static str {
        match self {
            Unsatisfiable::CooldownTooLong { .. } => "shorten `cooldown`, or raise `fresh`",
            Unsatisfiable::RunTooLong { .. } => {
                "raise `finish_within` or the interval, or let runs be shorter"
            }
            Unsatisfiable::EndedTooEarly { .. } => "raise `max_allowed_duration`, or let runs be shorter",
            Unsatisfiable::BlackoutAllWeek => "leave some time of the week free",
            Unsatisfiable::NoNode => "take one of them out of `dont_run_on_nodes`",
        }
    }
}

impl fmt::Display for Unsatisfiable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unsatisfiable::CooldownTooLong { cooldown, expected: Duration::ZERO, max_age } => {
                write!(f, "a cooldown of {cooldown} leaves no time for a run within `fresh`, {max_age}")
            }
            Unsatisfiable::CooldownTooLong { cooldown, expected, max_age } => write!(
                f,
                "a run of {expected}, a cooldown of {cooldown} and the next run take longer than `fresh`, {max_age}"
            ),
            Unsatisfiable::RunTooLong { expected, allowed } => {
                write!(f, "a run takes {expected}, and has {allowed} until its deadline")
            }
            Unsatisfiable::EndedTooEarly { expected, max_allowed } => {
                write!(f, "a run takes {expected}, and `max_allowed_duration` ends it after {max_allowed}")
            }
            Unsatisfiable::BlackoutAllWeek => f.write_str("its blackouts cover the whole week"),
            Unsatisfiable::NoNode => {
                f.write_str("every node in `run_on_nodes` is also in `dont_run_on_nodes`")
            }
        }
    }
}
