//! What becomes of every occurrence of a job (B9, B10).
//!
//! A job has one occurrence at a time to care about: the *pending* one, in
//! [`JobState::next_run_at`]. Four things can happen to it, and each is a function here that takes the
//! job, its memory and the time, and returns a [`Step`]: the new memory, what ended, and what goes on
//! record.
//!
//! ```text
//!              start                      finish
//!   pending ----------> being served ----------------> the next one is pending
//!      |  ^                   |  failed, worth a retry
//!      |  +-------------------+
//!      |  settle: a newer one came due meanwhile
//!      +------------------------------------------> that one is pending
//!         resume: after a pause, placed afresh
//! ```
//!
//! One equation holds through all of them: **every occurrence that has come due has ended by a run,
//! lies in one record, or is the pending one or comes after it**. Nothing is lost, nothing counts
//! twice. A property test checks it over random lives.

mod finish;
mod settle;

#[cfg(test)]
mod tests;

use std::fmt;

pub use finish::{LOSSES_MAX, finish};
pub use settle::{resume, settle, start};

use crate::job::JobState;
use crate::missed::RecordRange;
use crate::run::{Outcome, Trigger};
use crate::time::Timestamp;

/// What one thing that happened leads to.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The memory from now on.
    pub state: JobState,
    /// Occurrences that a run, or the last of several, has ended.
    pub ended: Vec<Ended>,
    /// Occurrences that got no run of their own.
    pub records: Vec<Record>,
}

/// An occurrence that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// When it was due.
    pub due_at: Timestamp,
    /// How its last run ended.
    pub outcome: Outcome,
}

/// What occurrences without a run of their own became.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Which.
    pub range: RecordRange,
    /// What.
    pub what: RecordKind,
}

/// Why occurrences got no run of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordKind {
    /// They came due during a run.
    SkippedOverlap,
    /// Nobody was there, or nothing was free, in time.
    MissedLate,
    /// An older one waited for its retry.
    MissedBackoff,
    /// The job was paused.
    MissedPaused,
}

impl RecordKind {
    /// `skipped` or `missed`.
    pub fn what(self) -> &'static str {
        match self {
            RecordKind::SkippedOverlap => "skipped",
            RecordKind::MissedLate | RecordKind::MissedBackoff | RecordKind::MissedPaused => "missed",
        }
    }

    /// The reason, in a word.
    pub fn reason(self) -> &'static str {
        match self {
            RecordKind::SkippedOverlap => "overlap",
            RecordKind::MissedLate => "late",
            RecordKind::MissedBackoff => "backoff",
            RecordKind::MissedPaused => "paused",
        }
    }
}

impl fmt::Display for RecordKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.what(), self.reason())
    }
}

/// An occurrence that a run is to serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// When it was due.
    pub due_at: Timestamp,
    /// Which run of it this is, from 1 on.
    pub attempt: u32,
    /// What makes it start.
    pub trigger: Trigger,
}

impl Step {
    fn unchanged(state: &JobState) -> Step {
        Step { state: state.clone(), ended: Vec::new(), records: Vec::new() }
    }

    fn record(&mut self, what: RecordKind, range: Option<RecordRange>) {
        self.records.extend(range.map(|range| Record { range, what }));
    }

    /// Another occurrence becomes the pending one, without any run yet.
    fn turn_to(&mut self, next: Option<Timestamp>) {
        self.state.next_run_at = next;
        self.state.attempt = 0;
        self.state.losses = 0;
    }
}
