//! How the starts of a day are spread, and the rebalance: preview, compare, confirm, result.
//!
//! ```text
//!  /schedule -- POST /schedule/rebalance/preview --> /schedule?plan=ID -- POST /schedule/rebalance --> /schedule
//!                     makes a plan                      shows the plan         applies that plan       says what it did
//! ```
//!
//! A plan that can no longer be applied leads to a new preview that says so, never to a different result.

mod charts;
mod day;
mod preview;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::{get, post};
use evenbeat_core::ids::JobKey;
use evenbeat_core::placement::KeptReason;
use evenbeat_core::store::PlanId;
use maud::{Markup, html};

use self::preview::{PreviewDialog, Replaced, reason_text};
use super::Pages;
use super::error::{NoPage, PageResult, see_other};
use super::flash::Flash;
use super::frame::{Frame, Nav};
use super::parts::{form_token, icon};
use super::times::{count, counted};
use super::user::{PageForm, PageOperator, PageUser, PageViewer};
use crate::fleet::DAY_HOURS;
use crate::intake::{IntakeError, PlanSummary, RebalanceResult};
use crate::views::analysis::shown_score;
use crate::views::schedule;

pub(super) fn routes() -> Router<Pages> {
    Router::new()
        .route("/schedule", get(page))
        .route("/schedule/rebalance/preview", post(preview))
        .route("/schedule/rebalance", post(rebalance))
}

async fn page(user: PageUser<PageViewer>, State(pages): State<Pages>) -> PageResult<Response> {
    let app = &pages.app;
    let day = schedule::day(app).await?;
    let times = user.times(app.intake.now());
    let wanted = user.query.get("plan").map(plan_id);
    let plan = match wanted {
        Some(Some(id)) => app.intake.plan_summary(id).await.map_err(not_done)?.map(|plan| (id, plan)),
        Some(None) | None => None,
    };
    let banner = if wanted.is_some() && plan.is_none() {
        no_longer_there()
    } else if user.query.get("rebalance") == Some("preview") {
        asks_for_preview(&user)
    } else {
        html! {}
    };
    let dialog = match &plan {
        Some((id, plan)) => {
            let schedules = schedules_of(&pages, plan).await?;
            let replaced = user.query.get("instead").and_then(Replaced::of);
            PreviewDialog { id: *id, plan, schedules, capacity: day.capacity, replaced }.show(&user, &times)
        }
        None => html! {},
    };
    let body = day::body(&day, &banner, &user, &times);
    Ok(Frame::new(Nav::Schedule, "Schedule", body)
        .live("job score rebalance")
        .dialogs(dialog)
        .show(&user, &times))
}

fn plan_id(text: &str) -> Option<PlanId> {
    uuid::Uuid::try_parse(text).ok().map(|it| PlanId(it.as_u128()))
}

/// The schedules of the jobs that a plan lists, in words.
async fn schedules_of(pages: &Pages, plan: &PlanSummary) -> PageResult<BTreeMap<String, String>> {
    let keys: Vec<JobKey> = plan.moves.iter().filter_map(|it| it.key.parse().ok()).collect();
    if keys.is_empty() {
        return Ok(BTreeMap::new());
    }
    let rows = pages.app.store.jobs_of(keys.into()).await?;
    Ok(rows.iter().map(|row| (row.job.key.to_string(), row.job.schedule.to_string())).collect())
}

fn no_longer_there() -> Markup {
    html! {
        div.banner.warn role="status" {
            (icon("warning"))
            span { "This preview is gone: it was applied, or it is older than an hour. Make a new one to see what a rebalance would do now." }
        }
    }
}

/// An address must not make a plan. With scripts, the form is sent at once.
fn asks_for_preview(user: &PageUser<PageViewer>) -> Markup {
    html! {
        form.banner.calm method="post" action="/schedule/rebalance/preview" id="rb-ask" {
            (form_token(&user.session))
            span { "A preview shows what a rebalance would do. It changes nothing." }
            span.sp {}
            button.btn.pri type="submit" { "Preview rebalance" }
        }
    }
}

async fn preview(State(pages): State<Pages>, form: PageForm<PageViewer>) -> PageResult<Response> {
    let plan = pages.app.intake.plan_rebalance(form.user.actor()).await.map_err(not_done)?;
    Ok(see_other(&format!("/schedule?plan={}", plan.id), None))
}

