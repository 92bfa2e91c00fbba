//! Hours that a job prefers or avoids, and blackouts that would only delay it (A12).

use crate::blackout::Blackouts;
use crate::job::{HourSet, Job, Terms};
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

/// The hours of the day that a job prefers and avoids.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WishedHours {
    pub preferred: Option<HourSet>,
    pub avoided: Option<HourSet>,
}

impl WishedHours {
    /// The hours that a job says.
    pub fn of(job: &Job) -> WishedHours {
        WishedHours { preferred: job.preferred_hours, avoided: job.avoid_hours }
    }
}

impl<'a> Wishes<'a> {
    /// The wishes of a job whose runs take this long; none for most jobs.
    pub fn of(job: &'a Job, run_length: Duration) -> Option<Wishes<'a>> {
        Wishes::of_terms(job, WishedHours::of(job), run_length)
    }

    /// The same of its terms and hours alone.
    pub(super) fn of_terms(terms: &'a Terms, hours: WishedHours, run_length: Duration) -> Option<Wishes<'a>> {
        let has_any = hours != WishedHours::default() || !terms.blackouts.is_empty();
        has_any.then_some(Wishes {
            zone: &terms.zone,
            preferred_hours: hours.preferred,
            avoid_hours: hours.avoided,
            blackouts: &terms.blackouts,
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
