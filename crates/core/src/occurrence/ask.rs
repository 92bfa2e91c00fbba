//! Runs that people request.

use super::Transition;
use crate::job::{EXTRAS_MAX, Extra, JobState, Overlap, Terms};
use crate::run::Trigger;

/// The answer to a request for a run.
#[derive(Clone, Debug, PartialEq)]
pub enum ExtraAnswer {
    /// It will come.
    Taken(Box<Transition>),
    /// The job runs, and nothing of it waits for its turn.
    Running,
    /// The job already owes [`EXTRAS_MAX`] of them.
    TooMany,
}

/// Requests a run beyond the schedule, now or for an instant of the past.
pub fn ask(terms: &Terms, state: &JobState, n_open: u32, extra: Extra) -> ExtraAnswer {
    let is_now = extra.kind == Trigger::Manual;
    if is_now && 0 < n_open && terms.overlap == Overlap::Skip {
        return ExtraAnswer::Running;
    }
    if EXTRAS_MAX <= state.extras.len() {
        return ExtraAnswer::TooMany;
    }
    let mut step = Transition::unchanged(state);
    step.state.extras.push(extra);
    ExtraAnswer::Taken(Box::new(step))
}
