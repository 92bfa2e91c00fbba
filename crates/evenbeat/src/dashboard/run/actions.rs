//! What operators do with a run: cancel it, run its job again.

use axum::extract::{Path, State};
use axum::response::Response;
use evenbeat_core::edit::Refusal;
use evenbeat_core::store::{Cancelled, Idempotency};
use maud::{Markup, html};

use super::{found, id_of};
use crate::auth::PageSession;
use crate::dashboard::Pages;
use crate::dashboard::error::{NoPage, PageResult, see_other};
use crate::dashboard::flash::Flash;
use crate::dashboard::parts::{PageQuestion, question_or, run_path};
use crate::dashboard::times::{Distance, Times, brief};
use crate::dashboard::user::{PageForm, PageOperator};
use crate::intake::IntakeError;
use crate::mint::mint;
use crate::printable;
use crate::views::run_details::RunDetails;

/// The field of the form that tells one press of a button from another.
const ONCE: &str = "once";

/// The question of that name, if it can be asked of the run as it is.
pub(super) fn asked(name: &str, run: &RunDetails, session: &PageSession, times: &Times) -> Option<Markup> {
    let view = &run.view;
    let path = run_path(&view.id);
    match name {
        "cancel" if view.outcome.is_none() => {
            let (title, verb, keep) = match run.row {
                Some(_) => (format!("Cancel this run of {}?", view.job), "Cancel run", "Let it run"),
                None => (
                    format!("Cancel the request for a run of {}?", view.job),
                    "Cancel request",
                    "Let it wait",
                ),
            };
            let (body, action) = (cancel_text(run, times), format!("{path}/cancel"));
            let cancel =
                PageQuestion { title, body, action, verb: verb.to_owned(), is_final: true, back: &path };
            Some(question_or(&cancel, keep, session))
        }
        "again" if view.outcome.is_some() && run.job.is_some() => {
            let once = format!("{:032x}", mint(times.now));
            let again = PageQuestion {
                title: format!("Run {} again?", view.job),
                body: html! { (again_text(run, times)) input type="hidden" name=(ONCE) value=(once); },
                action: format!("{path}/again"),
                verb: "Run again".to_owned(),
                is_final: false,
                back: &path,
            };
            Some(question_or(&again, "Not now", session))
        }
        _ => None,
    }
}

fn cancel_text(run: &RunDetails, times: &Times) -> Markup {
    let view = &run.view;
    if run.row.is_none() {
        return html! { p { "It has not started. The request is taken back, and nothing runs for it." } };
    }
    html! {
        p {
            @if let Some(from) = view.started_at { "It has run for " (times.distance(from.0, Distance::Since)) ", and that work is lost. " }
            "It counts as cancelled, not as failed. "
            @if let Some(deadline) = run.explanation.as_ref().and_then(|it| it.deadline) {
                @if times.now < deadline.0 { "The data is late from " (times.short(deadline.0)) " on, unless another run ends well before. " }
            }
            "Its processes get SIGTERM now, and are killed when their grace is over."
        }
    }
}

fn again_text(run: &RunDetails, times: &Times) -> Markup {
    let usual = run.job.as_ref().and_then(|(_, job)| job.average_good_duration).map(|it| it.0);
    html! {
        p {
            "A run is asked for now. It starts as soon as there is room for it"
            @if let Some(at) = run.planned.map(|it| it.at).filter(|at| times.now < *at) {
                ", without waiting for " (times.short(at))
            }
            ". "
            @if let Some(usual) = usual { "It usually takes " (brief(usual)) ". " }
            "The schedule of the job stays as it is."
            @if run.view.params.is_some() { " The parameters of this run are used again." }
        }
    }
}

