//! Upcoming runs (D, K6).

use axum::Json;
use axum::extract::State;
use evenbeat_core::agenda::WINDOW_MAX;
use evenbeat_core::time::{TimeWindow, Timestamp};

use super::row_of;
use crate::api::caller::{Caller, Viewer};
use crate::api::extract::{KeyPath, UrlQuery};
use crate::api::params::{Params, Query};
use crate::api::problem::Problem;
use crate::api::router::Api;
use crate::fleet::LOOKAHEAD;
use crate::views;
use crate::views::model::{OccurrenceView, Page, UpcomingPage};

/// What of the time ahead.
#[derive(Debug)]
pub(in crate::api) struct UpcomingQuery {
    /// From then on; now if nothing is said.
    from: Option<Timestamp>,
    /// Up to, not including, then; an hour later if nothing is said.
    to: Option<Timestamp>,
    /// Page size.
    limit: usize,
    /// After this occurrence.
    after: Option<views::upcoming::Cursor>,
}

impl Query for UpcomingQuery {
    fn read(params: &mut Params) -> UpcomingQuery {
        let from = params.parsed("from", "Start of the window; now if left out.");
        let to = params.parsed("to", "End of the window, not included; an hour after the start if left out.");
        let limit = params.limit();
        let meaning = "Continues after this run: the `next` of the page before.";
        let after = params.pattern("after", "^-?[0-9]+~.+$", meaning).and_then(|text| {
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
fn cursor(text: &str) -> Option<views::upcoming::Cursor> {
    let (millis, key) = text.split_once('~')?;
    Some((Timestamp::from_millis(millis.parse().ok()?), key.parse().ok()?))
}

pub(in crate::api) async fn list(
    _caller: Caller<Viewer>,
    State(api): State<Api>,
    UrlQuery(query): UrlQuery<UpcomingQuery>,
) -> Result<Json<UpcomingPage>, Problem> {
    let from = query.from.unwrap_or_else(|| api.app.intake.now());
    let to = query.to.unwrap_or(from + LOOKAHEAD);
    if to < from {
        return Err(Problem::wrong_parameter("to", format!("`to` ({to}) is before `from` ({from})")));
    }
    if WINDOW_MAX < to - from {
        return Err(Problem::wrong_parameter(
            "to",
            format!("from {from} to {to} is longer than {WINDOW_MAX}"),
        ));
    }
    let window = TimeWindow::new(from, to);
    Ok(Json(views::upcoming::of_fleet(&api.app, window, query.after, query.limit).await?))
}

/// How much of what one job does.
#[derive(Debug)]
pub(in crate::api) struct UpcomingOfJobQuery {
    /// Page size.
    limit: usize,
    /// After this instant.
    after: Option<Timestamp>,
}

impl Query for UpcomingOfJobQuery {
    fn read(params: &mut Params) -> UpcomingOfJobQuery {
        UpcomingOfJobQuery {
            limit: params.limit(),
            after: params.parsed("after", "Continues after this instant: the `next` of the page before."),
        }
    }
}

pub(in crate::api) async fn of_job(
    _caller: Caller<Viewer>,
    State(api): State<Api>,
    KeyPath(key): KeyPath,
    UrlQuery(query): UrlQuery<UpcomingOfJobQuery>,
) -> Result<Json<Page<OccurrenceView>>, Problem> {
    let row = row_of(&api, &key).await?;
    Ok(Json(views::upcoming::of_job(&api.app, &row, query.after, query.limit).await?))
}
