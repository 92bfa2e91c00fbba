//! Runs for the occurrences of a past time range.

use axum::extract::State;

use crate::api::answer::OkOrAccepted;
use crate::api::caller::{Caller, Operator};
use crate::api::extract::{Body, KeyPath, UrlQuery};
use crate::api::params::NoParams;
use crate::api::problem::Problem;
use crate::api::router::Api;
use crate::intake::backfill_range;
use crate::views::model::{BackfillAnswer, BackfillRequest, BackfillRun};

pub(in crate::api) async fn backfill(
    caller: Caller<Operator>,
    State(api): State<Api>,
    KeyPath(key): KeyPath,
    UrlQuery(NoParams): UrlQuery<NoParams>,
    Body(request): Body<BackfillRequest>,
) -> Result<OkOrAccepted<BackfillAnswer>, Problem> {
    let now = api.app.intake.now();
    let range = backfill_range(request.from.0, request.to.map(|to| to.0), request.max, now)?;
    let intake = &api.app.intake;
    let plan = intake.plan_backfill(&key, range, request.max.map(u64::from)).await?;
    let mut answer = BackfillAnswer {
        job: key.to_string(),
        dry_run: request.dry_run,
        occurrences: plan.n_occurrences,
        runs: Vec::new(),
        already_waiting: plan.n_waiting,
        next_from: plan.next_from.map(Into::into),
    };
    for due_at in plan.due {
        // Each is written by itself. If one fails, those before it wait for their runs, and the same request again
        // leaves them out.
        let id = if request.dry_run {
            None
        } else {
            Some(intake.backfill_one(&caller.actor, &key, due_at).await?.to_string())
        };
        answer.runs.push(BackfillRun { occurrence: due_at.into(), id });
    }
    Ok(OkOrAccepted { is_accepted: !request.dry_run, body: answer })
}
