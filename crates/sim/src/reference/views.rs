//! The reading side.

use evenbeat_core::ids::{JobKey, RunId};
use evenbeat_core::store::{
    AuditEntry, CounterRow, JobRow, RecordRow, RunFilter, RunRow, SessionRow, StoreDown, Views,
};

use super::ReferenceStore;

impl Views for ReferenceStore {
    fn job(&self, key: &JobKey) -> Result<Option<JobRow>, StoreDown> {
        Ok(self.row(key))
    }

    fn jobs(&self, after: Option<&JobKey>, most: usize) -> Result<Vec<JobRow>, StoreDown> {
        let rows = self.jobs.values().map(|it| &it.row);
        let rows = rows.filter(|row| !row.is_deleted && after.is_none_or(|after| *after < row.job.key));
        Ok(rows.take(most).cloned().collect())
    }

    fn runs(&self, filter: &RunFilter, before: Option<RunId>, most: usize) -> Result<Vec<RunRow>, StoreDown> {
        let over = self.over.values().filter(|_| !filter.is_open);
        let mut runs: Vec<&RunRow> = self
            .open
            .values()
            .chain(over)
            .filter(|run| filter.key.as_ref().is_none_or(|key| *key == run.key))
            .filter(|run| before.is_none_or(|before| run.run < before))
            .collect();
        runs.sort_by_key(|it| std::cmp::Reverse(it.run));
        Ok(runs.into_iter().take(most).cloned().collect())
    }

    fn records(&self, key: &JobKey, most: usize) -> Result<Vec<RecordRow>, StoreDown> {
        let mut records: Vec<RecordRow> = self.records.iter().filter(|it| it.key == *key).cloned().collect();
        records.sort_by_key(|it| it.record.range.first);
        records.truncate(most);
        Ok(records)
    }

    fn sessions(&self) -> Result<Vec<SessionRow>, StoreDown> {
        Ok(self.sessions.values().cloned().collect())
    }

    fn counters(&self) -> Result<Vec<CounterRow>, StoreDown> {
        let row = |(counter, it): (&_, &super::Counter)| it.row(counter);
        Ok(self.counters.iter().map(row).collect())
    }

    fn audit(&self, most: usize) -> Result<Vec<AuditEntry>, StoreDown> {
        Ok(self.audit.iter().take(most).cloned().collect())
    }
}
