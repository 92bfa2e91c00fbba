//! The editor of a definition: for a job that is there, and for a new one. "Preview" shows what a change does, "Save" writes
//! it unless someone else was quicker.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use evenbeat_core::ids::JobKey;
use evenbeat_core::job::Job;
use evenbeat_core::rights::Role;
use evenbeat_core::spec::written;
use evenbeat_core::store::{JobRow, Revision};
use evenbeat_core::zone::Zone;
use maud::{Markup, html};
use serde_json::Value as Json;

use super::actions::version_of;
use super::draft::{DraftFault, JobDraft, KINDS, ValidDraft, example_of};
use super::preview::{ChangedField, preview};
use super::why::coded;
use super::{job_of, show};
use crate::dashboard::Pages;
use crate::dashboard::error::{NoPage, PageResult, see_other, sentence};
use crate::dashboard::flash::Flash;
use crate::dashboard::frame::{Frame, Nav};
use crate::dashboard::parts::{form_token, icon, job_path};
use crate::dashboard::times::Times;
use crate::dashboard::user::{PageEditor, PageForm, PageUser, PageViewer};
use crate::intake::{DefinitionPreview, Expect, IntakeError};
use crate::printable;
use crate::views::definition::doubts_around;
use crate::views::definition_text;
use crate::views::job_detail::{AuditMark, last_change};
use crate::views::model::{JobDefinition, field_changes};

/// Starts that a preview lists.
const N_STARTS: usize = 10;

/// What the editor shows besides the form.
#[derive(Default)]
struct EditorState {
    faults: Vec<DraftFault>,
    warnings: Vec<DraftFault>,
    preview: Option<Markup>,
    /// What someone else has written meanwhile.
    newer: Option<NewerVersion>,
}

struct NewerVersion {
    revision: Revision,
    text: String,
    by: Option<AuditMark>,
}

/// The form for a new job. A job that is called `new` has its page here too; then `?add=1` leads to the form.
pub(super) async fn new_page(user: PageUser<PageViewer>, State(pages): State<Pages>) -> PageResult<Response> {
    let key: Option<JobKey> = "new".parse().ok();
    if user.query.get("add").is_none()
        && let Some(key) = key
        && let Some(row) = pages.app.store.job(&key).await?.filter(|row| !row.is_deleted)
    {
        return Box::pin(show(&user, &pages, row)).await;
    }
    if !user.may(Role::Editor) {
        return Err(NoPage::NotAllowed(Role::Editor));
    }
    let draft = match user.query.get("like") {
        Some(like) => match job_of(&pages, like).await {
            Ok(row) => JobDraft { key: String::new(), ..JobDraft::of_job(&row.job) },
            Err(answer) => return Ok(answer),
        },
        None => new_draft(&user),
    };
    let times = user.times(pages.app.intake.now());
    Ok(editor(&user, &times, None, None, &draft, &EditorState::default(), StatusCode::OK))
}

/// A new job as far as the address says something about it.
fn new_draft<R>(user: &PageUser<R>) -> JobDraft {
    let text = |name: &str, default: &str| user.query.get(name).unwrap_or(default).to_owned();
    let words: Vec<String> = text("command", "")
        .split_whitespace()
        .map(|word| toml::Value::String(word.to_owned()).to_string())
        .collect();
    let command = if words.is_empty() {
        "command = [\"echo\", \"hello\"]".to_owned()
    } else {
        format!("command = [{}]", words.join(", "))
    };
    JobDraft {
        key: text("key", ""),
        kind: text("kind", "every"),
        when: text("when", "1h"),
        rest: format!("{command}\n"),
        tz: text("tz", ""),
        ..JobDraft::default()
    }
}

pub(super) async fn edit_page(
    user: PageUser<PageEditor>,
    State(pages): State<Pages>,
    Path(key): Path<String>,
) -> PageResult<Response> {
    let row = match job_of(&pages, &key).await {
        Ok(row) => row,
        Err(answer) => return Ok(answer),
    };
    let times = user.times(pages.app.intake.now());
    let draft = JobDraft::of_job(&row.job);
    Ok(editor(
        &user,
        &times,
        Some(&row.job.key),
        Some(row.revision),
        &draft,
        &EditorState::default(),
        StatusCode::OK,
    ))
}

/// Adds a job, or shows what that would do.
pub(super) async fn create(State(pages): State<Pages>, form: PageForm<PageEditor>) -> PageResult<Response> {
    write(&pages, &form, None).await
}

