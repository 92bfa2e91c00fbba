//! Levelling the fleet: a plan that people look at, and exactly that plan applied (A8 to A10).
//!
//! A plan lives in the store, so that any node can apply it. It is refused when a definition, a pause or a phase has
//! changed since; runs do not matter to it. All of its moves are written at once or none of them is.

use std::sync::Arc;

use evenbeat_core::edit::{self, Refusal};
use evenbeat_core::notice::Notice;
use evenbeat_core::placement::{Kept, Move, PlanLimits, RebalancePlan, RebalancePlanner};
use evenbeat_core::store::{
    ApplyPlan, BATCH_MAX, JobRow, NewPlan, PlanAnswer, PlanId, PutJob, Revision, StoreDown,
};
use evenbeat_core::time::{BootTime, Duration, Timestamp};
use tokio::sync::mpsc;

use super::plan_summary::PlanSummary;
use super::plan_text::{self, FleetHash, ParsedPlan};
use super::{Actor, Intake, IntakeError, N_TRIES, audit};
use crate::fleet::DAY_HOURS;
use crate::mint::mint;
use crate::single_flight::SingleFlight;
use crate::store::query::PlacedRow;

/// How often a plan that is applied at once is remade because a job changed meanwhile.
const N_PLANS: u32 = 3;

/// Number of callers whose plans may wait for their turn.
const PREVIEWS_WAITING_MAX: usize = 4;

/// Jobs that are read at a time: enough that a million of them need few questions.
const PLAN_PAGE: usize = 5_000;

/// Pages that are read ahead of the planner.
const PAGES_WAITING_MAX: usize = 2;

/// How much a rebalance plan may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PreviewLimits {
    /// Most jobs of a fleet. A plan for a million takes half a gigabyte.
    pub jobs_max: usize,
    /// Most moves, which are all written in one transaction. Those that are left come with the next plan.
    pub moves_max: usize,
    /// How long the jobs may be read, counted from the request. A request ends after 30 s, and the plan must be made,
    /// stored and sent before that.
    pub read_within: Duration,
    /// How long moves may be searched, counted from the request.
    pub search_within: Duration,
}

impl Default for PreviewLimits {
    fn default() -> PreviewLimits {
        PreviewLimits {
            jobs_max: 1_000_000,
            moves_max: 100_000,
            read_within: Duration::from_secs(15),
            search_within: Duration::from_secs(20),
        }
    }
}

/// Why there is no plan.
#[derive(Clone, Debug)]
pub(super) enum PlanFault {
    Down(StoreDown),
    FleetTooLarge,
    TooSlow { n_read: usize },
}

impl From<StoreDown> for PlanFault {
    fn from(down: StoreDown) -> PlanFault {
        PlanFault::Down(down)
    }
}

/// Plans that are being made, by caller.
pub(super) type Previews = SingleFlight<String, Result<StoredPlan, PlanFault>>;

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
pub struct RebalanceResult {
    /// Jobs that moved.
    pub moved: Vec<Move>,
    /// Jobs that did not, and why.
    pub skipped: Vec<Kept>,
    /// Those of them that were to move and can no longer.
    pub held_back: Vec<Kept>,
    /// Evenness before.
    pub old_score: f64,
    /// Evenness now.
    pub new_score: f64,
}

/// A move that is about to be written.
struct PendingMove {
    /// As the plan has it.
    planned: Move,
    /// As it is made.
    made: Move,
    revision: Revision,
    put: PutJob,
}

impl Intake {
    /// What a rebalance would do now. Changes nothing but the list of plans.
    ///
    /// One plan is made at a time. Requests of one caller that wait for their turn share a plan, and only a few callers may
    /// wait.
    pub async fn plan_rebalance(&self, actor: &Actor) -> Result<StoredPlan, IntakeError> {
        let previews = &self.inner.previews;
        if PREVIEWS_WAITING_MAX <= previews.n_others_waiting(&actor.0) {
            return Err(IntakeError::PreviewsBusy);
        }
        let (asked_at, limits) = (self.inner.clock.boot(), self.inner.preview_limits);
        let planned = previews.run(actor.0.clone(), async || self.make_plan(actor, asked_at).await).await;
        planned.map_err(|fault| match fault {
            PlanFault::Down(down) => down.into(),
            PlanFault::FleetTooLarge => IntakeError::FleetTooLarge { most: limits.jobs_max },
            PlanFault::TooSlow { n_read } => IntakeError::PlanTooSlow { n_read, within: limits.read_within },
        })
    }

