//! Mutes: those in force, and the form for another.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use evenbeat_core::alert::{Mute, MuteScope};
use evenbeat_core::ids::JobKey;
use evenbeat_core::job::Job;
use evenbeat_core::rights::Role;
use maud::{Markup, html};

use super::mute_end::MuteEnd;
use crate::alerts::{MUTE_REASON_CHARS_MAX, MuteError};
use crate::dashboard::Pages;
use crate::dashboard::error::{NoPage, PageResult, see_other};
use crate::dashboard::flash::Flash;
use crate::dashboard::frame::{Frame, Nav};
use crate::dashboard::parts::{PageQuestion, form_token, icon, question};
use crate::dashboard::times::{Distance, Times, count};
use crate::dashboard::user::{FormFields, PageForm, PageOperator, PageUser, PageViewer};
use crate::printable;
use crate::store::query::JobFilter;
use evenbeat_core::store::StoreDown;

/// Most labels of a job that are offered.
const LABELS_MAX: usize = 8;

/// Mutes that are listed.
const LISTED_MAX: usize = 100;

/// The page with the form, about a job if one is given.
pub(super) fn path(job: Option<&str>) -> String {
    match job.filter(|job| job.parse::<JobKey>().is_ok()) {
        Some(job) => format!("/alerts/mute?job={job}"),
        None => "/alerts/mute".to_owned(),
    }
}

/// The mutes that there are.
pub(super) fn section(mutes: &[Mute], user: &PageUser<PageViewer>, times: &Times) -> Markup {
    let row = |mute: &Mute| {
        let what = scope_text(&mute.scope);
        html! {
            tr {
                td.ell title=(what) { b { (what) } }
                td.t2.ell title=(printable::line(&mute.reason)) { (printable::line(&mute.actor)) ": " (printable::line(&mute.reason)) }
                td.nw {
                    @if times.now < mute.starts_at { "from " (times.short(mute.starts_at)) " to " }
                    (times.short(mute.ends_at)) " " span.mut { (times.distance(mute.ends_at, Distance::In)) }
                }
                td.num {
                    @if user.may(Role::Operator) {
                        form method="post" action="/alerts/unmute" {
                            (form_token(&user.session))
                            input type="hidden" name="id" value=(uuid::Uuid::from_u128(mute.id));
                            button.btn.bare type="submit" { "End now" span.sr { ": " (what) } }
                        }
                    }
                }
            }
        }
    };
    let ahead = || mutes.iter().filter(|mute| times.now < mute.ends_at);
    let n_more = ahead().count().saturating_sub(LISTED_MAX);
    html! {
        section.sec id="mutes" data-l aria-labelledby="m-h" {
            div.sec-h { h2 id="m-h" { "Mutes" } span.sub { "checks go on, only the messages stop" } }
            @if ahead().next().is_none() { p.mut { "Nothing is muted." } }
            @else {
                table.tbl.fix.rts.mts {
                    colgroup { col.z1; col; col.z3; col.z4; }
                    thead { tr { th { "What" } th { "Who and why" } th { "Until, " (times.zone_name()) } th { span.sr { "Action" } } } }
                    tbody { @for mute in ahead().take(LISTED_MAX) { (row(mute)) } }
                }
                @if 0 < n_more { p.mut { "and " (count(n_more as u64)) " more: " code { "evenbeat alert mutes" } " lists all." } }
            }
        }
    }
}

/// `prices*`, `site shop.example`, `everything`.
fn scope_text(scope: &MuteScope) -> String {
    let (kind, value) = scope.parts();
    let text = match scope {
        MuteScope::Fleet => "everything".to_owned(),
        MuteScope::Jobs(_) => value,
        _ => format!("{kind} {value}"),
    };
    printable::line(&text).into_owned()
}

/// The form, on a page of its own; a script shows it as a dialog.
pub(super) async fn page(user: PageUser<PageOperator>, State(pages): State<Pages>) -> PageResult<Response> {
    let fields = user.query.clone();
    show(&pages, &user, &fields, None).await
}

async fn show(
    pages: &Pages,
    user: &PageUser<PageOperator>,
    fields: &FormFields,
    problem: Option<&str>,
) -> PageResult<Response> {
    let times = user.times(pages.app.intake.now());
    let choices = match fields.get("job").and_then(|it| it.parse::<JobKey>().ok()) {
        Some(key) => choices(pages, &key).await?,
        None => Vec::new(),
    };
    let end = fields.get("until").and_then(MuteEnd::of).unwrap_or(MuteEnd::Soon);
    let asked = PageQuestion {
        title: "Mute alerts".to_owned(),
        body: html! {
            @if let Some(problem) = problem { div.why.error role="alert" { (icon("error")) div { b { (problem) } } } }
            @if let (Some(job), false) = (fields.get("job"), choices.is_empty()) { input type="hidden" name="job" value=(job); }
            (what_fields(fields, &choices))
            fieldset.fld {
                legend { "Until, " (times.zone_name()) "; an end is needed" }
                div.rad {
                    @for it in MuteEnd::ALL {
                        label { input type="radio" name="until" value=(it.value()) checked[it == end] data-verb=(it.verb(&times)); " " (it.label(&times)) }
                    }
                }
            }
            label.fld {
                span { "Why" }
                input.in name="why" required maxlength=(MUTE_REASON_CHARS_MAX) autocomplete="off" placeholder="for the others, for example: the site moves" value=[fields.get("why")];
            }
            p { "Runs and checks go on, and the page still shows what is open. At the end you hear what is different from before." }
        },
        action: "/alerts/mute".to_owned(),
        verb: end.verb(&times),
        is_final: false,
        back: "/alerts",
    };
    let body = question(&asked, &user.session);
    let mut frame = Frame::new(Nav::Alerts, asked.title, body);
    if problem.is_some() {
        frame.status = StatusCode::BAD_REQUEST;
    }
    Ok(frame.show(user, &times))
}

