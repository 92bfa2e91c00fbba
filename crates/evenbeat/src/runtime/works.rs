//! Where runs execute, and what is heard of them.

use std::io;
use std::sync::Arc;

use evenbeat_core::engine::Start;
use evenbeat_core::ids::RunId;
use evenbeat_core::job::{Exclusive, Target};
use evenbeat_core::run::Outcome;
use evenbeat_core::store::{JobRow, RunRow};
use evenbeat_core::time::BootTime;
use tokio::sync::mpsc;

use super::noop::Noop;
use crate::target::command::{Adopted, Background, CommandSettings, ShimNews, ShimOptions, Shims, order};

/// Where news of runs go. Bounded: each run has one task that tells its news in order and waits while nobody listens.
/// The node's own loop never sends here, so it cannot wait for itself.
pub type NewsOut = mpsc::Sender<ShimNews>;

/// Where runs execute. Copies share it.
#[derive(Clone, Debug)]
pub enum Works {
    /// As processes of this machine.
    Commands(Commands),
    /// Nowhere: each is over after a moment. For measurements and tests.
    Noop(Noop),
}

/// Runs as processes of this machine.
#[derive(Clone, Debug)]
pub struct Commands {
    shims: Shims,
    settings: Arc<CommandSettings>,
}

impl Commands {
    /// Must be called within the runtime.
    pub fn new(options: ShimOptions, settings: CommandSettings, news: NewsOut) -> io::Result<Commands> {
        let shims = Shims::telling(options, news)?;
        Ok(Commands { shims, settings: Arc::new(settings) })
    }

    fn start(&self, start: &Start) {
        let background = Background { last_good_start_at: start.last_good_start_at };
        self.shims.start(order(start, background, &self.settings));
    }

    fn adopted(&self, run: &RunRow, jobs: &[JobRow], is_leased: bool) -> Adopted {
        let job = jobs.iter().map(|row| &row.job).find(|job| job.key == run.key);
        let grace = job.and_then(|job| match &job.target {
            Target::Command(target) => target.grace,
            _ => None,
        });
        Adopted {
            run: run.run,
            fence: run.fence,
            is_leased: is_leased && job.is_none_or(|job| job.exclusive == Exclusive::Strict),
            grace: grace.unwrap_or(self.settings.grace),
        }
    }
}

impl Works {
    /// Starts a run. Never waits: whatever comes of it is heard.
    pub fn start(&self, start: &Start) {
        match self {
            Works::Commands(commands) => commands.start(start),
            Works::Noop(noop) => noop.start(start),
        }
    }

    /// Lets all leased runs execute until then.
    pub fn extend(&self, until: BootTime) {
        match self {
            Works::Commands(commands) => commands.shims.extend(until),
            // What does nothing need not be frozen either.
            Works::Noop(_) => {}
        }
    }

    /// Ends a run in good order.
    pub fn stop(&self, run: RunId, outcome: Outcome) {
        match self {
            Works::Commands(commands) => commands.shims.stop(run, outcome),
            Works::Noop(noop) => noop.stop(run, outcome),
        }
    }

    /// Kills a run that is not ours any more.
    pub fn revoke(&self, run: RunId) {
        match self {
            Works::Commands(commands) => commands.shims.revoke(run),
            Works::Noop(noop) => noop.stop(run, Outcome::Lost),
        }
    }

    /// Takes over the runs of an earlier life, and ends whatever else is still there of one. `jobs` are theirs;
    /// `is_leased` says whether there are leases at all.
    pub async fn adopt(&self, runs: &[RunRow], jobs: &[JobRow], is_leased: bool) {
        match self {
            Works::Commands(commands) => {
                let runs: Vec<Adopted> =
                    runs.iter().map(|run| commands.adopted(run, jobs, is_leased)).collect();
                commands.shims.adopt(&runs).await;
            }
            Works::Noop(noop) => noop.adopt(runs),
        }
    }

    /// When a run last gave a sign of life.
    pub fn heard_at(&self, run: RunId) -> Option<BootTime> {
        match self {
            Works::Commands(commands) => commands.shims.heard_at(run),
            Works::Noop(noop) => noop.heard_at(run),
        }
    }

    /// The end of a run is on record: nobody will ask for it again.
    pub fn forget(&self, run: RunId) {
        match self {
            Works::Commands(commands) => commands.shims.forget(run),
            Works::Noop(noop) => noop.forget(run),
        }
    }

    /// Lets go of everything. What executes goes on, if it can without us.
    pub async fn let_go(&self) {
        match self {
            Works::Commands(commands) => commands.shims.shutdown().await,
            Works::Noop(_) => {}
        }
    }
}