    async fn make_plan(&self, actor: &Actor, asked_at: BootTime) -> Result<StoredPlan, PlanFault> {
        let (now, balance) = (self.now(), self.inner.fleet.ledger().balance());
        let PreviewLimits { jobs_max, moves_max, read_within, search_within } = self.inner.preview_limits;
        let clock = self.inner.clock.clone();
        // Jobs are taken in beside the runtime while the next ones are read.
        let (pages, mut read) = mpsc::channel::<Vec<PlacedRow>>(PAGES_WAITING_MAX);
        let planning = tokio::task::spawn_blocking(move || {
            let (mut planner, mut fleet) = (RebalancePlanner::new(balance, now), FleetHash::default());
            loop {
                // An empty page is the last one. Without it the request was given up.
                let page = read.blocking_recv()?;
                if page.is_empty() {
                    break;
                }
                for row in page {
                    fleet.add(&row.key, row.revision);
                    planner.add(&row.key, row.terms, row.hours, &row.state);
                }
            }
            let has_time = || clock.boot() < asked_at + search_within;
            let plan = planner.plan_within(PlanLimits { moves_max, has_time });
            let text = plan_text::write(&plan, fleet.finish());
            Some((plan, text))
        });
        let (mut after, mut n_read) = (None, 0);
        loop {
            let page = self.inner.store.placed_jobs(after, PLAN_PAGE).await?;
            let is_last = page.is_empty();
            after = page.last().map(|it| it.key.clone());
            n_read += page.len();
            if jobs_max < n_read {
                return Err(PlanFault::FleetTooLarge);
            }
            if asked_at + read_within <= self.inner.clock.boot() {
                return Err(PlanFault::TooSlow { n_read });
            }
            if pages.send(page).await.is_err() || is_last {
                break;
            }
        }
        let planned = planning.await.map_err(not_worked_out)?;
        let (plan, text) = planned.ok_or_else(|| StoreDown("the plan was given up".to_owned()))?;
        let id = PlanId(mint(self.inner.clock.now()));
        let stored = NewPlan { id, caller: actor.0.clone(), text: text.into() };
        self.inner.store.put_plan(stored).await?;
        Ok(StoredPlan { id, plan: Arc::new(plan) })
    }

    /// The figures of a plan. None if it was applied, has expired or never was.
    pub async fn plan_summary(&self, id: PlanId) -> Result<Option<PlanSummary>, IntakeError> {
        let Some(stored) = self.inner.store.plan(id).await? else { return Ok(None) };
        Ok(beside(move || plan_text::read_summary(&stored.text)).await?)
    }

    /// Makes a plan and applies it in one step.
    pub async fn rebalance_now(&self, actor: &Actor) -> Result<RebalanceResult, IntakeError> {
        let mut n_plans = 0;
        loop {
            n_plans += 1;
            let plan = self.plan_rebalance(actor).await?;
            match self.rebalance(actor, plan.id).await {
                Err(IntakeError::PlanIsOld { .. }) if n_plans < N_PLANS => {}
                done => return done,
            }
        }
    }

    /// Applies exactly that plan. Jobs that run, or may not be moved now, stay where they are and are reported.
    pub async fn rebalance(&self, actor: &Actor, id: PlanId) -> Result<RebalanceResult, IntakeError> {
        let stored = self.inner.store.plan(id).await?;
        let plan = stored.and_then(|it| plan_text::read(&it.text));
        let plan = plan.ok_or(IntakeError::NoSuchPlan { plan: id })?;
        let old = || IntakeError::PlanIsOld { plan: id };
        if self.fleet_hash().await? != plan.fleet {
            return Err(old());
        }
        let (rows, now) = (self.rows_of(&plan.moves).await?, self.now());
        let planned_kept = plan.kept.clone();
        let (by, scores) = (actor.clone(), (plan.old_score, plan.new_score));
        let worked_out = beside(move || work_out(plan, &rows, &by, now)).await?;
        let (mut pending, mut held_back) = worked_out.ok_or_else(old)?;
        for _ in 0..N_TRIES {
            let puts = pending.iter().map(|it| it.put.clone()).collect();
            match self.inner.store.apply_plan(ApplyPlan { id, puts }).await? {
                PlanAnswer::Applied(rows) => {
                    for row in &rows {
                        self.note(&row.job.key, Some(row));
                    }
                    self.inner.node.nudge();
                    let moved = pending.into_iter().map(|it| it.made).collect();
                    return Ok(self.tell_of_rebalance(scores, moved, planned_kept, held_back).await);
                }
                PlanAnswer::Gone => return Err(IntakeError::NoSuchPlan { plan: id }),
                PlanAnswer::Stale(rows) if rows.is_empty() => return Err(old()),
                // A run of theirs began or ended in this very moment.
                PlanAnswer::Stale(rows) => {
                    let now = self.now();
                    for row in rows {
                        let again = rework(&mut pending, &row, actor, now).ok_or_else(old)?;
                        held_back.extend(again);
                    }
                }
            }
        }
        Err(StoreDown("jobs of the plan changed again and again; apply it once more".to_owned()).into())
    }

