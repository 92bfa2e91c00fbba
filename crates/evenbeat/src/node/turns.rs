//! Jobs that turned late, or turned well again, until the one who records it takes them.

use std::sync::{Arc, Mutex, PoisonError};

use evenbeat_core::condition::Condition;
use evenbeat_core::roster::Turned;

/// Most turns that wait to be taken.
const TURNS_MAX: usize = 200_000;

/// Turns of jobs from or to the condition `error`. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct LateTurns(Arc<Mutex<TakenTurns>>);

/// What was taken.
#[derive(Debug, Default)]
pub struct TakenTurns {
    pub turns: Vec<Turned>,
    /// Whether some are missing because there were too many.
    pub is_incomplete: bool,
}

impl LateTurns {
    pub(super) fn add(&self, turned: Vec<Turned>) {
        let is_late =
            |it: &Turned| [it.from, it.to].into_iter().flatten().any(|it| it.condition() == Condition::Error);
        let late: Vec<Turned> = turned.into_iter().filter(is_late).collect();
        if late.is_empty() {
            return;
        }
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if TURNS_MAX < waiting.turns.len() + late.len() {
            *waiting = TakenTurns { turns: Vec::new(), is_incomplete: true };
        }
        waiting.turns.extend(late);
    }

    /// All that were added since the last time, in their order.
    pub fn take(&self) -> TakenTurns {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
