//! Runs by how they ended: what went wrong lately, whether it has recovered, and how many ended when.
//!
//! Lists are read along an index. Where no index leads to what is wanted, a bounded number of runs is looked through, and the
//! page says how far that reached.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use evenbeat_core::ids::{JobKey, Pool, RunId};
use evenbeat_core::run::Outcome;
use evenbeat_core::store::{JobRow, RunFilter, RunPhase, RunRow};
use evenbeat_core::time::{Duration, Timestamp};

use super::model::{JobView, RunView, SessionNames};
use super::{ViewError, jobs};
use crate::app::App;
use crate::store::query::{EndedCount, EndedWindow, RunQuery};

/// How many runs are looked through for one page, and in what portions.
const N_LOOKED_MAX: usize = 2_000;
const N_PORTION: usize = 500;

/// How many ended runs are counted for one strip.
const N_COUNTED_MAX: usize = 50_000;

/// Parts of a strip.
pub(crate) const N_PARTS: u64 = 48;

/// Windows of a strip. The longest that can be counted is taken.
const WINDOWS: [Duration; 6] = [
    Duration::from_hours(24),
    Duration::from_hours(6),
    Duration::from_hours(1),
    Duration::from_mins(10),
    Duration::from_mins(1),
    Duration::from_secs(10),
];

/// Which runs, by how they ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum RunTab {
    #[default]
    Bad,
    All,
    Running,
    Failed,
    TimedOut,
    Lost,
    Cancelled,
}

/// Outcomes that need someone's attention, unless the job has recovered.
const BAD: [Outcome; 5] =
    [Outcome::Failed, Outcome::TimedOut, Outcome::Blackout, Outcome::Lost, Outcome::Unknown];

/// Whether a run that ended like this ended badly.
pub(crate) fn is_bad(outcome: Outcome) -> bool {
    BAD.contains(&outcome)
}

impl RunTab {
    pub(crate) const ALL: [RunTab; 7] = [
        RunTab::Bad,
        RunTab::All,
        RunTab::Running,
        RunTab::Failed,
        RunTab::TimedOut,
        RunTab::Lost,
        RunTab::Cancelled,
    ];

    /// The word in an address.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            RunTab::Bad => "bad",
            RunTab::All => "all",
            RunTab::Running => "running",
            RunTab::Failed => "failed",
            RunTab::TimedOut => "timed_out",
            RunTab::Lost => "lost",
            RunTab::Cancelled => "cancelled",
        }
    }

    /// The outcomes of its runs; none if all, or if they have not ended.
    pub(crate) fn outcomes(self) -> &'static [Outcome] {
        match self {
            RunTab::All | RunTab::Running => &[],
            RunTab::Bad => &BAD,
            RunTab::Failed => &[Outcome::Failed],
            RunTab::TimedOut => &[Outcome::TimedOut],
            RunTab::Lost => &[Outcome::Lost],
            RunTab::Cancelled => &[Outcome::Cancelled],
        }
    }
}

/// Which runs to list.
#[derive(Clone, Debug, Default)]
pub(crate) struct BoardQuery {
    pub(crate) tab: RunTab,
    /// Of this job.
    pub(crate) key: Option<JobKey>,
    /// With this text in their job, their id or the reason of their end.
    pub(crate) text: Option<String>,
    /// Of jobs that use this pool.
    pub(crate) pool: Option<Pool>,
    /// That ended then or later.
    pub(crate) since: Option<Timestamp>,
    /// Before this one.
    pub(crate) before: Option<RunId>,
}

/// A page of runs.
#[derive(Debug, Default)]
pub(crate) struct RunBoard {
    pub(crate) rows: Vec<BoardRow>,
    /// The next page is before this run.
    pub(crate) next: Option<RunId>,
    /// If not all runs could be looked through: how many were, and since when those ended.
    pub(crate) looked: Option<(usize, Timestamp)>,
}

/// A run of the list.
#[derive(Debug)]
pub(crate) struct BoardRow {
    pub(crate) view: RunView,
    /// What became of the job after a run that did not end well.
    pub(crate) since_then: Option<SinceThen>,
}

