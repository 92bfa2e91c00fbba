//! The executor of commands: runs are processes of this machine, each with its own shim.

use std::io;

use evenbeat_core::engine::Start;
use evenbeat_core::ids::RunId;
use evenbeat_core::job::{Exclusive, Target};
use evenbeat_core::run::Outcome;
use evenbeat_core::store::{JobRow, RunRow};
use evenbeat_core::time::BootTime;

use super::prepare::{CommandSettings, order};
use super::shims::{Adoption, ShimOptions, Shims};
use crate::target::{Executor, NewsSender, Task};

/// Runs as processes of this machine.
#[derive(Debug)]
pub struct Commands {
    shims: Shims,
    settings: CommandSettings,
}

impl Commands {
    /// Must be called within a `tokio` runtime.
    pub fn new(options: ShimOptions, settings: CommandSettings, news: NewsSender) -> io::Result<Commands> {
        Ok(Commands { shims: Shims::reporting_to(options, news)?, settings })
    }

    fn adoption(&self, run: &RunRow, jobs: &[JobRow], is_leased: bool) -> Adoption {
        let job = jobs.iter().map(|row| &row.job).find(|job| job.key == run.key);
        let grace = job.and_then(|job| match &job.target {
            Target::Command(target) => target.grace,
            _ => None,
        });
        Adoption {
            run: run.run,
            fence: run.fence,
            is_leased: is_leased && job.is_none_or(|job| job.exclusive == Exclusive::Strict),
            grace: grace.unwrap_or(self.settings.grace),
        }
    }
}

impl Executor for Commands {
    fn start(&self, start: &Start) {
        self.shims.start(order(start, &self.settings));
    }

    fn extend(&self, until: BootTime) {
        self.shims.extend(until);
    }

    fn stop(&self, run: RunId, outcome: Outcome) {
        self.shims.stop(run, outcome);
    }

    fn revoke(&self, run: RunId) {
        self.shims.revoke(run);
    }

    fn adopt<'a>(&'a self, runs: &'a [RunRow], jobs: &'a [JobRow], is_leased: bool) -> Task<'a> {
        let runs: Vec<Adoption> = runs.iter().map(|run| self.adoption(run, jobs, is_leased)).collect();
        Box::pin(async move { self.shims.adopt(&runs).await })
    }

    fn heard_at(&self, run: RunId) -> Option<BootTime> {
        self.shims.heard_at(run)
    }

    fn forget(&self, run: RunId) {
        self.shims.forget(run);
    }

    fn let_go(&self) -> Task<'_> {
        Box::pin(self.shims.shutdown())
    }
}
