//! The real program under every fault that a machine knows: real processes, a checker that shares nothing with the
//! engine, and counts that must be zero: doubled, lost, leaked, corrupt. `scripts/chaos node` goes on for longer.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "counts of a test are small and positive"
)]

mod checker;
mod checker_tests;
mod clocks;
mod conservation;
mod dice;
mod fleet;
mod history;
mod kills;
mod leases;
mod node;
mod owners;
mod overlap;
mod points;
mod processes;
mod troubles;
