//! What people do to a job (J5, A7): from its row as they saw it to the row as they want it.
//!
//! Each is a pure function and gives a [`PutJob`], which the store writes if the row is still that one.
//! Who did it is not known here: the caller fills in the audit entry. What cannot be done is a
//! [`Refusal`], for people to read.

mod backfill;
#[cfg(test)]
mod tests;

use std::sync::Arc;

pub use backfill::{BackfillPlan, BackfillRefusal, plan_backfill};

use crate::ids::ExtraId;
use crate::job::{Extra, Extras, Job, JobState, Pause, PausedBy, Terms};
use crate::occurrence::{self, Due, ExtraAnswer, Transition};
use crate::placement::{KeptReason, Move};
use crate::repair;
use crate::schedule::{Placement, Schedule};
use crate::store::{JobRow, PutJob, RunRequest, Seen};
use crate::time::{Duration, Timestamp};

/// Why a job stays as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It is there already.
    #[error("a job with this key already exists; edit it, or choose another key")]
    Exists,
    /// The job is gone.
    #[error("the job was removed; create it again")]
    Removed,
    /// There is nothing to resume.
    #[error("the job is not paused")]
    NotPaused,
    /// There is nothing to mend.
    #[error("the job's next run already matches its schedule")]
    Sound,
    /// Resuming would not help.
    #[error("the job's schedule cannot be read; edit the job to fix it")]
    Invalid,
    /// Nothing of it starts.
    #[error("the job is paused; resume it first")]
    Paused,
    /// Nothing of it ever starts.
    #[error("the job is disabled; enable it first")]
    Disabled,
    /// One run at a time, and nothing waits.
    #[error(
        "the job is running, and `overlap = \"skip\"` does not queue runs; try again when the run has ended"
    )]
    Running,
    /// It owes enough.
    #[error("too many runs of the job are already waiting; try again later")]
    TooMany,
    /// The same wish was heard before.
    #[error("this run was already requested")]
    AlreadyAsked,
    /// The request was served, or never made.
    #[error("no such run request is waiting")]
    NotWaiting,
    /// A rebalance must not move it now.
    #[error("the job is not moved: {0}")]
    Kept(KeptReason),
    /// The job has no next run that could be moved.
    #[error("the job has no next run that could be moved; make a new plan")]
    PlanIsOld,
}

/// Whether an edit gives the job a new place on the time line, so that it needs a placement: its schedule has changed,
/// or it is enabled again.
pub fn needs_placement(row: &JobRow, job: &Job) -> bool {
    let (old, new): (&Terms, &Terms) = (&row.job, job);
    let has_same_rhythm = (&old.schedule, old.bounds, &old.zone) == (&new.schedule, new.bounds, &new.zone);
    !has_same_rhythm || !old.enabled && new.enabled
}

/// A new job. `before` is what there is under its key: nothing, or the rest of a removed one.
pub fn create(
    job: Arc<Job>,
    before: Option<&JobRow>,
    placement: Option<Placement>,
    now: Timestamp,
) -> Result<PutJob, Refusal> {
    if before.is_some_and(|row| !row.is_deleted) {
        return Err(Refusal::Exists);
    }
    let mut state = JobState::new(now);
    if let Some(placement) = placement.filter(|_| job.enabled) {
        state.place(&job, placement);
    }
    state.pause = job.paused.clone().map(Box::new);
    let seen = before.map_or(Seen::Nothing, |row| Seen::Version(row.version));
    let (is_revision, is_deleted) = (true, false);
    Ok(PutJob { job, state, seen, is_revision, is_deleted, records: Vec::new(), audit: None, request: None })
}