    async fn tell_of_rebalance(
        &self,
        scores: (f64, f64),
        moved: Vec<Move>,
        planned_kept: Vec<Kept>,
        held_back: Vec<Kept>,
    ) -> RebalanceResult {
        let skipped = [planned_kept, held_back.clone()].concat();
        let (old_score, planned_score) = scores;
        let day = self.inner.fleet.distribution(self.now(), DAY_HOURS).await;
        let new_score = day.map_or(planned_score, |day| day.score());
        for kept in &skipped {
            let notice = Notice::SkippedByRebalance { key: kept.key.clone(), reason: kept.reason };
            self.inner.telemetry.tell(notice);
        }
        let (n_moved, n_skipped) = (moved.len(), skipped.len());
        self.inner.telemetry.tell(Notice::Rebalanced { n_moved, n_skipped, old_score, new_score });
        RebalanceResult { moved, skipped, held_back, old_score, new_score }
    }

    /// The current [`FleetHash`].
    async fn fleet_hash(&self) -> Result<String, StoreDown> {
        let (mut fleet, mut after) = (FleetHash::default(), None);
        loop {
            let page = self.inner.store.placed_jobs(after, PLAN_PAGE).await?;
            let Some(last) = page.last() else { return Ok(fleet.finish()) };
            after = Some(last.key.clone());
            for row in page {
                fleet.add(&row.key, row.revision);
            }
        }
    }

    /// The jobs that are to be moved, by key.
    async fn rows_of(&self, moves: &[Move]) -> Result<Vec<JobRow>, StoreDown> {
        let mut rows = Vec::with_capacity(moves.len());
        for some in moves.chunks(BATCH_MAX) {
            rows.extend(self.inner.store.jobs_of(some.iter().map(|it| it.key.clone()).collect()).await?);
        }
        rows.sort_by(|one, other| one.job.key.cmp(&other.job.key));
        Ok(rows)
    }
}

/// What is to be written for a plan, and which of its jobs cannot be moved now; none if one of them is gone. Rows and moves are in the order of their keys.
fn work_out(
    plan: ParsedPlan,
    rows: &[JobRow],
    actor: &Actor,
    now: Timestamp,
) -> Option<(Vec<PendingMove>, Vec<Kept>)> {
    let (mut pending, mut kept) = (Vec::with_capacity(plan.moves.len()), Vec::new());
    for planned in plan.moves {
        let idx = rows.binary_search_by(|row| row.job.key.cmp(&planned.key)).ok()?;
        match pend(rows.get(idx)?, planned, actor, now)? {
            Ok(it) => pending.push(it),
            Err(it) => kept.push(it),
        }
    }
    Some((pending, kept))
}

/// A move as it can be made now, or why it cannot; none if it can never be made again.
fn pend(row: &JobRow, planned: Move, actor: &Actor, now: Timestamp) -> Option<Result<PendingMove, Kept>> {
    match edit::apply_move(row, &planned, now) {
        Ok(mut put) => {
            let (old_time, new_time) = (row.state.next_run_at?, put.state.next_run_at?);
            let last_start = row.state.last_start_at.unwrap_or(planned.new_time - planned.gap);
            let gap = new_time - last_start;
            let made = Move { old_time, new_time, gap, ..planned.clone() };
            let detail = format!("{old_time} to {new_time}");
            put.audit = Some(audit::of_job(actor, "rebalance", &detail, Some(row), &put));
            Some(Ok(PendingMove { planned, made, revision: row.revision, put }))
        }
        Err(Refusal::Kept(reason)) => Some(Err(Kept { key: row.job.key.clone(), reason })),
        Err(_) => None,
    }
}

/// Works one move out again from a row that has changed, and returns the job if it cannot be moved now; none if a person
/// changed it. The moves are in the order of their keys.
fn rework(pending: &mut Vec<PendingMove>, row: &JobRow, actor: &Actor, now: Timestamp) -> Option<Vec<Kept>> {
    let idx = pending.binary_search_by(|it| it.planned.key.cmp(&row.job.key)).ok()?;
    let it = pending.get_mut(idx)?;
    if it.revision != row.revision || row.is_deleted {
        return None;
    }
    match pend(row, it.planned.clone(), actor, now)? {
        Ok(again) => {
            *it = again;
            Some(Vec::new())
        }
        Err(kept) => {
            pending.remove(idx);
            Some(vec![kept])
        }
    }
}

/// Runs what takes long beside everything else.
async fn beside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, StoreDown> {
    tokio::task::spawn_blocking(work).await.map_err(not_worked_out)
}

#[allow(clippy::needless_pass_by_value, reason = "as `map_err` wants it")]
fn not_worked_out(error: tokio::task::JoinError) -> StoreDown {
    StoreDown(format!("the plan could not be worked out: {error}"))
}
