//! What an agenda is built from: a job's key and its instants, known as a rule or one by one.

use crate::ids::JobKey;
use crate::schedule::Rhythm;
use crate::time::{TimeWindow, Timestamp};

/// One job's contribution to an agenda.
#[derive(Clone, Debug)]
pub struct Source<'a> {
    /// The job.
    pub key: &'a JobKey,
    /// Its instants.
    pub when: When<'a>,
    /// Whether the instants are expected rather than known, as those of `fresh` jobs are.
    pub is_estimate: bool,
}

/// Instants of a job.
#[derive(Clone, Debug)]
pub enum When<'a> {
    /// By rule.
    Rhythm(Rhythm<'a>),
    /// One by one, in any order; what is said twice counts once, what lies outside the window not at
    /// all.
    Instants(&'a [Timestamp]),
}

impl<'a> Source<'a> {
    /// A job that recurs by rule.
    pub fn from_rhythm(key: &'a JobKey, rhythm: Rhythm<'a>) -> Source<'a> {
        Source { key, when: When::Rhythm(rhythm), is_estimate: false }
    }

    /// A job whose occurrences were expanded elsewhere.
    pub fn from_occurrences(key: &'a JobKey, instants: &'a [Timestamp]) -> Source<'a> {
        Source { key, when: When::Instants(instants), is_estimate: false }
    }

    /// The same, marked as an estimate.
    #[must_use]
    pub fn estimated(self) -> Source<'a> {
        Source { is_estimate: true, ..self }
    }

    /// How many instants lie in the window, repeated ones as often as they are there.
    pub(super) fn count_in(&self, window: TimeWindow) -> u64 {
        match &self.when {
            When::Rhythm(rhythm) => rhythm.count_in(window),
            When::Instants(instants) => instants.iter().map(|at| u64::from(window.contains(*at))).sum(),
        }
    }

    pub(super) fn for_each_in(&self, window: TimeWindow, mut visit: impl FnMut(Timestamp)) {
        match &self.when {
            When::Rhythm(rhythm) => rhythm.for_each_in(window, visit),
            When::Instants(instants) => {
                for at in instants.iter().filter(|at| window.contains(**at)) {
                    visit(*at);
                }
            }
        }
    }
}
