//! What the store knows of jobs and runs, as surviving facts tell it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use evenbeat_core::ids::{JobKey, NodeName, RunId, SessionId};
use evenbeat_core::job::Job;
use evenbeat_core::run::{Outcome, Trigger};
use evenbeat_core::schedule::Placement;
use evenbeat_core::store::CounterKey;
use evenbeat_core::time::Timestamp;

use super::history::FactState;
use crate::fact::{Fact, RealTime, What};

/// Definitions, runs, sessions and triggers.
#[derive(Debug, Default)]
pub(super) struct Projection {
    /// The jobs that there are, as they were last put.
    pub(super) jobs: BTreeMap<JobKey, JobDefinition>,
    /// Every run that was granted.
    pub(super) runs: BTreeMap<RunId, Run>,
    /// Those of them that are open.
    pub(super) open: BTreeSet<RunId>,
    /// The runs of each job, in the order of their grants.
    pub(super) runs_of: BTreeMap<JobKey, Vec<RunId>>,
    /// What counts against each limit across nodes, in the order of the grants.
    pub(super) claims: BTreeMap<CounterKey, Vec<RunId>>,
    /// The node of every session.
    pub(super) nodes: BTreeMap<SessionId, NodeName>,
    /// When each manual run was requested.
    pub(super) triggers: BTreeMap<JobKey, Vec<Timestamp>>,
}

/// A job as it was last put.
#[derive(Clone, Debug)]
pub(super) struct JobDefinition {
    pub(super) job: Arc<Job>,
    pub(super) placement: Option<Placement>,
    pub(super) is_paused: bool,
    pub(super) put_at: RealTime,
}

/// A run, with its job as it was when the run was granted.
#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) key: JobKey,
    pub(super) job: Option<Arc<Job>>,
    pub(super) session: SessionId,
    pub(super) due_at: Timestamp,
    pub(super) trigger: Trigger,
    pub(super) at: RealTime,
    pub(super) store_now: Timestamp,
    /// When it ended, and how. Without an outcome it was taken back as never started.
    pub(super) ended: Option<(RealTime, Option<Outcome>)>,
}

impl Projection {
    /// The job that a run is of, as it was when the run was granted.
    pub(super) fn job_of(&self, run: RunId) -> Option<&Arc<Job>> {
        self.runs.get(&run)?.job.as_ref()
    }

    /// The runs that are open.
    pub(super) fn open_runs(&self) -> impl Iterator<Item = &Run> {
        self.open.iter().filter_map(|run| self.runs.get(run))
    }
}

/// What a job may be limited by across nodes. One that sets no limit for its name does not count against
/// that of another configuration.
pub(super) fn counters_of(job: &Job) -> Vec<CounterKey> {
    let mut counters = Vec::new();
    counters.extend(job.site.clone().map(CounterKey::Site));
    counters.extend(job.tenant.clone().map(CounterKey::Tenant));
    counters.extend(job.max_parallel_of_name.map(|_| CounterKey::Name(job.key.name().into())));
    counters
}

impl FactState for Projection {
    fn wants(what: &What) -> bool {
        matches!(
            what,
            What::Put { .. }
                | What::Removed { .. }
                | What::Granted { .. }
                | What::RunEnded { .. }
                | What::Joined { .. }
                | What::Triggered { .. }
        )
    }

    fn apply(&mut self, fact: &Fact) {
        match &fact.what {
            What::Put { job, placement, is_paused, .. } => {
                let (job, placement) = (Arc::clone(job), placement.clone());
                let defined = JobDefinition { job, placement, is_paused: *is_paused, put_at: fact.at };
                self.jobs.insert(defined.job.key.clone(), defined);
            }
            What::Removed { key, .. } => {
                self.jobs.remove(key);
                // They no longer count.
                self.triggers.remove(key);
            }
            What::Granted { run, key, session, due_at, trigger, store_now, .. } => {
                let granted = Run {
                    key: key.clone(),
                    job: self.jobs.get(key).map(|it| Arc::clone(&it.job)),
                    session: *session,
                    due_at: *due_at,
                    trigger: *trigger,
                    at: fact.at,
                    store_now: *store_now,
                    ended: None,
                };
                for counter in granted.job.iter().flat_map(|job| counters_of(job)) {
                    self.claims.entry(counter).or_default().push(*run);
                }
                self.runs_of.entry(key.clone()).or_default().push(*run);
                self.runs.insert(*run, granted);
                self.open.insert(*run);
            }
            What::RunEnded { run, outcome, .. } => {
                if let Some(ended) = self.runs.get_mut(run) {
                    ended.ended = Some((fact.at, *outcome));
                }
                self.open.remove(run);
            }
            What::Joined { session, node } => {
                self.nodes.insert(*session, node.clone());
            }
            What::Triggered { key, due_at } => self.triggers.entry(key.clone()).or_default().push(*due_at),
            _ => {}
        }
    }
}
