//! One run with what stands around it: its job, the other attempts at the same occurrence, the runs before and after.

use evenbeat_core::job::JobState;
use evenbeat_core::store::{JobRow, OwnerPing, RunFilter, RunPhase, RunRow};
use evenbeat_core::time::Timestamp;

use super::find_run::FoundRun;
use super::model::{ExplanationView, JobView, RunView, SessionNames};
use super::{ViewError, explanation, jobs};
use crate::app::App;

/// How many runs before and after one are looked through for attempts at the same occurrence.
const N_AROUND: usize = 20;

/// A run and what stands around it.
#[derive(Debug)]
pub(crate) struct RunDetails {
    /// The run, or the request while it waits.
    pub(crate) view: RunView,
    /// None for a request that has no run.
    pub(crate) row: Option<RunRow>,
    /// Its job; none if that was removed.
    pub(crate) job: Option<(JobRow, JobView)>,
    /// What the job waits for, and when its current run should end. Only for what is not over.
    pub(crate) explanation: Option<ExplanationView>,
    /// The runs of the same occurrence or request, this one among them, in their order.
    pub(crate) attempts: Vec<RunView>,
    /// The attempt that comes next.
    pub(crate) planned: Option<PlannedAttempt>,
    /// The run before the first attempt.
    pub(crate) previous: Option<RunView>,
    /// The run after the last attempt.
    pub(crate) following: Option<RunView>,
    /// The last sign of life of its executor.
    pub(crate) ping: Option<OwnerPing>,
}

/// An attempt that has not started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PlannedAttempt {
    /// Its number, from 1.
    pub(crate) no: u32,
    /// Its earliest start.
    pub(crate) at: Timestamp,
}

/// Everything about one run.
pub(crate) async fn details(app: &App, found: FoundRun) -> Result<RunDetails, ViewError> {
    let names = SessionNames::of(&app.store.sessions().await?);
    let now = app.intake.now();
    let view = found.view(&names).seen_at(now);
    let job = match app.store.job(&found.key).await?.filter(|row| !row.is_deleted) {
        Some(row) => {
            let view = jobs::view(app, &row, now).await;
            Some((row, view))
        }
        None => None,
    };
    let is_over = view.outcome.is_some();
    let explanation = match &job {
        Some((row, _)) if !is_over => Some(explanation::explanation(app, row, None).await?),
        _ => None,
    };
    let around = match &found.run {
        Some(run) => Around::find(app, run).await?,
        None => Around::default(),
    };
    let planned = match (&found.run, &job) {
        (Some(run), Some((row, view))) => {
            let last = around.attempts.last().unwrap_or(run);
            planned(last, &row.state, view.planned_start.map(|it| it.0))
        }
        _ => None,
    };
    let ping = match &found.run {
        Some(run) if run.phase.is_open() => app.owner_pings(vec![run.run]).await.remove(&run.run),
        _ => None,
    };
    let seen = |row: &RunRow| RunView::of(row, &names).seen_at(now);
    Ok(RunDetails {
        view,
        job,
        explanation,
        attempts: around.attempts.iter().map(seen).collect(),
        planned,
        previous: around.previous.as_ref().map(seen),
        following: around.following.as_ref().map(seen),
        ping,
        row: found.run,
    })
}

/// The runs around one.
#[derive(Debug, Default)]
struct Around {
    attempts: Vec<RunRow>,
    previous: Option<RunRow>,
    following: Option<RunRow>,
}

impl Around {
    async fn find(app: &App, run: &RunRow) -> Result<Around, ViewError> {
        let filter = RunFilter { key: Some(run.key.clone()), is_open: false };
        let earlier = app.store.runs(filter, Some(run.run), N_AROUND).await?;
        let later = app.store.later_runs(&run.key, run.run, N_AROUND).await?;
        let is_same =
            |other: &&RunRow| other.due.due_at == run.due.due_at && other.due.asked() == run.due.asked();
        let mut attempts: Vec<RunRow> = earlier.iter().filter(is_same).rev().cloned().collect();
        attempts.push(run.clone());
        attempts.extend(later.iter().filter(is_same).cloned());
        let previous = earlier.iter().find(|it| !is_same(it)).cloned();
        let following = later.iter().find(|it| !is_same(it)).cloned();
        Ok(Around { attempts, previous, following })
    }
}

/// The next attempt at what the last one served, if it gets one.
fn planned(last: &RunRow, state: &JobState, planned_start: Option<Timestamp>) -> Option<PlannedAttempt> {
    if matches!(last.phase, RunPhase::Claimed | RunPhase::Published | RunPhase::Running) {
        return None;
    }
    let no = last.due.attempt.saturating_add(1);
    let is_same = |extra: &&evenbeat_core::job::Extra| match last.due.asked() {
        Some(asked) => extra.id == asked,
        None => !extra.is_asked_for() && extra.due_at == last.due.due_at,
    };
    if let Some(extra) = state.extras.iter().find(is_same) {
        return Some(PlannedAttempt { no, at: extra.not_before });
    }
    let is_pending = last.due.asked().is_none()
        && state.next_run_at == Some(last.due.due_at)
        && 0 < state.attempt
        && state.owner.is_none();
    planned_start.filter(|_| is_pending).map(|at| PlannedAttempt { no, at })
}
