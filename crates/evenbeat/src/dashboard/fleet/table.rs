//! The list of jobs, one page of it.

use evenbeat_core::job::Status;
use evenbeat_core::rights::Role;
use maud::{Markup, html};

use super::address::{ListAddress, PAGE_MAX, PER_PAGE};
use super::bulk;
use crate::dashboard::parts::{
    ConditionMark, Freshness, StripRun, form_token, freshness_bar, icon, job_link, run_strip, status_with,
    time_left,
};
use crate::dashboard::times::{Distance, Times, brief, count, counted, took};
use crate::dashboard::user::PageUser;
use crate::printable;
use crate::views::job_lines::{JobLine, NextEvent};
use crate::views::job_list::{FoundJobs, JobTab, ListOrder, ListQuery, ListedCondition};

/// Most letters of the reason in a row, and of the whole explanation. Fifty failures with long messages must not make a
/// large page.
const WHY_MAX: usize = 160;
const EXPLANATION_MAX: usize = 320;

pub(super) fn table<R>(
    address: &ListAddress,
    found: &FoundJobs,
    lines: &[JobLine],
    user: &PageUser<R>,
    times: &Times,
) -> Markup {
    let may_act = user.may(Role::Operator);
    let rows = html! {
        table.tbl.fix.jobs id="jobs" {
            colgroup { col.k-st; col.k-job; col.k-fr; col; col.k-nx; col.k-hi; col.k-av; col.k-nd; }
            (head(address, may_act, times))
            tbody id="rows" data-rows { @for line in lines { (row(line, may_act, times)) } }
        }
        div id="none" data-l { @if lines.is_empty() { (empty(address, found)) } }
        div id="searched" data-l {
            @if let Some(n) = found.searched {
                p.mut.note {
                    "The search ended after " (counted(n as u64, "job")) ": there may be more that match. Narrow it down with more of the name or a pool."
                }
            }
        }
    };
    html! {
        @if may_act {
            form id="list" method="post" action="/bulk" {
                (form_token(&user.session))
                input type="hidden" id="list-at" data-l name="list" value=(address.path());
                (rows)
                (bulk::bar(found, user.may(Role::Editor)))
            }
        } @else { (rows) }
        (pager(address, found))
    }
}

fn head(address: &ListAddress, may_act: bool, times: &Times) -> Markup {
    let order = address.query.order;
    let sorted = |it: ListOrder| (it == order).then_some("ascending");
    let sort = |it: ListOrder| address.with(|query| query.order = it).path();
    let arrow = |it: ListOrder| html! { @if it == order { span.mut aria-hidden="true" { " ↑" } } };
    let is_queue = address.query.tab == JobTab::Waiting;
    html! {
        thead {
            tr {
                th { @if may_act { input.cb.js-only id="cb-all" type="checkbox" aria-label="Select this page"; } "Condition" }
                th id="th-job" data-l aria-sort=[sorted(ListOrder::Name)] { a href=(sort(ListOrder::Name)) { "Job" (arrow(ListOrder::Name)) } }
                th id="th-fresh" data-l aria-sort=[sorted(ListOrder::Urgency)] {
                    a href=(sort(ListOrder::Urgency)) { (if is_queue { "Freshness, by turn" } else { "Freshness" }) (arrow(ListOrder::Urgency)) }
                }
                th { "Why" }
                th { "Next start, " (times.zone_name()) }
                th { "Last 14 runs" }
                th.num { "Average" }
                th { "Node or pool" }
            }
        }
    }
}

fn row(line: &JobLine, may_act: bool, times: &Times) -> Markup {
    let freshness = freshness(line);
    let is_warning = line.condition == Some(ListedCondition::Warning);
    let strip: Vec<StripRun> =
        line.last_runs.iter().map(|run| StripRun { is_good: run.is_good, took: run.took }).collect();
    html! {
        tr data-key=(line.key) {
            td.c-st {
                @if may_act { input.cb type="checkbox" name="key" value=(line.key) aria-label={ "Select " (line.key) }; }
                (condition(line))
            }
            td.c-job.ell { (job_link(&line.key)) @if let Some(text) = &line.description { " " span.mut.ttl { (printable::line(text)) } } }
            td.c-fr { div.frc { (freshness_bar(freshness, times.now)) span.lft { (time_left(freshness, is_warning, times)) } } }
            td.c-why.ell.t2 title=(cut(&line.explanation, EXPLANATION_MAX)) { (cut(&line.why, WHY_MAX)) }
            td.c-nx.nw { (next(line.next, times)) }
            td.c-hi { (run_strip(&strip)) }
            td.c-av.num.t2 { @if let Some(average) = line.average { (average_text(average)) } }
            td.c-nd.nw.t2.ell { (line.node.as_deref().unwrap_or(&line.pool)) }
        }
    }
}

