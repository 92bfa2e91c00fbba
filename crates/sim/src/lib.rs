//! Virtual time for the engine of `evenbeat-core`: worlds with faults, checkers that watch from
//! outside, and the operator's "what if". So far it is only the boundary: a crate that may use the
//! core's public face and nothing else of the product.

/// The core's public face is all that a simulated world may touch.
pub use evenbeat_core as core;
