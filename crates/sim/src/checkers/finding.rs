//! What a checker has found.

use std::fmt;

use evenbeat_core::time::Duration;

use crate::fact::RealTime;

/// How many findings a checker keeps: the first few say what happened, the rest follow from them.
const FINDINGS_MAX: usize = 20;

/// A property did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which property.
    pub property: &'static str,
    /// When, in real time.
    pub at: RealTime,
    /// Of what: a job, a session, a node, a counter.
    pub who: String,
    /// What was wrong, and the facts that show it.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}: {}: {}", self.property, shown(self.at), self.who, self.what)
    }
}

/// The violations of one property.
#[derive(Debug)]
pub(super) struct Findings {
    property: &'static str,
    found: Vec<Violation>,
}

impl Findings {
    pub(super) fn of(property: &'static str) -> Findings {
        Findings { property, found: Vec::new() }
    }

    pub(super) fn property(&self) -> &'static str {
        self.property
    }

    pub(super) fn add(&mut self, at: RealTime, who: &dyn fmt::Display, what: String) {
        if self.found.len() < FINDINGS_MAX {
            self.found.push(Violation { property: self.property, at, who: who.to_string(), what });
        }
    }

    pub(super) fn all(&self) -> &[Violation] {
        &self.found
    }
}

/// A real time for people: `1m2s345ms` since the world began.
pub(super) fn shown(at: RealTime) -> Duration {
    Duration::from_millis(at.0)
}