/// Another definition. Another target starts a new count of failures: what failed is mended, or something
/// else. The job keeps placement and pending occurrence unless it [needs a placement]; then what
/// was due and unserved goes on record, and what waited for a retry ends. `open` is what the job's open
/// runs serve.
///
/// [needs a placement]: needs_placement
pub fn edit(
    row: &JobRow,
    open: &[Due],
    job: Arc<Job>,
    placement: Option<Placement>,
    now: Timestamp,
) -> Result<PutJob, Refusal> {
    let mut put = put_again(row)?;
    if needs_placement(row, &job) {
        let placement = placement.filter(|_| job.enabled);
        take(&mut put, occurrence::replace(&row.job, &job, &row.state, open, placement, now));
    }
    if is_invalid(&row.state) {
        put.state.pause = None;
    }
    if job.target != row.job.target {
        put.state.forget_failures(now);
    }
    put.is_revision = job != row.job || put.state != row.state;
    put.job = job;
    Ok(put)
}

/// No run starts from now on; one that is running may end. A person's pause takes the place of the system's,
/// whose way out would not be theirs. To pause again what a person has paused is fine: another reason
/// takes the place of theirs.
pub fn pause(row: &JobRow, by: PausedBy, reason: Option<String>) -> Result<PutJob, Refusal> {
    let mut put = put_again(row)?;
    let pause = match row.state.pause.as_deref() {
        Some(before) if before.by == PausedBy::Invalid => return Err(Refusal::Invalid),
        Some(before) if by != PausedBy::Operator => before.clone(),
        Some(before) if before.by == by => Pause { by, reason: reason.or_else(|| before.reason.clone()) },
        _ => Pause { by, reason },
    };
    put.is_revision = row.state.pause.as_deref() != Some(&pause);
    put.state.pause = Some(Box::new(pause));
    Ok(put)
}

/// The job goes on, with a new placement and a new count of failures. What came due meanwhile goes on record,
/// without catch-up. `open` is what its open runs serve.
pub fn resume(
    row: &JobRow,
    open: &[Due],
    placement: Option<Placement>,
    now: Timestamp,
) -> Result<PutJob, Refusal> {
    let mut put = put_again(row)?;
    if row.state.pause.is_none() {
        return Err(Refusal::NotPaused);
    }
    if is_invalid(&row.state) {
        return Err(Refusal::Invalid);
    }
    let step = match placement.filter(|_| row.job.enabled) {
        Some(placement) => occurrence::resume(&row.job, &row.state, open, placement, now),
        None => occurrence::replace(&row.job, &row.job, &row.state, open, None, now),
    };
    take(&mut put, step);
    put.state.pause = None;
    put.state.forget_failures(now);
    put.is_revision = true;
    Ok(put)
}

/// Repairs a job whose stored times cannot be right. If a clock was ahead, the job goes on from now; `placement` is not
/// needed for that. Otherwise it gets a new placement, and nothing runs for what was stored as its next run.
pub fn mend(row: &JobRow, placement: Option<Placement>, now: Timestamp) -> Result<PutJob, Refusal> {
    let mut put = put_again(row)?;
    let fault = repair::fault(&row.job, &row.state, row.n_open, now).ok_or(Refusal::Sound)?;
    if fault.is_of_clock() {
        return set_right(row, now);
    }
    take(&mut put, occurrence::mend(&row.job, &row.state, placement, now));
    put.is_revision = true;
    Ok(put)
}

/// A clock was ahead, and has been set right: the job goes on from now.
pub fn set_right(row: &JobRow, now: Timestamp) -> Result<PutJob, Refusal> {
    let mut put = put_again(row)?;
    take(&mut put, occurrence::set_right(&row.job, &row.state, now));
    put.is_revision = true;
    Ok(put)
}

/// A run beyond the schedule, now or for an instant of the past.
pub fn trigger(row: &JobRow, extra: Extra) -> Result<PutJob, Refusal> {
    let mut put = put_again(row)?;
    if !row.job.enabled {
        return Err(Refusal::Disabled);
    }
    if row.state.pause.is_some() {
        return Err(Refusal::Paused);
    }
    if row.state.extras.iter().any(|known| known.id == extra.id) {
        return Err(Refusal::AlreadyAsked);
    }
    put.request = Some(RunRequest { id: extra.id, idempotency: None });
    let extra = Extra { requested_in: Some(row.version.epoch().0), ..extra };
    match occurrence::ask(&row.job, &row.state, row.n_open, extra) {
        ExtraAnswer::Taken(step) => take(&mut put, *step),
        ExtraAnswer::Running => return Err(Refusal::Running),
        ExtraAnswer::TooMany => return Err(Refusal::TooMany),
    }
    Ok(put)
}

