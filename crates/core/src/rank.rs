//! Who goes first (B3): among jobs that may start now, the one whose latest start comes first.

use crate::ids::{JobKey, stable_hash};
use crate::job::{JobState, Terms};
use crate::occurrence::DueRun;
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
    /// What fewer nodes may run goes before what any may run (B12).
    n_nodes: u32,
    rotation: u64,
}

/// What a run is for. A person does not wait, and nothing that is made up for outranks live work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    Asked,
    Live,
    /// Its runs take longer than they may: it is late for ever, so by its latest start it would stand before all
    /// that were late once and that one run would put right.
    Hopeless,
    MadeUpFor,
}

impl Class {
    /// The same for those who do not look at lengths.
    fn without_hope(self) -> Class {
        if self == Class::Hopeless { Class::Live } else { self }
    }
}

impl Rank {
    /// The rank of the run that a job is ready for.
    pub fn of(key: &JobKey, terms: &Terms, state: &JobState, up: &DueRun, outlook: &Outlook) -> Rank {
        // Not by lateness: what waited in a queue for a while must not fall behind for it.
        let class = match up.trigger {
            Trigger::Manual => Class::Asked,
            _ if up.is_backlog => Class::MadeUpFor,
            _ if urgency::is_hopeless(terms, state, outlook) => Class::Hopeless,
            _ => Class::Live,
        };
        let due_at = up.due_at;
        let should_start_by = match up.trigger {
            Trigger::Backfill => None,
            _ => urgency::should_start_by(terms, state, outlook),
        };
        let n_nodes = match terms.place.run_on_nodes.len() {
            0 => u32::MAX,
            n_nodes => u32::try_from(n_nodes).unwrap_or(u32::MAX),
        };
        // From the job and its occurrence: no name wins every tie, and every node agrees who does.
        let mut identity = key.as_str().as_bytes().to_vec();
        identity.extend(due_at.as_millis().to_le_bytes());
        Rank {
            class,
            // What has no deadline waits for all that have one.
            should_start_by: should_start_by.unwrap_or(Timestamp::MAX),
            due_at,
            n_nodes,
            rotation: stable_hash(&identity),
        }
    }

    /// A rank by when the occurrence was due, to compare with: what most schedulers do.
    pub fn first_come(key: &JobKey, terms: &Terms, state: &JobState, up: &DueRun, outlook: &Outlook) -> Rank {
        let rank = Rank::of(key, terms, state, up, outlook);
        Rank { class: rank.class.without_hope(), should_start_by: up.due_at, ..rank }
    }

    /// A rank by the minute in which the occurrence was due and then by name, to compare with: what a crontab does.
    pub fn by_minute(key: &JobKey, terms: &Terms, state: &JobState, up: &DueRun, outlook: &Outlook) -> Rank {
        let minute = Timestamp::from_millis(up.due_at.as_millis().div_euclid(60_000) * 60_000);
        let letters = key.as_str().bytes().chain(std::iter::repeat(0)).take(8);
        let rotation = letters.fold(0, |word: u64, byte| word << 8 | u64::from(byte));
        let rank = Rank::of(key, terms, state, up, outlook);
        let class = rank.class.without_hope();
        Rank { class, should_start_by: minute, due_at: minute, n_nodes: 0, rotation }
    }

    /// No run whose deadline can still be met by a start now comes before this rank, but for those that
    /// a person requested.
    pub fn first_savable(now: Timestamp) -> Rank {
        Rank { class: Class::Live, should_start_by: now, due_at: Timestamp::MIN, n_nodes: 0, rotation: 0 }
    }

    /// No run that can never be in time comes before this rank.
    pub fn first_hopeless() -> Rank {
        Rank { class: Class::Hopeless, ..Rank::first_savable(Timestamp::MIN) }
    }

    /// Whether it can never be in time, however early it starts.
    pub fn is_hopeless(&self) -> bool {
        self.class == Class::Hopeless
    }

    /// Whether a person requested it.
    pub fn is_asked(&self) -> bool {
        self.class == Class::Asked
    }

    /// Whether the deadline can still be met by a start now. What cannot be saved must not starve what
    /// can (B6). Whom someone waits for is never given up.
    pub fn is_savable(&self, now: Timestamp) -> bool {
        now <= self.should_start_by || self.class == Class::Asked
    }

