//! One action on all jobs that match a filter (K5). It is carried out here, page by page, and each job is authorised,
//! audited and answered by itself.

use std::fmt::Display;
use std::str::FromStr;
use std::time::{Duration as Length, Instant as Moment};

use axum::Json;
use axum::extract::State;
use evenbeat_core::condition::Condition;
use evenbeat_core::ids::JobKey;
use evenbeat_core::job::Status;
use evenbeat_core::nearest::shortened;
use evenbeat_core::rights::Role;
use evenbeat_core::store::JobRow;

use super::jobs::{pause_end, pause_reason};
use crate::api::caller::{Caller, Operator};
use crate::api::extract::{Body, UrlQuery};
use crate::api::params::NoParams;
use crate::api::problem::{Code, Problem};
use crate::api::router::Api;
use crate::intake::{BulkAction, BulkOutcome};
use crate::store::query::JobFilter;
use crate::views::jobs::{self as views, JobSelection};
use crate::views::model::{BulkAnswer, BulkFailure, BulkFilter, BulkRequest, BulkVerb, FieldError};

/// Most jobs that one action may match.
const MATCHED_MAX: u64 = 100_000;

/// Jobs that one request changes, and how long it goes on. The rest is left to the next request.
const PER_REQUEST_MAX: u64 = 5_000;
const GO_ON_FOR: Length = Length::from_secs(10);

/// Jobs that are written in one transaction.
const PER_BATCH: usize = 200;

/// How many failures are listed, and how many keys a dry run shows.
const FAILURES_MAX: usize = 100;
const SAMPLE_MAX: usize = 20;

pub(in crate::api) async fn act(
    caller: Caller<Operator>,
    State(api): State<Api>,
    UrlQuery(NoParams): UrlQuery<NoParams>,
    Body(request): Body<BulkRequest>,
) -> Result<Json<BulkAnswer>, Problem> {
    if request.action == BulkVerb::Delete {
        caller.require(Role::Editor)?;
    }
    let action = match request.action {
        BulkVerb::Pause => {
            let until = pause_end(request.until, api.app.intake.now())?;
            BulkAction::Pause(pause_reason(request.reason.clone())?, until)
        }
        _ if request.reason.is_some() => {
            return Err(wrong("/reason", "only `pause` has a reason; leave it out".to_owned()));
        }
        _ if request.until.is_some() => {
            return Err(wrong("/until", "only `pause` has an end; leave it out".to_owned()));
        }
        BulkVerb::Resume => BulkAction::Resume,
        BulkVerb::Trigger => BulkAction::Trigger,
        BulkVerb::Delete => BulkAction::Delete,
    };
    let wanted = selection(request.filter)?;
    let Ok(after) = request.after.as_deref().map(str::parse::<JobKey>).transpose() else {
        return Err(wrong("/after", "hand back `next` as it was given".to_owned()));
    };
    let mut answer = BulkAnswer {
        action: request.action.as_str().into(),
        dry_run: request.dry_run,
        matched: None,
        sample: Vec::new(),
        done: 0,
        unchanged: 0,
        failed: 0,
        failures: Vec::new(),
        next: None,
    };
    if after.is_none() {
        answer.matched = Some(matched(&api, &wanted).await?);
    }
    if request.dry_run {
        let found = views::list(&api.app, &wanted, after, SAMPLE_MAX).await?;
        answer.sample = found.rows.iter().map(|row| row.job.key.to_string()).collect();
        return Ok(Json(answer));
    }
    match (request.expect, answer.matched) {
        (None, _) => {
            let detail =
                "say in `expect` how many jobs match; a request with `dry_run` counts them".to_owned();
            return Err(wrong("/expect", detail));
        }
        (Some(expect), Some(matched)) if expect != matched => {
            let detail =
                format!("{matched} jobs match now, not {expect}; nothing was done; look at them again");
            return Err(Problem::new(Code::CountDiffers, detail).with_matched(matched));
        }
        _ => {}
    }
    carry_out(&api, &caller, &action, &wanted, after, &mut answer).await?;
    Ok(Json(answer))
}

