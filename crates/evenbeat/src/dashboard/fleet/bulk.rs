//! One action on ticked jobs, or on all that a list has: asked for, confirmed with the count, carried out, and reported
//! with what failed.
//!
//! "All" is the filter of the list and not the keys of its rows. The count that was confirmed must still hold.

use std::time::{Duration as Length, Instant as Moment};

use axum::extract::State;
use axum::response::Response;
use evenbeat_core::ids::JobKey;
use evenbeat_core::nearest::shortened;
use evenbeat_core::rights::Role;
use evenbeat_core::time::{Duration, Timestamp};
use maud::{Markup, html};

use super::address::{ListAddress, PER_PAGE};
use crate::app::App;
use crate::dashboard::Pages;
use crate::dashboard::error::{NoPage, PageResult, see_other};
use crate::dashboard::flash::Flash;
use crate::dashboard::frame::{Frame, Nav};
use crate::dashboard::parts::form_token;
use crate::dashboard::times::{count, counted};
use crate::dashboard::user::{FormFields, PageForm, PageOperator};
use crate::intake::{Actor, BulkAction, BulkOutcome, IntakeError};
use crate::views::job_list::{FoundJobs, find};

/// Most jobs that one form may change.
const JOBS_MAX: usize = 5_000;

/// How long a form may take. What is left then is reported.
const GO_ON_FOR: Length = Length::from_secs(10);

/// Jobs that are written in one transaction.
const PER_BATCH: usize = 200;

/// Keys that a confirmation shows, and failures that a message names.
const SHOWN_MAX: usize = 10;
const FAILURES_MAX: usize = 3;

/// Longest reason of a pause.
const REASON_MAX: usize = 1_000;

/// How long a pause may last, as the form offers it.
const PAUSES: [(&str, &str); 6] = [
    ("", "until someone resumes them"),
    ("1h", "for 1 hour"),
    ("4h", "for 4 hours"),
    ("1d", "for 1 day"),
    ("3d", "for 3 days"),
    ("7d", "for 7 days"),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ListVerb {
    Run,
    Pause,
    Resume,
    Delete,
}

impl ListVerb {
    const ALL: [ListVerb; 4] = [ListVerb::Run, ListVerb::Pause, ListVerb::Resume, ListVerb::Delete];

    fn as_str(self) -> &'static str {
        match self {
            ListVerb::Run => "run",
            ListVerb::Pause => "pause",
            ListVerb::Resume => "resume",
            ListVerb::Delete => "delete",
        }
    }

    /// On its button.
    fn label(self) -> &'static str {
        match self {
            ListVerb::Run => "Run now",
            ListVerb::Pause => "Pause",
            ListVerb::Resume => "Resume",
            ListVerb::Delete => "Delete",
        }
    }

    /// Before a number of jobs: "Run 3 jobs".
    fn order(self) -> &'static str {
        match self {
            ListVerb::Run => "Run",
            other => other.label(),
        }
    }

    fn past(self) -> &'static str {
        match self {
            ListVerb::Run => "Requested runs of",
            ListVerb::Pause => "Paused",
            ListVerb::Resume => "Resumed",
            ListVerb::Delete => "Deleted",
        }
    }

    fn role(self) -> Role {
        match self {
            ListVerb::Run | ListVerb::Pause | ListVerb::Resume => Role::Operator,
            ListVerb::Delete => Role::Editor,
        }
    }

    /// What it does, before it is confirmed.
    fn consequence(self) -> &'static str {
        match self {
            ListVerb::Run => {
                "Each starts as soon as its pool has a slot, in front of planned runs. Paused jobs are left out."
            }
            ListVerb::Pause => {
                "Runs that have started go on. No new runs start, and there are no alerts when these jobs get late."
            }
            ListVerb::Resume => "They start again as planned.",
            ListVerb::Delete => {
                "Runs that have started go on. Their history stays until it is trimmed. This cannot be undone."
            }
        }
    }
}

