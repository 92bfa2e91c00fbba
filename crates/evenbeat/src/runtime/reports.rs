//! What runs told of themselves (X6), between their end and its record. The engine needs none of it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use evenbeat_core::ids::RunId;
use evenbeat_core::run::RunReport;
use evenbeat_core::value::Value;

use crate::store::json;
use crate::target::command::Told;

/// An error is cut off here: the log has the rest.
const ERROR_CHARS_MAX: usize = 2_000;

/// Reports by run. Copies share them.
#[derive(Clone, Debug, Default)]
pub(super) struct Reports(Arc<Mutex<BTreeMap<RunId, Arc<RunReport>>>>);

impl Reports {
    /// A run is over. Most have nothing to tell.
    pub(super) fn keep(&self, run: RunId, told: Told) {
        let error = told.error.map(|error| error.chars().take(ERROR_CHARS_MAX).collect::<String>());
        let result = told.result.map(|it| it.into_iter().map(|(name, value)| (name, json::from_json(value))));
        let result: BTreeMap<String, Value> = result.into_iter().flatten().collect();
        if error.is_some() || !result.is_empty() {
            self.lock().insert(run, Arc::new(RunReport { error, result }));
        }
    }

    pub(super) fn of(&self, run: RunId) -> Option<Arc<RunReport>> {
        self.lock().get(&run).cloned()
    }

    pub(super) fn forget(&self, run: RunId) {
        self.lock().remove(&run);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<RunId, Arc<RunReport>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
