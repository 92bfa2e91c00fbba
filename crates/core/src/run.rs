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
    /// A person requested a stretch of the past.
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

/// What a run reported, and what else is known of its end (X6). Most runs have none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunReport {
    /// What went wrong, in words.
    pub error: Option<String>,
    /// What it counted, by name: `pages_processed`, `changes_detected`, whatever it likes.
    pub result: Table,
    /// How it came to its end.
    pub end: EndDetail,
}

/// How a run came to its end, as far as its outcome and its exit code do not say it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndDetail {
    /// The signal that ended its first process.
    pub signal: Option<i32>,
    /// Why it ended.
    pub reason: Option<EndReason>,
    /// The limit that it exceeded, with its value: `max_allowed_duration 6s`.
    pub limit: Option<String>,
    /// Whether it was still there when its grace was over, and had to be killed.
    pub ignored_term: bool,
    /// The names of processes that were still there after its first process had ended, and were killed.
    pub left_behind: Vec<String>,
    /// How many bytes of its output were discarded.
    pub output_cut: u64,
    /// The last line that it wrote to standard error.
    pub last_error_line: Option<String>,
}

/// Why a run ended, beyond its outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EndReason {
    /// Its first process exited with a code other than 0.
    ExitCode,
    /// A signal ended its first process, and Evenbeat did not send it.
    Signal,
    /// Its program could not be started.
    NotStarted,
    /// It took longer than a limit.
    TimeLimit,
    /// A blackout began.
    Blackout,
    /// A person ended it.
    Cancelled,
    /// Its node had lost the right to run it.
    Revoked,
    /// No scheduler was connected to its guard for longer than a limit.
    Orphaned,
    /// It was frozen for longer than a limit.
    FrozenTooLong,
    /// It could not be frozen in time when its lease ended.
    NotFrozen,
    /// The process that guarded it died.
    GuardDied,
    /// The machine was restarted.
    MachineRestarted,
}

impl EndReason {
    /// Every one.
    pub const ALL: [EndReason; 12] = [
        EndReason::ExitCode,
        EndReason::Signal,
        EndReason::NotStarted,
        EndReason::TimeLimit,
        EndReason::Blackout,
        EndReason::Cancelled,
        EndReason::Revoked,
        EndReason::Orphaned,
        EndReason::FrozenTooLong,
        EndReason::NotFrozen,
        EndReason::GuardDied,
        EndReason::MachineRestarted,
    ];

    /// The one of that name.
    pub fn named(word: &str) -> Option<EndReason> {
        EndReason::ALL.into_iter().find(|it| it.as_str() == word)
    }

    /// The word on the wire and in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            EndReason::ExitCode => "exit_code",
            EndReason::Signal => "signal",
            EndReason::NotStarted => "not_started",
            EndReason::TimeLimit => "time_limit",
            EndReason::Blackout => "blackout",
            EndReason::Cancelled => "cancelled",
            EndReason::Revoked => "revoked",
            EndReason::Orphaned => "orphaned",
            EndReason::FrozenTooLong => "frozen_too_long",
            EndReason::NotFrozen => "not_frozen",
            EndReason::GuardDied => "guard_died",
            EndReason::MachineRestarted => "machine_restarted",
        }
    }
}

impl RunReport {
    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        *self == RunReport::default()
    }

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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_passed_by_the_first_millisecond_after_it() {
        let limits = RunLimits { max_expected: Some(Duration::from_secs(10)), max_allowed: None };
        let start = Timestamp::from_second(1_000);
        assert!(!limits.is_overrunning(start, Timestamp::from_second(1_010)));
        assert!(limits.is_overrunning(start, Timestamp::from_millis(1_010_001)));
    }

    #[test]
    fn without_limits_a_run_may_take_for_ever() {
        let limits = RunLimits::default();
        assert!(!limits.is_overrunning(Timestamp::MIN, Timestamp::MAX));
    }
}
