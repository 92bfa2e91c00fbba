//! What a job is accepted with, and should not be kept silent about (J6).

use crate::time::Timestamp;
use crate::unsatisfiable::Unsatisfiable;

/// What is doubtful about a job that is valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpecWarning {
    /// Its promise cannot be kept, whatever happens.
    #[error("{0} ({hint})", hint = .0.hint())]
    Unsatisfiable(Unsatisfiable),
    /// Its time is over.
    #[error("`ends_at` ({at}) has passed, so the job will not run again")]
    Ended { at: Timestamp },
    /// Its one time is over.
    #[error("`at` ({at}) has passed, so the run is already late")]
    OncePassed { at: Timestamp },
    /// A reason for a pause of a job that is not paused.
    #[error("`{field}` is ignored, because the job is not paused")]
    NotPaused { field: &'static str },
}
