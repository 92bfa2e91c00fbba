//! Who goes first (B3): among jobs that may start now, the one whose latest start comes first.

use crate::ids::{JobKey, stable_hash};
use crate::job::{JobState, Terms};
use crate::run::Trigger;
use crate::time::Timestamp;
use crate::urgency::{self, Outlook};

/// A place in line; the smallest goes first. Total: two jobs are never equal, and every node puts
/// them in the same order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    class: Class,
    should_start_by: Timestamp,
    due_at: Timestamp,
    rotation: u64,
}

/// What a run is for. A person does not wait, and nothing that is made up for outranks live work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    Asked,
    Live,
    MadeUpFor,
}

impl Rank {
    /// The rank of the run that a job is ready for.
    pub fn of(key: &JobKey, terms: &Terms, state: &JobState, trigger: Trigger, outlook: &Outlook) -> Rank {
        let class = match trigger {
            Trigger::Manual => Class::Asked,
            Trigger::Scheduler | Trigger::Retry => Class::Live,
            Trigger::Catchup | Trigger::Backfill => Class::MadeUpFor,
        };
        let due_at = state.next_run_at.unwrap_or(Timestamp::MAX);
        // From the job and its occurrence: no name wins every tie, and every node agrees who does.
        let mut identity = key.as_str().as_bytes().to_vec();
        identity.extend(due_at.as_millis().to_le_bytes());
        Rank {
            class,
            // What has no deadline waits for all that have one.
            should_start_by: urgency::should_start_by(terms, state, outlook).unwrap_or(Timestamp::MAX),
            due_at,
            rotation: stable_hash(&identity),
        }
    }

    /// Whether the deadline can still be met by a start now. What cannot be saved must not starve what
    /// can (B6).
    pub fn is_savable(&self, now: Timestamp) -> bool {
        now <= self.should_start_by
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Job;
    use crate::job::sample::{instant, job, length, placed};

    /// A job of this name and schedule, last good at 10:00, whose runs take this long.
    fn rank(name: &str, schedule: &str, takes: &str, trigger: Trigger) -> Rank {
        let mut job = Job { key: name.parse().unwrap(), ..job(schedule) };
        job.estimate = Some(length(takes));
        let mut state = placed(&job, "10:00");
        state.last_good_start_at = Some(instant("10:00"));
        state.next_run_at = Some(instant("11:00"));
        Rank::of(&job.key, &job, &state, trigger, &Outlook::default())
    }

    #[track_caller]
    fn check(first: Rank, second: Rank) {
        assert!(first < second, "{first:?} is not before {second:?}");
    }

    #[test]
    fn the_nearest_latest_start_goes_first() {
        // Both must be complete by 12:00: the longer run must start earlier.
        let (long, short) = (("a", "every 1h", "40m"), ("b", "every 1h", "5m"));
        check(
            rank(long.0, long.1, long.2, Trigger::Scheduler),
            rank(short.0, short.1, short.2, Trigger::Scheduler),
        );
        check(
            rank("a", "every 1h within 30m", "5m", Trigger::Retry),
            rank("b", "every 1h", "5m", Trigger::Scheduler),
        );
        check(
            rank("a", "fresh 3h", "5m", Trigger::Scheduler),
            rank("b", "fresh 4h", "5m", Trigger::Scheduler),
        );
    }

    #[test]
    fn a_person_goes_first_and_what_is_made_up_for_last() {
        let late = rank("a", "every 1h", "50m", Trigger::Scheduler);
        check(rank("b", "manual", "1m", Trigger::Manual), late);
        check(late, rank("c", "every 1h", "59m", Trigger::Catchup));
        check(late, rank("c", "every 1h", "59m", Trigger::Backfill));
        check(rank("a", "fresh 9h", "1m", Trigger::Scheduler), rank("b", "manual", "1m", Trigger::Scheduler));
    }

    #[test]
    fn ties_rotate_with_the_occurrence() {
        let order_at = |due: &str| {
            let mut ranks: Vec<(Rank, usize)> = (0..6)
                .map(|idx| {
                    let job = Job { key: format!("job{idx}").parse().unwrap(), ..job("every 1h") };
                    let mut state = placed(&job, "10:00");
                    state.next_run_at = Some(instant(due));
                    (Rank::of(&job.key, &job, &state, Trigger::Scheduler, &Outlook::default()), idx)
                })
                .collect();
            ranks.sort();
            ranks.into_iter().map(|(_, idx)| idx).collect::<Vec<_>>()
        };
        assert_ne!(order_at("11:00"), order_at("12:00"));
        assert_eq!(order_at("11:00"), order_at("11:00"));
    }

    #[test]
    fn what_can_no_longer_be_in_time_is_known_as_such() {
        let rank = rank("a", "every 1h", "40m", Trigger::Scheduler);
        assert!(rank.is_savable(instant("11:20")));
        assert!(!rank.is_savable(instant("11:20:00.001")));
    }
}
