//! One attempt at an occurrence: how it was triggered, how it may end, how long it may take.

use std::fmt;

use crate::time::{Duration, Timestamp};
use crate::value::{Table, Value};

/// What made a run start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trigger {
    /// Its schedule.
    Scheduler,
    /// A person or a program, now.
    Manual,
    /// An earlier attempt at the same occurrence failed.
    Retry,
    /// Its occurrence was missed and is made up for.
    Catchup,
    /// A person asked for a stretch of the past.
    Backfill,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// Good: the data is fresh as of its start.
    Succeeded,
    /// It said so, or exited with a code other than 0.
    Failed,
    /// It exceeded `max_allowed_duration` and was ended.
    TimedOut,
    /// It was found inside a blackout and was ended.
    Blackout,
    /// A person ended it.
    Cancelled,
    /// Its node or worker fell silent and was fenced off.
    Lost,
    /// A remote target gave no answer.
    Unknown,
    /// Its result came after it had been given up as lost.
    Superseded,
}

impl Trigger {
    /// Every one.
    pub const ALL: [Trigger; 5] =
        [Trigger::Scheduler, Trigger::Manual, Trigger::Retry, Trigger::Catchup, Trigger::Backfill];

    /// The one of that name.
    pub fn named(word: &str) -> Option<Trigger> {
        Trigger::ALL.into_iter().find(|it| it.as_str() == word)
    }

    /// The word on the wire, in the store and on pages.
    pub fn as_str(self) -> &'static str {
        match self {
            Trigger::Scheduler => "scheduler",
            Trigger::Manual => "manual",
            Trigger::Retry => "retry",
            Trigger::Catchup => "catchup",
            Trigger::Backfill => "backfill",
        }
    }
}

impl Outcome {
    /// Every one.
    pub const ALL: [Outcome; 8] = [
        Outcome::Succeeded,
        Outcome::Failed,
        Outcome::TimedOut,
        Outcome::Blackout,
        Outcome::Cancelled,
        Outcome::Lost,
        Outcome::Unknown,
        Outcome::Superseded,
    ];

    /// The one of that name.
    pub fn named(word: &str) -> Option<Outcome> {
        Outcome::ALL.into_iter().find(|it| it.as_str() == word)
    }

    /// The word on the wire, in the store and on pages.
    pub fn as_str(self) -> &'static str {
        match self {
            Outcome::Succeeded => "succeeded",
            Outcome::Failed => "failed",
            Outcome::TimedOut => "timed_out",
            Outcome::Blackout => "blackout",
            Outcome::Cancelled => "cancelled",
            Outcome::Lost => "lost",
            Outcome::Unknown => "unknown",
            Outcome::Superseded => "superseded",
        }
    }

    /// Whether the job's failure count goes up.
    ///
    /// A person's cancel says nothing about the job, and a lost run says something about its node
    /// (losses are counted apart); a late result changes nothing at all.
    pub fn counts_as_failure(self) -> bool {
        match self {
            Outcome::Failed | Outcome::TimedOut | Outcome::Blackout | Outcome::Unknown => true,
            Outcome::Succeeded | Outcome::Cancelled | Outcome::Lost | Outcome::Superseded => false,
        }
    }
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What a run told of itself, beside how it ended (X6). Most tell nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunReport {
    /// What went wrong, in words.
    pub error: Option<String>,
    /// What it counted, by name: `pages_processed`, `changes_detected`, whatever it likes.
    pub result: Table,
}

impl RunReport {
    /// One of the counters that every run has, from 0.
    pub fn counter(&self, name: &str) -> i64 {
        match self.result.get(name) {
            Some(Value::Int(n)) => *n,
            _ => 0,
        }
    }
}

/// How long a run may take (B5). Both limits default to none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RunLimits {
    /// Beyond this: one error in the log and a warning, no failure.
    pub max_expected: Option<Duration>,
    /// Beyond this: the run is ended and counts as a failure.
    pub max_allowed: Option<Duration>,
}

impl RunLimits {
    /// Whether a run that started then has taken longer than expected.
    pub fn is_overrunning(&self, started_at: Timestamp, now: Timestamp) -> bool {
        self.max_expected.is_some_and(|longest| started_at + longest < now)
    }

    /// When a run that started then must be ended, if ever.
    pub fn must_end_at(&self, started_at: Timestamp) -> Option<Timestamp> {
        self.max_allowed.map(|longest| started_at + longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_passed_by_the_first_millisecond_after_it() {
        let limits = RunLimits {
            max_expected: Some(Duration::from_secs(10)),
            max_allowed: Some(Duration::from_secs(60)),
        };
        let start = Timestamp::from_second(1_000);
        assert!(!limits.is_overrunning(start, Timestamp::from_second(1_010)));
        assert!(limits.is_overrunning(start, Timestamp::from_millis(1_010_001)));
        assert_eq!(limits.must_end_at(start), Some(Timestamp::from_second(1_060)));
    }

    #[test]
    fn without_limits_a_run_may_take_for_ever() {
        let limits = RunLimits::default();
        assert!(!limits.is_overrunning(Timestamp::MIN, Timestamp::MAX));
        assert_eq!(limits.must_end_at(Timestamp::MIN), None);
    }
}
