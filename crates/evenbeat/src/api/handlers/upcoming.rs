//! What comes: of the whole fleet from the agenda, of one job from its own rhythm (D).

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use evenbeat_core::agenda::{Agenda, WINDOW_MAX};
use evenbeat_core::ids::JobKey;
use evenbeat_core::job::Status;
use evenbeat_core::schedule::Schedule;
use evenbeat_core::store::JobRow;
use evenbeat_core::time::{Duration, TimeWindow, Timestamp};
use evenbeat_core::urgency;

use super::row_of;
use crate::api::caller::{Caller, Viewer};
use crate::api::extract::{Asked, KeyPath, Params, Query};
use crate::api::model::{FieldError, OccurrenceView, Page, UpcomingPage};
use crate::api::problem::{Code, Problem};
use crate::api::router::Api;

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
    let from = match query.from {
        Some(from) => from,
        None => api.app.intake.now().await,
    };
    let to = query.to.unwrap_or(from + LOOKAHEAD);
    if to <= from {
        return Err(wrong("to", format!("`to` ({to}) is not after `from` ({from})")));
    }
    if WINDOW_MAX < to - from {
        return Err(wrong("to", format!("from {from} to {to} is longer than {WINDOW_MAX}")));
    }
    let agenda = agenda_of(&api, TimeWindow::new(from, to)).await?;
    let all = agenda.between(from, to);
    let mut rest = all
        .iter()
        .skip_while(|it| query.after.as_ref().is_some_and(|(at, key)| (it.at, it.job) <= (*at, key)));
    let items: Vec<OccurrenceView> = rest.by_ref().take(query.limit).map(Into::into).collect();
    let next = rest.next().and(items.last()).map(|last| format!("{}~{}", last.at.0.as_millis(), last.job));
    Ok(Json(UpcomingPage { from: from.into(), to: to.into(), total: all.len(), items, next }))
}

/// The agenda that is there, if it reaches so far; else one is made.
async fn agenda_of(api: &Api, window: TimeWindow) -> Result<Arc<Agenda>, Problem> {
    let current = Arc::clone(&api.app.fleet.agenda());
    let known = current.window();
    if known.start() <= window.start() && window.end() <= known.end() {
        return Ok(current);
    }
    let fleet = api.app.fleet.clone();
    let made = tokio::task::spawn_blocking(move || fleet.agenda_of(window)).await;
    let made = made.unwrap_or_else(|fault| std::panic::resume_unwind(fault.into_panic()));
    made.map(Arc::new).map_err(|error| wrong("to", error.to_string()))
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
    let mut items = occurrences(&row, query.after, query.limit + 1);
    let is_more = query.limit < items.len();
    items.truncate(query.limit);
    let next = items.last().filter(|_| is_more).map(|it| it.at.to_string());
    Ok(Json(Page { items, next }))
}

/// The pending occurrence and those after it.
fn occurrences(row: &JobRow, after: Option<Timestamp>, most: usize) -> Vec<OccurrenceView> {
    let (job, state) = (&*row.job, &row.state);
    if matches!(state.status(job), Status::Paused | Status::Disabled | Status::Done) {
        return Vec::new();
    }
    let (Some(pending), Some(rhythm)) = (state.next_run_at, urgency::rhythm(job, state)) else {
        return Vec::new();
    };
    let first = match after {
        Some(after) if pending <= after => rhythm.next_after(after),
        _ => Some(pending),
    };
    let estimate = matches!(job.schedule, Schedule::Fresh { .. });
    std::iter::successors(first, |at| rhythm.next_after(*at))
        .take(most)
        .map(|at| OccurrenceView { at: at.into(), job: job.key.to_string(), estimate })
        .collect()
}