async fn carry_out(
    api: &Api,
    caller: &Caller<Operator>,
    action: &BulkAction,
    wanted: &JobSelection,
    mut after: Option<JobKey>,
    answer: &mut BulkAnswer,
) -> Result<(), Problem> {
    let began = Moment::now();
    loop {
        let page = views::list(&api.app, wanted, after, PER_BATCH).await?;
        let outcomes = api.app.intake.act_on(&caller.actor, action, &page.rows).await?;
        for (row, outcome) in page.rows.iter().zip(outcomes) {
            match outcome {
                Ok(BulkOutcome::Done) => answer.done += 1,
                Ok(BulkOutcome::Unchanged) => answer.unchanged += 1,
                Err(error) => answer.fail(row, &error.into()),
            }
        }
        after = page.next;
        let n_looked_at = answer.done + answer.unchanged + answer.failed;
        let is_enough = PER_REQUEST_MAX <= n_looked_at || GO_ON_FOR <= began.elapsed();
        if after.is_none() || is_enough {
            answer.next = after.map(|key| key.to_string());
            return Ok(());
        }
    }
}

impl BulkAnswer {
    fn fail(&mut self, row: &JobRow, problem: &Problem) {
        self.failed += 1;
        if self.failures.len() < FAILURES_MAX {
            let (job, code) = (row.job.key.to_string(), problem.code().as_str().into());
            self.failures.push(BulkFailure { job, code, detail: problem.detail().to_owned() });
        }
    }
}

/// How many jobs match, exactly.
async fn matched(api: &Api, wanted: &JobSelection) -> Result<u64, Problem> {
    let quick = views::total(&api.app, wanted).await?;
    let total =
        if quick.is_exact { quick } else { views::count_up_to(&api.app, wanted, MATCHED_MAX).await? };
    if !total.is_exact || MATCHED_MAX < total.n {
        let detail = format!("more than {MATCHED_MAX} jobs match; narrow the filter");
        return Err(wrong("/filter", detail));
    }
    Ok(total.n)
}

/// A filter as the store and the node know it. All errors are reported at once.
fn selection(filter: BulkFilter) -> Result<JobSelection, Problem> {
    let mut errors = Vec::new();
    let condition = word(filter.condition, "condition", Condition::ALL, Condition::as_str, &mut errors);
    let status = word(filter.status, "status", Status::ALL, Status::as_str, &mut errors);
    let mut labels = Vec::new();
    for (idx, label) in filter.label.iter().enumerate() {
        match label.split_once('=') {
            Some((name, value)) if !label.contains('\0') => labels.push((name.to_owned(), value.to_owned())),
            _ => {
                let detail = format!("`{}` is not a name and a value (write `team=news`)", shortened(label));
                errors.push(FieldError { pointer: format!("/filter/label/{idx}"), detail });
            }
        }
    }
    for (field, text) in [("prefix", &filter.prefix), ("q", &filter.q)] {
        if text.as_ref().is_some_and(|it| it.contains('\0')) {
            let detail = "contains a NUL character; leave it out".to_owned();
            errors.push(FieldError { pointer: format!("/filter/{field}"), detail });
        }
    }
    let filter = JobFilter {
        key_prefix: filter.prefix,
        key_text: filter.q,
        labels,
        pool: parsed(filter.pool, "pool", &mut errors),
        site: parsed(filter.site, "site", &mut errors),
        tenant: parsed(filter.tenant, "tenant", &mut errors),
        is_paused: filter.paused,
        is_enabled: filter.enabled,
        is_running: filter.running,
    };
    match errors.first() {
        None => Ok(JobSelection::new(filter, condition, status)),
        Some(first) => Err(Problem::new(Code::InvalidBody, first.detail.clone()).with(errors)),
    }
}

fn parsed<T: FromStr<Err: Display>>(
    text: Option<String>,
    field: &str,
    errors: &mut Vec<FieldError>,
) -> Option<T> {
    let fault = |error: T::Err| FieldError { pointer: format!("/filter/{field}"), detail: error.to_string() };
    text?.parse().map_err(|error| errors.push(fault(error))).ok()
}

fn word<T: Copy, const N: usize>(
    text: Option<String>,
    field: &str,
    all: [T; N],
    as_str: impl Fn(T) -> &'static str,
    errors: &mut Vec<FieldError>,
) -> Option<T> {
    let text = text?;
    let found = all.into_iter().find(|it| as_str(*it) == text);
    if found.is_none() {
        let words = all.map(|it| format!("`{}`", as_str(it))).join(", ");
        let detail = format!("`{}` is not one of {words}", shortened(&text));
        errors.push(FieldError { pointer: format!("/filter/{field}"), detail });
    }
    found
}

fn wrong(pointer: &str, detail: String) -> Problem {
    let errors = vec![FieldError { pointer: pointer.to_owned(), detail: detail.clone() }];
    Problem::new(Code::InvalidBody, detail).with(errors)
}