/// A text on one line, cut where it gets too long for a list.
fn cut(text: &str, most: usize) -> String {
    let text = printable::line(text);
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.into_owned(),
    }
}

fn average_text(average: evenbeat_core::time::Duration) -> String {
    if average < evenbeat_core::time::Duration::from_secs(60) { took(average) } else { brief(average) }
}

fn condition(line: &JobLine) -> Markup {
    let mark = match line.condition {
        Some(ListedCondition::Error) => ConditionMark::Error,
        Some(ListedCondition::Warning) => ConditionMark::Warning,
        Some(ListedCondition::Ok) => ConditionMark::Ok,
        Some(ListedCondition::New) => ConditionMark::New,
        None => ConditionMark::Paused,
    };
    let word = match (line.condition, line.status) {
        (None, Status::Disabled) => "Disabled",
        (None, Status::Done) => "Done",
        _ => mark.word(),
    };
    status_with(mark, word)
}

fn freshness(line: &JobLine) -> Freshness {
    match (line.condition, line.deadline, line.fresh_since) {
        (None, ..) | (_, None, _) => Freshness::NotTracked,
        (Some(_), Some(deadline), None) => Freshness::NeverRan { deadline },
        (Some(_), Some(deadline), Some(since)) => {
            Freshness::Tracked { since, latest_start: line.latest_start.unwrap_or(deadline), deadline }
        }
    }
}

fn next(next: NextEvent, times: &Times) -> Markup {
    html! {
        @match next {
            NextEvent::Running(since) => {
                (icon("run")) " " span.nx { span.sr { "running for " } (times.distance(since, Distance::Since)) }
            }
            NextEvent::Queued => { (icon("wait")) " " span.nx { "queued" } }
            NextEvent::StartsAt(at) => { (times.short(at)) " " span.mut { (times.distance(at, Distance::In)) } }
            NextEvent::Nothing => span.mut { "none" },
        }
    }
}

fn empty(address: &ListAddress, found: &FoundJobs) -> Markup {
    let query = &address.query;
    let clear = ListAddress { query: ListQuery { tab: query.tab, ..ListQuery::default() }, page_idx: 0 };
    html! {
        div.empty {
            @if 0 < address.page_idx {
                (icon("search"))
                h3 { "This page is past the end" }
                p { a.link href=(address.at_page(0).path()) { "Go to the first page" } }
            } @else if query.is_filtered() && found.searched.is_some() {
                (icon("search"))
                h3 { "Nothing found so far" }
                p { "Not all jobs were looked at. " a.link href=(clear.path()) data-clear { "Clear the filters" } }
            } @else if query.is_filtered() {
                (icon("search"))
                h3 { "No job matches" }
                p { "Nothing in this list matches the filters. " a.link href=(clear.path()) data-clear { "Clear the filters" } }
            } @else {
                @match query.tab {
                    JobTab::Attention => {
                        (icon("ok")) h3 { "Nothing needs attention" }
                        p { "No job is late or at risk. " a.link href="/?tab=all" { "Show all jobs" } }
                    }
                    JobTab::All => { (icon("search")) h3 { "No jobs" } }
                    JobTab::Running => { (icon("run")) h3 { "Nothing is running" } }
                    JobTab::Waiting => { (icon("ok")) h3 { "Nothing waits" } p { "Every job that may start has a slot." } }
                    JobTab::Paused => { (icon("paused")) h3 { "No job is paused" } }
                }
            }
        }
    }
}

fn pager(address: &ListAddress, found: &FoundJobs) -> Markup {
    let total = found.total;
    let first = address.skip();
    let last = first + found.keys.len();
    let is_more = (last as u64) < total.n && address.page_idx + 1 < PAGE_MAX && found.keys.len() == PER_PAGE;
    let plus = if total.is_exact { "" } else { "+" };
    let is_at_end_of_pages = address.page_idx + 1 == PAGE_MAX && (last as u64) < total.n;
    html! {
        div.pager id="pager" data-l {
            span id="cnt" {
                @if found.keys.is_empty() { "0 jobs" }
                @else if (found.keys.len() as u64) == total.n && total.is_exact { (counted(total.n, "job")) }
                @else { (count(first as u64 + 1)) " to " (count(last as u64)) " of " (count(total.n)) (plus) " jobs" }
                @if is_at_end_of_pages { ". Lists end here; narrow it down to see the others" }
            }
            span.sp {}
            @if 0 < address.page_idx { a.btn rel="prev" href=(address.at_page(address.page_idx - 1).path()) { "Previous" } }
            @if is_more { a.btn rel="next" href=(address.at_page(address.page_idx + 1).path()) { "Next" } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_and_stays_on_its_line() {
        assert_eq!(cut("short", 5), "short");
        assert_eq!(cut("ééé\nx", 3), "ééé…");
        assert_eq!(cut("a\nb", 9), "a\\nb");
    }
}
