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
use evenbeat_core::store::{JobRow, OwnerPing};
use evenbeat_core::time::Timestamp;
use evenbeat_core::urgency::Outlook;

use super::ViewError;
use super::model::{ConditionCounts, JobCounts, JobView, StatusCounts};
use crate::alerts;
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
        let n_left = most - found.rows.len();
        let page = match (wanted.condition, wanted.text()) {
            (Some(condition), _) => of_node(app, condition, wanted, after, most).await?,
            (None, Some(text)) => of_keys(app, text, wanted, after, n_left).await?,
            (None, None) => of_store(app, wanted, after, n_left).await?,
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

/// Jobs whose key has a text, found among the keys in memory.
async fn of_keys(
    app: &App,
    text: &str,
    wanted: &JobSelection,
    after: Option<JobKey>,
    most: usize,
) -> Result<JobListing, ViewError> {
    let prefix = wanted.filter.key_prefix.clone();
    // One more than wanted tells whether there are more.
    let n_keys = if wanted.is_for_store() { most + 1 } else { N_KEYS_MAX };
    let keys = app.fleet.find_keys(text.to_owned(), prefix, after.clone(), n_keys).await;
    let Some(mut keys) = keys else { return of_store(app, wanted, after, most).await };
    let is_more = keys.len() == n_keys;
    keys.truncate(if wanted.is_for_store() { most } else { n_keys });
    let next = keys.last().filter(|_| is_more).cloned();
    let mut rows = app.store.jobs_of(keys.into()).await?;
    rows.sort_by(|one, other| one.job.key.cmp(&other.job.key));
    Ok(JobListing { rows, next })
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
    let ends = pause_ends(app, rows).await;
    let view = |(row, outlook): (&JobRow, &Outlook)| {
        let owner = row.state.owner.as_ref();
        let view = JobView::of(row, now, outlook).with_ping(owner.and_then(|owner| pings.get(&owner.tag)));
        view.paused_until(ends.get(&row.job.key).copied())
    };
    rows.iter().zip(&outlooks).map(view).collect()
}

/// The same for one of them.
pub(crate) async fn view(app: &App, row: &JobRow, now: Timestamp) -> JobView {
    let rows = std::slice::from_ref(row);
    let outlook = outlooks(app, rows).await.first().copied().unwrap_or_default();
    let pings = owner_pings(app, rows).await;
    let ends = pause_ends(app, rows).await;
    let view = JobView::of(row, now, &outlook).with_ping(pings.values().next());
    view.paused_until(ends.get(&row.job.key).copied())
}

/// When the pauses of jobs end. What the store cannot tell now is left out.
async fn pause_ends(app: &App, rows: &[JobRow]) -> BTreeMap<JobKey, Timestamp> {
    let paused = rows.iter().filter(|row| row.state.pause.is_some());
    let paused: Vec<JobKey> = paused.map(|row| row.job.key.clone()).collect();
    if paused.is_empty() {
        return BTreeMap::new();
    }
    app.store.pause_ends(paused).await.unwrap_or_default()
}

async fn owner_pings(app: &App, rows: &[JobRow]) -> BTreeMap<RunId, OwnerPing> {
    let owners = rows.iter().filter_map(|row| row.state.owner.as_ref());
    app.owner_pings(owners.map(|owner| owner.tag).collect()).await
}

/// Why the last run of a job did not succeed, in a sentence; none if it did, or if its record is gone.
pub(crate) async fn last_run(app: &App, row: &JobRow) -> Result<Option<String>, ViewError> {
    Ok(alerts::last_run(&app.store, row).await?)
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

/// How many jobs match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct JobTotal {
    pub(crate) n: u64,
    /// Whether exactly this many match, or more.
    pub(crate) is_exact: bool,
}

/// Counting by looking at each job stops here.
const N_COUNTED_MAX: u64 = 10_000;

/// How many jobs match, as far as that is quickly known: from the counts that the node keeps, from an index of the store,
/// or by looking at each job up to a limit.
pub(crate) async fn total(app: &App, wanted: &JobSelection) -> Result<JobTotal, ViewError> {
    if let Some(n) = counted(app, wanted).await? {
        return Ok(JobTotal { n: n.into(), is_exact: true });
    }
    if wanted.is_for_store() {
        let count = app.store.count_jobs(wanted.filter.clone()).await?;
        return Ok(JobTotal { n: count.n, is_exact: !count.is_more });
    }
    count_up_to(app, wanted, N_COUNTED_MAX).await
}

/// Counts jobs one by one, and stops when there are more than `most`.
pub(crate) async fn count_up_to(app: &App, wanted: &JobSelection, most: u64) -> Result<JobTotal, ViewError> {
    let (mut n, mut after) = (0, None);
    loop {
        let page = list(app, wanted, after, N_KEYS_MAX).await?;
        n += page.rows.len() as u64;
        after = page.next;
        if after.is_none() || most < n {
            return Ok(JobTotal { n: n.min(most), is_exact: after.is_none() && n <= most });
        }
    }
}

/// The count that the node keeps, if it keeps one for this selection.
async fn counted(app: &App, wanted: &JobSelection) -> Result<Option<u32>, ViewError> {
    let plain = JobSelection::new(JobFilter::default(), wanted.condition, wanted.status);
    if plain.filter != wanted.filter || wanted.condition.is_some() && wanted.status.is_some() {
        return Ok(None);
    }
    let (condition, status) = (wanted.condition, wanted.status);
    let count = ask(app, move |roster| {
        let counts = roster.counts();
        match (condition, status) {
            (Some(condition), _) => counts.in_condition(condition),
            (None, Some(status)) => counts.in_status(status),
            (None, None) => counts.n_jobs(),
        }
    });
    count.await.map(Some)
}

impl JobSelection {
    /// A selection. What the store can leave out by itself need not be judged.
    pub(crate) fn new(
        mut filter: JobFilter,
        condition: Option<Condition>,
        status: Option<Status>,
    ) -> JobSelection {
        match status {
            Some(Status::Running) => filter.is_running = filter.is_running.or(Some(true)),
            Some(Status::Disabled) => filter.is_enabled = filter.is_enabled.or(Some(false)),
            Some(Status::Paused) => filter.is_paused = filter.is_paused.or(Some(true)),
            Some(Status::Pending | Status::Scheduled | Status::Done) | None => {}
        }
        JobSelection { filter, condition, status }
    }

    /// Whether the store alone finds what is wanted.
    fn is_for_store(&self) -> bool {
        self.condition.is_none() && self.status.is_none()
    }

    /// The text of keys, where looking for it in memory is the quickest way: no index of the store leads to fewer jobs.
    fn text(&self) -> Option<&str> {
        let JobFilter {
            key_prefix: _,
            key_text,
            labels,
            pool: _,
            site,
            tenant,
            is_paused,
            is_enabled,
            is_running,
        } = &self.filter;
        let has_way = !labels.is_empty()
            || site.is_some()
            || tenant.is_some()
            || *is_paused == Some(true)
            || *is_running == Some(true)
            || *is_enabled == Some(false);
        key_text.as_deref().filter(|text| !has_way && !text.is_empty())
    }

    /// Whether the filter of the store matches a job.
    pub(crate) fn fits(&self, row: &JobRow) -> bool {
        fits(&self.filter, row)
    }

    fn is(&self, row: &JobRow) -> bool {
        // Only the store knows the whole filter.
        let is_filtered = self.condition.is_none() && self.text().is_none();
        let fits = is_filtered || fits(&self.filter, row);
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
