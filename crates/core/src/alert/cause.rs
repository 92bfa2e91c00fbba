//! What an alert is about, and why.

use std::fmt;

use crate::condition::{Condition, Reason};
use crate::ids::JobKey;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// A promise may be broken.
    Warning,
    /// A promise is broken.
    Error,
}

impl Severity {
    /// The word on the wire and in the store: that of the condition.
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Warning => Condition::Warning.as_str(),
            Severity::Error => Condition::Error.as_str(),
        }
    }

    /// Parses a word.
    pub fn named(word: &str) -> Option<Severity> {
        [Severity::Warning, Severity::Error].into_iter().find(|it| it.as_str() == word)
    }

    /// How bad a reason is. None if nothing is wrong.
    pub fn of(reason: Reason) -> Option<Severity> {
        match reason.condition() {
            Condition::Ok => None,
            Condition::Warning => Some(Severity::Warning),
            Condition::Error => Some(Severity::Error),
        }
    }
}

/// Who or what an incident is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AlertSubject {
    /// A job.
    Job(JobKey),
    /// A part of the scheduler itself.
    System(SystemPart),
}

/// A part of the scheduler that can have an incident of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SystemPart {
    /// How evenly starts are spread.
    Distribution,
    /// The scheduler as a whole.
    Scheduler,
}

/// Prefix of system parts. No job key has a space, so they cannot be confused.
const SYSTEM_PREFIX: &str = "system ";

impl SystemPart {
    const ALL: [SystemPart; 2] = [SystemPart::Distribution, SystemPart::Scheduler];

    /// The word on the wire and in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            SystemPart::Distribution => "distribution",
            SystemPart::Scheduler => "scheduler",
        }
    }
}

impl AlertSubject {
    /// Parses what `Display` prints.
    pub fn parse(text: &str) -> Option<AlertSubject> {
        match text.strip_prefix(SYSTEM_PREFIX) {
            Some(part) => {
                SystemPart::ALL.into_iter().find(|it| it.as_str() == part).map(AlertSubject::System)
            }
            None => text.parse().ok().map(AlertSubject::Job),
        }
    }

    /// The job, if it is one.
    pub fn job(&self) -> Option<&JobKey> {
        match self {
            AlertSubject::Job(key) => Some(key),
            AlertSubject::System(_) => None,
        }
    }
}

impl fmt::Display for AlertSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AlertSubject::Job(key) => key.fmt(f),
            AlertSubject::System(part) => write!(f, "{SYSTEM_PREFIX}{}", part.as_str()),
        }
    }
}

/// Why something has an incident.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// The condition of a job.
    Reason(Reason),
    /// Starts are spread less evenly than `alerts.score_below` says (A13).
    ScoreLow,
    /// The scheduler was not running for a while.
    SchedulerAway,
}

impl Cause {
    /// The code on the wire, in filters and in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            Cause::Reason(reason) => reason.as_str(),
            Cause::ScoreLow => "score_low",
            Cause::SchedulerAway => "scheduler_away",
        }
    }

    /// Parses a code.
    pub fn named(code: &str) -> Option<Cause> {
        let reasons = Reason::ALL.into_iter().map(Cause::Reason);
        reasons.chain([Cause::ScoreLow, Cause::SchedulerAway]).find(|it| it.as_str() == code)
    }

    /// How bad it is.
    pub fn severity(self) -> Severity {
        match self {
            Cause::Reason(reason) => Severity::of(reason).unwrap_or(Severity::Warning),
            Cause::ScoreLow => Severity::Warning,
            Cause::SchedulerAway => Severity::Error,
        }
    }

    /// The tag at the start of a subject line, so that the kind of problem is visible in the inbox.
    pub fn tag(self) -> &'static str {
        match self {
            Cause::Reason(reason) => match reason {
                Reason::DeadlinePassed => "LATE",
                Reason::WillMissRunning | Reason::WillMissWaiting => "AT RISK",
                Reason::LastRunFailed => "FAILED",
                Reason::Overrunning => "SLOW",
                Reason::Unsatisfiable => "IMPOSSIBLE",
                Reason::PausedFailures | Reason::PausedQuota => "PAUSED",
                Reason::DisabledInvalid => "DISABLED",
                _ => "NOTICE",
            },
            Cause::ScoreLow => "UNEVEN",
            Cause::SchedulerAway => "AWAY",
        }
    }

    /// Whether an outage of the scheduler itself explains it.
    pub fn is_lateness(self) -> bool {
        matches!(
            self,
            Cause::Reason(Reason::DeadlinePassed | Reason::WillMissRunning | Reason::WillMissWaiting)
        )
    }
}

/// A one-time event. Unlike an incident, it has no end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AlertEvent {
    /// Occurrences of a job got no run.
    OccurrencesMissed,
    /// A run takes far longer than runs of its job usually do.
    RunSlow,
    /// The stored next run of a job was impossible and was repaired.
    JobRepaired,
    /// A clock was ahead. Jobs whose times it had written continue from the current time.
    ClockWasAhead,
    /// Stored next runs are wrong in too many jobs to repair them automatically.
    TooManyFaults,
    /// A node fell silent, and its runs are taken over.
    NodeLost,
    /// A run was killed but has not exited, and its job waits for it.
    RunUnkillable,
    /// A channel refused a message, or did not answer for too long.
    ChannelFailing,
}

impl AlertEvent {
    /// All events.
    pub const ALL: [AlertEvent; 8] = [
        AlertEvent::OccurrencesMissed,
        AlertEvent::RunSlow,
        AlertEvent::JobRepaired,
        AlertEvent::ClockWasAhead,
        AlertEvent::TooManyFaults,
        AlertEvent::NodeLost,
        AlertEvent::RunUnkillable,
        AlertEvent::ChannelFailing,
    ];

    /// The code on the wire and in filters.
    pub fn as_str(self) -> &'static str {
        match self {
            AlertEvent::OccurrencesMissed => "occurrences_missed",
            AlertEvent::RunSlow => "run_slow",
            AlertEvent::JobRepaired => "job_repaired",
            AlertEvent::ClockWasAhead => "clock_was_ahead",
            AlertEvent::TooManyFaults => "too_many_faults",
            AlertEvent::NodeLost => "node_lost",
            AlertEvent::RunUnkillable => "run_unkillable",
            AlertEvent::ChannelFailing => "channel_failing",
        }
    }

    /// How bad it is.
    pub fn severity(self) -> Severity {
        match self {
            AlertEvent::OccurrencesMissed
            | AlertEvent::RunSlow
            | AlertEvent::JobRepaired
            | AlertEvent::ClockWasAhead => Severity::Warning,
            AlertEvent::TooManyFaults
            | AlertEvent::NodeLost
            | AlertEvent::RunUnkillable
            | AlertEvent::ChannelFailing => Severity::Error,
        }
    }

    /// The word at the start of a subject line.
    pub fn tag(self) -> &'static str {
        match self {
            AlertEvent::OccurrencesMissed => "MISSED",
            AlertEvent::RunSlow => "SLOW",
            AlertEvent::JobRepaired => "REPAIRED",
            AlertEvent::ClockWasAhead => "CLOCK",
            AlertEvent::TooManyFaults => "FAULTS",
            AlertEvent::NodeLost => "NODE LOST",
            AlertEvent::RunUnkillable => "STUCK",
            AlertEvent::ChannelFailing => "UNDELIVERED",
        }
    }
}
