//! What a node needs from the code that executes runs.

use std::fmt::Debug;
use std::pin::Pin;

use evenbeat_core::engine::Start;
use evenbeat_core::ids::RunId;
use evenbeat_core::run::Outcome;
use evenbeat_core::store::{JobRow, RunRow};
use evenbeat_core::time::BootTime;

/// A boxed future.
pub type Task<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// Executes the runs of one kind of target. What becomes of them it reports as [`RunNews`](super::RunNews), in order for
/// each run.
pub trait Executor: Debug + Send + Sync {
    /// Starts a run. Never waits; the outcome comes as news.
    fn start(&self, start: &Start);

    /// Extends the lease of all leased runs to this instant of the boot clock.
    fn extend(&self, until: BootTime);

    /// Ends a run in good order.
    fn stop(&self, run: RunId, outcome: Outcome);

    /// Kills a run that this node no longer owns.
    fn revoke(&self, run: RunId);

    /// Takes over the runs of an earlier session of this node, and ends everything else that it left behind. `jobs` are
    /// the jobs of these runs; `is_leased` says whether runs have leases at all.
    fn adopt<'a>(&'a self, runs: &'a [RunRow], jobs: &'a [JobRow], is_leased: bool) -> Task<'a>;

    /// When a run last gave a sign of life. None if it does not run here.
    fn heard_at(&self, run: RunId) -> Option<BootTime>;

    /// The end of a run is on record; nothing of it needs to be kept.
    fn forget(&self, run: RunId);

    /// Lets go of all runs when the process ends. Those that can continue without it do.
    fn let_go(&self) -> Task<'_>;
}
