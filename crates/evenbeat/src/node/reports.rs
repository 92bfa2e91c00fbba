//! What runs reported and how they came to their end (X6), until that is on record. The engine needs none of it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use evenbeat_core::ids::RunId;
use evenbeat_core::run::{EndDetail, EndReason, Outcome, RunReport};

use crate::target::EndDetails;
use crate::value_json as json;

/// An error is cut off here: the log has the rest.
const ERROR_CHARS_MAX: usize = 2_000;

/// Reports by run. Copies share them.
#[derive(Clone, Debug, Default)]
pub(super) struct Reports(Arc<Mutex<ReportBuffer>>);

#[derive(Debug, Default)]
struct ReportBuffer {
    reports: BTreeMap<RunId, Arc<RunReport>>,
    /// Of runs that are being stopped, the limit that they exceeded.
    limits: BTreeMap<RunId, String>,
}

impl Reports {
    /// A run is being stopped because it exceeded a limit.
    pub(super) fn stopped(&self, run: RunId, limit: Option<String>) {
        if let Some(limit) = limit {
            self.lock().limits.insert(run, limit);
        }
    }

    /// A run is over. Most have nothing to report.
    pub(super) fn keep(&self, run: RunId, outcome: Outcome, told: EndDetails) {
        let mut known = self.lock();
        let result = told.result.map(|it| it.into_iter().map(|(name, value)| (name, json::from_json(value))));
        let is_good = outcome == Outcome::Succeeded;
        let limit = known
            .limits
            .remove(&run)
            .filter(|_| matches!(told.reason, Some(EndReason::TimeLimit | EndReason::Blackout)));
        let report = RunReport {
            error: told.error.map(|error| error.chars().take(ERROR_CHARS_MAX).collect::<String>()),
            result: result.into_iter().flatten().collect(),
            end: EndDetail {
                signal: told.signal,
                reason: told.reason,
                limit: told.limit.or(limit),
                ignored_term: told.ignored_term,
                left_behind: told.left_behind,
                output_cut: told.left_out_bytes,
                // Many programs write what they do to standard error; it is worth a place only where something failed.
                last_error_line: told.last_error_line.filter(|_| !is_good),
            },
        };
        if !report.is_empty() {
            known.reports.insert(run, Arc::new(report));
        }
    }

    pub(super) fn of(&self, run: RunId) -> Option<Arc<RunReport>> {
        self.lock().reports.get(&run).cloned()
    }

    pub(super) fn forget(&self, run: RunId) {
        let mut known = self.lock();
        known.reports.remove(&run);
        known.limits.remove(&run);
    }

    fn lock(&self) -> MutexGuard<'_, ReportBuffer> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
