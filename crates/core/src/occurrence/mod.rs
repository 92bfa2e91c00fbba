//! What becomes of every occurrence of a job (B9, B10).
//!
//! A job has one occurrence at a time to care about: the *pending* one, in
//! [`JobState::next_run_at`]. A few things can happen to it, and each is a function here that takes the
//! job's terms, its memory and the time, and returns a [`Transition`]: the new memory, what ended, and what
//! goes on record.
//!
//! ```text
//!              start                      finish
//!   pending ----------> being served ----------------> the next one is pending
//!      |  ^                 |    |  failed, worth a retry
//!      |  +-----------------+----+
//!      |          unstart
//!      |  settle: a newer one came due meanwhile
//!      +------------------------------------------> that one is pending
//!         resume, replace, mend: a new placement after a pause, with another schedule, or
//!         because what is stored is impossible; set_right: a clock was ahead
//! ```
//!
//! Sometimes a job owes more than that, in [`JobState::extras`]: what a person requested ([`ask()`]) and,
//! where runs may overlap, what failed after the schedule had moved on. With `overlap = "allow"` it
//! moves on when a run starts, since the next may run beside it:
//!
//! ```text
//!   ask ------> extra ----------> being served ----------> over
//!                 ^      start         |    ^
//!                 +--------------------+    |  start, where runs may overlap
//!                   lost, or unstart,    pending --------> the next one is pending
//!                   or its own and worth a retry
//! ```
//!
//! One equation holds through all of them: **every occurrence that has come due or was requested has
//! ended by a run, lies in one record, or is open**: pending or after it, an extra, or served by an open
//! run. Nothing is lost, nothing counts twice. A property test checks it over random lives.

mod ask;
mod clock;
mod due;
mod finish;
mod own;
mod settle;
mod start;

#[cfg(test)]
mod tests;

use std::fmt;

pub use ask::{ExtraAnswer, ask};
pub use clock::set_right;
pub use due::{Due, DueRun, Serves};
pub use finish::{LOSSES_MAX, finish};
pub use settle::{mend, replace, resume, settle};
pub use start::{next_up, start, unstart};

use crate::ids::ExtraId;
use crate::job::JobState;
use crate::missed::RecordRange;
use crate::run::Outcome;
use crate::time::{Duration, Timestamp};

const TICK: Duration = Duration::from_millis(1);

/// The next state of a job, and what goes on record with it.
#[derive(Clone, Debug, PartialEq)]
pub struct Transition {
    /// The state from now on.
    pub state: JobState,
    /// Occurrences that a run, or the last of several, has ended.
    pub ended: Vec<OccurrenceEnd>,
    /// Occurrences that got no run of their own.
    pub records: Vec<Record>,
}

/// An occurrence that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OccurrenceEnd {
    /// When it was due.
    pub due_at: Timestamp,
    /// How its last run ended.
    pub outcome: Outcome,
    /// The request that it served. None for an occurrence of the schedule.
    pub asked: Option<ExtraId>,
}

/// What occurrences without a run of their own became.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    pub range: RecordRange,
    pub what: RecordKind,
}

/// Why occurrences got no run of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordKind {
    /// They came due during a run.
    SkippedOverlap,
    /// No node was up, or none had room, in time.
    MissedLate,
    /// An older one waited for its retry.
    MissedBackoff,
    /// The job was paused.
    MissedPaused,
    /// The job got another schedule.
    MissedReplaced,
}

impl RecordKind {
    /// Every one.
    pub const ALL: [RecordKind; 5] = [
        RecordKind::SkippedOverlap,
        RecordKind::MissedLate,
        RecordKind::MissedBackoff,
        RecordKind::MissedPaused,
        RecordKind::MissedReplaced,
    ];

    /// The one of that [reason](RecordKind::reason): no two have the same.
    pub fn of_reason(word: &str) -> Option<RecordKind> {
        RecordKind::ALL.into_iter().find(|it| it.reason() == word)
    }

    /// `skipped` or `missed`.
    pub fn what(self) -> &'static str {
        match self {
            RecordKind::SkippedOverlap => "skipped",
            RecordKind::MissedLate
            | RecordKind::MissedBackoff
            | RecordKind::MissedPaused
            | RecordKind::MissedReplaced => "missed",
        }
    }

    /// The reason, in a word.
    pub fn reason(self) -> &'static str {
        match self {
            RecordKind::SkippedOverlap => "overlap",
            RecordKind::MissedLate => "late",
            RecordKind::MissedBackoff => "backoff",
            RecordKind::MissedPaused => "paused",
            RecordKind::MissedReplaced => "replaced",
        }
    }
}

impl fmt::Display for RecordKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.what(), self.reason())
    }
}

impl Transition {
    fn unchanged(state: &JobState) -> Transition {
        Transition { state: state.clone(), ended: Vec::new(), records: Vec::new() }
    }

    fn record(&mut self, what: RecordKind, range: Option<RecordRange>) {
        self.records.extend(range.map(|range| Record { range, what }));
    }

    /// One of the schedule's own occurrences is over.
    fn end_own(&mut self, due_at: Timestamp, outcome: Outcome) {
        self.ended.push(OccurrenceEnd { due_at, outcome, asked: None });
    }

    /// The pending occurrence had its last run, and ends as that did.
    fn end_pending_as_last(&mut self, pending: Timestamp) {
        let outcome = self.state.attempt_outcome.unwrap_or(Outcome::Failed);
        self.end_own(pending, outcome);
        self.state.n_served += 1;
    }

    /// Another occurrence becomes the pending one, without any run yet.
    fn turn_to(&mut self, next: Option<Timestamp>) {
        self.state.next_run_at = next;
        self.state.attempt = 0;
        self.state.losses = 0;
        self.state.attempt_outcome = None;
    }
}
