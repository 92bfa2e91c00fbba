//! Runs as processes on this node (X1).
//!
//! Two sides, and a protocol between them. Each run has a [shim](shim_main), a process of its own next to it: it starts
//! the run, freezes it when its lease is over, ends it, and keeps its output. The scheduler's side, [`Shims`], starts
//! shims and talks to them. When the scheduler dies, its shims continue, and the next one [adopts](Shims::adopt) them.

pub mod boot;
mod executor;
mod json;
mod log;
mod order;
mod places;
mod prepare;
mod proc;
pub mod protocol;
mod run_result;
mod shim;
mod shims;
mod start_marker;
mod token;

pub use executor::Commands;
pub use log::{ERROR_LINE, KeptBytes, OWN_LINE, read_log};
pub use order::{Bounds, Order, ResourceLimits};
pub use places::{Places, PlacesError, open_own_file};
pub use prepare::CommandSettings;
pub use shim::find_cgroup;
pub use shim::main as shim_main;
pub use shims::{Adoption, ShimOptions, Shims};
pub use token::TokenKey;