/// Changes a job, or shows what that would do.
pub(super) async fn save(
    State(pages): State<Pages>,
    Path(key): Path<String>,
    form: PageForm<PageEditor>,
) -> PageResult<Response> {
    match job_of(&pages, &key).await {
        Ok(row) => write(&pages, &form, Some(&row)).await,
        Err(answer) => Ok(answer),
    }
}

async fn write(pages: &Pages, form: &PageForm<PageEditor>, row: Option<&JobRow>) -> PageResult<Response> {
    let user = &form.user;
    let times = user.times(pages.app.intake.now());
    let draft = JobDraft::of_form(&form.fields);
    let key = row.map(|row| &row.job.key);
    let version = version_of(&form.fields)?.or(row.map(|row| row.revision));
    let mut state = EditorState::default();
    let valid = match draft.read(key, times.now) {
        Ok(valid) => valid,
        Err(faults) => {
            state.faults = faults;
            return Ok(editor(user, &times, key, version, &draft, &state, StatusCode::UNPROCESSABLE_ENTITY));
        }
    };
    let is_save = form.fields.get("do") == Some("save");
    if is_save {
        match put(pages, form, row, &valid, version).await? {
            Ok(answer) => return Ok(answer),
            Err(SaveRefusal::Stale) => return stale(pages, form, row, &draft).await,
            Err(SaveRefusal::Fault(fault)) => state.faults.push(fault),
        }
        return Ok(editor(user, &times, key, version, &draft, &state, StatusCode::UNPROCESSABLE_ENTITY));
    }
    let job = Arc::new(valid.job);
    state.warnings = valid.warnings;
    state.warnings.extend(doubts(pages, &job).await);
    let seen = match row {
        Some(row) => Some(row.clone()),
        None => pages.app.store.job(&job.key).await?.filter(|row| !row.is_deleted),
    };
    if row.is_none() && seen.is_some() {
        state.faults.push(exists(&job.key));
        return Ok(editor(user, &times, key, version, &draft, &state, StatusCode::UNPROCESSABLE_ENTITY));
    }
    match pages.app.intake.preview_put(Arc::clone(&job), seen.as_ref(), N_STARTS).await {
        Ok(found) => state.preview = Some(shown(&found, &job, seen.as_ref(), &times)),
        Err(IntakeError::Down(down)) => return Err(NoPage::Down(down)),
        Err(error) => {
            state.faults.push(DraftFault::plain(error.to_string()));
            return Ok(editor(user, &times, key, version, &draft, &state, StatusCode::UNPROCESSABLE_ENTITY));
        }
    }
    Ok(editor(user, &times, key, version, &draft, &state, StatusCode::OK))
}

fn exists(key: &JobKey) -> DraftFault {
    let help = format!("choose another key, or change it at `{}/edit`", job_path(key.as_str()));
    DraftFault {
        field: Some("Key".to_owned()),
        help: Some(help),
        ..DraftFault::plain(format!("there is a job `{key}` already"))
    }
}

fn shown(found: &DefinitionPreview, job: &Job, seen: Option<&JobRow>, times: &Times) -> Markup {
    let changes = seen.map(|row| changes(&row.job, job)).unwrap_or_default();
    preview(found, &job.schedule, &changes, seen.is_none(), times)
}

fn changes(before: &Job, after: &Job) -> Vec<ChangedField> {
    let text = |value: &Json| match value {
        Json::Null => String::new(),
        Json::String(text) => text.clone(),
        other => other.to_string(),
    };
    let changes = field_changes(&written(before), &written(after));
    changes
        .into_iter()
        .map(|it| ChangedField { name: it.field, before: text(&it.before), after: text(&it.after) })
        .collect()
}

/// What is doubtful because of what is around the job.
async fn doubts(pages: &Pages, job: &Job) -> Vec<DraftFault> {
    let found = doubts_around(&pages.app, std::slice::from_ref(job), |_| String::new()).await;
    let fault = |field: &str, message: String| DraftFault {
        field: Some(field.trim_start_matches('/').to_owned()),
        ..DraftFault::plain(message)
    };
    found.into_iter().map(|it| fault(&it.pointer, it.detail)).collect()
}

/// Why a save did not happen.
enum SaveRefusal {
    /// Someone else was quicker.
    Stale,
    Fault(DraftFault),
}

