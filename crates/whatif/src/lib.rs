//! "What if" for operators (W1): the real engine on virtual time, without faults, over days of a fleet.
//!
//! Nothing here decides anything: jobs are placed, ranked, claimed and ended by the code that runs in
//! production. Only the store answers at once, runs take as long as they are expected to, more or less, and a
//! week passes in seconds.

mod added;
mod breaks;
mod kernel;
mod report;
mod scenario;
mod search;
mod setup;
mod several;
mod store;
mod tally;

#[cfg(test)]
mod sample;
#[cfg(test)]
mod tests;

pub use added::{ADDED_MAX, AddedError, AddedJobs};
pub use breaks::{
    Break, BreakKind, GroupName, Growth, MostAdded, all_breaks, first_break, most_added, share_out,
};
pub use kernel::{RunObservation, simulate, simulate_watched, simulate_while};
pub use report::{Group, LateJob, POINT, Point, Report, Trouble, Waits};
pub use scenario::{LENGTH, NodePlan, RunModel, Scenario};
pub use search::{PoolAnswer, Simulate, Smallest, Tried, smallest_capacity};
pub use setup::{CannotCarry, Fleet, Need, Setup, needs, node_names};
pub use several::simulate_all;
