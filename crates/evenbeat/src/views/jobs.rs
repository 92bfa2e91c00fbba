//! How jobs stand: for lists and counts by condition and status, which no store can answer because they turn by the
//! clock.
//!
//! The node keeps count as it goes; it hears of a change a moment after the store has it. What it cannot tell is asked
//! of the rows themselves, page by page.

use std::collections::BTreeMap;
use std::sync::Arc;

use evenbeat_core::condition::Condition;
use evenbeat_core::ids::{JobKey, RunId};
use evenbeat_core::job::{Job, Status};
use evenbeat_core::roster::{Jobs as _, Roster, Which};
use evenbeat_core::run::Outcome;
use evenbeat_core::store::{JobRow, OwnerPing, RunFilter, RunPhase, RunRow};
use evenbeat_core::time::Timestamp;
use evenbeat_core::urgency::Outlook;
use evenbeat_core::why;

use super::ViewError;
use super::model::{ConditionCounts, JobCounts, JobView, StatusCounts};
use crate::app::App;
use crate::store::query::{JobFilter, PAGE_MAX};

/// Number of store pages read for one page of ours. After that it ends with what was found, and says how far it came.
const N_PAGES_MAX: usize = 20;

/// Number of keys per question to the node.
const N_KEYS_MAX: usize = 500;

/// Which jobs: what the store can tell, and what it cannot.
#[derive(Clone, Debug, Default)]
pub(crate) struct JobSelection {
    pub(crate) filter: JobFilter,
    pub(crate) condition: Option<Condition>,
    pub(crate) status: Option<Status>,
}

/// Some jobs by key, and after which the list goes on.
#[derive(Debug, Default)]
pub(crate) struct JobListing {
    pub(crate) rows: Vec<JobRow>,
    pub(crate) next: Option<JobKey>,
}

/// Jobs after a key, at most `most`. The page may be short, even empty, before the end of the list.
pub(crate) async fn list(
    app: &App,
    wanted: &JobSelection,
    after: Option<JobKey>,
    most: usize,
) -> Result<JobListing, ViewError> {
    let mut found = JobListing { rows: Vec::new(), next: after };
    for _ in 0..N_PAGES_MAX {
        let after = found.next.take();
        let page = match wanted.condition {
            Some(condition) => of_node(app, condition, wanted, after, most).await?,
            None => of_store(app, wanted, after, most - found.rows.len()).await?,
        };
        if found.take(page, wanted, most) {
            break;
        }
    }
    Ok(found)
}

impl JobListing {
    /// Takes what is wanted of a page. Whether that was enough.
    fn take(&mut self, page: JobListing, wanted: &JobSelection, most: usize) -> bool {
        for row in page.rows {
            if !wanted.is(&row) {
                continue;
            }
            if self.rows.len() == most {
                // There is at least one more.
                self.next = self.rows.last().map(|row| row.job.key.clone());
                return true;
            }
            self.rows.push(row);
        }
        self.next = page.next;
        // Whether there is more of what is wanted is not known before the next page was looked at, unless the store
        // itself looked for it.
        self.next.is_none() || wanted.is_for_store() && self.rows.len() == most
    }
}

async fn of_store(
    app: &App,
    wanted: &JobSelection,
    after: Option<JobKey>,
    most: usize,
) -> Result<JobListing, ViewError> {
    let most = if wanted.is_for_store() { most } else { PAGE_MAX };
    let page = app.store.list_jobs(wanted.filter.clone(), after, most).await?;
    Ok(JobListing { rows: page.rows, next: page.next })
}

async fn of_node(
    app: &App,
    condition: Condition,
    wanted: &JobSelection,
    after: Option<JobKey>,
    most: usize,
) -> Result<JobListing, ViewError> {
    let is_plain = wanted.status.is_none() && wanted.filter == JobFilter::default();
    // One more than wanted tells whether there are more.
    let n_keys = if is_plain { (most + 1).min(N_KEYS_MAX) } else { N_KEYS_MAX };
    let keys = ask(app, move |roster| keys_of(roster, condition, after.as_ref(), n_keys)).await?;
    let next = keys.last().filter(|_| keys.len() == n_keys).cloned();
    let mut rows = app.store.jobs_of(keys.into()).await?;
    rows.sort_by(|one, other| one.job.key.cmp(&other.job.key));
    Ok(JobListing { rows, next })
}

/// How many jobs there are, and the first of those that stand badly, the worst first.
pub(crate) async fn count(app: &App, n_worst: usize) -> Result<(JobCounts, Vec<JobRow>), ViewError> {
    let (counts, keys) = ask(app, move |roster| {
        let mut keys = keys_of(roster, Condition::Error, None, n_worst);
        keys.extend(keys_of(roster, Condition::Warning, None, n_worst - keys.len()));
        (counts_of(roster), keys)
    })
    .await?;
    let mut worst = Vec::with_capacity(keys.len());
    let mut rows = app.store.jobs_of(keys.clone().into()).await?;
    for key in keys {
        // A job that was removed this moment is left out.
        let idx = rows.iter().position(|row| row.job.key == key && !row.is_deleted);
        worst.extend(idx.map(|idx| rows.swap_remove(idx)));
    }
    Ok((counts, worst))
}

