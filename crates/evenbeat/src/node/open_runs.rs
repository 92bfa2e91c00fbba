//! What is known of the runs of this node besides what the engine needs: for metrics, events and traces.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use evenbeat_core::engine::Start;
use evenbeat_core::ids::{JobKey, Pool, RunId};
use evenbeat_core::job::{JobState, RunEnd};
use evenbeat_core::run::Trigger;
use evenbeat_core::store::{End, EndBy, RunRow};
use evenbeat_core::time::Timestamp;

/// Runs that are open. Copies share them.
#[derive(Clone, Debug, Default)]
pub(super) struct OpenRuns(Arc<Mutex<BTreeMap<RunId, OpenRunFacts>>>);

/// What a run is for, and when it was told to start.
#[derive(Clone, Debug)]
pub(super) struct OpenRunFacts {
    pub(super) key: JobKey,
    /// None for a run that was taken over.
    pub(super) pool: Option<Pool>,
    pub(super) due_at: Timestamp,
    pub(super) trigger: Trigger,
    /// When the node told it to start, or the store gave it to an earlier process.
    pub(super) ordered_at: Timestamp,
}

/// A run whose end is being written.
#[derive(Clone, Debug)]
pub(super) struct EndingRun {
    pub(super) key: JobKey,
    pub(super) end: RunEnd,
    /// Whether its occurrence gets no other run.
    pub(super) is_final: bool,
    /// None for a run of another node.
    pub(super) known: Option<OpenRunFacts>,
}

impl OpenRuns {
    /// A run was told to start.
    pub(super) fn ordered(&self, start: &Start, at: Timestamp) {
        let run = OpenRunFacts {
            key: start.job.key.clone(),
            pool: Some(start.job.terms.place.pool.clone()),
            due_at: start.due.due_at,
            trigger: start.due.trigger,
            ordered_at: at,
        };
        self.lock().insert(start.run, run);
    }

    /// Runs were taken over from an earlier process, and there are no others.
    pub(super) fn adopted(&self, rows: &[RunRow]) {
        let known = rows.iter().map(|row| {
            let run = OpenRunFacts {
                key: row.key.clone(),
                pool: None,
                due_at: row.due.due_at,
                trigger: row.due.trigger,
                ordered_at: row.claimed_at,
            };
            (row.run, run)
        });
        *self.lock() = known.collect();
    }

    pub(super) fn of(&self, run: RunId) -> Option<OpenRunFacts> {
        self.lock().get(&run).cloned()
    }

    pub(super) fn forget(&self, run: RunId) {
        self.lock().remove(&run);
    }

    /// What there will be to tell once these ends are on record; none for runs that never began.
    pub(super) fn ending(&self, ends: &[End]) -> Vec<Option<EndingRun>> {
        let runs = self.lock();
        let ending = ends.iter().map(|end| {
            let (EndBy::Owner(over) | EndBy::Release { end: over, .. }) = end.by else { return None };
            let known = runs.get(&end.run).cloned();
            let due_at = known.as_ref().map(|it| it.due_at);
            let is_final = !is_tried_again(&end.state, due_at);
            Some(EndingRun { key: end.key.clone(), end: over, is_final, known })
        });
        ending.collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<RunId, OpenRunFacts>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the occurrence of a run that has ended gets another one, by the job's memory after its end. Where it is not known
/// which occurrence that is, one that has been tried before is taken for it.
fn is_tried_again(state: &JobState, due_at: Option<Timestamp>) -> bool {
    let is_it = |at: Timestamp| due_at.is_none_or(|due_at| due_at == at);
    let is_pending = 0 < state.attempt && state.next_run_at.is_some_and(is_it);
    is_pending || state.extras.iter().any(|extra| extra.last_outcome.is_some() && is_it(extra.due_at))
}

#[cfg(test)]
mod tests {
    use evenbeat_core::ids::ExtraId;
    use evenbeat_core::job::Extra;
    use evenbeat_core::run::Outcome;

    use super::*;

    #[test]
    fn an_attempt_is_the_last_one_unless_its_occurrence_is_still_owed() {
        let at = Timestamp::from_millis;
        let mut state = JobState::new(at(0));
        state.next_run_at = Some(at(60_000));
        assert!(!is_tried_again(&state, Some(at(0))), "the schedule has moved on");
        state.next_run_at = Some(at(0));
        state.attempt = 1;
        assert!(is_tried_again(&state, Some(at(0))));
        assert!(is_tried_again(&state, None));
        assert!(!is_tried_again(&state, Some(at(5))), "another occurrence is tried again");
        state.attempt = 0;
        let extra = Extra::manual(ExtraId(7), at(5));
        state.extras.push(extra.clone());
        assert!(!is_tried_again(&state, Some(at(5))), "another request of the same moment has not run yet");
        state.extras.push(Extra { last_outcome: Some(Outcome::Failed), ..extra });
        assert!(is_tried_again(&state, Some(at(5))));
    }
}
