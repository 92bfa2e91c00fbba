//! core
pub mod blackout;
pub mod civil;
pub mod nearest;
pub mod schedule;
pub mod time;
pub mod zone;
