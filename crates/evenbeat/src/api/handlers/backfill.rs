//! Runs for the occurrences of a past time range.

use axum::extract::State;
use evenbeat_core::time::{Duration, TimeWindow};

use crate::api::answer::OkOrAccepted;
use crate::api::caller::{Caller, Operator};
use crate::api::extract::{Body, KeyPath, UrlQuery};
use crate::api::params::NoParams;
use crate::api::problem::{Code, Problem};
use crate::api::router::Api;
use crate::views::model::{BackfillAnswer, BackfillRequest, BackfillRun, FieldError};

/// The longest range.
const RANGE_MAX: Duration = Duration::from_days(366);

/// Most runs that can be asked for at once.
const RUNS_MAX: u32 = 1_000;

pub(in crate::api) async fn backfill(
    caller: Caller<Operator>,
    State(api): State<Api>,
    KeyPath(key): KeyPath,
    UrlQuery(NoParams): UrlQuery<NoParams>,
    Body(request): Body<BackfillRequest>,
) -> Result<OkOrAccepted<BackfillAnswer>, Problem> {
    let now = api.app.intake.now();
    let (from, to) = (request.from.0, request.to.map_or(now, |to| to.0));
    if now < to {
        return Err(wrong("/to", format!("{to} is in the future; a backfill is for the past")));
    }
    if to <= from {
        return Err(wrong("/from", format!("{from} is not before {to}")));
    }
    if RANGE_MAX < to - from {
        return Err(wrong("/from", "the range is longer than 366 days; choose a shorter one".to_owned()));
    }
    if request.max.is_some_and(|max| !(1..=RUNS_MAX).contains(&max)) {
        return Err(wrong("/max", format!("`max` is a whole number from 1 to {RUNS_MAX}")));
    }
    let intake = &api.app.intake;
    let plan = intake.plan_backfill(&key, TimeWindow::new(from, to), request.max.map(u64::from)).await?;
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

fn wrong(pointer: &str, detail: String) -> Problem {
    let errors = vec![FieldError { pointer: pointer.to_owned(), detail: detail.clone() }];
    Problem::new(Code::InvalidBody, detail).with(errors)
}
