//! A part of a list.

use serde::{Deserialize, Serialize};

/// A part of a list. It is at its end when `next` is null, not when a page is short.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Page<T> {
    /// The items, in order.
    pub items: Vec<T>,
    /// Where the next page begins: to be handed back as it is, as `after` (or `before`, in lists of runs).
    pub next: Option<String>,
}
