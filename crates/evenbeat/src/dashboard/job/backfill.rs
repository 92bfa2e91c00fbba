//! Runs for a time range of the past: first counted, then asked for.

use axum::extract::{Path, State};
use axum::response::Response;
use evenbeat_core::edit::BackfillPlan;
use evenbeat_core::ids::JobKey;
use evenbeat_core::nearest::shortened;
use evenbeat_core::time::{Duration, TimeWindow};
use maud::{Markup, html};

use super::actions::{key_of, refused};
use super::job_of;
use crate::dashboard::Pages;
use crate::dashboard::error::{NoPage, PageResult, see_other, sentence};
use crate::dashboard::flash::Flash;
use crate::dashboard::frame::{Frame, Nav};
use crate::dashboard::parts::{form_token, icon, job_path};
use crate::dashboard::times::{Times, count, counted};
use crate::dashboard::user::{FormFields, PageForm, PageOperator, PageUser};
use crate::intake::{IntakeError, backfill_range};
use crate::views::local_time::{field_text, parse_local};

/// Starts that are listed one by one.
const N_LISTED: usize = 10;

/// The requested range.
#[derive(Clone, Copy, Debug)]
struct AskedRange {
    window: TimeWindow,
    max: Option<u32>,
}

impl AskedRange {
    /// The range of a form; none if it names none. The error says what is wrong.
    fn of(fields: &FormFields, times: &Times) -> Result<Option<AskedRange>, String> {
        let instant = |name: &str| {
            let text = fields.get(name);
            let read = |text: &str| {
                parse_local(&times.zone, text)
                    .ok_or_else(|| format!("`{}` is not a date and a time", shortened(text)))
            };
            text.map(read).transpose()
        };
        let Some(from) = instant("from")? else { return Ok(None) };
        let max = fields
            .get("max")
            .map(|text| {
                text.parse::<u32>().map_err(|_| format!("`{}` is not a whole number", shortened(text)))
            })
            .transpose()?;
        let window = backfill_range(from, instant("to")?, max, times.now).map_err(|fault| fault.detail)?;
        Ok(Some(AskedRange { window, max }))
    }
}

/// The form; with a range, also what it would do. Counting changes nothing, so it has an address.
pub(super) async fn page(
    user: PageUser<PageOperator>,
    State(pages): State<Pages>,
    Path(key): Path<String>,
) -> PageResult<Response> {
    let row = match job_of(&pages, &key).await {
        Ok(row) => row,
        Err(answer) => return Ok(answer),
    };
    let key = &row.job.key;
    let times = user.times(pages.app.intake.now());
    let counted = match AskedRange::of(&user.query, &times) {
        Ok(None) => None,
        Ok(Some(range)) => match plan(&pages, key, range).await {
            Ok(plan) => Some(Ok((range, plan))),
            Err(IntakeError::Down(down)) => return Err(NoPage::Down(down)),
            Err(error) => Some(Err(error.to_string())),
        },
        Err(detail) => Some(Err(detail)),
    };
    let body = html! {
        nav.crumb aria-label="Breadcrumb" { a href="/?tab=all" { "Fleet" } span { "/" } a href=(job_path(key.as_str())) { (key) } }
        div.jh { h1 { "Backfill " (key) } }
        p.sub { "Asks for a run of each start time in the past. These runs give way to what is due now." }
        (form(&user.query, key, &times))
        @match &counted {
            Some(Ok((range, plan))) => (result(*range, plan, &user, key, &times)),
            Some(Err(detail)) => (fault(detail)),
            None => {},
        }
    };
    Ok(Frame::new(Nav::Fleet, format!("Backfill · {key}"), body).show(&user, &times))
}

async fn plan(pages: &Pages, key: &JobKey, range: AskedRange) -> Result<BackfillPlan, IntakeError> {
    pages.app.intake.plan_backfill(key, range.window, range.max.map(u64::from)).await
}

fn fault(detail: &str) -> Markup {
    html! { div.banner.err role="alert" { (icon("error")) span { (super::why::coded(&sentence(detail))) } } }
}

