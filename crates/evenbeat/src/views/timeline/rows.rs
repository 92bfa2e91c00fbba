//! The jobs of open groups: what each ran, runs and will run.

use std::collections::{BTreeMap, BTreeSet};

use evenbeat_core::condition::Condition;
use evenbeat_core::ids::{JobKey, RunId};
use evenbeat_core::roster::Which;
use evenbeat_core::run::Outcome;
use evenbeat_core::store::JobRow;
use evenbeat_core::time::{Duration, TimeWindow, Timestamp};

use super::density::{Past, run_until};
use super::{TimelineBy, TimelineGroup, TimelineQuestion, Zoom};
use crate::app::App;
use crate::fleet::PartedWindow;
use crate::store::query::JobFilter;
use crate::store::run_times::RunTimes;
use crate::views::model::JobView;
use crate::views::{ViewError, jobs};

/// Groups that are open unless someone says otherwise.
const OPEN_MAX: usize = 3;
/// Groups that can be open at the same time.
const OPENED_MAX: usize = 8;
/// Jobs of an open group; of long windows fewer, because each has more to show.
const ROWS: usize = 10;
const ROWS_WIDE: usize = 6;
/// Jobs of a group of which all are shown.
const ROWS_ALL: usize = 100;
/// A group with more jobs is not sorted as a whole: the jobs that stand badly, run or start next are found otherwise.
const SORTED_MAX: usize = 300;
/// Planned starts of one job.
const PLANNED_MAX: usize = 100;
/// Blackouts of one job.
const BLACKOUTS_MAX: usize = 60;

/// Some jobs of a group.
#[derive(Debug, Default)]
pub(crate) struct GroupRows {
    pub(crate) rows: Vec<TimelineRow>,
    /// Jobs of the group that are not among them.
    pub(crate) n_others: u64,
    /// Whether the others can be shown here too.
    pub(crate) can_show_all: bool,
}

/// One job.
#[derive(Debug)]
pub(crate) struct TimelineRow {
    pub(crate) key: String,
    /// Its condition as a word; none while it is not tracked.
    pub(crate) condition: Option<String>,
    pub(crate) bars: Vec<Bar>,
    pub(crate) blackouts: Vec<TimeWindow>,
    /// Since when it could run and finds no room.
    pub(crate) waiting_since: Option<Timestamp>,
}

/// A run that was, is or will be.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Bar {
    pub(crate) from: Timestamp,
    pub(crate) to: Timestamp,
    pub(crate) kind: BarKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BarKind {
    /// It is over.
    Ended { run: RunId, outcome: Outcome },
    /// It goes on, and is expected to until the end of the bar.
    Running { run: RunId },
    /// It is planned; how long it takes is expected.
    Planned { is_held_up: bool },
    /// A number of planned runs, too close together to be drawn one by one.
    PlannedMany { n_runs: u64 },
}

/// Puts jobs into the groups that are open.
pub(super) async fn fill(
    app: &App,
    question: &TimelineQuestion,
    past: &Past,
    parts: PartedWindow,
    now: Timestamp,
    groups: &mut [TimelineGroup],
) -> Result<(), ViewError> {
    let is_open = |idx: usize, name: &str| match &question.open {
        None => idx < OPEN_MAX,
        Some(names) => names.iter().take(OPENED_MAX).any(|it| it == name),
    };
    let open: BTreeSet<usize> =
        (0..groups.len()).filter(|idx| groups.get(*idx).is_some_and(|it| is_open(*idx, &it.name))).collect();
    if open.is_empty() {
        return Ok(());
    }
    let mut runs: BTreeMap<&JobKey, Vec<&RunTimes>> = BTreeMap::new();
    for run in &past.runs {
        runs.entry(&run.key).or_default().push(run);
    }
    for idx in open {
        let Some(group) = groups.get_mut(idx) else { continue };
        let most = match question.zoom {
            _ if question.all_of.as_ref() == Some(&group.name) => ROWS_ALL,
            Zoom::Hour | Zoom::SixHours => ROWS,
            Zoom::Day | Zoom::Week => ROWS_WIDE,
        };
        let filter = filter_of(&question.by, &group.name);
        let rows = candidates(app, &filter, past, group.n_jobs, now).await?;
        let views = jobs::views(app, &rows, now).await;
        let mut ranked: Vec<(Rank, TimelineRow)> = rows
            .iter()
            .zip(&views)
            .map(|(row, view)| {
                let of_job = runs.get(&row.job.key).map_or(&[][..], Vec::as_slice);
                let shown = row_of(app, row, view, of_job, parts, now);
                (rank(view, &shown, now), shown)
            })
            .collect();
        ranked.sort_by(|one, other| one.0.cmp(&other.0));
        let n_jobs = group.n_jobs.max(ranked.len() as u64);
        ranked.truncate(most);
        let n_others = n_jobs - ranked.len() as u64;
        let rows = ranked.into_iter().map(|(_, row)| row).collect();
        group.rows = Some(GroupRows { rows, n_others, can_show_all: most < ROWS_ALL });
    }
    Ok(())
}

fn filter_of(by: &TimelineBy, name: &str) -> JobFilter {
    let mut filter = JobFilter::default();
    match by {
        TimelineBy::Pool => filter.pool = name.parse().ok(),
        TimelineBy::Site => filter.site = name.parse().ok(),
        TimelineBy::Label(label) => filter.labels.push((label.clone(), name.to_owned())),
    }
    filter
}