/// Withdraws a requested run that has not begun.
pub fn withdraw(row: &JobRow, id: ExtraId) -> Result<PutJob, Refusal> {
    let mut put = put_again(row)?;
    let withdrawn = put.state.extras.take(id).filter(Extra::is_asked_for);
    withdrawn.ok_or(Refusal::NotWaiting)?;
    Ok(put)
}

/// Removes the job: nothing of it starts from now on. A run that is running may end. Its load goes, a gap stays.
pub fn remove(row: &JobRow) -> Result<PutJob, Refusal> {
    let mut put = put_again(row)?;
    // Its history can still be seen; it owes nothing from now on.
    put.state.placement = None;
    put.state.next_run_at = None;
    put.state.settled_until = None;
    put.state.attempt = 0;
    put.state.losses = 0;
    put.state.attempt_outcome = None;
    put.state.extras = Extras::default();
    put.is_deleted = true;
    put.is_revision = true;
    Ok(put)
}

/// One move of a rebalance, if the job may be moved now. It may have run since the plan was made: then its next
/// occurrence is the one of the planned phase that follows.
pub fn apply_move(row: &JobRow, it: &Move, now: Timestamp) -> Result<PutJob, Refusal> {
    let mut put = put_again(row)?;
    if 0 < row.n_open {
        return Err(Refusal::Kept(KeptReason::JobRunning));
    }
    let next_run_at = row.state.next_run_at.ok_or(Refusal::PlanIsOld)?;
    if let Some(reason) = KeptReason::of(&row.job.key, &row.job, &row.state, next_run_at, now) {
        return Err(Refusal::Kept(reason));
    }
    let placement = placement_of(row, it, next_run_at, now)?;
    put.state.place(&row.job, placement);
    put.is_revision = true;
    Ok(put)
}

/// The planned phase, set down at its first occurrence that keeps within half an interval and one and a half from the
/// last start (A10).
fn placement_of(
    row: &JobRow,
    it: &Move,
    next_run_at: Timestamp,
    now: Timestamp,
) -> Result<Placement, Refusal> {
    let (mut after, mut latest) = (now, Timestamp::MAX);
    if let Schedule::Every { interval, .. } = row.job.schedule {
        let last_start = row.state.last_start_at.unwrap_or(next_run_at - interval);
        let half = Duration::from_millis(interval.as_millis() / 2);
        after = after.max(last_start + half - Duration::from_millis(1));
        latest = last_start + interval + half;
    }
    let rhythm = row.job.schedule.rhythm(&it.placement, row.job.bounds, &row.job.zone);
    let anchor_at = rhythm.next_after(after).ok_or(Refusal::PlanIsOld)?;
    if latest < anchor_at {
        // Its new time has passed while the plan waited, and the next one is too far away.
        return Err(Refusal::Kept(KeptReason::ProtectionWindow));
    }
    Ok(Placement { anchor_at, placed_at: now, choices: it.placement.choices.clone() })
}

/// The row as it is, to be written again.
fn put_again(row: &JobRow) -> Result<PutJob, Refusal> {
    if row.is_deleted {
        return Err(Refusal::Removed);
    }
    Ok(PutJob {
        job: row.job.clone(),
        state: row.state.clone(),
        seen: Seen::Version(row.version),
        is_revision: false,
        is_deleted: false,
        records: Vec::new(),
        audit: None,
        request: None,
    })
}

fn is_invalid(state: &JobState) -> bool {
    state.pause.as_ref().is_some_and(|pause| pause.by == PausedBy::Invalid)
}

fn take(put: &mut PutJob, step: Transition) {
    put.state = step.state;
    put.records.extend(step.records);
}
