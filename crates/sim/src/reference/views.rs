//! The reading side.

use evenbeat_core::ids::{JobKey, RunId};
use evenbeat_core::store::{
    AuditEntry, CounterRow, JobRow, OwnerPing, PlanId, PlanRow, RecordRow, RunFilter, RunRow, SessionRow,
    StoreDown, Views,
};
use evenbeat_core::time::Timestamp;

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

    fn records(
        &self,
        key: &JobKey,
        before: Option<Timestamp>,
        most: usize,
    ) -> Result<Vec<RecordRow>, StoreDown> {
        let first = |row: &RecordRow| row.record.range.first;
        let is_asked = |row: &&RecordRow| row.key == *key && before.is_none_or(|before| first(row) < before);
        // What went on record last comes first.
        let mut records: Vec<RecordRow> = self.records.iter().rev().filter(is_asked).cloned().collect();
        records.sort_by_key(|row| std::cmp::Reverse(first(row)));
        if let Some(last) = records.get(most.max(1) - 1).map(first) {
            records.retain(|row| last <= first(row));
        }
        Ok(records)
    }

    fn sessions(&self) -> Result<Vec<SessionRow>, StoreDown> {
        Ok(self.sessions.values().cloned().collect())
    }

    fn owner_pings(&self, runs: &[RunId]) -> Result<Vec<OwnerPing>, StoreDown> {
        let ping = |run: &RunId| {
            let session = self.sessions.get(&self.open.get(run)?.session)?;
            let doubt = self.doubts.get(&session.spec.id).filter(|(beat, _)| *beat == session.beat);
            let last_ping_at = *self.beaten_at.get(&session.spec.id)?;
            Some(OwnerPing { run: *run, last_ping_at, doubted_at: doubt.map(|(_, at)| *at) })
        };
        let mut pings: Vec<OwnerPing> = runs.iter().filter_map(ping).collect();
        pings.sort_by_key(|it| it.run);
        Ok(pings)
    }

    fn counters(&self) -> Result<Vec<CounterRow>, StoreDown> {
        let row = |(counter, it): (&_, &super::Counter)| it.row(counter);
        Ok(self.counters.iter().map(row).collect())
    }

    fn plan(&self, id: PlanId) -> Result<Option<PlanRow>, StoreDown> {
        Ok(self.live_plan(id).cloned())
    }

    fn audit(&self, most: usize) -> Result<Vec<AuditEntry>, StoreDown> {
        Ok(self.audit.iter().take(most).map(|(_, entry)| entry.clone()).collect())
    }
}
