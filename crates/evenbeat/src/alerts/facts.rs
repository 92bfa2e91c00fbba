//! Collects details about a job for an alert. The alert is sent even if none can be found.

use std::collections::BTreeMap;

use evenbeat_core::alert::{Announced, AnnouncedItem, AnnouncementKind, JobFacts, LISTED_MAX};
use evenbeat_core::condition::{Assessment, assess};
use evenbeat_core::ids::JobKey;
use evenbeat_core::occurrence::RecordKind;
use evenbeat_core::roster::Jobs as _;
use evenbeat_core::run::Outcome;
use evenbeat_core::store::{JobRow, RunFilter, RunPhase, RunRow, StoreDown};
use evenbeat_core::time::Timestamp;
use evenbeat_core::why;

use super::AlertParts;
use crate::store::any::AnyStore;

/// Number of latest runs among which the one that ended last is looked for.
const N_RUNS: usize = 4;

/// Most records of a job that are looked through for what was missed.
const N_RECORDS: usize = 200;

/// Why the last run of a job did not succeed, in a sentence; none if it did, or if its record is gone.
pub(crate) async fn last_run(store: &AnyStore, row: &JobRow) -> Result<Option<String>, StoreDown> {
    if row.state.last_outcome.is_none_or(|it| it == Outcome::Succeeded) {
        return Ok(None);
    }
    let filter = RunFilter { key: Some(row.job.key.clone()), is_open: false };
    Ok(last_run_among(row, &store.runs(filter, None, N_RUNS).await?))
}

/// The same, where the latest runs of the job are known.
pub(crate) fn last_run_among(row: &JobRow, runs: &[RunRow]) -> Option<String> {
    let outcome = row.state.last_outcome.filter(|it| *it != Outcome::Succeeded)?;
    let run = runs.iter().take(N_RUNS).find(|run| run.phase == RunPhase::Ended(outcome))?;
    let exit_code = run.ended.and_then(|it| it.exit_code);
    why::sentence("The last run", outcome, exit_code, run.report.as_deref())
}

/// What is known of the jobs that a message lists.
pub(super) async fn of(parts: &AlertParts, announced: &Announced) -> BTreeMap<JobKey, JobFacts> {
    let items: Vec<&AnnouncedItem> = announced.items.iter().take(LISTED_MAX).collect();
    let keys: Vec<JobKey> = items.iter().filter_map(|it| it.incident.subject.job().cloned()).collect();
    let assessments = assessments(parts, keys.clone()).await;
    let rows = parts.store.jobs_of(keys.into()).await.unwrap_or_default();
    let mut facts = BTreeMap::new();
    for item in items {
        let Some(key) = item.incident.subject.job() else { continue };
        let row = rows.iter().find(|it| it.job.key == *key);
        let mut known = row.map(of_row).unwrap_or_default();
        if let Some(assessment) = assessments.get(key) {
            known.sentence = Some(assessment.sentence());
            known.deadline = assessment.deadline;
            known.next_start = assessment.planned_start;
            known.running_since = assessment.running_since;
        }
        if item.kind == AnnouncementKind::Over {
            known.n_missed = n_missed(parts, key, item.incident.opened_at).await;
        } else if let Some(row) = row {
            known.last_run = last_run(&parts.store, row).await.ok().flatten();
        }
        facts.insert(key.clone(), known);
    }
    facts
}

fn of_row(row: &JobRow) -> JobFacts {
    JobFacts {
        failure_count: row.state.failure_count,
        last_good_at: row.state.last_good_end_at,
        contact: row.job.contact.clone(),
        description: row.job.description.clone(),
        ..JobFacts::default()
    }
}

async fn assessments(parts: &AlertParts, keys: Vec<JobKey>) -> BTreeMap<JobKey, Assessment> {
    let assessed = parts.node.ask(move |engine, now| {
        let (jobs, now) = (engine.jobs()?, engine.time(now));
        let of = |key: JobKey| {
            let job = jobs.job(&key)?;
            let outlook = jobs.outlook(job.terms);
            Some((key.clone(), assess(&key, job.terms, job.state, now, &outlook)))
        };
        Some(keys.into_iter().filter_map(of).collect())
    });
    assessed.await.flatten().unwrap_or_default()
}

/// How many occurrences got no run since an instant.
async fn n_missed(parts: &AlertParts, key: &JobKey, since: Timestamp) -> u64 {
    let records = parts.store.records(key, None, N_RECORDS).await.unwrap_or_default();
    let is_missed = |what: RecordKind| matches!(what, RecordKind::MissedLate | RecordKind::MissedBackoff);
    let missed = records.iter().filter(|it| is_missed(it.record.what) && since <= it.recorded_at);
    missed.map(|it| it.record.range.count).sum()
}
