//! Why a view could not be made.

use evenbeat_core::store::StoreDown;

/// Why a view could not be made. Trying again may help.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ViewError {
    /// The store is not available.
    #[error(transparent)]
    Down(#[from] StoreDown),
    /// The node of this process has left, and only it could tell.
    #[error("the node of this process has stopped; use another one")]
    NodeGone,
    /// Something that cannot happen.
    #[error("{0}")]
    Bug(String),
}
