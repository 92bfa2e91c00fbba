//! One action on many jobs at once (K5): each is worked out, audited and answered by itself, and they are written in one
//! transaction.

use evenbeat_core::edit::{self, Refusal};
use evenbeat_core::ids::{ExtraId, JobKey};
use evenbeat_core::job::{Extra, PausedBy};
use evenbeat_core::notice::Notice;
use evenbeat_core::store::{JobRow, PutAnswer, PutJob};
use evenbeat_core::time::Timestamp;

use super::{Actor, Expect, Intake, IntakeError, audit, pause_detail, refused};
use crate::mint::mint;

/// What to do with jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BulkAction {
    /// Start nothing more of them, for this reason, until this instant.
    Pause(Option<String>, Option<Timestamp>),
    /// Resume them.
    Resume,
    /// Run them now.
    Trigger,
    /// Delete them.
    Delete,
}

/// What became of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BulkOutcome {
    /// It was changed or triggered.
    Done,
    /// It was already as wanted.
    Unchanged,
}

impl BulkAction {
    fn as_str(&self) -> &'static str {
        match self {
            BulkAction::Pause(..) => "pause",
            BulkAction::Resume => "resume",
            BulkAction::Trigger => "trigger",
            BulkAction::Delete => "delete",
        }
    }

    fn detail(&self) -> String {
        match self {
            BulkAction::Pause(reason, until) => pause_detail(reason.as_deref(), *until),
            BulkAction::Resume | BulkAction::Trigger | BulkAction::Delete => String::new(),
        }
    }
}

impl Intake {
    /// Does the same to each of these jobs. The answers are in the order of the rows; one that fails does not keep the
    /// others.
    pub async fn act_on(
        &self,
        actor: &Actor,
        action: &BulkAction,
        rows: &[JobRow],
    ) -> Result<Vec<Result<BulkOutcome, IntakeError>>, IntakeError> {
        let (now, detail) = (self.now(), action.detail());
        // A pause with an end is written job by job: the end belongs to one pause.
        let is_one_by_one = matches!(action, BulkAction::Pause(_, Some(_)));
        if is_one_by_one {
            let mut outcomes = Vec::with_capacity(rows.len());
            for row in rows {
                outcomes.push(self.act_on_one(actor, action, &row.job.key).await);
            }
            return Ok(outcomes);
        }
        let mut outcomes: Vec<Result<BulkOutcome, IntakeError>> = Vec::with_capacity(rows.len());
        let (mut puts, mut written) = (Vec::new(), Vec::new());
        let mut unwritten = self.unwritten();
        for (idx, row) in rows.iter().enumerate() {
            let key = &row.job.key;
            unwritten.add(key, Some(row));
            outcomes.push(match self.work_out_action(action, row, now).await {
                Ok(Some(put)) => {
                    self.settle_pause_end(action, key).await?;
                    let entry = audit::of_job(actor, action.as_str(), &detail, Some(row), &put);
                    puts.push(PutJob { audit: Some(entry), ..put });
                    written.push(idx);
                    Ok(BulkOutcome::Done)
                }
                Ok(None) => Ok(BulkOutcome::Unchanged),
                Err(error) => Err(error),
            });
        }
        if puts.is_empty() {
            return Ok(outcomes);
        }
        let records: Vec<Vec<Notice>> =
            puts.iter().map(|put| Notice::of_records(&put.job.key, &put.records)).collect();
        let answers = self.inner.store.put_jobs(puts).await?;
        unwritten.settle();
        self.inner.node.nudge();
        let mut again = Vec::new();
        for ((idx, told), answer) in written.into_iter().zip(records).zip(answers) {
            let Some(row) = rows.get(idx) else { continue };
            match answer {
                PutAnswer::Put(row) => {
                    self.note(&row.job.key, Some(&row));
                    self.inner.telemetry.tell_all(told);
                }
                PutAnswer::Stale(newer) => {
                    self.note(&row.job.key, Some(&newer));
                    again.push(idx);
                }
                PutAnswer::Gone | PutAnswer::Repeated(_) => {
                    self.note(&row.job.key, None);
                    again.push(idx);
                }
            }
        }
        // Others were quicker with these: each is looked at again by itself.
        for idx in again {
            if let (Some(row), Some(outcome)) = (rows.get(idx), outcomes.get_mut(idx)) {
                *outcome = self.act_on_one(actor, action, &row.job.key).await;
            }
        }
        Ok(outcomes)
    }

    /// What is to be written; none if the job is already as wanted.
    async fn work_out_action(
        &self,
        action: &BulkAction,
        row: &JobRow,
        now: Timestamp,
    ) -> Result<Option<PutJob>, IntakeError> {
        let key = &row.job.key;
        let put = match action {
            BulkAction::Pause(reason, _) => edit::pause(row, PausedBy::Operator, reason.clone()),
            BulkAction::Resume if row.state.pause.is_none() => return Ok(None),
            BulkAction::Resume => {
                let open = if row.n_open == 0 { Vec::new() } else { self.open_of(key).await? };
                edit::resume(row, &open, self.place(&row.job, &row.state, now), now)
            }
            BulkAction::Trigger => edit::trigger(row, self.manual_run(now)),
            BulkAction::Delete => edit::remove(row),
        };
        let put = put.map_err(|refusal| refused(key, refusal))?;
        let is_paused_so = matches!(action, BulkAction::Pause(..)) && !put.is_revision;
        Ok((!is_paused_so).then_some(put))
    }

    /// A job that is resumed, deleted or paused without an end is not resumed automatically later.
    async fn settle_pause_end(&self, action: &BulkAction, key: &JobKey) -> Result<(), IntakeError> {
        match action {
            BulkAction::Trigger => Ok(()),
            BulkAction::Pause(..) | BulkAction::Resume | BulkAction::Delete => {
                Ok(self.inner.store.clear_pause_end(key.clone(), Timestamp::MAX).await?)
            }
        }
    }

    fn manual_run(&self, now: Timestamp) -> Extra {
        Extra::manual(ExtraId(mint(self.inner.clock.now())), now)
    }

    async fn act_on_one(
        &self,
        actor: &Actor,
        action: &BulkAction,
        key: &JobKey,
    ) -> Result<BulkOutcome, IntakeError> {
        let done = match action {
            BulkAction::Pause(reason, until) => {
                self.pause(actor, key, reason.clone(), *until).await.map(|_| ())
            }
            BulkAction::Resume => self.resume(actor, key).await.map(|_| ()),
            BulkAction::Trigger => self.trigger(actor, key, None, None).await.map(|_| ()),
            BulkAction::Delete => self.remove(actor, key, Expect::Any).await,
        };
        match done {
            Ok(()) => Ok(BulkOutcome::Done),
            Err(IntakeError::Refused { refusal: Refusal::NotPaused, .. }) => Ok(BulkOutcome::Unchanged),
            // Another request deleted it a moment ago.
            Err(IntakeError::NoSuchJob { .. }) if *action == BulkAction::Delete => Ok(BulkOutcome::Unchanged),
            Err(error) => Err(error),
        }
    }
}
