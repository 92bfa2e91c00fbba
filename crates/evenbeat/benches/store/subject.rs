//! What must be known of a database to measure it.

use evenbeat::testing::store::query::{Count, JobFilter, JobPage, RunPage, RunQuery};
use evenbeat_core::ids::JobKey;
use evenbeat_core::store::{Store, Views};

use crate::fleet::Turn;

/// Whose tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    /// Those of the store.
    Ours,
    /// A copy of them, for raw SQL.
    Raw,
}

/// Somebody who opens runs and ends them.
pub(crate) trait Asker: Send {
    /// Opens a run of each of these jobs in one transaction.
    fn claim(&mut self, turns: &mut [Turn]);

    /// Ends them in another.
    fn end(&mut self, turns: &mut [Turn]);
}

/// A database that is filled.
pub(crate) trait Subject {
    /// The store in it, by blocking.
    type Store: Store + Views + Clone + Send + 'static;

    /// As it is called among the figures.
    const NAME: &'static str;

    /// What it is, with the settings that count.
    fn title(&self) -> String;

    fn store(&self) -> Self::Store;

    /// So many who use raw SQL at once.
    fn raw_askers(&self, n: usize) -> Vec<Box<dyn Asker>>;

    /// The same without what is to be run, and the rows that tell others of a change, where raw SQL writes those.
    fn lean_askers(&self, _n: usize) -> Vec<Box<dyn Asker>> {
        Vec::new()
    }

    /// How long the server has worked so far for those who are connected, in seconds; 0 if there is none.
    fn server_cpu(&self, _whose: Whose) -> f64 {
        0.0
    }

    /// Begins to count what goes into the log, and tells how much is in it.
    fn begin_log(&self, whose: Whose) -> u64;

    /// How much is in the log now.
    fn log_bytes(&self, whose: Whose) -> u64;

    /// What the runs that are over take, with their indexes, and how many there are.
    fn history(&self) -> (u64, u64);

    fn list_jobs(&self, filter: &JobFilter, after: Option<&JobKey>, most: usize) -> JobPage;

    fn count_jobs(&self, filter: &JobFilter) -> Count;

    fn list_runs(&self, query: &RunQuery, most: usize) -> RunPage;
}
