//! Runs for past occurrences, requested one by one: each has an id of its own, and starts behind live work (B3, B10).

use evenbeat_core::edit::{self, BackfillPlan, Refusal};
use evenbeat_core::ids::{ExtraId, JobKey};
use evenbeat_core::job::Extra;
use evenbeat_core::store::JobRow;
use evenbeat_core::time::{TimeWindow, Timestamp};

use super::{Actor, Intake, IntakeError, refused};
use crate::mint::mint;

impl Intake {
    /// What a backfill would do.
    pub async fn plan_backfill(
        &self,
        key: &JobKey,
        range: TimeWindow,
        max: Option<u64>,
    ) -> Result<BackfillPlan, IntakeError> {
        let row = self.inner.store.job(key).await?.filter(|row| !row.is_deleted);
        let row = row.ok_or_else(|| IntakeError::NoSuchJob { key: key.clone() })?;
        check(&row)?;
        edit::plan_backfill(&row.job, &row.state, range, max)
            .map_err(|refusal| IntakeError::NoBackfill { key: key.clone(), refusal })
    }

    /// Requests a run for a past occurrence.
    pub async fn backfill_one(
        &self,
        actor: &Actor,
        key: &JobKey,
        due_at: Timestamp,
    ) -> Result<ExtraId, IntakeError> {
        let id = ExtraId(mint(self.inner.clock.now()));
        let detail = format!("for {due_at}");
        let changed = self.change(actor, "backfill", &detail, key, |row, _, now| {
            edit::trigger(row, Extra::backfill(id, due_at, now)).map_err(|it| refused(key, it))
        });
        changed.await.map(|_| id)
    }
}

/// A job that starts nothing is not backfilled either.
fn check(row: &JobRow) -> Result<(), IntakeError> {
    if !row.job.enabled {
        return Err(refused(&row.job.key, Refusal::Disabled));
    }
    if row.state.pause.is_some() {
        return Err(refused(&row.job.key, Refusal::Paused));
    }
    Ok(())
}
