//! Levelling the fleet: a plan that people look at, and exactly that plan applied (A8 to A10).

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use evenbeat_core::edit::{self, Refusal};
use evenbeat_core::ids::JobKey;
use evenbeat_core::notice::Notice;
use evenbeat_core::placement::{Kept, KeptReason, Move, RebalancePlan, plan_rebalance};
use evenbeat_core::store::{BATCH_MAX, JobRow, PutAnswer, PutJob};
use evenbeat_core::time::Duration;

use super::{Actor, Intake, IntakeError, audit};
use crate::runtime::clock;
use crate::runtime::ids::mint;

/// So many plans are remembered.
const PLANS_MAX: usize = 16;

/// So long a plan is good for; then the protection windows that it has looked at are others.
const PLAN_LIFE: Duration = Duration::from_mins(10);

/// Which plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanId(pub u128);

impl fmt::Display for PlanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        uuid::Uuid::from_u128(self.0).fmt(f)
    }
}

/// A plan, and under which name it can be applied.
#[derive(Clone, Debug)]
pub struct StoredPlan {
    /// Its name.
    pub id: PlanId,
    /// What it would do.
    pub plan: Arc<RebalancePlan>,
}

/// What a rebalance did.
#[derive(Clone, Debug)]
pub struct Rebalanced {
    /// Jobs that moved.
    pub moved: Vec<Move>,
    /// Jobs that did not, and why.
    pub skipped: Vec<Kept>,
    /// Evenness before.
    pub old_score: f64,
    /// Evenness now.
    pub new_score: f64,
}

/// The plans that were shown to people.
#[derive(Debug, Default)]
pub(super) struct Plans(Mutex<VecDeque<StoredPlan>>);

impl Plans {
    fn keep(&self, plan: RebalancePlan) -> StoredPlan {
        let stored = StoredPlan { id: PlanId(mint(clock::now())), plan: Arc::new(plan) };
        let mut plans = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        plans.truncate(PLANS_MAX - 1);
        plans.push_front(stored.clone());
        stored
    }

    /// A plan is applied once.
    fn take(&self, id: PlanId) -> Option<Arc<RebalancePlan>> {
        let mut plans = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let idx = plans.iter().position(|it| it.id == id)?;
        plans.remove(idx).map(|it| it.plan)
    }
}

impl Intake {
    /// What a rebalance would do now. Changes nothing.
    pub async fn plan_rebalance(&self) -> Result<StoredPlan, IntakeError> {
        let rows = self.all_rows().await?;
        let (now, balance) = (self.now().await, self.inner.fleet.ledger().balance());
        let planned = tokio::task::spawn_blocking(move || {
            let jobs: Vec<_> = rows.iter().map(|row| (&*row.job, &row.state)).collect();
            plan_rebalance(balance, now, &jobs)
        });
        let plan = planned.await.map_err(|error| {
            evenbeat_core::store::StoreDown(format!("the plan could not be worked out: {error}"))
        })?;
        Ok(self.inner.plans.keep(plan))
    }

    /// Applies exactly that plan. Jobs that run, or may not be moved any more, stay where they are and are told of.
    pub async fn rebalance(&self, actor: &Actor, id: PlanId) -> Result<Rebalanced, IntakeError> {
        let old = || IntakeError::PlanIsOld { plan: id.to_string() };
        let plan = self.inner.plans.take(id).ok_or_else(old)?;
        let now = self.now().await;
        if plan.made_at + PLAN_LIFE < now {
            return Err(old());
        }
        let mut moved = Vec::with_capacity(plan.moves.len());
        let mut skipped = plan.kept.clone();
        // Nothing is written before it is known that the schedule is the one that the plan was made for.
        let mut batches: Vec<Vec<(Move, PutJob)>> = Vec::new();
        for moves in plan.moves.chunks(BATCH_MAX) {
            let keys: Arc<[JobKey]> = moves.iter().map(|it| it.key.clone()).collect();
            let rows = self.inner.store.jobs_of(keys).await?;
            let mut batch = Vec::with_capacity(moves.len());
            for it in moves {
                let row: Option<&JobRow> = rows.iter().find(|row| row.job.key == it.key);
                match row.map(|row| edit::apply_move(row, it, now)) {
                    Some(Ok(mut put)) => {
                        let detail = format!("{} to {}", it.old_time, it.new_time);
                        put.audit = Some(audit(actor, "rebalance", &it.key, &detail));
                        batch.push((it.clone(), put));
                    }
                    Some(Err(Refusal::Kept(reason))) => skipped.push(Kept { key: it.key.clone(), reason }),
                    Some(Err(_)) | None => return Err(old()),
                }
            }
            batches.push(batch);
        }
        for batch in batches {
            let (moves, puts): (Vec<Move>, Vec<PutJob>) = batch.into_iter().unzip();
            let answers = self.inner.store.put_jobs(puts).await?;
            for (it, answer) in moves.into_iter().zip(answers) {
                match answer {
                    PutAnswer::Put(row) => {
                        self.note(&it.key, Some(&row));
                        moved.push(it);
                    }
                    // A run of it began, or somebody edited it, in this very moment.
                    PutAnswer::Stale(_) | PutAnswer::Gone | PutAnswer::Repeated(_) => {
                        skipped.push(Kept { key: it.key.clone(), reason: KeptReason::JobRunning });
                    }
                }
            }
        }
        self.inner.node.nudge();
        Ok(self.tell_of_rebalance(&plan, moved, skipped))
    }

    fn tell_of_rebalance(&self, plan: &RebalancePlan, moved: Vec<Move>, skipped: Vec<Kept>) -> Rebalanced {
        let day = self.inner.fleet.distribution(clock::now(), 24);
        let (old_score, new_score) = (plan.before.score(), day.map_or(plan.after.score(), |day| day.score()));
        for kept in &skipped {
            let notice = Notice::SkippedByRebalance { key: kept.key.clone(), reason: kept.reason };
            self.inner.telemetry.notice(&notice);
        }
        let (n_moved, n_skipped) = (moved.len(), skipped.len());
        self.inner.telemetry.notice(&Notice::Rebalanced { n_moved, n_skipped, old_score, new_score });
        Rebalanced { moved, skipped, old_score, new_score }
    }

    async fn all_rows(&self) -> Result<Vec<JobRow>, IntakeError> {
        let mut rows: Vec<JobRow> = Vec::new();
        loop {
            let after = rows.last().map(|row| row.job.key.clone());
            let page = self.inner.store.jobs(after, BATCH_MAX).await?;
            if page.is_empty() {
                return Ok(rows);
            }
            rows.extend(page);
        }
    }
}