/// The bar under the list. Without scripts it is always there; with them, from the first ticked row on.
pub(super) fn bar(found: &FoundJobs, may_delete: bool) -> Markup {
    let is_more = (found.keys.len() as u64) < found.total.n;
    html! {
        div.bulk id="bulk" role="region" aria-label="Selected jobs" {
            span {
                b.bk-n { "Selected jobs" }
                span id="bk-more" data-l {
                    @if is_more && found.total.is_exact && found.total.n <= JOBS_MAX as u64 {
                        label.ckb.bk-all { input type="checkbox" name="all" value="1"; "Select all " (count(found.total.n)) " matching" }
                    }
                }
            }
            span.sp {}
            @for verb in ListVerb::ALL {
                @if verb != ListVerb::Delete || may_delete {
                    button.btn type="submit" name="verb" value=(verb.as_str()) { (verb.label()) }
                }
            }
            button.btn.bare.bk-x.js-only type="button" { "Clear" }
        }
    }
}

/// The frame in which scripts show a confirmation.
pub(super) fn dialog() -> Markup {
    html! { dialog.dlg.small id="bulk-dlg" aria-labelledby="confirm-h" {} }
}

/// What a form asks for.
struct BulkOrder {
    verb: ListVerb,
    list: ListAddress,
    is_all: bool,
    keys: Vec<JobKey>,
}

pub(super) async fn act(State(pages): State<Pages>, form: PageForm<PageOperator>) -> PageResult<Response> {
    let PageForm { user, fields } = form;
    let app = &pages.app;
    let order = order_of(app, &fields).await?;
    if !user.may(order.verb.role()) {
        return Err(NoPage::NotAllowed(order.verb.role()));
    }
    let n = order.keys.len();
    let back = order.list.path();
    let refused = |title: &str, text: String| NoPage::back(back.clone(), Flash::failed(title, text));
    let confirmed = match fields.get("confirm") {
        // What can be undone by the same button needs no question.
        None if order.verb == ListVerb::Resume && !order.is_all => n,
        None => {
            let times = user.times(app.clock.store_now());
            let form = html! { (form_token(&user.session)) (question(&order)) };
            let body = html! { h1.sr { "Confirm" } form.confirm id="confirm" method="post" action="/bulk" { (form) } };
            return Ok(Frame::new(Nav::Fleet, "Confirm", body).show(&user, &times));
        }
        Some(text) => text.parse().unwrap_or(0),
    };
    if confirmed != n {
        let text = format!(
            "{} match now, not {}. Look at them again.",
            counted(n as u64, "job"),
            count(confirmed as u64)
        );
        return Err(refused("Nothing was done", text));
    }
    let action =
        action_of(order.verb, &fields, app.intake.now()).map_err(|text| refused("Nothing was done", text))?;
    let report = carry_out(app, user.actor(), &action, &order.keys).await?;
    Ok(see_other(&back, Some(&report.flash(order.verb))))
}

async fn order_of(app: &App, fields: &FormFields) -> PageResult<BulkOrder> {
    let word = fields.get("verb").unwrap_or_default();
    let Some(verb) = ListVerb::ALL.into_iter().find(|verb| verb.as_str() == word) else {
        return Err(NoPage::Refused(format!(
            "`{}` is not something that can be done to jobs",
            shortened(word)
        )));
    };
    // Built again from its parts, so that the way back never leads anywhere else.
    let list = fields
        .get("list")
        .unwrap_or("/")
        .parse()
        .map_err(|_| NoPage::Refused("the list is not an address".to_owned()))?;
    let list = ListAddress::parse(&FormFields::of_query(&list)).map_err(NoPage::Refused)?;
    let is_all = fields.get("all").is_some();
    let refused = |text: String| NoPage::back(list.path(), Flash::failed("Nothing was done", text));
    let mut keys = Vec::new();
    if is_all {
        let found = find(app, &list.query, 0, JOBS_MAX + 1).await?;
        if JOBS_MAX < found.keys.len() || found.searched.is_some() {
            let text =
                format!("More than {} jobs match. Narrow the list, or use the API.", count(JOBS_MAX as u64));
            return Err(refused(text));
        }
        keys = found.keys;
    } else {
        for key in fields.all("key") {
            keys.push(
                key.parse().map_err(|_| NoPage::Refused(format!("`{}` is not a job", shortened(key))))?,
            );
        }
    }
    keys.sort();
    keys.dedup();
    if keys.is_empty() || !is_all && JOBS_MAX < keys.len() {
        return Err(refused("Tick the jobs first.".to_owned()));
    }
    Ok(BulkOrder { verb, list, is_all, keys })
}