async fn ask<T: Send + 'static>(
    app: &App,
    question: impl FnOnce(&Roster) -> T + Send + 'static,
) -> Result<T, ViewError> {
    app.node.ask_roster(question).await.ok_or(ViewError::NodeGone)
}

/// Jobs as they stand, judged by what the node knows of the world around them: as the roster judges them.
pub(crate) async fn views(app: &App, rows: &[JobRow], now: Timestamp) -> Vec<JobView> {
    let outlooks = outlooks(app, rows).await;
    let pings = owner_pings(app, rows).await;
    let view = |(row, outlook): (&JobRow, &Outlook)| {
        let owner = row.state.owner.as_ref();
        JobView::of(row, now, outlook).with_ping(owner.and_then(|owner| pings.get(&owner.tag)))
    };
    rows.iter().zip(&outlooks).map(view).collect()
}

/// The same for one of them.
pub(crate) async fn view(app: &App, row: &JobRow, now: Timestamp) -> JobView {
    let rows = std::slice::from_ref(row);
    let outlook = outlooks(app, rows).await.first().copied().unwrap_or_default();
    let pings = owner_pings(app, rows).await;
    JobView::of(row, now, &outlook).with_ping(pings.values().next())
}

async fn owner_pings(app: &App, rows: &[JobRow]) -> BTreeMap<RunId, OwnerPing> {
    let owners = rows.iter().filter_map(|row| row.state.owner.as_ref());
    app.owner_pings(owners.map(|owner| owner.tag).collect()).await
}

/// Number of latest runs among which the one that ended last is looked for.
const N_RUNS: usize = 4;

/// Why the last run of a job did not succeed, in a sentence; none if it did, or if its record is gone.
pub(crate) async fn last_run(app: &App, row: &JobRow) -> Result<Option<String>, ViewError> {
    let Some(outcome) = row.state.last_outcome.filter(|it| *it != Outcome::Succeeded) else {
        return Ok(None);
    };
    let filter = RunFilter { key: Some(row.job.key.clone()), is_open: false };
    let runs = app.store.runs(filter, None, N_RUNS).await?;
    let is_it = |run: &&RunRow| run.phase == RunPhase::Ended(outcome);
    Ok(runs.iter().find(is_it).and_then(|run| {
        let exit_code = run.ended.and_then(|it| it.exit_code);
        why::sentence("The last run", outcome, exit_code, run.report.as_deref())
    }))
}

/// What a node that has left, or has not read the fleet yet, does not know is not held against any job.
async fn outlooks(app: &App, rows: &[JobRow]) -> Vec<Outlook> {
    let jobs: Vec<Arc<Job>> = rows.iter().map(|row| Arc::clone(&row.job)).collect();
    let n_jobs = jobs.len();
    let known = app.node.ask(move |engine, _| {
        let known = engine.jobs()?;
        Some(jobs.iter().map(|job| known.outlook(job)).collect())
    });
    known.await.flatten().unwrap_or_else(|| vec![Outlook::default(); n_jobs])
}

fn keys_of(roster: &Roster, condition: Condition, after: Option<&JobKey>, most: usize) -> Vec<JobKey> {
    roster.page(Which::Condition(condition), after, most).into_iter().cloned().collect()
}

fn counts_of(roster: &Roster) -> JobCounts {
    let counts = roster.counts();
    JobCounts {
        total: counts.n_jobs(),
        by_condition: ConditionCounts {
            ok: counts.in_condition(Condition::Ok),
            warning: counts.in_condition(Condition::Warning),
            error: counts.in_condition(Condition::Error),
        },
        by_status: StatusCounts {
            pending: counts.in_status(Status::Pending),
            scheduled: counts.in_status(Status::Scheduled),
            running: counts.in_status(Status::Running),
            paused: counts.in_status(Status::Paused),
            disabled: counts.in_status(Status::Disabled),
            done: counts.in_status(Status::Done),
        },
    }
}

impl JobSelection {
    /// Whether the store alone finds what is wanted.
    fn is_for_store(&self) -> bool {
        self.condition.is_none() && self.status.is_none()
    }

    fn is(&self, row: &JobRow) -> bool {
        let fits = self.condition.is_none() || fits(&self.filter, row);
        fits && !row.is_deleted && self.status.is_none_or(|it| it == row.state.status(&row.job))
    }
}

/// What the store would say.
fn fits(filter: &JobFilter, row: &JobRow) -> bool {
    let JobFilter { key_prefix, key_text, labels, pool, site, tenant, is_paused, is_enabled, is_running } =
        filter;
    let (job, key) = (&*row.job, row.job.key.as_str());
    key_prefix.as_ref().is_none_or(|it| key.starts_with(it.as_str()))
        && key_text.as_ref().is_none_or(|it| key.to_lowercase().contains(&it.to_lowercase()))
        && labels.iter().all(|(name, value)| job.labels.get(name) == Some(value))
        && pool.as_ref().is_none_or(|it| *it == job.place.pool)
        && site.as_ref().is_none_or(|it| job.site.as_ref() == Some(it))
        && tenant.as_ref().is_none_or(|it| job.tenant.as_ref() == Some(it))
        && is_paused.is_none_or(|it| it == row.state.pause.is_some())
        && is_enabled.is_none_or(|it| it == job.enabled)
        && is_running.is_none_or(|it| it == (0 < row.n_open))
}