/// What became of a job after a bad run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SinceThen {
    /// A later run was good.
    Good(Timestamp),
    /// Later runs ended, the last of them like this.
    Ended(Outcome),
    /// Another run is open.
    Running,
    /// The same occurrence is tried again.
    Retry(Timestamp),
    /// The next run serves another occurrence.
    Next(Timestamp),
    /// It is paused.
    Paused,
    /// The job is gone.
    Removed,
    /// Nothing is planned.
    Nothing,
}

/// A page of runs, the latest first.
pub(crate) async fn board(app: &App, query: &BoardQuery, limit: usize) -> Result<RunBoard, ViewError> {
    let mut found = Looked::default();
    let portion = if query.is_straight() { limit } else { N_PORTION };
    let mut before = query.before;
    loop {
        let (rows, next) = match query.tab {
            RunTab::Running => open_runs(app, query, before, portion).await?,
            _ => ended_runs(app, query, before, portion).await?,
        };
        found.n_seen += rows.len();
        if let Some(last) = rows.last() {
            found.last = Some((last.run, at_of(last)));
        }
        let pools = pools_of(app, query, &rows).await?;
        for row in rows {
            if found.rows.len() == limit {
                // There is at least one more to look at.
                found.next = found.rows.last().map(|row| row.run);
                break;
            }
            if query.has(&row, pools.get(&row.key)) {
                found.rows.push(row);
            }
        }
        before = next;
        if found.next.is_some() {
            break;
        }
        match next {
            None => break,
            Some(_) if found.rows.len() == limit => {
                found.next = found.rows.last().map(|row| row.run);
                break;
            }
            Some(run) if N_LOOKED_MAX <= found.n_seen => {
                found.next = Some(run);
                found.is_cut = true;
                break;
            }
            Some(_) => {}
        }
    }
    found.board(app).await
}

/// What was found so far.
#[derive(Debug, Default)]
struct Looked {
    rows: Vec<RunRow>,
    next: Option<RunId>,
    n_seen: usize,
    last: Option<(RunId, Timestamp)>,
    is_cut: bool,
}

impl Looked {
    async fn board(self, app: &App) -> Result<RunBoard, ViewError> {
        let names = SessionNames::of(&app.store.sessions().await?);
        let now = app.intake.now();
        let since_then = SinceThens::of(app, &self.rows, now).await?;
        let rows = self.rows.iter().map(|row| BoardRow {
            view: RunView::of(row, &names).seen_at(now),
            since_then: since_then.after(row),
        });
        let looked = self.last.filter(|_| self.is_cut).map(|(_, at)| (self.n_seen, at));
        Ok(RunBoard { rows: rows.collect(), next: self.next, looked })
    }
}

fn at_of(row: &RunRow) -> Timestamp {
    row.ended.map_or(row.claimed_at, |it| it.ended_at)
}

async fn open_runs(
    app: &App,
    query: &BoardQuery,
    before: Option<RunId>,
    most: usize,
) -> Result<(Vec<RunRow>, Option<RunId>), ViewError> {
    let filter = RunFilter { key: query.key.clone(), is_open: true };
    // One more than wanted tells whether there are more.
    let mut rows = app.store.runs(filter, before, most + 1).await?;
    let is_more = most < rows.len();
    rows.truncate(most);
    let next = rows.last().filter(|_| is_more).map(|row| row.run);
    Ok((rows, next))
}

/// Ended runs, along the index of each outcome.
async fn ended_runs(
    app: &App,
    query: &BoardQuery,
    before: Option<RunId>,
    most: usize,
) -> Result<(Vec<RunRow>, Option<RunId>), ViewError> {
    let of = |outcome: Option<Outcome>| RunQuery {
        key: query.key.clone(),
        outcome,
        since: query.since,
        until: None,
    };
    let outcomes = query.tab.outcomes();
    // Within one job, its runs are walked and judged one by one.
    if outcomes.is_empty() || query.key.is_some() {
        let page = app.store.list_runs(of(None), before, most).await?;
        return Ok((page.rows, page.next));
    }
    let mut pages = Vec::new();
    for outcome in outcomes {
        pages.push(app.store.list_runs(of(Some(*outcome)), before, most).await?);
    }
    let is_more = pages.iter().any(|page| page.next.is_some());
    let mut rows: Vec<RunRow> = pages.into_iter().flat_map(|page| page.rows).collect();
    rows.sort_by_key(|row| Reverse((at_of(row), row.run)));
    let is_more = is_more || most < rows.len();
    rows.truncate(most);
    let next = rows.last().filter(|_| is_more).map(|row| row.run);
    Ok((rows, next))
}