async fn put(
    pages: &Pages,
    form: &PageForm<PageEditor>,
    row: Option<&JobRow>,
    valid: &ValidDraft,
    version: Option<Revision>,
) -> PageResult<Result<Response, SaveRefusal>> {
    let expect = match row {
        None => Expect::New,
        Some(row) => Expect::Revision(version.unwrap_or(row.revision)),
    };
    let key = valid.job.key.clone();
    let put = pages.app.intake.put(form.user.actor(), Arc::new(valid.job.clone()), expect).await;
    let row_after = match put {
        Ok(row) => row,
        Err(IntakeError::Down(down)) => return Err(NoPage::Down(down)),
        Err(IntakeError::OtherRevision { .. }) => return Ok(Err(SaveRefusal::Stale)),
        Err(IntakeError::Refused { refusal: evenbeat_core::edit::Refusal::Exists, .. }) => {
            return Ok(Err(SaveRefusal::Fault(exists(&key))));
        }
        Err(error) => return Ok(Err(SaveRefusal::Fault(DraftFault::plain(error.to_string())))),
    };
    let times = form.user.times(pages.app.intake.now());
    let title = if row.is_none() { format!("Added {key}") } else { format!("Saved {key}") };
    let next = row_after.state.next_run_at.filter(|_| row_after.state.pause.is_none());
    let text =
        next.map_or("It has no next run.".to_owned(), |at| format!("Next run {}.", times.short_text(at)));
    Ok(Ok(see_other(&job_path(key.as_str()), Some(&Flash::done(title, text)))))
}

/// Shows what someone else has written meanwhile, beside what was written here: nothing is lost.
async fn stale(
    pages: &Pages,
    form: &PageForm<PageEditor>,
    row: Option<&JobRow>,
    draft: &JobDraft,
) -> PageResult<Response> {
    let Some(row) = row else { return Err(NoPage::Refused("the job is new".to_owned())) };
    let key = &row.job.key;
    let times = form.user.times(pages.app.intake.now());
    let text = definition_text::job_file(&JobDefinition::of(&row.job)).unwrap_or_default();
    let newer = NewerVersion { revision: row.revision, text, by: last_change(&pages.app, key).await? };
    let state = EditorState { newer: Some(newer), ..EditorState::default() };
    Ok(editor(&form.user, &times, Some(key), Some(row.revision), draft, &state, StatusCode::CONFLICT))
}

fn editor<R>(
    user: &PageUser<R>,
    times: &Times,
    key: Option<&JobKey>,
    version: Option<Revision>,
    draft: &JobDraft,
    state: &EditorState,
    status: StatusCode,
) -> Response {
    let title = key.map_or("Add a job".to_owned(), |key| format!("Edit · {key}"));
    let back = key.map_or("/welcome".to_owned(), |key| job_path(key.as_str()));
    let body = html! {
        nav.crumb aria-label="Breadcrumb" {
            a href="/?tab=all" { "Fleet" } span { "/" }
            @match key { Some(key) => a href=(back) { (key) }, None => a href="/welcome" { "Add jobs" } }
        }
        div.jh { h1 { @match key { Some(key) => { "Edit " (key) }, None => "Add a job" } } }
        @if let Some(newer) = &state.newer { (newer_banner(newer, times)) }
        (faults(&state.faults))
        form.ed method="post" action={ @match key { Some(key) => { "/jobs/" (key) "/edit" }, None => "/jobs/new" } } {
            (form_token(&user.session))
            @if let Some(Revision(version)) = version { input type="hidden" name="version" value=(version); }
            (fields(draft, key, &state.faults))
            div.ed-f {
                button.btn.pri type="submit" name="do" value="preview" { "Preview" }
                button.btn type="submit" name="do" value="save" { @if state.newer.is_some() { "Save over it" } @else if key.is_none() { "Add" } @else { "Save" } }
                a.btn.bare href=(back) { "Cancel" }
            }
        }
        (warnings(&state.warnings))
        @if let Some(preview) = &state.preview { (preview) }
    };
    let mut frame = Frame::new(if key.is_some() { Nav::Fleet } else { Nav::Welcome }, title, body);
    frame.status = status;
    frame.show(user, times)
}

fn newer_banner(newer: &NewerVersion, times: &Times) -> Markup {
    html! {
        div.banner.warn role="alert" {
            (icon("warning"))
            span {
                "Not saved: "
                @match &newer.by { Some(by) => { (printable::line(&by.actor)) " changed the job at " (times.short(by.at)) }, None => "someone else changed the job" }
                ". What you wrote is below. Saving it now replaces version " (newer.revision.0) "."
            }
        }
        details.def open { summary { "Version " (newer.revision.0) ", as it is now" } pre.logx tabindex="0" { (printable::lines(&newer.text)) } }
    }
}

