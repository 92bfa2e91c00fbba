//! What a definition would do, worked out on a copy of the ledger: nothing is written, and no one else sees it.

use std::sync::Arc;

use evenbeat_core::distribution::Distribution;
use evenbeat_core::edit;
use evenbeat_core::job::{Job, JobState};
use evenbeat_core::store::JobRow;
use evenbeat_core::time::Timestamp;
use evenbeat_core::upcoming::{self, UpcomingRun};
use evenbeat_core::urgency::Outlook;

use super::{Intake, IntakeError, refused};

/// What a definition would do if it were written now.
#[derive(Debug)]
pub struct DefinitionPreview {
    /// As of when.
    pub at: Timestamp,
    /// The next starts.
    pub starts: Vec<UpcomingRun>,
    /// Whether the job gets a new place on the time line.
    pub is_placed: bool,
    /// Whether it would be paused, so that nothing starts.
    pub is_paused: bool,
    /// How the starts of the next day are spread now; none if that is not kept at this moment.
    pub before: Option<Distribution>,
    /// How they would be.
    pub after: Option<Distribution>,
}

impl Intake {
    /// What a definition would do. Refused where writing it would be.
    pub async fn preview_put(
        &self,
        job: Arc<Job>,
        seen: Option<&JobRow>,
        n_starts: usize,
    ) -> Result<DefinitionPreview, IntakeError> {
        self.inner.allowed.check(&job)?;
        let key = job.key.clone();
        let seen = seen.filter(|row| !row.is_deleted);
        let needs_place = seen.is_none_or(|row| edit::needs_placement(row, &job));
        let open = if needs_place && seen.is_some() { self.open_of(&key).await? } else { Vec::new() };
        let now = self.now();
        // Copies share what they do not change, so this takes no longer than placing a few jobs.
        let mut ledger = self.inner.fleet.ledger().clone();
        let before = ledger.day(now);
        ledger.remove(&key);
        let placement = if needs_place && job.enabled {
            let state = seen.map_or_else(|| JobState::new(now), |row| row.state.clone());
            ledger.place(&self.inner.allowed.placed_as(&job), &state, now).map(|(placement, _)| placement)
        } else {
            None
        };
        let put = match seen {
            None => edit::create(job, None, placement, now),
            Some(row) => edit::edit(row, &open, job, placement, now),
        };
        let put = put.map_err(|refusal| refused(&key, refusal))?;
        ledger.put(&key, &put.job, &put.state);
        let outlook = Outlook::default();
        let starts = upcoming::of_job(&key, &put.job, &put.state, &outlook, now, None, n_starts);
        let after = ledger.day(now);
        let is_paused = put.state.pause.is_some();
        Ok(DefinitionPreview { at: now, starts, is_placed: needs_place, is_paused, before, after })
    }
}
