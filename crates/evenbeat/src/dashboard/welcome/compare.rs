//! A crontab that was read: as it is, as proposed, and what becomes of each line.

use evenbeat_core::rights::Role;
use maud::{Markup, html};

use super::heat::{heat_map, legend};
use crate::dashboard::parts::icon;
use crate::dashboard::times::{Times, count, counted};
use crate::dashboard::user::PageUser;
use crate::printable;
use crate::views::analysis::shown_score;
use crate::views::takeover::{EntryFate, Takeover, TakeoverEntry};

/// Lines in the table. Those after them are taken over too, if they can be.
pub(super) const LISTED_MAX: usize = 200;

/// The heading and its second line.
pub(super) fn verdict(it: &Takeover, is_fleet_empty: bool) -> (String, String) {
    let (n, can) = (it.entries.len() as u64, it.n_jobs() as u64);
    let entries = if n == 1 { "1 entry".to_owned() } else { format!("{} entries", count(n)) };
    let start = if is_fleet_empty { "No jobs yet. " } else { "" };
    let (before, after) = (&it.figures.as_is, &it.figures.proposed);
    let title = format!("{start}Your crontab has {entries}, {} can be taken over", count(can));
    let most = counted(before.peak_minute.n_starts.into(), "start");
    let note = if before.distribution.n_runs == 0 {
        "None of them starts today.".to_owned()
    } else if it.n_moved() == 0 {
        format!("At most {most} in one minute. Moving them would gain nothing, so all keep their times.")
    } else {
        let spread = count(after.peak_minute.n_starts.into());
        let hours =
            if it.figures.keeps_hours() { ", with the same number of starts in every hour" } else { "" };
        format!("Up to {most} in one minute. Spread out it is {spread}{hours}.")
    };
    (title, note)
}

/// The heat maps and the figures.
pub(super) fn comparison(it: &Takeover, times: &Times) -> Markup {
    let (before, after) = (&it.figures.as_is, &it.figures.proposed);
    let most = before.by_minute.iter().chain(&after.by_minute).copied().max().unwrap_or(0);
    let zone = &it.figures.zone;
    html! {
        div.maps {
            (heat_map("as it is", before, most, zone, times))
            (heat_map("as proposed", after, most, zone, times))
        }
        (legend())
        dl.delta.wd {
            div { dt { "Evenness, 1.00 is flat" } dd { span.from { (shown_score(before.score)) " →" } " " (shown_score(after.score)) } }
            div { dt { "Most in one minute" } dd { span.from { (count(before.peak_minute.n_starts.into())) " →" } " " (count(after.peak_minute.n_starts.into())) } }
            div { dt { "Get a new minute" } dd { (count(it.n_moved() as u64)) " " small.mut { "of " (count(it.n_jobs() as u64)) } } }
        }
        @if 0 < it.n_jobs_here {
            p.mut { "The crontab is compared on its own, without the " (counted(it.n_jobs_here as u64, "job")) " that " @if it.n_jobs_here == 1 { "is" } @else { "are" } " here already." }
        }
    }
}

/// What becomes of each line, with the button that takes them over.
pub(super) fn take_over<R>(it: &Takeover, form: &str, user: &PageUser<R>) -> Markup {
    let can = it.n_jobs() as u64;
    let zone = it.figures.zone.name();
    html! {
        section.sec.gap aria-labelledby="t-h" {
            div.sec-h {
                h2 id="t-h" { "3. Take over" }
                span.sub {
                    (count(can)) " of " (count(it.entries.len() as u64)) "; times in " (zone)
                    @if it.assumes_utc { ", because the crontab names no zone: add a line such as CRON_TZ=Europe/Berlin at its top to change that" }
                }
                span.sp {}
                @if can == 0 {}
                @else if user.may(Role::Editor) {
                    label.ckb { input type="checkbox" name="keep" value="1" form=(form); " Keep every time as it is" }
                    button.btn.pri id="take" type="submit" form=(form) formaction="/welcome/take" { "Take over " (counted(can, "job")) }
                } @else { span.mut { "Taking over needs the role editor." } }
            }
            @if !it.variables.is_empty() {
                @let names: Vec<&str> = it.variables.iter().map(String::as_str).collect();
                p.mut { "Jobs get the variables that the crontab sets above them: " (names.join(", ")) "." }
            }
            table.tbl.fix.tko {
                colgroup { col.t0; col.t1; col.t2c; col; col.t5; }
                thead { tr { th { span.sr { "Take over" } } th.num { "Line" } th { "Schedule" } th { "Command" } th { "Becomes" } } }
                tbody { @for entry in it.entries.iter().take(LISTED_MAX) { (row(entry, form)) } }
            }
            @if LISTED_MAX < it.entries.len() {
                @let rest = it.entries.get(LISTED_MAX..).unwrap_or_default();
                @let n_jobs = rest.iter().filter(|it| matches!(it.fate, EntryFate::Job(_))).count();
                p.mut { "And " (count(rest.len() as u64)) " more lines, of which " (count(n_jobs as u64)) " are taken over too." }
            }
        }
    }
}

fn row(entry: &TakeoverEntry, form: &str) -> Markup {
    let command = printable::line(&entry.command);
    html! {
        @match &entry.fate {
            EntryFate::Job(proposal) => {
                tr {
                    td { input type="checkbox" name="line" value=(entry.line) form=(form) checked aria-label={ "Take over line " (entry.line) }; }
                    td.num.nw.mut.k-l { (entry.line) }
                    td.mono.nw { (entry.schedule) }
                    td.mono.ell.k-c title=(command) { (command) }
                    td.ell.k-n {
                        b { (proposal.job.key) } " "
                        @if let Some(new) = &proposal.new_cron { span.mono { (new) } }
                        @else { span.mut { "keeps its time" } }
                    }
                }
            }
            EntryFate::Stays(reason) => {
                @let reason = reason.text();
                tr.no {
                    td { input type="checkbox" disabled aria-label={ "Line " (entry.line) " stays behind" }; }
                    td.num.nw.mut.k-l { (entry.line) }
                    td.mono.nw { (entry.schedule) }
                    td.mono.ell.k-c title=(command) { (command) }
                    td.k-n { (icon("warning")) " " (printable::line(&reason)) }
                }
            }
        }
    }
}
