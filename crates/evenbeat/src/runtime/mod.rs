//! What touches the world: clocks and timers, the node's loop, and what the engine's decisions become.

pub mod agenda;
pub mod app;
mod doubts;
pub mod housekeeping;
mod marks;
mod mending;
pub mod node;
pub mod noop;
mod outcomes;
mod pages;
mod perform;
pub(crate) mod progress;
mod reports;
mod standings;
pub mod telemetry;
pub(crate) mod terminal;
mod trouble;
pub mod works;
pub mod write_probe;