/// What can be muted: as offered for a job, or typed.
fn what_fields(fields: &FormFields, choices: &[(String, String)]) -> Markup {
    let (what, scope) = (fields.get("what"), fields.get("scope"));
    let kinds = [
        ("jobs", "Jobs by key; * stands for any text"),
        ("label", "Jobs with a label, as name=value"),
        ("site", "Jobs of a site"),
        ("tenant", "Jobs of a tenant"),
        ("fleet", "Everything, the scheduler included"),
    ];
    html! {
        @if choices.is_empty() {
            label.fld {
                span { "What" }
                select.sel name="scope" {
                    @for (kind, label) in kinds { option value=(kind) selected[scope == Some(kind)] { (label) } }
                }
            }
            label.fld data-value-of="scope" {
                span { "Which" }
                input.in name="value" value=[fields.get("value")] autocomplete="off" spellcheck="false" placeholder="prices-*";
            }
        } @else {
            label.fld {
                span { "What" }
                select.sel name="what" { @for (value, label) in choices { option value=(value) selected[what == Some(value)] { (label) } } }
            }
        }
    }
}

/// What can be muted because of a job: itself, and what it shares with others, with how many.
async fn choices(pages: &Pages, key: &JobKey) -> PageResult<Vec<(String, String)>> {
    let Some(row) = pages.app.store.job(key).await?.filter(|row| !row.is_deleted) else {
        return Ok(Vec::new());
    };
    let mut choices = vec![(format!("jobs {key}"), key.to_string())];
    for (value, filter) in shared(&row.job) {
        let counted = pages.app.store.count_jobs(filter).await?;
        let n = if counted.is_more { format!("{}+", count(counted.n)) } else { count(counted.n) };
        let label =
            format!("{}, {n} {}", printable::line(&value), if counted.n == 1 { "job" } else { "jobs" });
        choices.push((value, label));
    }
    choices.push(("fleet".to_owned(), "everything, the scheduler included".to_owned()));
    Ok(choices)
}

fn shared(job: &Job) -> Vec<(String, JobFilter)> {
    let mut shared = Vec::new();
    for (name, value) in job.labels.iter().take(LABELS_MAX) {
        let labels = vec![(name.clone(), value.clone())];
        shared.push((format!("label {name}={value}"), JobFilter { labels, ..JobFilter::default() }));
    }
    if let Some(site) = &job.site {
        let filter = JobFilter { site: Some(site.clone()), ..JobFilter::default() };
        shared.push((format!("site {site}"), filter));
    }
    if let Some(tenant) = &job.tenant {
        let filter = JobFilter { tenant: Some(tenant.clone()), ..JobFilter::default() };
        shared.push((format!("tenant {tenant}"), filter));
    }
    shared
}

/// Mutes. What is wrong is said beside the form, which keeps what was typed.
pub(super) async fn mute(State(pages): State<Pages>, form: PageForm<PageOperator>) -> PageResult<Response> {
    let times = form.user.times(pages.app.intake.now());
    let (scope, end, reason) = match read(&form.fields) {
        Ok(read) => read,
        Err(problem) => return show(&pages, &form.user, &form.fields, Some(&problem)).await,
    };
    let ends_at = end.at(&times);
    let muted = pages.app.alerts.mute(scope, (times.now, ends_at), reason, form.user.actor()).await;
    match muted {
        Ok(mute) => {
            let title = format!("Muted {} until {}", scope_text(&mute.scope), times.short_text(ends_at));
            let flash = Flash::done(title, "Checks go on. End it early under Mutes.");
            Ok(see_other("/alerts", Some(&flash)))
        }
        Err(MuteError::Down(why)) => Err(NoPage::Down(StoreDown(why))),
        Err(error) => show(&pages, &form.user, &form.fields, Some(&error.to_string())).await,
    }
}

fn read(fields: &FormFields) -> Result<(MuteScope, MuteEnd, String), String> {
    let (kind, value) = match fields.get("what") {
        Some(what) => what.split_once(' ').unwrap_or((what, "")),
        None => (fields.get("scope").unwrap_or_default(), fields.get("value").unwrap_or_default()),
    };
    // A mute of everything may come with text left over in the field.
    let value = if kind == "fleet" { "" } else { value };
    let scope = MuteScope::of_parts(kind, value)?;
    let end = fields.get("until").and_then(MuteEnd::of).ok_or("Choose when the mute ends")?;
    let reason = fields.get("why").unwrap_or_default();
    if reason.is_empty() || MUTE_REASON_CHARS_MAX < reason.chars().count() {
        return Err(format!("Say why, in at most {MUTE_REASON_CHARS_MAX} characters"));
    }
    Ok((scope, end, reason.to_owned()))
}

/// Ends a mute.
pub(super) async fn unmute(State(pages): State<Pages>, form: PageForm<PageOperator>) -> PageResult<Response> {
    let id = form.fields.get("id").and_then(|it| uuid::Uuid::parse_str(it).ok());
    let Some(id) = id else { return Err(NoPage::Refused("this is not the id of a mute".to_owned())) };
    let flash = if pages.app.store.remove_mute(id.as_u128()).await? {
        Flash::done("The mute has ended", "You hear what is different from before.")
    } else {
        Flash::failed("There is no such mute", "It may have ended already.")
    };
    Ok(see_other("/alerts", Some(&flash)))
}