async fn pools_of(
    app: &App,
    query: &BoardQuery,
    rows: &[RunRow],
) -> Result<BTreeMap<JobKey, Pool>, ViewError> {
    if query.pool.is_none() {
        return Ok(BTreeMap::new());
    }
    let jobs = app.store.jobs_of(keys_of(rows)).await?;
    Ok(jobs.into_iter().map(|row| (row.job.key.clone(), row.job.place.pool.clone())).collect())
}

fn keys_of<'a>(rows: impl IntoIterator<Item = &'a RunRow>) -> std::sync::Arc<[JobKey]> {
    let keys: BTreeSet<&JobKey> = rows.into_iter().map(|row| &row.key).collect();
    keys.into_iter().cloned().collect()
}

impl BoardQuery {
    /// Whether an index leads to nothing but what is wanted.
    fn is_straight(&self) -> bool {
        let is_by_index = self.key.is_none() || matches!(self.tab, RunTab::All | RunTab::Running);
        self.text.is_none() && self.pool.is_none() && is_by_index
    }

    fn has(&self, row: &RunRow, pool: Option<&Pool>) -> bool {
        let outcomes = self.tab.outcomes();
        let is_of_tab = match row.phase {
            RunPhase::Ended(outcome) => outcomes.is_empty() || outcomes.contains(&outcome),
            _ => self.tab == RunTab::Running,
        };
        is_of_tab
            && self.pool.as_ref().is_none_or(|wanted| Some(wanted) == pool)
            && self.text.as_ref().is_none_or(|text| has_text(row, &text.to_lowercase()))
    }
}

fn has_text(row: &RunRow, text: &str) -> bool {
    if row.key.as_str().to_lowercase().contains(text) || row.run.to_string().contains(text) {
        return true;
    }
    let view = RunView::of(row, &SessionNames::default());
    view.sentence.is_some_and(|sentence| sentence.to_lowercase().contains(text))
}

/// How the jobs of bad runs stand now.
struct SinceThens(BTreeMap<JobKey, (JobRow, JobView)>);

impl SinceThens {
    async fn of(app: &App, rows: &[RunRow], now: Timestamp) -> Result<SinceThens, ViewError> {
        let is_ended_badly = |row: &&RunRow| matches!(row.phase, RunPhase::Ended(it) if is_bad(it));
        let keys = keys_of(rows.iter().filter(is_ended_badly));
        if keys.is_empty() {
            return Ok(SinceThens(BTreeMap::new()));
        }
        let mut jobs = app.store.jobs_of(keys).await?;
        jobs.retain(|row| !row.is_deleted);
        let views = jobs::views(app, &jobs, now).await;
        let jobs = jobs.into_iter().zip(views);
        Ok(SinceThens(jobs.map(|(row, view)| (row.job.key.clone(), (row, view))).collect()))
    }

    fn after(&self, run: &RunRow) -> Option<SinceThen> {
        let RunPhase::Ended(outcome) = run.phase else { return None };
        let ended_at = run.ended?.ended_at;
        if !is_bad(outcome) {
            return None;
        }
        let Some((row, view)) = self.0.get(&run.key) else { return Some(SinceThen::Removed) };
        Some(since_then(ended_at, run, row, view.planned_start.map(|it| it.0)))
    }
}

