//! The list of runs with its tabs and filters.

use evenbeat_core::time::Duration;
use maud::{Markup, html};

use super::query::{RunsAddress, WITHIN};
use crate::dashboard::parts::{icon, job_link, run_path, run_status, run_word};
use crate::dashboard::times::{Distance, Times, count, counted, took};
use crate::printable;
use crate::views::run_board::{BoardRow, EndedStrip, RunBoard, RunTab, SinceThen};

/// Tabs and filters.
pub(super) fn tabs(
    address: &RunsAddress,
    strip: &EndedStrip,
    n_running: Option<u32>,
    pools: &[String],
) -> Markup {
    // The numbers are those of the last day, so they stand only where the list is of the same runs.
    let is_counted = !address.is_filtered() && address.length() == Some(strip.window);
    let n = |tab: RunTab| match tab {
        RunTab::Running => n_running.filter(|_| !address.is_filtered()).map(u64::from),
        RunTab::All => is_counted.then_some(strip.n_ended),
        tab => is_counted.then(|| tab.outcomes().iter().map(|it| strip.n(*it)).sum()),
    };
    html! {
        div.bar-f {
            nav.tabs aria-label="Outcome" id="runs-tabs" data-l {
                @for tab in RunTab::ALL {
                    a href=(address.with_tab(tab).path()) aria-current=[(tab == address.tab).then_some("true")] {
                        (tab_word(tab)) @if let Some(n) = n(tab) { " " span.n { (count(n)) } }
                    }
                }
            }
            span.sp {}
            form.flt role="search" aria-label="Filter this list" action="/runs" {
                @if address.tab != RunTab::default() { input type="hidden" name="o" value=(address.tab.as_str()); }
                @if let Some(job) = &address.job { input type="hidden" name="job" value=(job); }
                label.sr for="q" { "Filter runs" }
                span.field {
                    (icon("search"))
                    input.in id="q" name="q" type="search" placeholder="Job, reason or run id" value=[address.text.as_deref()] autocomplete="off";
                    kbd aria-hidden="true" { "/" }
                }
                @if 1 < pools.len() || address.pool.is_some() {
                    label.sr for="rp" { "Pool" }
                    select.sel id="rp" name="pool" data-submit {
                        option value="" { "All pools" }
                        @for pool in pools {
                            option value=(pool) selected[address.pool.as_ref().is_some_and(|it| it.as_str() == pool)] { (printable::line(pool)) }
                        }
                    }
                }
                @if address.tab != RunTab::Running {
                    label.sr for="rt" { "Ended within" }
                    select.sel id="rt" name="within" data-submit {
                        @for (word, shown, _) in WITHIN {
                            option value=(word) selected[address.within.unwrap_or("24h") == word] { (shown) }
                        }
                    }
                }
                noscript { button.btn type="submit" { "Filter" } }
            }
        }
        @if let Some(job) = &address.job {
            p.chips { a.chip href=(RunsAddress { job: None, before: None, ..address.clone() }.path()) { "Job " (job) (icon("x")) span.sr { ", remove this filter" } } }
        }
    }
}

fn tab_word(tab: RunTab) -> &'static str {
    match tab {
        RunTab::Bad => "Bad",
        RunTab::All => "All",
        RunTab::Running => "Running",
        RunTab::Failed => "Failed",
        RunTab::TimedOut => "Timed out",
        RunTab::Lost => "Lost",
        RunTab::Cancelled => "Cancelled",
    }
}

/// The rows, and the way to older ones.
pub(super) fn table(address: &RunsAddress, board: &RunBoard, times: &Times) -> Markup {
    let is_running = address.tab == RunTab::Running;
    let older = board.next.map(|run| RunsAddress { before: Some(run), ..address.clone() }.path());
    html! {
        div id="runs-list" data-l[board.rows.is_empty()] {
            @if board.rows.is_empty() { (empty(address, board.looked.is_some())) }
            @else {
                table.tbl.fix.rl id="rl" {
                    colgroup { col.y1; col.y2; col.y3; col.y5; col; col."y4 c-w"; col."y6 c-w"; }
                    thead {
                        tr {
                            th aria-sort="descending" { @if is_running { "Claimed, " } @else { "Ended, " } (times.zone_name()) " ↓" }
                            th { "Outcome" } th { "Job" } th.num.r-d { @if is_running { "For" } @else { "Took" } } th { "Why" }
                            th.c-w { "Node" } th.c-w { "Since then" }
                        }
                    }
                    tbody id="runs-rows" data-rows { @for row in &board.rows { (run_row(row, times)) } }
                }
            }
        }
        div.pager id="runs-pager" data-l {
            span {
                @if !board.rows.is_empty() { (counted(board.rows.len() as u64, "run")) @if address.before.is_some() { " of an older page" } }
                @if let Some((n, at)) = board.looked {
                    @if !board.rows.is_empty() { ", " }
                    "found among the " (count(n as u64)) " runs that ended since " (times.short(at))
                }
            }
            span.sp {}
            @if address.before.is_some() { a.btn href=(RunsAddress { before: None, ..address.clone() }.path()) { "Latest" } }
            @if let Some(older) = older { a.btn href=(older) rel="next" { @if board.looked.is_some() { "Look further back" } @else { "Older" } } }
        }
    }
}

