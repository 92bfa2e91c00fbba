//! How much an agenda holds, and the error when that is exceeded.

use crate::time::Duration;

/// The longest window.
pub const WINDOW_MAX: Duration = Duration::from_days(WINDOW_DAYS_MAX);
const WINDOW_DAYS_MAX: i64 = 31;

/// The most occurrences: 256 MB dense, twice that sparse.
pub const OCCURRENCES_MAX: u64 = 64_000_000;

/// The most jobs: a word has 22 bits for the number of one.
pub const JOBS_MAX: usize = 1 << 22;

/// Why there is no agenda of these jobs over this window.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AgendaError {
    /// More than [`WINDOW_MAX`].
    #[error(
        "a window of {length} is longer than the {WINDOW_DAYS_MAX} days of an agenda (ask for a shorter window)"
    )]
    WindowTooLong {
        /// How long the window is.
        length: Duration,
    },
    /// More than [`OCCURRENCES_MAX`]; nothing was expanded.
    #[error(
        "{n_found} occurrences are more than the {OCCURRENCES_MAX} of an agenda (ask for a shorter window)"
    )]
    TooManyOccurrences {
        /// How many there are in the window.
        n_found: u64,
    },
    /// More than [`JOBS_MAX`].
    #[error("{n_jobs} jobs are more than the {JOBS_MAX} of an agenda (ask for a part of the fleet)")]
    TooManyJobs {
        /// How many there are.
        n_jobs: usize,
    },
}
