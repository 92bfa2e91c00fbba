//! `evenbeat upcoming`: coming runs in order, of a server or of a job file.

pub(crate) mod file;
pub(crate) mod server;

use evenbeat_core::ids::JobKey;
use evenbeat_core::time::{Duration, Timestamp};

/// Default length of the window.
const LOOKAHEAD: Duration = Duration::from_hours(1);

/// The options of the command.
#[derive(Debug)]
pub(crate) struct UpcomingOptions {
    pub(crate) job: Option<JobKey>,
    pub(crate) from: Timestamp,
    pub(crate) to: Option<Timestamp>,
    pub(crate) limit: usize,
    pub(crate) json: bool,
}
