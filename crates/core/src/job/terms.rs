//! What decides about a job: when, where and within which limits it runs.

use super::{Exclusive, Overlap, Where};
use crate::blackout::Blackouts;
use crate::ids::{Site, Tenant};
use crate::missed::MissedPolicy;
use crate::retry::RetryPolicy;
use crate::run::RunLimits;
use crate::schedule::{Bounds, Schedule};
use crate::time::Duration;
use crate::zone::Zone;

/// Everything that a decision about a job needs to know of it, besides its key and its memory.
///
/// A fleet is written with few different terms, so those that are equal can be kept once.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Terms {
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
}

impl Terms {
    /// A schedule with every policy at its default.
    pub fn new(schedule: Schedule) -> Terms {
        Terms {
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
        }
    }
}

impl Terms {
    /// How many runs of the job may be open at once. The next occurrence of a `fresh` job exists only
    /// once its last run is over, so there nothing can run beside anything.
    pub fn max_open(&self) -> u32 {
        if self.moves_on_at_start() { self.overlap.max_open() } else { 1 }
    }

    /// Whether the next occurrence is pending as soon as a run of this one starts, because it may run
    /// beside it; else when that run ends.
    pub fn moves_on_at_start(&self) -> bool {
        matches!(self.overlap, Overlap::Allow { .. }) && !matches!(self.schedule, Schedule::Fresh { .. })
    }
}

#[cfg(test)]
mod tests {
    use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

    use super::*;
    use crate::job::sample::{job, length};
    use crate::missed::MissedRuns;

    #[track_caller]
    fn check(set: impl Fn(&mut Terms), is_same: bool) {
        let hash = |terms: &Terms| BuildHasherDefault::<DefaultHasher>::default().hash_one(terms);
        let one = job("cron H 3 * * *").terms;
        let mut other = job("cron H 3 * * *").terms;
        set(&mut other);
        assert_eq!(one == other, is_same);
        assert_eq!(hash(&one) == hash(&other), is_same);
    }

    #[test]
    fn terms_are_the_same_if_all_their_parts_are() {
        check(|_| {}, true);
        check(|it| it.schedule = job("cron H 4 * * *").terms.schedule, false);
        check(|it| it.zone = Zone::named("Europe/Berlin").unwrap(), false);
        check(|it| it.retry.jitter = 0.1, false);
        check(|it| it.retry.holds_schedule = true, false);
        check(|it| it.retry.delays = vec![length("5m")], false);
        check(|it| it.missed.runs = MissedRuns::All, false);
        check(|it| it.overlap = Overlap::Allow { max_parallel: 2 }, false);
        check(|it| it.place.cost = 2, false);
        check(|it| it.site = Some("shop".parse().unwrap()), false);
        check(|it| it.enabled = false, false);
        check(|it| it.estimate = Some(length("1m")), false);
    }
}