fn since_then(ended_at: Timestamp, run: &RunRow, row: &JobRow, planned: Option<Timestamp>) -> SinceThen {
    let state = &row.state;
    if let Some(good_at) = state.last_good_end_at.filter(|at| ended_at < *at) {
        return SinceThen::Good(good_at);
    }
    if let Some(last) = state.last_outcome.filter(|_| state.last_end_at.is_some_and(|at| ended_at < at)) {
        return SinceThen::Ended(last);
    }
    if state.owner.is_some() {
        return SinceThen::Running;
    }
    if state.pause.is_some() {
        return SinceThen::Paused;
    }
    let is_retry = match run.due.asked() {
        Some(asked) => state.extras.iter().any(|extra| extra.id == asked),
        None => 0 < state.attempt && state.next_run_at == Some(run.due.due_at),
    };
    match planned {
        Some(at) if is_retry => SinceThen::Retry(at),
        Some(at) => SinceThen::Next(at),
        None => SinceThen::Nothing,
    }
}

/// How many runs ended when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EndedStrip {
    /// Where it begins.
    pub(crate) since: Timestamp,
    /// How long it is. Less than a day if more runs ended in a day than can be counted at once.
    pub(crate) window: Duration,
    /// Good and bad ends of each part.
    pub(crate) parts: Vec<(u64, u64)>,
    /// All that ended.
    pub(crate) n_ended: u64,
    by_outcome: BTreeMap<&'static str, u64>,
}

impl EndedStrip {
    /// How many ended like this.
    pub(crate) fn n(&self, outcome: Outcome) -> u64 {
        self.by_outcome.get(outcome.as_str()).copied().unwrap_or(0)
    }

    /// How many ended badly.
    pub(crate) fn n_bad(&self) -> u64 {
        BAD.into_iter().map(|outcome| self.n(outcome)).sum()
    }

    fn of(window: &EndedWindow, counts: &[EndedCount]) -> EndedStrip {
        let n_parts = usize::try_from(N_PARTS).unwrap_or(0);
        let mut strip = EndedStrip {
            since: window.since,
            window: window.until - window.since,
            parts: vec![(0, 0); n_parts],
            n_ended: 0,
            by_outcome: BTreeMap::new(),
        };
        for count in counts {
            let idx = usize::try_from(count.part).unwrap_or(n_parts).min(n_parts.saturating_sub(1));
            let Some((good, bad)) = strip.parts.get_mut(idx) else { continue };
            match count.outcome {
                None => {
                    strip.n_ended += count.n;
                    *good += count.n;
                }
                Some(outcome) => {
                    *strip.by_outcome.entry(outcome.as_str()).or_default() += count.n;
                    *good = good.saturating_sub(count.n);
                    *bad += if is_bad(outcome) { count.n } else { 0 };
                }
            }
        }
        strip
    }
}

/// The ends of the last day, or of as much of it as can be counted.
pub(crate) async fn strip(app: &App, now: Timestamp) -> Result<EndedStrip, ViewError> {
    let longest = WINDOWS.first().copied().unwrap_or(Duration::from_hours(24));
    let horizon = app.store.ended_horizon(now - longest, N_COUNTED_MAX).await?;
    let is_counted = |length: &&Duration| horizon.is_none_or(|at| at < now - **length);
    let length = WINDOWS.iter().find(is_counted).or(WINDOWS.last()).copied().unwrap_or(longest);
    // What ended in this very millisecond belongs to it.
    let until = now + Duration::from_millis(1);
    let part = Duration::from_millis(length.as_millis() / i64::try_from(N_PARTS).unwrap_or(1));
    let window = EndedWindow { since: until - length, until, part };
    Ok(EndedStrip::of(&window, &app.store.count_ended(window).await?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_runs_are_all_but_the_others_and_who_was_cancelled_is_neither() {
        let at = Timestamp::from_second;
        let window = EndedWindow { since: at(0), until: at(480), part: Duration::from_secs(10) };
        let count = |part, outcome, n| EndedCount { part, outcome, n };
        let strip = EndedStrip::of(
            &window,
            &[
                count(0, None, 10),
                count(47, None, 4),
                count(0, Some(Outcome::Failed), 2),
                count(0, Some(Outcome::Cancelled), 1),
                count(47, Some(Outcome::Lost), 4),
            ],
        );
        assert_eq!((strip.parts[0], strip.parts[1], strip.parts[47]), ((7, 2), (0, 0), (0, 4)));
        assert_eq!((strip.n_ended, strip.n_bad(), strip.n(Outcome::Cancelled)), (14, 6, 1));
        assert_eq!(strip.parts.len(), 48);
    }
}
