//! Runs as processes on this node (X1).
//!
//! Two sides, and words between them. Beside each run stands a [shim](shim_main), a process of its own: it begins the
//! run, freezes it when its lease is over, ends it, and keeps its output. The scheduler's side, [`Shims`], starts
//! shims and talks to them; when it dies, they go on, and its successor [adopts](Shims::adopt) them.

mod began;
pub mod boot;
mod executor;
mod json;
mod last_word;
mod log;
mod order;
mod places;
mod prepare;
mod proc;
mod shim;
mod shims;
mod token;
pub mod word;

pub use executor::Commands;
pub use last_word::LastWord;
pub use log::{Chunk, OWN_LINE, Reader, read_log};
pub use order::{Bounds, Limits, Order};
pub use places::{Places, PlacesError, open_own_file};
pub use prepare::{CommandSettings, ENV_ALLOWED, order};
pub use shim::find_cgroup;
pub use shim::main as shim_main;
pub use shims::{Adopted, ShimOptions, Shims};
pub use token::TokenKey;