/// What a form says about the action. The error says what is wrong.
fn action_of(verb: ListVerb, fields: &FormFields, now: Timestamp) -> Result<BulkAction, String> {
    Ok(match verb {
        ListVerb::Run => BulkAction::Trigger,
        ListVerb::Resume => BulkAction::Resume,
        ListVerb::Delete => BulkAction::Delete,
        ListVerb::Pause => {
            let reason = fields.get("reason").map(str::to_owned);
            if reason.as_ref().is_some_and(|it| REASON_MAX < it.chars().count() || it.contains('\0')) {
                return Err(format!("The reason has more than {REASON_MAX} characters. Shorten it."));
            }
            let length = fields.get("for").map(str::parse::<Duration>).transpose();
            let length = length.map_err(|error| format!("The pause has no length: {error}."))?;
            BulkAction::Pause(reason, length.map(|length| now + length))
        }
    })
}

/// The question before anything is done.
fn question(order: &BulkOrder) -> Markup {
    let BulkOrder { verb, list, is_all, keys } = order;
    let n = keys.len() as u64;
    html! {
        input type="hidden" name="list" value=(list.path());
        input type="hidden" name="verb" value=(verb.as_str());
        input type="hidden" name="confirm" value=(n);
        @if *is_all { input type="hidden" name="all" value="1"; }
        @else { @for key in keys { input type="hidden" name="key" value=(key); } }
        div.dlg-h { h2 id="confirm-h" { (verb.order()) " " (counted(n, "job")) "?" } }
        div.dlg-b {
            p { (verb.consequence()) }
            @if *verb == ListVerb::Pause {
                p.bk-f { label for="bk-for" { "Pause them" } " "
                    select.sel id="bk-for" name="for" { @for (value, text) in PAUSES { option value=(value) { (text) } } }
                }
                p.bk-f { label for="bk-reason" { "Why" } " " input.in id="bk-reason" name="reason" maxlength=(REASON_MAX) placeholder="Others read this" autocomplete="off"; }
            }
            p.mut.bk-k {
                @for (idx, key) in keys.iter().take(SHOWN_MAX).enumerate() { @if 0 < idx { ", " } (key) }
                @if SHOWN_MAX < keys.len() { " and " (count(n - SHOWN_MAX as u64)) " more" }
            }
        }
        div.dlg-f {
            span.sp {}
            a.btn href=(list.path()) data-close { "Cancel" }
            button.btn.dng[*verb == ListVerb::Delete].pri[*verb != ListVerb::Delete] type="submit" { (verb.order()) " " (counted(n, "job")) }
        }
    }
}

/// What became of the jobs.
#[derive(Debug, Default)]
struct BulkReport {
    n_done: u64,
    n_unchanged: u64,
    n_failed: u64,
    /// Jobs that were not reached in time.
    n_left: u64,
    /// The first that failed, and why.
    failures: Vec<String>,
}

