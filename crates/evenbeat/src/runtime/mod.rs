//! What touches the world: so far, the clock.

pub mod agenda;
pub(crate) mod clock;
