//! Why a view could not be made.

use evenbeat_core::agenda::AgendaError;
use evenbeat_core::store::StoreDown;

/// Why a view could not be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ViewError {
    /// The store is not available.
    #[error(transparent)]
    Down(#[from] StoreDown),
    /// The node of this process has left, and only it could tell.
    #[error("the node of this process has stopped; use another one")]
    NodeGone,
    /// No run has this id.
    #[error("{0}")]
    NoSuchRun(String),
    /// Several runs have an id that begins so.
    #[error("{0}")]
    AmbiguousRun(String),
    /// The window has more occurrences than can be listed.
    #[error(transparent)]
    Window(#[from] AgendaError),
    /// Something that cannot happen.
    #[error("{0}")]
    Bug(String),
}
