//! What comes: of the whole fleet from the agenda, of one job from the engine that will start it (D, K6).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use evenbeat_core::agenda::{Agenda, AgendaError, Occurrence, WINDOW_MAX};
use evenbeat_core::condition::Reason;
use evenbeat_core::ids::JobKey;
use evenbeat_core::schedule::Schedule;
use evenbeat_core::time::{Duration, TimeWindow, Timestamp};
use evenbeat_core::upcoming::{self, UpcomingRun};
use evenbeat_core::urgency::Outlook;

use super::row_of;
use crate::api::caller::{Caller, Viewer};
use crate::api::extract::{Asked, KeyPath, Params, Query};
use crate::api::problem::{Code, Problem};
use crate::api::router::Api;
use crate::fleet::Fleet;
use crate::views::ViewError;
use crate::views::model::{FieldError, OccurrenceView, Page, UpcomingPage};

/// How far is looked if nothing is said.
const LOOKAHEAD: Duration = Duration::from_hours(1);

/// What of the time ahead.
#[derive(Debug)]
pub(in crate::api) struct UpcomingQuery {
    /// From then on; now if nothing is said.
    from: Option<Timestamp>,
    /// Up to, not including, then; an hour later if nothing is said.
    to: Option<Timestamp>,
    /// At most so many.
    limit: usize,
    /// After this occurrence.
    after: Option<(Timestamp, JobKey)>,
}

impl Query for UpcomingQuery {
    fn read(params: &mut Params) -> UpcomingQuery {
        let (from, to, limit) = (params.parsed("from"), params.parsed("to"), params.limit());
        let after = params.text("after").and_then(|text| {
            let read = cursor(&text);
            if read.is_none() {
                params.fault("after", "hand back `next` as it was given".to_owned());
            }
            read
        });
        UpcomingQuery { from, to, limit, after }
    }
}

/// An occurrence is known by its instant and its job.
fn cursor(text: &str) -> Option<(Timestamp, JobKey)> {
    let (millis, key) = text.split_once('~')?;
    Some((Timestamp::from_millis(millis.parse().ok()?), key.parse().ok()?))
}

pub(in crate::api) async fn list(
    _caller: Caller<Viewer>,
    State(api): State<Api>,
    Asked(query): Asked<UpcomingQuery>,
) -> Result<Json<UpcomingPage>, Problem> {
    let now = api.app.intake.now();
    let from = query.from.unwrap_or(now);
    let to = query.to.unwrap_or(from + LOOKAHEAD);
    if to < from {
        return Err(wrong("to", format!("`to` ({to}) is before `from` ({from})")));
    }
    if WINDOW_MAX < to - from {
        return Err(wrong("to", format!("from {from} to {to} is longer than {WINDOW_MAX}")));
    }
    let fleet = api.app.fleet.clone();
    // A month of a large fleet is worth a thread of its own.
    let page = tokio::task::spawn_blocking(move || page(&fleet, &query, TimeWindow::new(from, to), now));
    let page = page.await.unwrap_or_else(|fault| std::panic::resume_unwind(fault.into_panic()));
    let mut page = page.map_err(|error| wrong("to", error.to_string()))?;
    mark_without_node(&api, &mut page.items).await?;
    Ok(Json(page))
}

/// Marks the runs of jobs that no node can take: they come due, and do not start.
async fn mark_without_node(api: &Api, items: &mut [OccurrenceView]) -> Result<(), Problem> {
    let keys: BTreeSet<JobKey> = items.iter().filter_map(|it| it.job.parse().ok()).collect();
    let asked = api.app.node.ask(move |engine, _| {
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
    query: &UpcomingQuery,
    window: TimeWindow,
    now: Timestamp,
) -> Result<UpcomingPage, AgendaError> {
    let agenda = agenda_of(fleet, window, now)?;
    let all = agenda.between(window.start(), window.end());
    let mut rest = all
        .iter()
        .skip_while(|it| query.after.as_ref().is_some_and(|(at, key)| (it.at, it.job) <= (*at, key)));
    let page: Vec<Occurrence<'_>> = rest.by_ref().take(query.limit).collect();
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

/// The agenda that is there, if it reaches so far; else one is made.
fn agenda_of(fleet: &Fleet, window: TimeWindow, now: Timestamp) -> Result<Arc<Agenda>, AgendaError> {
    let current = Arc::clone(&fleet.agenda());
    let known = current.window();
    if known.start() <= window.start() && window.end() <= known.end() {
        return Ok(current);
    }
    fleet.agenda_of(window, now).map(Arc::new)
}

fn wrong(name: &str, detail: String) -> Problem {
    let errors = vec![FieldError { pointer: format!("?{name}"), detail: detail.clone() }];
    Problem::new(Code::InvalidParameter, detail).with(errors)
}

/// How much of what one job does.
#[derive(Debug)]
pub(in crate::api) struct UpcomingOfJobQuery {
    /// At most so many.
    limit: usize,
    /// After this instant.
    after: Option<Timestamp>,
}

impl Query for UpcomingOfJobQuery {
    fn read(params: &mut Params) -> UpcomingOfJobQuery {
        UpcomingOfJobQuery { limit: params.limit(), after: params.parsed("after") }
    }
}

pub(in crate::api) async fn of_job(
    _caller: Caller<Viewer>,
    State(api): State<Api>,
    KeyPath(key): KeyPath,
    Asked(query): Asked<UpcomingOfJobQuery>,
) -> Result<Json<Page<OccurrenceView>>, Problem> {
    let row = row_of(&api, &key).await?;
    let most = query.limit + 1;
    let asked = {
        let key = key.clone();
        api.app.node.ask(move |engine, now| (engine.upcoming(now, &key, query.after, most), engine.time(now)))
    };
    let (starts, now) = asked.await.ok_or(ViewError::NodeGone)?;
    // A job that was made a moment ago may not be known there yet.
    let starts = starts.unwrap_or_else(|| {
        upcoming::of_job(&key, &row.job, &row.state, &Outlook::default(), now, query.after, most)
    });
    let is_estimate = matches!(row.job.schedule, Schedule::Fresh { .. });
    let mut items: Vec<OccurrenceView> =
        starts.into_iter().map(|start| OccurrenceView::of(&key, start, is_estimate)).collect();
    let is_more = query.limit < items.len();
    items.truncate(query.limit);
    mark_without_node(&api, &mut items).await?;
    let next = items.last().filter(|_| is_more).map(|it| it.at.to_string());
    Ok(Json(Page { items, next }))
}