/// The jobs of a group that may belong into its first rows.
async fn candidates(
    app: &App,
    filter: &JobFilter,
    past: &Past,
    n_jobs: u64,
    now: Timestamp,
) -> Result<Vec<JobRow>, ViewError> {
    if n_jobs <= SORTED_MAX as u64 {
        return Ok(app.store.list_jobs(filter.clone(), None, SORTED_MAX).await?.rows);
    }
    let standing = app.node.ask_roster(|roster| -> Vec<JobKey> {
        let page =
            |condition| roster.page(Which::Condition(condition), None, SORTED_MAX).into_iter().cloned();
        page(Condition::Error).chain(page(Condition::Warning)).collect()
    });
    let mut keys = standing.await.ok_or(ViewError::NodeGone)?;
    keys.extend(past.open().map(|it| it.key.clone()).take(SORTED_MAX));
    let hour = TimeWindow::starting_at(now, Duration::from_mins(30));
    let next = app.fleet.upcoming(hour, None, SORTED_MAX, now).await?;
    keys.extend(next.starts.into_iter().map(|it| it.job));
    keys.sort_unstable();
    keys.dedup();
    let wanted = jobs::JobSelection { filter: filter.clone(), ..jobs::JobSelection::default() };
    let mut rows = app.store.jobs_of(keys.into()).await?;
    rows.retain(|row| !row.is_deleted && wanted.fits(row));
    if rows.len() < ROWS {
        // None of them stands badly, runs or starts soon: any will do.
        let known: BTreeSet<JobKey> = rows.iter().map(|row| row.job.key.clone()).collect();
        let more = app.store.list_jobs(filter.clone(), None, ROWS).await?.rows;
        rows.extend(more.into_iter().filter(|row| !known.contains(&row.job.key)));
    }
    Ok(rows)
}

fn row_of(
    app: &App,
    row: &JobRow,
    view: &JobView,
    runs: &[&RunTimes],
    parts: PartedWindow,
    now: Timestamp,
) -> TimelineRow {
    let window = parts.window();
    let mut bars: Vec<Bar> = runs
        .iter()
        .map(|run| Bar {
            from: run.started_at,
            to: run_until(run, now),
            kind: match run.end {
                Some((outcome, _)) => BarKind::Ended { run: run.run, outcome },
                None => BarKind::Running { run: run.run },
            },
        })
        .collect();
    let is_running = bars.iter().any(|bar| matches!(bar.kind, BarKind::Running { .. }));
    let due_at = view.next_run_at.map(|it| it.0).max(view.can_start_by.map(|it| it.0));
    let can_wait = !is_running && row.n_open == 0 && row.job.enabled && row.state.pause.is_none();
    let waiting_since = due_at.filter(|at| can_wait && *at < now);
    if now < window.end() {
        let ahead = TimeWindow::new(now.max(window.start()), window.end());
        let planned = app.fleet.starts_of(&row.job.key, ahead, now, PLANNED_MAX).unwrap_or_default();
        let length = planned.length;
        // What is due and waits starts when there is room for it, if anybody knows when.
        let waits = view.planned_start.map(|it| it.0).filter(|at| waiting_since.is_some() && now <= *at);
        let waits = waits.filter(|at| planned.starts.iter().all(|it| it.at != *at));
        let bar = |from, kind| Bar { from, to: from + length, kind };
        bars.extend(waits.map(|at| bar(at, BarKind::Planned { is_held_up: false })));
        match (planned.starts.first(), planned.last) {
            (Some(first), Some(last)) if PLANNED_MAX as u64 <= planned.n_starts => {
                let kind = BarKind::PlannedMany { n_runs: planned.n_starts };
                bars.push(Bar { from: first.at, to: last + length, kind });
            }
            _ => bars.extend(
                planned
                    .starts
                    .iter()
                    .map(|it| bar(it.at, BarKind::Planned { is_held_up: it.held_up_by.is_some() })),
            ),
        }
    }
    bars.retain(|bar| {
        bar.from < window.end() && window.start() < bar.to.max(bar.from + Duration::from_millis(1))
    });
    bars.sort_by_key(|bar| bar.from);
    let mut blackouts = row.job.blackouts.windows_in(&row.job.zone, window);
    blackouts.truncate(BLACKOUTS_MAX);
    TimelineRow {
        key: view.key.clone(),
        condition: view.tracked.then(|| view.condition.to_string()),
        bars,
        blackouts,
        waiting_since,
    }
}

/// The order of rows: late, at risk, waiting, running, next start.
type Rank = (u8, u8, Timestamp, String);

fn rank(view: &JobView, row: &TimelineRow, now: Timestamp) -> Rank {
    let condition = match row.condition.as_deref() {
        Some("error") => 0,
        Some("warning") => 1,
        _ => 2,
    };
    let is_running = row.bars.iter().any(|bar| matches!(bar.kind, BarKind::Running { .. }));
    let stage = match (row.waiting_since.is_some(), is_running) {
        (true, _) => 0,
        (_, true) => 1,
        _ => 2,
    };
    let next = row.bars.iter().find(|bar| now <= bar.from).map_or(Timestamp::MAX, |bar| bar.from);
    (condition, stage, next, view.key.clone())
}
