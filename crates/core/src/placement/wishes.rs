//! Hours that a job prefers or avoids, and blackouts that would only delay it (A12).

use crate::blackout::Blackouts;
use crate::job::{HourSet, Job};
use crate::time::{Duration, Timestamp};
use crate::zone::Zone;

/// What a placement should honour, if it can.
#[derive(Clone, Copy, Debug)]
pub struct Wishes<'a> {
    zone: &'a Zone,
    preferred_hours: Option<HourSet>,
    avoid_hours: Option<HourSet>,
    blackouts: &'a Blackouts,
    run_length: Duration,
}

impl<'a> Wishes<'a> {
    /// The wishes of a job whose runs take this long; none for most jobs.
    pub fn of(job: &'a Job, run_length: Duration) -> Option<Wishes<'a>> {
        let has_any = job.preferred_hours.is_some() || job.avoid_hours.is_some() || !job.blackouts.is_empty();
        has_any.then_some(Wishes {
            zone: &job.zone,
            preferred_hours: job.preferred_hours,
            avoid_hours: job.avoid_hours,
            blackouts: &job.blackouts,
            run_length,
        })
    }

    /// Whether a start then would go against them.
    pub(super) fn is_unwished(&self, at: Timestamp) -> bool {
        let hour = u8::try_from(self.zone.local(at).second_of_day / 3_600).unwrap_or(0);
        let wrong_hour = self.preferred_hours.is_some_and(|hours| !hours.contains(hour))
            || self.avoid_hours.is_some_and(|hours| hours.contains(hour));
        wrong_hour || self.blackouts.earliest_fit(self.zone, at, self.run_length) != Some(at)
    }
}
