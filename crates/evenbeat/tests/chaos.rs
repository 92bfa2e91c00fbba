//! The real program under every fault that a machine knows: real processes, a checker that shares nothing with the
//! engine, and counts that must be zero: doubled, lost, leaked, corrupt. `scripts/chaos node` goes on for longer.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "counts of a test are small and positive"
)]

#[path = "support/folder.rs"]
mod folder;
#[path = "support/wait.rs"]
#[expect(dead_code, reason = "shared with tests that wait for other things")]
mod wait;
#[path = "chaos/checker.rs"]
mod checker;
#[path = "chaos/checker_tests.rs"]
mod checker_tests;
#[path = "chaos/clocks.rs"]
mod clocks;
#[path = "chaos/conservation.rs"]
mod conservation;
#[path = "chaos/database.rs"]
mod database;
#[path = "chaos/dice.rs"]
mod dice;
#[path = "chaos/fleet.rs"]
mod fleet;
#[path = "chaos/history.rs"]
mod history;
#[path = "chaos/kills.rs"]
mod kills;
#[path = "chaos/leases.rs"]
mod leases;
#[path = "chaos/node.rs"]
mod node;
#[path = "chaos/owners.rs"]
mod owners;
#[path = "chaos/overlap.rs"]
mod overlap;
#[path = "chaos/points.rs"]
mod points;
#[path = "chaos/processes.rs"]
mod processes;
#[path = "chaos/programs.rs"]
mod programs;
#[path = "chaos/troubles.rs"]
mod troubles;