fn faults(faults: &[DraftFault]) -> Markup {
    html! {
        @if !faults.is_empty() {
            div.banner.err role="alert" {
                (icon("error"))
                ul.faults { @for it in faults { li { (fault(it)) } } }
            }
        }
    }
}

fn warnings(warnings: &[DraftFault]) -> Markup {
    html! {
        @if !warnings.is_empty() {
            div.banner.warn.gap { (icon("warning")) ul.faults { @for it in warnings { li { (fault(it)) } } } }
        }
    }
}

fn fault(it: &DraftFault) -> Markup {
    html! {
        @if let Some(field) = &it.field { b { (printable::line(field)) } @if let Some(line) = it.line { ", line " (line) } ": " }
        @else if let Some(line) = it.line { b { "Line " (line) } ": " }
        (coded(&sentence(&it.message)))
        @if let Some(help) = &it.help { " " span.t2 { (coded(&sentence(help))) } }
    }
}

fn fields(draft: &JobDraft, key: Option<&JobKey>, faults: &[DraftFault]) -> Markup {
    let wrong = |label: &str| faults.iter().any(|it| it.field.as_deref() == Some(label)).then_some("true");
    let text = |label: &str, name: &str, value: &str, hint: &str| {
        html! {
            label.fld { span { (label) } input.in name=(name) value=(value) placeholder=(hint) autocomplete="off" spellcheck="false" aria-invalid=[wrong(label)]; }
        }
    };
    let n_rows = draft.rest.lines().count().clamp(8, 28);
    html! {
        @if key.is_none() { div.ed-r { (text("Key", "key", &draft.key, "shop-prices or shop-prices@eu")) } }
        div.ed-r {
            label.fld {
                span { "Schedule" }
                select.sel id="kind" name="kind" aria-invalid=[wrong("Schedule")] {
                    @for (kind, words) in KINDS { option value=(kind) selected[draft.kind == kind] data-hint=(example_of(kind)) { (kind) ", " (words) } }
                }
            }
            label.fld {
                span { "Value" }
                input.in name="when" value=(draft.when) autocomplete="off" spellcheck="false" aria-invalid=[wrong("Value")] aria-describedby="when-n";
                span.mut.fld-n id="when-n" { (coded(&sentence(example_of(&draft.kind)))) }
            }
            (text("Rest after a good run", "cooldown", &draft.cooldown, "only for fresh"))
            (text("Done within", "finish_within", &draft.finish_within, "for every, cron and once"))
            label.fld {
                span { "Time zone" }
                input.in name="tz" value=(draft.tz) placeholder="UTC" list="zones" autocomplete="off" aria-invalid=[wrong("Time zone")];
                datalist id="zones" { @for name in common_zones() { option value=(name) {} } }
            }
        }
        label.fld {
            span { "Blackouts, one a line" }
            textarea.in name="blackouts" rows="2" spellcheck="false" placeholder="22:00 to 06:00 on mon-fri" aria-invalid=[wrong("Blackouts")] { (draft.blackouts) }
        }
        label.fld {
            span { "Everything else, as in a job file" }
            textarea.in.mono.ed-t name="rest" rows=(n_rows) spellcheck="false" aria-describedby="rest-n" { "\n" (draft.rest) }
            span.mut.fld-n id="rest-n" { "Fields such as " code { "command" } ", " code { "max_allowed_duration" } ", " code { "labels" } "; tables are written " code { "[job.retry]" } "." }
        }
    }
}

/// Zones that are offered; any other may be written.
fn common_zones() -> Vec<String> {
    let is_common = |name: &String| {
        [
            "UTC",
            "Europe/Berlin",
            "Europe/London",
            "Europe/Paris",
            "America/New_York",
            "America/Chicago",
            "America/Los_Angeles",
        ]
        .contains(&name.as_str())
            || [
                "America/Sao_Paulo",
                "Asia/Kolkata",
                "Asia/Shanghai",
                "Asia/Singapore",
                "Asia/Tokyo",
                "Australia/Sydney",
            ]
            .contains(&name.as_str())
    };
    Zone::all_names().into_iter().filter(is_common).collect()
}