async fn rebalance(State(pages): State<Pages>, form: PageForm<PageOperator>) -> PageResult<Response> {
    let intake = &pages.app.intake;
    let actor = form.user.actor();
    let Some(id) = form.fields.get("plan").and_then(plan_id) else {
        return Err(NoPage::Refused("the form names no rebalance plan; make a new preview".to_owned()));
    };
    let summary = intake.plan_summary(id).await.map_err(not_done)?;
    let replaced = match intake.rebalance(actor, id).await {
        Ok(done) => {
            let day = pages.app.fleet.distribution(intake.now(), DAY_HOURS).await;
            let n_unchanged = summary.as_ref().map_or(0, |it| it.n_unchanged);
            let peaks = summary.map(|it| it.before.peak().1).zip(day.ok().map(|it| it.peak_slot().1));
            return Ok(see_other("/schedule", Some(&outcome(&done, n_unchanged, peaks))));
        }
        Err(IntakeError::PlanIsOld { .. }) => Replaced::Old,
        Err(IntakeError::NoSuchPlan { .. }) => Replaced::Gone,
        Err(other) => return Err(not_done(other)),
    };
    let plan = intake.plan_rebalance(actor).await.map_err(not_done)?;
    Ok(see_other(&format!("/schedule?plan={}&instead={}", plan.id, replaced.word()), None))
}

/// What a rebalance did, with numbers; the busiest slot before and after if they are known.
fn outcome(done: &RebalanceResult, n_unchanged: usize, peaks: Option<(u32, u32)>) -> Flash {
    let moved = counted(done.moved.len() as u64, "job");
    let n_held_back = done.held_back.len() as u64;
    let title = if n_held_back == 0 {
        format!("Moved {moved}, {} stayed", count((n_unchanged + done.skipped.len()) as u64))
    } else {
        format!("Moved {moved}, {} could not move", count(n_held_back))
    };
    let mut text = format!("Evenness {} to {}", shown_score(done.old_score), shown_score(done.new_score));
    if let Some((before, after)) = peaks {
        // Writing to a string cannot fail.
        let _ = write!(text, ", busiest slot {} to {}", count(before.into()), count(after.into()));
    }
    text.push('.');
    let reasons: Vec<String> = KeptReason::ALL
        .into_iter()
        .filter_map(|reason| {
            let n = done.held_back.iter().filter(|it| it.reason == reason).count();
            (0 < n).then(|| format!("{} {}", count(n as u64), reason_text(reason).0.to_lowercase()))
        })
        .collect();
    if !reasons.is_empty() {
        let _ = write!(text, " Not moved: {}.", reasons.join(", "));
    }
    Flash::done(title, text)
}

/// A preview or a rebalance that was refused, shown on the page that requested it.
fn not_done(error: IntakeError) -> NoPage {
    match error {
        IntakeError::Down(down) => NoPage::Down(down),
        other => NoPage::back("/schedule".to_owned(), Flash::failed("Nothing was moved", other.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use evenbeat_core::placement::Kept;

    use super::*;

    #[test]
    fn the_outcome_tells_who_could_not_move() {
        let kept = |key: &str, reason| Kept { key: key.parse().unwrap(), reason };
        let held_back = vec![kept("b", KeptReason::JobRunning), kept("c", KeptReason::JobRunning)];
        let skipped = [vec![kept("a", KeptReason::PinnedSchedule)], held_back.clone()].concat();
        let done =
            RebalanceResult { moved: Vec::new(), skipped, held_back, old_score: 0.634, new_score: 0.84 };
        let flash = outcome(&done, 5, Some((82, 43)));
        assert_eq!(flash.title, "Moved 0 jobs, 2 could not move");
        assert_eq!(flash.text, "Evenness 0.63 to 0.84, busiest slot 82 to 43. Not moved: 2 running now.");
        let quiet = RebalanceResult { held_back: Vec::new(), ..done };
        assert_eq!(outcome(&quiet, 5, None).title, "Moved 0 jobs, 8 stayed");
        assert_eq!(outcome(&quiet, 5, None).text, "Evenness 0.63 to 0.84.");
    }
}
