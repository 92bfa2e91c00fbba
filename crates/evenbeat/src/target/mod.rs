//! How work is done: the rim's side of what [`evenbeat_core::job::Target`] describes.

pub mod command;
