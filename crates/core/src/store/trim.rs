//! What need not be kept for ever.

use crate::time::Timestamp;

/// What may go. Open runs, living sessions and fences always stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Runs that ended before this.
    pub runs_before: Timestamp,
    /// Records written before this.
    pub records_before: Timestamp,
    /// So many rows of each kind at most, so that nobody waits for it.
    pub most: usize,
}

/// How many rows went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trimmed {
    /// Runs.
    pub n_runs: usize,
    /// Records.
    pub n_records: usize,
    /// Dead sessions without any run left.
    pub n_sessions: usize,
}
