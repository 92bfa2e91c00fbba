//! What is done to a job: each is a form, and all of it goes through the intake.

use axum::extract::{Path, State};
use axum::response::Response;
use evenbeat_core::ids::{JobKey, RunId};
use evenbeat_core::nearest::shortened;
use evenbeat_core::store::{Cancelled, Idempotency, Revision};
use evenbeat_core::time::{Duration, Timestamp};
use uuid::Uuid;

use crate::dashboard::Pages;
use crate::dashboard::error::{NoPage, PageResult, see_other, sentence};
use crate::dashboard::flash::Flash;
use crate::dashboard::parts::job_path;
use crate::dashboard::times::{Times, counted};
use crate::dashboard::user::{FormFields, PageEditor, PageForm, PageOperator};
use crate::intake::{self, Expect, IntakeError};
use crate::views::local_time::parse_local;

/// Most runs that one form stops.
const N_STOPPED_MAX: usize = 50;

/// The longest key of a form, in bytes.
const KEY_BYTES_MAX: usize = 255;

/// The key of an address.
pub(super) fn key_of(text: &str) -> PageResult<JobKey> {
    text.parse().map_err(|_| NoPage::NotFound(format!("there is no job `{}`", shortened(text))))
}

/// Why a change was refused: back on the job's page, or on the page that there is instead.
pub(super) fn refused(key: &JobKey, title: &str, error: IntakeError) -> NoPage {
    match error {
        IntakeError::Down(down) => NoPage::Down(down),
        error @ IntakeError::NoSuchJob { .. } => NoPage::NotFound(error.to_string()),
        error => NoPage::back(job_path(key.as_str()), Flash::failed(title, sentence(&error.to_string()))),
    }
}

/// Asks for a run. The form carries a key, so that a second click asks for no second run.
pub(super) async fn run(
    State(pages): State<Pages>,
    Path(key): Path<String>,
    form: PageForm<PageOperator>,
) -> PageResult<Response> {
    let key = key_of(&key)?;
    let idempotency = form.fields.get("idempotency").map(|text| idempotency(&key, text)).transpose()?;
    let asked = pages.app.intake.trigger(form.user.actor(), &key, idempotency, None).await;
    let path = job_path(key.as_str());
    let id = match asked {
        Ok(id) => id,
        // The first click of two is on its way, and its answer tells.
        Err(IntakeError::KeyInFlight) => return Ok(see_other(&path, None)),
        Err(error) => return Err(refused(&key, &format!("{key} was not started"), error)),
    };
    let text = "It starts as soon as there is room for it.";
    let flash = Flash::done(format!("Requested a run of {key}"), text)
        .with_link(format!("/runs/{id}"), "Open the run");
    Ok(see_other(&path, Some(&flash)))
}

/// How a repetition of a form is recognised.
fn idempotency(key: &JobKey, text: &str) -> PageResult<Idempotency> {
    if KEY_BYTES_MAX < text.len() {
        return Err(NoPage::Refused("the key of the form is too long; reload the page".to_owned()));
    }
    let mut hasher = blake3::Hasher::new_derive_key("evenbeat 2026 key of a form that asks for a run");
    hasher.update(key.as_str().as_bytes()).update(&[0]).update(text.as_bytes());
    let mut hash = [0; 16];
    hasher.finalize_xof().fill(&mut hash);
    Ok(Idempotency { key: u128::from_be_bytes(hash), body: 0 })
}

/// Pauses a job, with a reason and an end if they are given.
pub(super) async fn pause(
    State(pages): State<Pages>,
    Path(key): Path<String>,
    form: PageForm<PageOperator>,
) -> PageResult<Response> {
    let key = key_of(&key)?;
    let path = job_path(key.as_str());
    let intake = &pages.app.intake;
    let times = form.user.times(intake.now());
    let title = format!("{key} was not paused");
    let wrong = |detail: String| {
        NoPage::back(format!("{path}?confirm=pause"), Flash::failed(title.clone(), sentence(&detail)))
    };
    let until = pause_until(&form.fields, &times).map_err(wrong)?;
    let until = intake::pause_end(until, times.now).map_err(|fault| wrong(fault.detail))?;
    let reason = form.fields.get("reason").map(str::to_owned);
    let reason = intake::pause_reason(reason).map_err(|fault| wrong(fault.detail))?;
    let paused = intake.pause(form.user.actor(), &key, reason, until).await;
    paused.map_err(|error| refused(&key, &title, error))?;
    let text = match until {
        Some(until) => format!("Nothing of it starts until {}.", times.short_text(until)),
        None => "Nothing of it starts until someone resumes it.".to_owned(),
    };
    let flash =
        Flash::done(format!("Paused {key}"), text).with_link(format!("{path}?confirm=resume"), "Resume");
    Ok(see_other(&path, Some(&flash)))
}