fn form(query: &FormFields, key: &JobKey, times: &Times) -> Markup {
    let field = |name: &str, default: String| query.get(name).map_or(default, str::to_owned);
    html! {
        form.ed method="get" action={ "/jobs/" (key) "/backfill" } {
            div.ed-r {
                label.fld { span { "From, " (times.zone_name()) } input.in type="datetime-local" name="from" required value=(field("from", field_text(&times.zone, times.now - Duration::from_days(1)))); }
                label.fld { span { "To" } input.in type="datetime-local" name="to" value=(field("to", field_text(&times.zone, times.now))); }
                label.fld { span { "At most" } input.in type="number" name="max" min="1" max="1000" placeholder="1000" value=(field("max", String::new())); }
            }
            div.ed-f { button.btn type="submit" { "Count the runs" } a.btn.bare href=(job_path(key.as_str())) { "Cancel" } }
        }
    }
}

fn result(
    range: AskedRange,
    plan: &BackfillPlan,
    user: &PageUser<PageOperator>,
    key: &JobKey,
    times: &Times,
) -> Markup {
    let n = plan.due.len();
    html! {
        section.sec.gap aria-labelledby="b-h" {
            div.sec-h { h2 id="b-h" { (counted(n as u64, "run")) " would be requested" } }
            p.t2 {
                (counted(plan.n_occurrences, "start time")) " between " (times.short(range.window.start())) " and " (times.short(range.window.end())) "."
                @if 0 < plan.n_waiting { " " (count(plan.n_waiting)) " of them already wait for a run." }
                @if let Some(next) = plan.next_from { " The rest begins at " (times.short(next)) "." }
            }
            @if 0 < n {
                ol.nr.nr-w {
                    @for at in plan.due.iter().take(N_LISTED) { li { b { (times.short(*at)) } } }
                }
                @if N_LISTED < n { p.mut { "and " (n - N_LISTED) " more, up to " @if let Some(last) = plan.due.last() { (times.short(*last)) } } }
                form.ed-f method="post" action={ "/jobs/" (key) "/backfill" } {
                    (form_token(&user.session))
                    input type="hidden" name="from" value=(field_text(&times.zone, range.window.start()));
                    input type="hidden" name="to" value=(field_text(&times.zone, range.window.end()));
                    @if let Some(max) = range.max { input type="hidden" name="max" value=(max); }
                    button.btn.pri type="submit" { "Ask for " (counted(n as u64, "run")) }
                }
            }
        }
    }
}

/// Asks for the runs. Those that wait already are not asked for twice.
pub(super) async fn request(
    State(pages): State<Pages>,
    Path(key): Path<String>,
    form: PageForm<PageOperator>,
) -> PageResult<Response> {
    let key = key_of(&key)?;
    let back = format!("/jobs/{key}/backfill");
    let times = form.user.times(pages.app.intake.now());
    let wrong = |detail: String| {
        NoPage::back(back.clone(), Flash::failed("No runs were requested", sentence(&detail)))
    };
    let range = AskedRange::of(&form.fields, &times).map_err(wrong)?;
    let range = range.ok_or_else(|| wrong("say from when on".to_owned()))?;
    let title = "The backfill was not requested";
    let plan = plan(&pages, &key, range).await.map_err(|error| refused(&key, title, error))?;
    let n_due = plan.due.len();
    for (n_done, due_at) in plan.due.into_iter().enumerate() {
        let asked = pages.app.intake.backfill_one(form.user.actor(), &key, due_at).await;
        asked.map_err(|error| {
            refused(&key, &format!("Only {n_done} of {n_due} runs were requested"), error)
        })?;
    }
    let text = match n_due {
        0 => "All of them wait already.",
        _ => "They start when nothing else needs the room.",
    };
    let flash = Flash::done(format!("Requested {} of {key}", counted(n_due as u64, "run")), text);
    Ok(see_other(&job_path(key.as_str()), Some(&flash)))
}
