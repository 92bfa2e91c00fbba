//! Many jobs at once, as files declare them: what is new, changed, unchanged, and what is there and not declared.

use std::collections::BTreeSet;
use std::sync::Arc;

use evenbeat_core::edit;
use evenbeat_core::ids::JobKey;
use evenbeat_core::job::Job;
use evenbeat_core::notice::Notice;
use evenbeat_core::store::{BATCH_MAX, JobRow, PutAnswer, PutJob};

use super::{Actor, Expect, Intake, IntakeError, LedgerRollback, audit, refused};

/// How it is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ApplyOptions {
    /// Whether jobs that are not declared are removed.
    pub prune: bool,
    /// Whether nothing is written.
    pub dry_run: bool,
    /// Whether jobs that are there already stay as they are.
    pub only_new: bool,
}

/// What becomes of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum JobChange {
    /// It was not there.
    Created,
    /// It has another definition.
    Changed,
    /// It is as it was.
    Unchanged,
    /// It was not declared, and is gone.
    Removed,
}

impl JobChange {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            JobChange::Created => "created",
            JobChange::Changed => "changed",
            JobChange::Unchanged => "unchanged",
            JobChange::Removed => "removed",
        }
    }
}

/// One job, and what became of it.
#[derive(Clone, Debug)]
pub struct ApplyResult {
    /// Which.
    pub key: JobKey,
    /// What.
    pub change: JobChange,
    /// As it was, unless it is new.
    pub before: Option<Arc<Job>>,
    /// As it is, unless it is gone.
    pub after: Option<Arc<Job>>,
}

impl Intake {
    /// Makes the fleet what is declared. Asked twice, the second time changes nothing.
    pub async fn apply(
        &self,
        actor: &Actor,
        jobs: Vec<Job>,
        options: ApplyOptions,
    ) -> Result<Vec<ApplyResult>, IntakeError> {
        // All of them are looked at before any is written.
        for job in &jobs {
            self.inner.allowed.check(job)?;
        }
        let declared: BTreeSet<JobKey> = jobs.iter().map(|job| job.key.clone()).collect();
        let mut applied = Vec::with_capacity(jobs.len());
        let jobs: Vec<Arc<Job>> = jobs.into_iter().map(Arc::new).collect();
        for batch in jobs.chunks(BATCH_MAX) {
            applied.extend(self.apply_batch(actor, batch, options).await?);
        }
        if options.prune {
            applied.extend(self.prune(actor, &declared, options).await?);
        }
        Ok(applied)
    }

    async fn apply_batch(
        &self,
        actor: &Actor,
        jobs: &[Arc<Job>],
        options: ApplyOptions,
    ) -> Result<Vec<ApplyResult>, IntakeError> {
        let keys: Arc<[JobKey]> = jobs.iter().map(|job| job.key.clone()).collect();
        let rows = self.inner.store.jobs_of(keys).await?;
        let seen_of = |key: &JobKey| rows.iter().find(|row| row.job.key == *key);
        let mut applied = Vec::with_capacity(jobs.len());
        let mut puts: Vec<PutJob> = Vec::new();
        let mut unwritten = self.unwritten();
        for job in jobs {
            let seen = seen_of(&job.key);
            let before = seen.filter(|row| !row.is_deleted).map(|row| row.job.clone());
            let change = match &before {
                None => JobChange::Created,
                Some(before) if options.only_new || **before == **job => JobChange::Unchanged,
                Some(_) => JobChange::Changed,
            };
            if change != JobChange::Unchanged && !options.dry_run {
                unwritten.add(&job.key, seen);
                let mut put = self.work_out_put(job.clone(), seen).await?;
                let action = if change == JobChange::Created { "create" } else { "edit" };
                put.audit = Some(audit::of_job(actor, action, "", seen, &put));
                puts.push(put);
            }
            applied.push(ApplyResult { key: job.key.clone(), change, before, after: Some(job.clone()) });
        }
        self.write_batch(actor, puts, unwritten, options).await?;
        Ok(applied)
    }

    /// Writes them in one transaction; the few that others were quicker with, one by one.
    async fn write_batch(
        &self,
        actor: &Actor,
        puts: Vec<PutJob>,
        unwritten: LedgerRollback,
        options: ApplyOptions,
    ) -> Result<(), IntakeError> {
        if puts.is_empty() {
            return Ok(());
        }
        let told = |put: &PutJob| (put.job.clone(), Notice::of_records(&put.job.key, &put.records));
        let jobs: Vec<(Arc<Job>, Vec<Notice>)> = puts.iter().map(told).collect();
        let answers = self.inner.store.put_jobs(puts).await?;
        unwritten.settle();
        self.inner.node.nudge();
        let mut again = Vec::new();
        for ((job, told), answer) in jobs.into_iter().zip(answers) {
            match answer {
                PutAnswer::Put(row) => {
                    self.note(&job.key, Some(&row));
                    self.inner.telemetry.tell_all(told);
                }
                PutAnswer::Stale(row) => {
                    self.note(&job.key, Some(&row));
                    again.push(job);
                }
                // Definitions carry no requests, so nothing is ever repeated here.
                PutAnswer::Gone | PutAnswer::Repeated(_) => {
                    self.note(&job.key, None);
                    again.push(job);
                }
            }
        }
        // Only now that the ledger has all answers: each of these can fail by itself.
        let expect = if options.only_new { Expect::New } else { Expect::Any };
        for job in again {
            self.put(actor, job, expect).await?;
        }
        Ok(())
    }

    async fn prune(
        &self,
        actor: &Actor,
        declared: &BTreeSet<JobKey>,
        options: ApplyOptions,
    ) -> Result<Vec<ApplyResult>, IntakeError> {
        let mut removed = Vec::new();
        let mut after: Option<JobKey> = None;
        loop {
            let page = self.inner.store.jobs(after.take(), BATCH_MAX).await?;
            let Some(last) = page.last() else { return Ok(removed) };
            after = Some(last.job.key.clone());
            let gone: Vec<&JobRow> = page.iter().filter(|row| !declared.contains(&row.job.key)).collect();
            for row in gone {
                let key = row.job.key.clone();
                if !options.dry_run {
                    self.change(actor, "delete", "", &key, |row, _, _| {
                        edit::remove(row).map_err(|it| refused(&key, it))
                    })
                    .await?;
                }
                let before = Some(row.job.clone());
                removed.push(ApplyResult { key, change: JobChange::Removed, before, after: None });
            }
        }
    }
}