async fn carry_out(app: &App, actor: &Actor, action: &BulkAction, keys: &[JobKey]) -> PageResult<BulkReport> {
    let began = Moment::now();
    let mut report = BulkReport::default();
    for (idx, keys_of_batch) in keys.chunks(PER_BATCH).enumerate() {
        if GO_ON_FOR <= began.elapsed() {
            report.n_left = keys.len().saturating_sub(idx * PER_BATCH) as u64;
            break;
        }
        let rows = app.store.jobs_of(keys_of_batch.into()).await?;
        let rows: Vec<_> = rows.into_iter().filter(|row| !row.is_deleted).collect();
        // A job that someone else deleted meanwhile counts as deleted.
        report.n_unchanged += (keys_of_batch.len() - rows.len()) as u64;
        let outcomes = app.intake.act_on(actor, action, &rows).await;
        let outcomes = outcomes.map_err(|error| match error {
            IntakeError::Down(down) => NoPage::Down(down),
            other => NoPage::Refused(other.to_string()),
        })?;
        for outcome in outcomes {
            match outcome {
                Ok(BulkOutcome::Done) => report.n_done += 1,
                Ok(BulkOutcome::Unchanged) => report.n_unchanged += 1,
                Err(error) => {
                    report.n_failed += 1;
                    if report.failures.len() < FAILURES_MAX {
                        report.failures.push(error.to_string());
                    }
                }
            }
        }
    }
    Ok(report)
}

impl BulkReport {
    /// The message for the next page.
    fn flash(&self, verb: ListVerb) -> Flash {
        let title = format!("{} {}", verb.past(), counted(self.n_done, "job"));
        let mut parts = Vec::new();
        if 0 < self.n_unchanged {
            let was = if self.n_unchanged == 1 { "was" } else { "were" };
            parts.push(format!("{} {was} so already.", counted(self.n_unchanged, "job")));
        }
        if 0 < self.n_left {
            parts.push(format!("{} left after 10 s: do it again.", counted(self.n_left, "job")));
        }
        if 0 < self.n_failed {
            parts.push(format!(
                "{} could not be changed: {}.",
                counted(self.n_failed, "job"),
                self.failures.join("; ")
            ));
        }
        let text = parts.join(" ");
        let flash = if self.n_failed + self.n_left == 0 {
            Flash::done(title, text)
        } else {
            Flash::failed(title, text)
        };
        match verb {
            ListVerb::Pause => flash.with_link("/?tab=paused", "Show paused jobs"),
            ListVerb::Run => flash.with_link("/?tab=running", "Show running jobs"),
            ListVerb::Resume | ListVerb::Delete => flash,
        }
    }
}

/// A page never ticks more than it shows, so that a form without "all" stays small.
const _: () = assert!(PER_PAGE <= JOBS_MAX);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_names_what_failed() {
        let report = BulkReport {
            n_done: 2,
            n_unchanged: 1,
            n_failed: 1,
            n_left: 0,
            failures: vec!["`a`: the job is disabled; enable it first".to_owned()],
        };
        let flash = report.flash(ListVerb::Pause);
        assert!(flash.is_failure);
        assert_eq!(flash.title, "Paused 2 jobs");
        assert_eq!(
            flash.text,
            "1 job was so already. 1 job could not be changed: `a`: the job is disabled; enable it first."
        );
        let all = BulkReport { n_done: 1, ..BulkReport::default() };
        assert_eq!(all.flash(ListVerb::Run).title, "Requested runs of 1 job");
        assert!(!all.flash(ListVerb::Run).is_failure);
    }

    #[test]
    fn a_pause_has_a_reason_and_an_end() {
        let now: Timestamp = "2026-11-18T10:00:00Z".parse().unwrap();
        let fields = |query: &str| FormFields::of_query(&format!("/?{query}").parse().unwrap());
        let pause = |query: &str| action_of(ListVerb::Pause, &fields(query), now);
        assert_eq!(pause("for=&reason="), Ok(BulkAction::Pause(None, None)));
        assert_eq!(
            pause("for=1h&reason=stock"),
            Ok(BulkAction::Pause(Some("stock".to_owned()), Some(now + Duration::from_hours(1))))
        );
        assert!(pause("for=soon").is_err());
        assert!(pause(&format!("reason={}", "x".repeat(1_001))).is_err());
    }
}
