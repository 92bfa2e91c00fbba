//! Virtual time for the engine of `evenbeat-core`: so far the store as plain maps, and the cases that hold every store to
//! the contract.

/// The core's public face is all that a simulated world may touch.
pub use evenbeat_core as core;

pub mod conformance;
pub mod reference;
