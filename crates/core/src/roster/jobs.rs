//! Where a roster reads the jobs that it judges.

use crate::engine::Engine;
use crate::engine::view::Entry;
use crate::ids::JobKey;
use crate::job::{JobState, Terms};
use crate::urgency::Outlook;

/// One job, borrowed from where it is kept.
#[derive(Clone, Copy, Debug)]
pub struct JobRef<'a> {
    /// Which. Copies share its text.
    pub key: &'a JobKey,
    /// When, where and within which limits.
    pub terms: &'a Terms,
    /// What is remembered of it.
    pub state: &'a JobState,
}

impl<'a> JobRef<'a> {
    fn of(entry: &'a Entry) -> JobRef<'a> {
        JobRef { key: &entry.key, terms: &entry.terms, state: &entry.state }
    }
}

/// A whole fleet: a job that is not in it has been removed.
pub trait Jobs {
    /// One of them.
    fn job(&self, key: &JobKey) -> Option<JobRef<'_>>;

    /// All of them, each once; fastest in the order of their keys.
    fn jobs(&self) -> impl Iterator<Item = JobRef<'_>>;

    /// The world around a job of these terms.
    fn outlook(&self, terms: &Terms) -> Outlook;
}

/// The fleet as an engine knows it.
#[derive(Clone, Copy, Debug)]
pub struct EngineJobs<'a>(&'a Engine);

impl Engine {
    /// All jobs, to be read. None while the fleet is being read, for the first time or again: after that a roster
    /// must [reassess](super::Roster::reassess) it.
    pub fn jobs(&self) -> Option<EngineJobs<'_>> {
        self.feed.is_loaded.then_some(EngineJobs(self))
    }
}

impl Jobs for EngineJobs<'_> {
    fn job(&self, key: &JobKey) -> Option<JobRef<'_>> {
        self.0.view.find(key).map(JobRef::of)
    }

    fn jobs(&self) -> impl Iterator<Item = JobRef<'_>> {
        self.0.view.entries().map(JobRef::of)
    }

    fn outlook(&self, terms: &Terms) -> Outlook {
        let engine = self.0;
        Outlook { fit: engine.nodes.settled_fit(terms), ..engine.outlook(terms) }
    }
}
