//! core
pub mod civil;
pub mod nearest;
pub mod time;
pub mod zone;
