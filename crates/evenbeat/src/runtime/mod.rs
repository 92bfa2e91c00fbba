//! What touches the world: so far, the clock.

pub(crate) mod clock;
