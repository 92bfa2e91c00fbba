//! Who is told about a job (G6), where it differs from the rules for all jobs.

use crate::ids::Channel;

/// What a job says about its alerts. All of it may be left out: then the node's routes decide.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobAlerts {
    /// Who is told. None: the routes decide. Empty: nobody.
    pub channels: Option<Vec<Channel>>,
    /// The address that is called when a run starts, succeeds or fails, in the manner of Healthchecks.
    pub ping: Option<String>,
    /// The number of failures in a row from which on the job alerts, although it is still being retried.
    pub after_failures: Option<u32>,
    /// The number of good runs in a row after which an incident is over.
    pub recover_after: Option<u32>,
}

impl JobAlerts {
    /// Whether the job leaves everything to the routes.
    pub fn is_default(&self) -> bool {
        *self == JobAlerts::default()
    }
}