/// The end of a pause: an instant by the viewer's clocks, or a length from now.
fn pause_until(fields: &FormFields, times: &Times) -> Result<Option<Timestamp>, String> {
    if let Some(text) = fields.get("until_at") {
        let at = parse_local(&times.zone, text);
        return at.map(Some).ok_or_else(|| format!("`{}` is not a date and a time", shortened(text)));
    }
    let Some(text) = fields.get("until") else { return Ok(None) };
    let length: Duration = text.parse().map_err(|error| format!("{error}"))?;
    Ok(Some(times.now + length))
}

pub(super) async fn resume(
    State(pages): State<Pages>,
    Path(key): Path<String>,
    form: PageForm<PageOperator>,
) -> PageResult<Response> {
    let key = key_of(&key)?;
    let resumed = pages.app.intake.resume(form.user.actor(), &key).await;
    let row = resumed.map_err(|error| refused(&key, &format!("{key} was not resumed"), error))?;
    let times = form.user.times(pages.app.intake.now());
    let text = row
        .state
        .next_run_at
        .map_or("It has no next run.".to_owned(), |at| format!("Next run {}.", times.short_text(at)));
    Ok(see_other(&job_path(key.as_str()), Some(&Flash::done(format!("Resumed {key}"), text))))
}

/// Stops the runs that the form names, if they are of this job.
pub(super) async fn stop(
    State(pages): State<Pages>,
    Path(key): Path<String>,
    form: PageForm<PageOperator>,
) -> PageResult<Response> {
    let key = key_of(&key)?;
    let path = job_path(key.as_str());
    let (mut n_asked, mut n_over) = (0_u64, 0_u64);
    for text in form.fields.all("run").iter().take(N_STOPPED_MAX) {
        let id = Uuid::try_parse(text)
            .map_err(|_| NoPage::Refused(format!("`{}` is not the id of a run", shortened(text))))?;
        let run = RunId(id.as_u128());
        let is_its = pages.app.store.run(run).await?.is_some_and(|row| row.key == key);
        if !is_its {
            return Err(NoPage::Refused(format!("run `{id}` is not one of `{key}`")));
        }
        match pages.app.intake.cancel(form.user.actor(), run).await {
            Ok(Cancelled::Asked) => n_asked += 1,
            Ok(_) => n_over += 1,
            Err(error) => return Err(refused(&key, &format!("{key} was not stopped"), error)),
        }
    }
    let flash = match (n_asked, n_over) {
        (0, 0) => Flash::failed("Nothing was stopped", "No run is going on."),
        (0, _) => Flash::failed("Nothing was stopped", "The run had ended by then."),
        (n, _) => Flash::done(
            format!("Stopping {} of {key}", counted(n, "run")),
            "It is asked to end, and killed if it does not.",
        ),
    };
    Ok(see_other(&path, Some(&flash)))
}

/// Removes a job that is still the one that was seen.
pub(super) async fn delete(
    State(pages): State<Pages>,
    Path(key): Path<String>,
    form: PageForm<PageEditor>,
) -> PageResult<Response> {
    let key = key_of(&key)?;
    let expect = version_of(&form.fields)?.map_or(Expect::Any, Expect::Revision);
    let removed = pages.app.intake.remove(form.user.actor(), &key, expect).await;
    removed.map_err(|error| refused(&key, &format!("{key} was not deleted"), error))?;
    let flash = Flash::done(format!("Deleted {key}"), "Nothing of it starts from now on.");
    Ok(see_other("/?tab=all", Some(&flash)))
}

/// The version that a form was made for.
pub(super) fn version_of(fields: &FormFields) -> PageResult<Option<Revision>> {
    let Some(text) = fields.get("version") else { return Ok(None) };
    let number =
        text.parse().map_err(|_| NoPage::Refused(format!("`{}` is not a version", shortened(text))))?;
    Ok(Some(Revision(number)))
}
