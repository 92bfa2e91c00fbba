//! Everything that is in a store when a world has ended.
//!
//! A store that does not answer after everything has healed is a bug of the world, so these panic.

use std::collections::BTreeSet;

use evenbeat_core::ids::{JobKey, SessionId};
use evenbeat_core::job::{Extra, JobState};
use evenbeat_core::run::Trigger;
use evenbeat_core::store::{JobRow, RecordRow, RunFilter, RunRow, StoreDown, Views};
use evenbeat_core::time::Timestamp;

const PAGE: usize = 10_000;

/// All runs.
pub(super) fn runs(store: &dyn Views) -> Vec<RunRow> {
    let mut rows: Vec<RunRow> = Vec::new();
    loop {
        let page = answered(store.runs(&RunFilter::default(), rows.last().map(|row| row.run), PAGE));
        let is_last = page.len() < PAGE;
        rows.extend(page);
        if is_last {
            return rows;
        }
    }
}

/// All jobs that were not removed.
pub(super) fn jobs(store: &dyn Views) -> Vec<JobRow> {
    let mut rows: Vec<JobRow> = Vec::new();
    loop {
        let page = answered(store.jobs(rows.last().map(|row| &row.job.key), PAGE));
        let is_last = page.len() < PAGE;
        rows.extend(page);
        if is_last {
            return rows;
        }
    }
}

/// All records of a job, oldest occurrence first.
pub(super) fn records(store: &dyn Views, key: &JobKey) -> Vec<RecordRow> {
    let mut all = answered(store.records(key, None, usize::MAX));
    all.reverse();
    all
}

/// The sessions that are not dead.
pub(super) fn living_sessions(store: &dyn Views) -> BTreeSet<SessionId> {
    answered(store.sessions()).into_iter().filter(|row| !row.is_dead).map(|row| row.spec.id).collect()
}

/// What an answer says.
pub(super) fn answered<T>(answer: Result<T, StoreDown>) -> T {
    answer.unwrap_or_else(|down| panic!("the world has ended, and {down}"))
}

/// What a job owes besides its pending occurrence.
pub(super) struct OwedRun {
    pub(super) due_at: Timestamp,
    /// What will make its run start.
    pub(super) kind: Trigger,
    /// How many runs it has had.
    pub(super) n_runs: u32,
    /// It is not to start before this.
    pub(super) not_before: Timestamp,
}

/// All that a job owes so.
pub(super) fn extras(state: &JobState) -> Vec<OwedRun> {
    let owed = |extra: &Extra| OwedRun {
        due_at: extra.due_at,
        kind: extra.kind,
        n_runs: extra.attempt,
        not_before: extra.not_before,
    };
    state.extras.iter().map(owed).collect()
}
