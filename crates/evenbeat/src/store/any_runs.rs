//! More about runs, for people: what came after one, and how many ended when.

use evenbeat_core::ids::{JobKey, RunId};
use evenbeat_core::store::{RunRow, StoreDown};
use evenbeat_core::time::Timestamp;

use super::any::{AnyStore, look};
use super::query::{EndedCount, EndedWindow};

impl AnyStore {
    /// The runs of a job after one of them, in the order of their claims.
    pub async fn later_runs(
        &self,
        key: &JobKey,
        after: RunId,
        most: usize,
    ) -> Result<Vec<RunRow>, StoreDown> {
        let wanted = key.clone();
        look!(self, |tx| tx.later_runs(&wanted, after, most), |server| server.later_runs(key, after, most))
    }

    /// When the run ended that `most` others came after; none if fewer have ended since then.
    pub async fn ended_horizon(&self, since: Timestamp, most: usize) -> Result<Option<Timestamp>, StoreDown> {
        look!(self, |tx| tx.ended_horizon(since, most), |server| server.ended_horizon(since, most))
    }

    /// How many runs ended in each part of a window, and how many of them not well. It looks at an entry of an index for
    /// each: ask for the horizon first.
    pub async fn count_ended(&self, window: EndedWindow) -> Result<Vec<EndedCount>, StoreDown> {
        look!(self, |tx| tx.count_ended(window), |server| server.count_ended(window))
    }
}
