//! What touches the world: the clock and the terminal.

pub mod agenda;
pub(crate) mod clock;
pub(crate) mod progress;
pub(crate) mod terminal;