/// Cancels a run, or takes a request back.
pub(super) async fn cancel(
    State(pages): State<Pages>,
    Path(id): Path<String>,
    form: PageForm<PageOperator>,
) -> PageResult<Response> {
    let mut it = found(&pages.app, &id).await?;
    let path = run_path(&it.id);
    let intake = &pages.app.intake;
    if it.run.is_none()
        && let Some(waiting) = &it.waiting
    {
        match intake.withdraw(form.user.actor(), &it.key, waiting.id).await {
            Ok(()) => {
                let flash = Flash::done(
                    "Request cancelled",
                    format!("Nothing runs for it. The schedule of {} stays as it is.", it.key),
                );
                return Ok(see_other(&path, Some(&flash)));
            }
            // Its run was claimed a moment ago.
            Err(IntakeError::Refused { refusal: Refusal::NotWaiting, .. }) => {
                it = found(&pages.app, &id).await?;
            }
            Err(error) => return Err(not_done(&path, "Not cancelled", error)),
        }
    }
    let over = |outcome: &str| {
        let flash = Flash::failed("Not cancelled", format!("The run is over: {outcome}."));
        see_other(&path, Some(&flash))
    };
    let Some(run) = &it.run else { return Ok(over("cancelled")) };
    match intake
        .cancel(form.user.actor(), run.run)
        .await
        .map_err(|error| not_done(&path, "Not cancelled", error))?
    {
        Cancelled::Asked => {
            let flash = Flash::done(
                "Run told to end",
                format!("{} gets SIGTERM, and is killed when its grace is over.", it.key),
            );
            Ok(see_other(&path, Some(&flash)))
        }
        Cancelled::Over(outcome) => Ok(over(outcome.as_str())),
        Cancelled::Unknown => Err(NoPage::NotFound(format!("there is no run `{}`", run.run))),
    }
}

/// Asks for another run of the job, with the parameters of this one.
pub(super) async fn again(
    State(pages): State<Pages>,
    Path(id): Path<String>,
    form: PageForm<PageOperator>,
) -> PageResult<Response> {
    let it = found(&pages.app, &id).await?;
    let path = run_path(&it.id);
    let title = "Not started";
    let Some(row) = pages.app.store.job(&it.key).await?.filter(|row| !row.is_deleted) else {
        let flash = Flash::failed(title, format!("{} has been removed.", it.key));
        return Err(NoPage::back(path, flash));
    };
    if let Some(pause) = row.state.pause.as_deref().filter(|_| row.job.enabled) {
        let reason = pause.reason.as_ref().map_or(String::new(), |it| format!(" ({})", printable::line(it)));
        let flash = Flash::failed(
            title,
            format!("{} is paused by {}{reason}. Resume it first.", it.key, pause.by.as_str()),
        );
        return Err(NoPage::back(path, flash));
    }
    let once = form.fields.get(ONCE).and_then(|once| {
        let hash = |part: &str| {
            let mut hasher = blake3::Hasher::new_derive_key("evenbeat 2026 button that runs a job again");
            hasher.update(it.key.as_str().as_bytes()).update(&[0]).update(part.as_bytes());
            let mut hash = [0; 16];
            hasher.finalize_xof().fill(&mut hash);
            u128::from_be_bytes(hash)
        };
        id_of(&it.id).map(|run| Idempotency { key: hash(once), body: run.0 })
    });
    let params = it.run.as_ref().and_then(|run| run.due.params.as_deref().cloned());
    let asked = pages.app.intake.trigger(form.user.actor(), &it.key, once, params).await;
    let asked = asked.map_err(|error| not_done(&path, title, error))?;
    let flash =
        Flash::done(format!("Run of {} asked for", it.key), "It starts as soon as there is room for it.");
    Ok(see_other(&run_path(&asked.to_string()), Some(&flash)))
}

/// Back to the run, with the reason.
fn not_done(path: &str, title: &str, error: IntakeError) -> NoPage {
    match error {
        IntakeError::Down(down) => NoPage::Down(down),
        other => NoPage::back(path.to_owned(), Flash::failed(title, format!("{other}."))),
    }
}
