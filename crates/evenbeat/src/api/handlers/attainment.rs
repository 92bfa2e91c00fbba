//! How fresh jobs were (K7), and how even the fleet was.

use axum::Json;
use axum::extract::State;
use evenbeat_core::time::{Duration, Timestamp};

use super::row_of;
use crate::api::caller::{Caller, Viewer};
use crate::api::extract::{KeyPath, UrlQuery};
use crate::api::params::{NoParams, Params, Query};
use crate::api::problem::Problem;
use crate::api::router::Api;
use crate::store::spans::GroupBy;
use crate::views::attainment::{self as views, LookBack};
use crate::views::model::{AttainmentView, JobAttainmentView, Page, ScoreView};

/// Which jobs, and how far back.
#[derive(Debug)]
pub(in crate::api) struct AttainmentQuery {
    back: LookBack,
    by: GroupBy,
}

impl Query for AttainmentQuery {
    fn read(params: &mut Params) -> AttainmentQuery {
        let back =
            params.word("window", &LookBack::ALL, LookBack::as_str, "How far back; `24h` if left out.");
        let meaning =
            "How to group jobs: `fleet`, `tenant`, or `label:` and the name of a label; `fleet` if left out.";
        let by = params.pattern("by", "^(fleet|tenant|label:.+)$", meaning).and_then(|text| {
            let read = views::group_by(&text);
            read.map_err(|detail| params.fault("by", detail)).ok()
        });
        AttainmentQuery { back: back.unwrap_or(LookBack::Day), by: by.unwrap_or(GroupBy::Fleet) }
    }
}

pub(in crate::api) async fn of_groups(
    _caller: Caller<Viewer>,
    State(api): State<Api>,
    UrlQuery(query): UrlQuery<AttainmentQuery>,
) -> Result<Json<AttainmentView>, Problem> {
    Ok(Json(views::of_groups(&api.app, query.by, query.back).await?))
}

pub(in crate::api) async fn of_job(
    _caller: Caller<Viewer>,
    State(api): State<Api>,
    KeyPath(key): KeyPath,
    UrlQuery(NoParams): UrlQuery<NoParams>,
) -> Result<Json<JobAttainmentView>, Problem> {
    let row = row_of(&api, &key).await?;
    Ok(Json(views::of_job(&api.app, &row).await?))
}

/// Which samples of the score.
#[derive(Debug)]
pub(in crate::api) struct ScoreQuery {
    since: Option<Timestamp>,
    limit: usize,
}

impl Query for ScoreQuery {
    fn read(params: &mut Params) -> ScoreQuery {
        let meaning = "Samples from then on; a day ago if left out. The `next` of a page continues it.";
        ScoreQuery { since: params.parsed("since", meaning), limit: params.limit() }
    }
}

pub(in crate::api) async fn scores(
    _caller: Caller<Viewer>,
    State(api): State<Api>,
    UrlQuery(query): UrlQuery<ScoreQuery>,
) -> Result<Json<Page<ScoreView>>, Problem> {
    let since = query.since.unwrap_or_else(|| api.app.intake.now() - Duration::from_hours(24));
    // One more than wanted tells whether there are more.
    let mut points = api.app.store.scores(since, query.limit + 1).await?;
    let next = points.get(query.limit).map(|it| it.at.to_string());
    points.truncate(query.limit);
    Ok(Json(Page { items: points.into_iter().map(ScoreView::from).collect(), next }))
}
