//! When runs ran, and nothing else about them: what a time line is drawn from.

use std::sync::Arc;

use evenbeat_core::ids::{JobKey, RunId};
use evenbeat_core::run::Outcome;
use evenbeat_core::time::{Duration, Timestamp};

/// When one run ran.
#[derive(Clone, Debug, PartialEq)]
pub struct RunTimes {
    pub run: RunId,
    pub key: JobKey,
    /// The pool of its job now.
    pub pool: Arc<str>,
    /// The site of its job now.
    pub site: Option<Arc<str>>,
    /// When it started. A run that never did: when it was claimed.
    pub started_at: Timestamp,
    /// How and when it ended; none while it goes on.
    pub end: Option<(Outcome, Timestamp)>,
    /// How long runs of its job take. Known of open runs of jobs that had a good one.
    pub expected: Option<Duration>,
}

/// The order in which ended runs are read, up to a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunOrder {
    LatestEndFirst,
    EarliestEndFirst,
}

/// What jobs are grouped by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MemberBy {
    Site,
    /// The value of this label.
    Label(String),
}

/// A job and the group it is in.
pub type Member = (JobKey, Arc<str>);

/// Copies of one text share it: there are few different ones.
#[derive(Debug, Default)]
pub(super) struct SharedTexts(Vec<Arc<str>>);

impl SharedTexts {
    /// How many different texts are looked through for an equal one.
    const KEPT_MAX: usize = 64;

    pub(super) fn get(&mut self, text: &str) -> Arc<str> {
        // The next row mostly has the text of one of the last rows.
        if let Some(found) = self.0.iter().rev().find(|it| &***it == text) {
            return Arc::clone(found);
        }
        if self.0.len() == SharedTexts::KEPT_MAX {
            self.0.clear();
        }
        let text: Arc<str> = text.into();
        self.0.push(Arc::clone(&text));
        text
    }
}