    /// Whether it must start no earlier than that.
    pub fn is_later_than(&self, latest: Timestamp) -> bool {
        latest < self.should_start_by && self.class != Class::Asked
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Job;
    use crate::job::sample::{instant, job, length, placed};
    use crate::occurrence::Serves;

    fn up(due_at: &str, trigger: Trigger) -> DueRun {
        let is_backlog = trigger == Trigger::Backfill;
        DueRun { due_at: instant(due_at), trigger, serves: Serves::Pending, is_backlog }
    }

    /// A job of this name and schedule, last good at 10:00, whose runs take this long.
    fn rank_of(name: &str, schedule: &str, takes: &str, set: impl FnOnce(&mut Job), up: &DueRun) -> Rank {
        let mut job = Job { key: name.parse().unwrap(), ..job(schedule) };
        job.estimate = Some(length(takes));
        set(&mut job);
        let mut state = placed(&job, "10:00");
        state.last_good_start_at = Some(instant("10:00"));
        state.next_run_at = Some(instant("11:00"));
        Rank::of(&job.key, &job, &state, up, &Outlook::default())
    }

    fn rank(name: &str, schedule: &str, takes: &str, trigger: Trigger) -> Rank {
        rank_of(name, schedule, takes, |_| {}, &up("11:00", trigger))
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
        check(late, rank("c", "every 1h", "59m", Trigger::Backfill));
        let backlog = DueRun { is_backlog: true, ..up("11:00", Trigger::Catchup) };
        check(late, rank_of("c", "every 1h", "59m", |_| {}, &backlog));
        check(
            rank_of("c", "every 1h", "59m", |_| {}, &backlog),
            rank("a", "every 1h", "59m", Trigger::Backfill),
        );
        check(rank("a", "fresh 9h", "1m", Trigger::Scheduler), rank("b", "manual", "1m", Trigger::Scheduler));
    }

    #[test]
    fn what_can_never_be_in_time_goes_after_what_one_run_puts_right() {
        let hopeless = rank("a", "every 1h", "61m", Trigger::Scheduler);
        check(rank("b", "every 1h", "60m", Trigger::Scheduler), hopeless);
        check(rank("b", "every 9h", "5m", Trigger::Scheduler), hopeless);
        check(rank("b", "fresh 9h", "5m", Trigger::Scheduler), hopeless);
        let backlog = DueRun { is_backlog: true, ..up("11:00", Trigger::Catchup) };
        check(hopeless, rank_of("c", "every 1h", "5m", |_| {}, &backlog));
        assert!(!hopeless.is_savable(instant("11:00")));
    }

    #[test]
    fn what_waited_a_while_does_not_fall_behind_for_it() {
        check(
            rank("a", "every 1h", "50m", Trigger::Catchup),
            rank("b", "every 1h", "5m", Trigger::Scheduler),
        );
    }

    #[test]
    fn among_equals_what_fewer_nodes_may_run_goes_first() {
        let on = |n_nodes: usize| {
            move |job: &mut Job| {
                job.place.run_on_nodes = (0..n_nodes).map(|idx| format!("n{idx}").parse().unwrap()).collect();
            }
        };
        // Whatever their names, and so their turns.
        for name in ["a", "b", "c", "d", "e"] {
            let rank = |name: &str, n_nodes| {
                rank_of(name, "every 1h", "5m", on(n_nodes), &up("11:00", Trigger::Scheduler))
            };
            check(rank(name, 1), rank("x", 2));
            check(rank(name, 2), rank("x", 0));
            check(rank("x", 9), rank(name, 0));
        }
        // But not before what must start earlier.
        check(
            rank("a", "every 1h", "6m", Trigger::Scheduler),
            rank_of("b", "every 1h", "5m", on(1), &up("11:00", Trigger::Scheduler)),
        );
    }

    #[test]
    fn ties_rotate_with_the_occurrence() {
        let order_at = |due: &str| {
            let mut ranks: Vec<(Rank, usize)> = (0..6)
                .map(|idx| {
                    let job = Job { key: format!("job{idx}").parse().unwrap(), ..job("every 1h") };
                    let state = placed(&job, "10:00");
                    let up = up(due, Trigger::Scheduler);
                    (Rank::of(&job.key, &job, &state, &up, &Outlook::default()), idx)
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
