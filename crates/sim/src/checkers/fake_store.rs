//! Small stores, filled row by row.

use std::collections::BTreeMap;
use std::sync::Arc;

use evenbeat_core::ids::{ExtraId, Fence, JobKey, RunId, SessionId};
use evenbeat_core::job::{Extra, Job, JobState, Pause, PausedBy};
use evenbeat_core::missed::RecordRange;
use evenbeat_core::occurrence::{Due, Record, RecordKind, Serves};
use evenbeat_core::run::Trigger;
use evenbeat_core::schedule::Placement;
use evenbeat_core::store::{
    AuditEntry, CounterKey, CounterRow, JobRow, OwnerPing, PlanId, PlanRow, RecordRow, Revision, RunFilter,
    RunPhase, RunRow, SessionKind, SessionRow, SessionSpec, StoreDown, Version, Views,
};
use evenbeat_core::time::Timestamp;

use super::fact_builder::instant;

/// A store that is nothing but rows.
#[derive(Clone, Debug, Default)]
pub(super) struct FakeStore {
    jobs: Vec<JobRow>,
    runs: Vec<RunRow>,
    records: Vec<RecordRow>,
    sessions: Vec<SessionRow>,
    counters: Vec<CounterRow>,
}

impl FakeStore {
    /// A job that is placed then, with this pending.
    pub(super) fn job(mut self, job: Job, anchor: i64, pending: Option<i64>) -> FakeStore {
        let mut state = JobState::new(instant(0));
        state.placement = Some(Placement::at(instant(anchor), instant(0)));
        state.next_run_at = pending.map(instant);
        self.jobs.push(JobRow {
            job: Arc::new(job),
            state,
            revision: Revision(1),
            version: Version(1),
            fence: Fence(0),
            n_open: 0,
            is_deleted: false,
        });
        self
    }

    /// Changes the job that was put last.
    pub(super) fn but(mut self, change: impl Fn(&mut JobRow)) -> FakeStore {
        change(self.jobs.last_mut().unwrap());
        self
    }

    pub(super) fn run(self, run: u128, key: &str, due: i64, phase: RunPhase) -> FakeStore {
        self.run_of(run, key, due, phase, Trigger::Scheduler)
    }

    pub(super) fn run_of(
        mut self,
        run: u128,
        key: &str,
        due: i64,
        phase: RunPhase,
        trigger: Trigger,
    ) -> FakeStore {
        self.runs.push(RunRow {
            run: RunId(run),
            key: key.parse().unwrap(),
            due: Due {
                due_at: instant(due),
                attempt: 1,
                trigger,
                serves: Serves::Pending,
                losses: 0,
                last_outcome: None,
                params: None,
            },
            session: SessionId(1),
            fence: Fence(1),
            phase,
            claimed_at: instant(due),
            started_at: None,
            ended: None,
            report: None,
            late: None,
            is_cancel_asked: false,
            takes: Vec::new(),
        });
        self.runs.sort_by_key(|row| std::cmp::Reverse(row.run));
        self
    }

    /// Changes the run of this number.
    pub(super) fn run_but(mut self, run: u128, change: impl Fn(&mut RunRow)) -> FakeStore {
        change(self.runs.iter_mut().find(|row| row.run.0 == run).unwrap());
        self
    }

    pub(super) fn record(mut self, key: &str, first: i64, last: i64, count: u64) -> FakeStore {
        let range = RecordRange { first: instant(first), last: instant(last), count };
        let record = Record { range, what: RecordKind::MissedLate };
        self.records.push(RecordRow { key: key.parse().unwrap(), record, recorded_at: instant(last) });
        self
    }

    pub(super) fn session(mut self, id: u128, is_dead: bool) -> FakeStore {
        let spec = SessionSpec {
            id: SessionId(id),
            node: "n1".parse().unwrap(),
            name: "n1".to_owned(),
            boot_id: 1,
            home: 0,
            kind: SessionKind::Node,
            pools: BTreeMap::new(),
            zone_data: String::new(),
        };
        self.sessions.push(SessionRow { spec, beat: 1, is_dead, is_draining: false });
        self
    }

    pub(super) fn counter(mut self, counter: CounterKey, n_open: u32) -> FakeStore {
        self.counters.push(CounterRow { counter, n_open, last_claim_at: None });
        self
    }

    /// The job that was put last waits for a manual run that was requested then.
    pub(super) fn waiting(self, due: i64, trigger: Trigger) -> FakeStore {
        self.but(|row| {
            let id = ExtraId(u128::from(due.unsigned_abs()));
            row.state.extras.push(Extra { kind: trigger, ..Extra::manual(id, instant(due)) });
        })
    }

    /// The job that was put last is paused.
    pub(super) fn paused(self) -> FakeStore {
        self.but(|row| row.state.pause = Some(Box::new(Pause { by: PausedBy::Operator, reason: None })))
    }
}

impl Views for FakeStore {
    fn job(&self, key: &JobKey) -> Result<Option<JobRow>, StoreDown> {
        Ok(self.jobs.iter().find(|row| row.job.key == *key).cloned())
    }

    fn jobs(&self, after: Option<&JobKey>, most: usize) -> Result<Vec<JobRow>, StoreDown> {
        let later = self.jobs.iter().filter(|row| after.is_none_or(|after| *after < row.job.key));
        Ok(later.take(most).cloned().collect())
    }

    fn runs(
        &self,
        _filter: &RunFilter,
        before: Option<RunId>,
        most: usize,
    ) -> Result<Vec<RunRow>, StoreDown> {
        let earlier = self.runs.iter().filter(|row| before.is_none_or(|before| row.run < before));
        Ok(earlier.take(most).cloned().collect())
    }

    fn records(
        &self,
        key: &JobKey,
        _before: Option<Timestamp>,
        _most: usize,
    ) -> Result<Vec<RecordRow>, StoreDown> {
        Ok(self.records.iter().rev().filter(|row| row.key == *key).cloned().collect())
    }

    fn sessions(&self) -> Result<Vec<SessionRow>, StoreDown> {
        Ok(self.sessions.clone())
    }

    fn owner_pings(&self, _runs: &[RunId]) -> Result<Vec<OwnerPing>, StoreDown> {
        Ok(Vec::new())
    }

    fn counters(&self) -> Result<Vec<CounterRow>, StoreDown> {
        Ok(self.counters.clone())
    }

    fn plan(&self, _id: PlanId) -> Result<Option<PlanRow>, StoreDown> {
        Ok(None)
    }

    fn audit(&self, _most: usize) -> Result<Vec<AuditEntry>, StoreDown> {
        Ok(Vec::new())
    }
}