fn run_row(row: &BoardRow, times: &Times) -> Markup {
    let run = &row.view;
    let why = run.sentence.as_deref().map(|it| it.strip_prefix("The run ").unwrap_or(it));
    let why = why.map(capital).map(|it| printable::line(&it).into_owned());
    let at = run.ended_at.or(run.claimed_at).map(|it| it.0);
    html! {
        tr data-key=(run.id) {
            td.nw.c-t { @if let Some(at) = at { (times.exact(at)) } }
            td.c-s { (run_status(&run.status)) }
            td.ell.c-j title=(run.job) { (job_link(&run.job)) }
            td.num.nw.r-d.c-d {
                @if let Some(length) = run.took { (took(length.0)) }
                @else if let Some(from) = run.started_at.filter(|_| run.outcome.is_none()) { (times.distance(from.0, Distance::Since)) }
            }
            td.ell.t2.c-r title=[why.as_deref()] {
                a href=(run_path(&run.id)) {
                    @match &why { Some(why) => (why), None if run.outcome.is_some() => "Open the run", None => { "Open the run" @if run.cancel_asked { ", told to end" } } }
                }
            }
            td.ell.nw.t2.c-w { @if let Some(node) = &run.node { (printable::line(node)) } }
            td.nw.t2.c-w { @if let Some(since) = row.since_then { (since_words(since, run.outcome.as_deref(), times)) } }
        }
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| format!("{}{}", first.to_uppercase(), letters.as_str()))
}

fn since_words(since: SinceThen, was: Option<&str>, times: &Times) -> Markup {
    html! {
        @match since {
            SinceThen::Good(_) => "good since",
            SinceThen::Ended(outcome) => {
                (run_word(outcome.as_str()).to_lowercase())
                @if Some(outcome.as_str()) == was { " again" } @else { " since" }
            }
            SinceThen::Running => "runs again now",
            SinceThen::Retry(at) => { "retry " (at_or_now(at, times)) }
            SinceThen::Next(at) => { "next " (at_or_now(at, times)) }
            SinceThen::Paused => "paused",
            SinceThen::Removed => "job removed",
            SinceThen::Nothing => "nothing planned",
        }
    }
}

fn at_or_now(at: evenbeat_core::time::Timestamp, times: &Times) -> Markup {
    if at - times.now < Duration::from_secs(1) {
        html! { "now" }
    } else {
        times.short(at)
    }
}

fn empty(address: &RunsAddress, is_cut: bool) -> Markup {
    let is_quiet = address.tab == RunTab::Bad && !address.is_filtered() && address.before.is_none();
    let title = match address.tab {
        _ if is_cut => "Not among the runs looked at",
        RunTab::Running if !address.is_filtered() => "Nothing runs right now",
        _ if is_quiet => "Nothing ended badly",
        _ => "No such run",
    };
    html! {
        div.empty {
            @if is_quiet { (icon("ok")) } @else { (icon("search")) }
            b { (title) }
            p {
                @if is_cut { "Look further back, or filter by the key of the job." }
                @else if address.is_filtered() { "No run of this list matches the filter." }
                @else if address.tab == RunTab::Running { "Runs appear here as soon as a node has claimed them." }
                @else { "Look at a longer time, or at all runs." }
            }
            @if address.is_filtered() { a.btn href=(address.cleared().path()) { "Clear the filters" } }
            @else if address.tab != RunTab::All && !is_cut { a.btn href=(address.with_tab(RunTab::All).path()) { "Show all runs" } }
        }
    }
}
