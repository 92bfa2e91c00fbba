//! What comes: of the whole fleet from the agenda, of one job from the engine that will start it (D, K6).

use std::collections::BTreeSet;

use evenbeat_core::condition::Reason;
use evenbeat_core::ids::JobKey;
use evenbeat_core::schedule::Schedule;
use evenbeat_core::store::JobRow;
use evenbeat_core::time::{TimeWindow, Timestamp};
use evenbeat_core::upcoming;
use evenbeat_core::urgency::Outlook;

use super::ViewError;
use super::model::{OccurrenceView, Page, UpcomingPage};
use crate::app::App;

/// An occurrence, as a cursor knows it.
pub(crate) type Cursor = (Timestamp, JobKey);

/// A page of what the fleet does in a window.
pub(crate) async fn of_fleet(
    app: &App,
    window: TimeWindow,
    after: Option<Cursor>,
    limit: usize,
) -> Result<UpcomingPage, ViewError> {
    let found = app.fleet.upcoming(window, after, limit, app.intake.now()).await?;
    let next = found.starts.last().filter(|_| found.is_more);
    let next = next.map(|last| format!("{}~{}", last.run.at.as_millis(), last.job));
    let mut items: Vec<OccurrenceView> =
        found.starts.iter().map(|it| OccurrenceView::of(&it.job, it.run, it.is_estimate)).collect();
    mark_without_node(app, &mut items).await?;
    let (from, to) = (window.start().into(), window.end().into());
    Ok(UpcomingPage { from, to, total: found.total, items, next })
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
