//! What comes: of the whole fleet from the agenda, of one job from the engine that will start it (D, K6).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use evenbeat_core::agenda::{Agenda, AgendaError, Occurrence};
use evenbeat_core::condition::Reason;
use evenbeat_core::ids::JobKey;
use evenbeat_core::schedule::Schedule;
use evenbeat_core::store::JobRow;
use evenbeat_core::time::{TimeWindow, Timestamp};
use evenbeat_core::upcoming::{self, UpcomingRun};
use evenbeat_core::urgency::Outlook;

use super::ViewError;
use super::model::{OccurrenceView, Page, UpcomingPage};
use crate::app::App;
use crate::fleet::Fleet;

/// An occurrence, as a cursor knows it.
pub(crate) type Cursor = (Timestamp, JobKey);

/// A page of what the fleet does in a window.
pub(crate) async fn of_fleet(
    app: &App,
    window: TimeWindow,
    after: Option<Cursor>,
    limit: usize,
) -> Result<UpcomingPage, ViewError> {
    let (fleet, now) = (app.fleet.clone(), app.intake.now());
    // A month of a large fleet is worth a thread of its own.
    let page = tokio::task::spawn_blocking(move || page(&fleet, window, after.as_ref(), limit, now));
    let mut page = page.await.unwrap_or_else(|fault| std::panic::resume_unwind(fault.into_panic()))?;
    mark_without_node(app, &mut page.items).await?;
    Ok(page)
}

/// What one job does after an instant.
pub(crate) async fn of_job(
    app: &App,
    row: &JobRow,
    after: Option<Timestamp>,
    limit: usize,
) -> Result<Page<OccurrenceView>, ViewError> {
    let key = row.job.key.clone();
    let most = limit + 1;
    let asked = {
        let key = key.clone();
        app.node.ask(move |engine, now| (engine.upcoming(now, &key, after, most), engine.time(now)))
    };
    let (starts, now) = asked.await.ok_or(ViewError::NodeGone)?;
    // A job that was made a moment ago may not be known there yet.
    let starts = starts.unwrap_or_else(|| {
        upcoming::of_job(&key, &row.job, &row.state, &Outlook::default(), now, after, most)
    });
    let is_estimate = matches!(row.job.schedule, Schedule::Fresh { .. });
    let mut items: Vec<OccurrenceView> =
        starts.into_iter().map(|start| OccurrenceView::of(&key, start, is_estimate)).collect();
    let is_more = limit < items.len();
    items.truncate(limit);
    mark_without_node(app, &mut items).await?;
    let next = items.last().filter(|_| is_more).map(|it| it.at.to_string());
    Ok(Page { items, next })
}

/// Marks the runs of jobs that no node can take: they come due, and do not start.
async fn mark_without_node(app: &App, items: &mut [OccurrenceView]) -> Result<(), ViewError> {
    let keys: BTreeSet<JobKey> = items.iter().filter_map(|it| it.job.parse().ok()).collect();
    let asked = app.node.ask(move |engine, _| {
        let without = keys.iter().filter(|key| engine.has_no_node(key));
        without.map(ToString::to_string).collect::<BTreeSet<String>>()
    });
    let without = asked.await.ok_or(ViewError::NodeGone)?;
    for it in items.iter_mut().filter(|it| without.contains(&it.job)) {
        it.held_up_by = Some(Reason::NoNode.as_str().to_owned());
    }
    Ok(())
}

fn page(
    fleet: &Fleet,
    window: TimeWindow,
    after: Option<&Cursor>,
    limit: usize,
    now: Timestamp,
) -> Result<UpcomingPage, AgendaError> {
    let agenda = agenda_of(fleet, window, now)?;
    let all = agenda.between(window.start(), window.end());
    let mut rest = all.iter().skip_while(|it| after.is_some_and(|(at, key)| (it.at, it.job) <= (*at, key)));
    let page: Vec<Occurrence<'_>> = rest.by_ref().take(limit).collect();
    let jobs: BTreeSet<&JobKey> = page.iter().map(|it| it.job).collect();
    let held_up: BTreeMap<&JobKey, Vec<UpcomingRun>> =
        jobs.into_iter().filter_map(|job| Some((job, fleet.held_up(job, window, now)?))).collect();
    let view = |it: &Occurrence<'_>| {
        let starts = held_up.get(it.job).into_iter().flatten();
        let start = starts.copied().find(|start| start.at == it.at);
        start.map_or_else(
            || OccurrenceView::on_time(*it),
            |start| OccurrenceView::of(it.job, start, it.is_estimate),
        )
    };
    let items: Vec<OccurrenceView> = page.iter().map(view).collect();
    let next = rest.next().and(items.last()).map(|last| format!("{}~{}", last.at.0.as_millis(), last.job));
    let (from, to) = (window.start().into(), window.end().into());
    Ok(UpcomingPage { from, to, total: all.len(), items, next })
}

/// The current agenda if it covers the window, else a new one.
fn agenda_of(fleet: &Fleet, window: TimeWindow, now: Timestamp) -> Result<Arc<Agenda>, AgendaError> {
    let current = Arc::clone(&fleet.agenda());
    let known = current.window();
    if known.start() <= window.start() && window.end() <= known.end() {
        return Ok(current);
    }
    fleet.agenda_of(window, now).map(Arc::new)
}
