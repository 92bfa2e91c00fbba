//! The reading side: rows for pages, answers and checks. Nothing here changes anything.

use super::{
    AuditEntry, CounterRow, JobRow, OwnerPing, PlanId, PlanRow, RecordRow, RunRow, SessionRow, StoreDown,
};
use crate::ids::{JobKey, RunId};
use crate::time::Timestamp;

/// Which runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// Of this job only.
    pub key: Option<JobKey>,
    /// Only those that are not over.
    pub is_open: bool,
}

/// What can be looked at.
pub trait Views {
    /// One job; also a removed one, as long as its row is there.
    fn job(&self, key: &JobKey) -> Result<Option<JobRow>, StoreDown>;

    /// Jobs by key, after one of them; removed ones left out.
    fn jobs(&self, after: Option<&JobKey>, most: usize) -> Result<Vec<JobRow>, StoreDown>;

    /// Runs, the latest id first, before one of them.
    fn runs(&self, filter: &RunFilter, before: Option<RunId>, most: usize) -> Result<Vec<RunRow>, StoreDown>;

    /// The records of a job that begin before an instant, the latest occurrence first. Those that begin with the same
    /// occurrence are on one page, which may be longer than `most` by that.
    fn records(
        &self,
        key: &JobKey,
        before: Option<Timestamp>,
        most: usize,
    ) -> Result<Vec<RecordRow>, StoreDown>;

    /// All sessions, dead ones too.
    fn sessions(&self) -> Result<Vec<SessionRow>, StoreDown>;

    /// The last signs of life of the owners of open runs, by run. Runs that are not open are left out.
    fn owner_pings(&self, runs: &[RunId]) -> Result<Vec<OwnerPing>, StoreDown>;

    /// All counters that were ever used.
    fn counters(&self) -> Result<Vec<CounterRow>, StoreDown>;

    /// A plan that can still be applied.
    fn plan(&self, id: PlanId) -> Result<Option<PlanRow>, StoreDown>;

    /// Who changed what, oldest first.
    fn audit(&self, most: usize) -> Result<Vec<AuditEntry>, StoreDown>;
}
