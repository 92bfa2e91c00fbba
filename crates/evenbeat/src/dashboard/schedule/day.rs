//! The page itself: the next peak, the figures, the charts, and the busiest slots as a table.

use std::fmt::Write as _;

use evenbeat_core::time::Timestamp;
use maud::{Markup, html};

use super::charts::{running_chart, score_chart, slot_chart};
use crate::dashboard::parts::{ConditionMark, form_token, status_with};
use crate::dashboard::times::{Distance, Times, count, counted, took};
use crate::dashboard::user::{PageUser, PageViewer};
use crate::views::analysis::{ScoreWord, shown_score};
use crate::views::schedule::{DayCell, ScheduleDay, busiest, whole};

/// Slots in the table.
const N_BUSIEST: usize = 8;

/// The heading: the answer in one sentence, and what it means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ScheduleVerdict {
    pub(super) title: String,
    pub(super) note: String,
    /// Whether there will not be room for everything.
    pub(super) is_overload: bool,
}

impl ScheduleVerdict {
    pub(super) fn of(it: &ScheduleDay, times: &Times) -> ScheduleVerdict {
        let (peak_idx, peak) = it.day.peak_slot();
        let calm =
            |title: &str, note: String| ScheduleVerdict { title: title.to_owned(), note, is_overload: false };
        if it.day.n_runs == 0 {
            return calm("No starts planned in the next 24 h", String::new());
        }
        if it.capacity.units == 0 {
            let note = "Nothing starts until a node comes back or stops draining.".to_owned();
            return ScheduleVerdict { title: "No node takes new runs".to_owned(), note, is_overload: true };
        }
        let Some(running) = it.running() else {
            let at = times.clock(it.day.slot_start(peak_idx));
            let why = it.outlook.as_ref().map_or_else(
                || "How many runs that means at once is being counted.".to_owned(),
                |outlook| {
                    let n_unknown = count(outlook.running.n_without_length as u64);
                    let jobs = counted(outlook.running.n_jobs as u64, "job");
                    format!("Whether there is room for all is not known yet: {n_unknown} of {jobs} have not shown how long they take.")
                },
            );
            return calm(&format!("Busiest at {at}, {}", counted(peak.into(), "start")), why);
        };
        let Some(overload) = it.overload() else {
            let most = count(whole(running.peak().1));
            return calm(
                "No overload in the next 24 h",
                format!("At most {most} of {} are expected to run at once.", count(it.capacity.units)),
            );
        };
        let title = if overload.at <= times.now {
            "Peak now".to_owned()
        } else {
            let clock = times.clock(overload.at);
            format!("Next peak {clock}, {}", times.distance_text(overload.at, Distance::In))
        };
        let first = it.first_overload().filter(|at| *at < overload.at);
        let first = first.map_or(String::new(), |at| format!(" Jobs begin to wait at {}.", times.clock(at)));
        let (wanted, too_many) = (count(overload.wanted), overload.too_many);
        let will_wait = format!("{} will wait", count(too_many));
        let note = format!(
            "{wanted} want to run at once, and there is room for {}: {will_wait}.{first}",
            count(it.capacity.units)
        );
        ScheduleVerdict { title, note, is_overload: true }
    }
}

pub(super) fn body(it: &ScheduleDay, banner: &Markup, user: &PageUser<PageViewer>, times: &Times) -> Markup {
    let verdict = ScheduleVerdict::of(it, times);
    let cells = it.cells();
    let minutes = cells.first().map_or(15, |cell| cell.window.length().as_millis() / 60_000);
    let is_uneven = ScoreWord::of(it.day.score()) != ScoreWord::Good;
    html! {
        (banner)
        div.jh {
            div id="sch-head" data-l aria-live="polite" {
                h1 { (verdict.title) }
                @if !verdict.note.is_empty() { p.sub { (verdict.note) } }
            }
            span.sp {}
            div.acts {
                form method="post" action="/schedule/rebalance/preview" id="rb-form" {
                    (form_token(&user.session))
                    button.btn.pri[verdict.is_overload || is_uneven] type="submit" id="rb" { "Preview rebalance" }
                }
            }
        }
        (figures(it, times))
        section.sec aria-labelledby="st-h" {
            div.sec-h {
                h2 id="st-h" { "Starts per " (minutes) " min" }
                span.readout id="slot-readout" aria-live="polite" { span.js-only { "Point at a slot, or focus the chart and use the arrow keys." } }
                span.sp {}
                (slot_legend(it.outlook.is_some()))
            }
            div id="sch-slots" data-l { (slot_chart(&cells, it.capacity, times)) }
        }
        section.sec.gap aria-labelledby="er-h" {
            div id="sch-running" data-l {
                div.sec-h { h2 id="er-h" { "Expected running" } span.sub { (running_note(it)) } }
                @if it.running().is_some() { (running_chart(&cells, it.capacity, times)) }
                @else if it.outlook.is_some() { p.mut { "Too few jobs have shown how long they take. It is shown here when more of them have run." } }
                @else { p.mut { "It is being counted, and shown here in a moment." } }
            }
        }
        section.sec.gap aria-labelledby="bs-h" {
            div.sec-h { h2 id="bs-h" { "Busiest slots" } }
            div id="sch-busy" data-l { (busy_table(&cells, it, times)) }
        }
        section.sec.gap aria-labelledby="sh-h" {
            div id="sch-score" data-l {
                div.sec-h {
                    h2 id="sh-h" { "Evenness" }
                    span.sub { @if it.score_history.cells.len() == 168 { "last 7 days, the lowest of each hour" } @else { "last 24 hours" } "; from 0.80 on it is good" }
                }
                @if it.score_history.lowest().is_some() { (score_chart(&it.score_history, times)) }
                @else { p.mut { "No samples yet. One is taken every 5 minutes." } }
            }
        }
    }
}

fn figures(it: &ScheduleDay, times: &Times) -> Markup {
    let (peak_idx, peak) = it.day.peak_slot();
    let mean = it.day.n_runs / (it.day.slots.len() as u64).max(1);
    html! {
        dl.kp id="sch-figures" data-l {
            div { dt { "Evenness, 1.00 is flat" } dd { (shown_score(it.day.score())) " " small { (ScoreWord::of(it.day.score()).as_str()) } } }
            div {
                dt { "Busiest slot" }
                dd { (count(peak.into())) " " small { @if peak == 1 { "start" } @else { "starts" } @if 0 < peak { " at " (times.clock(it.day.slot_start(peak_idx))) } } }
            }
            div { dt { "Mean slot" } dd { (count(mean)) " " small { @if mean == 1 { "start" } @else { "starts" } } } }
            div { dt { "Planned in 24 h" } dd { (count(it.day.n_runs)) " " small { "starts of " (counted(it.day.n_jobs as u64, "job")) } } }
            @if let Some(outlook) = &it.outlook {
                div title="Jobs with an interval, or with an H in their cron expression: Evenbeat chooses their time. A rebalance leaves those alone that run, start soon or were moved within the hour." {
                    dt { "Movable" } dd { (count(outlook.n_movable as u64)) " " small { "of " (counted(outlook.n_jobs as u64, "job")) } }
                }
            }
            @if 0 < it.day.n_overdue {
                div { dt { "Overdue" } dd { a.link href="/?tab=waiting" { (count(it.day.n_overdue as u64)) } " " small { @if it.day.n_overdue == 1 { "job" } @else { "jobs" } } } }
            }
        }
    }
}

fn slot_legend(has_split: bool) -> Markup {
    html! {
        div.lgd {
            @if has_split {
                span { svg viewBox="0 0 14 10" aria-hidden="true" { rect.b width="14" height="10" {} } "movable" }
                span { svg viewBox="0 0 14 10" aria-hidden="true" { rect.b2 width="14" height="10" {} rect.sky width="14" height="2" {} } "fixed time" }
            }
            span { svg viewBox="0 0 14 10" aria-hidden="true" { rect.bpk width="14" height="10" {} } "peak" }
        }
    }
}

fn running_note(it: &ScheduleDay) -> String {
    let capacity = it.capacity;
    let nodes = counted(capacity.n_nodes as u64, "node");
    let pools = if capacity.n_pools < 2 { "" } else { ", all pools together" };
    let mut note =
        format!("usual durations, against a capacity of {} on {nodes}{pools}", count(capacity.units));
    if let Some(running) = it.running().filter(|it| 0 < it.n_without_length)
        && let Some(usual) = running.usual_length
    {
        let jobs = counted(running.n_without_length as u64, "job");
        let (have, count) = if running.n_without_length == 1 { ("has", "counts") } else { ("have", "count") };
        // Writing to a string cannot fail.
        let _ = write!(
            note,
            "; {jobs} that {have} not run yet {count} with the usual {}",
            took(usual).replace(".0s", "s")
        );
    }
    note
}

/// Where the runs of a slot are seen one by one.
fn timeline_path(at: Timestamp) -> String {
    format!("/timeline?zoom=1h&at={at}")
}

fn busy_table(cells: &[DayCell], it: &ScheduleDay, times: &Times) -> Markup {
    let busy = busiest(cells, N_BUSIEST);
    html! {
        @if busy.is_empty() { p.mut { "No starts are planned. " a.link href="/welcome" { "Add jobs" } } }
        @else {
            table.tbl.fix.busy {
                colgroup { col.k1; col.k1; col.k2.c-mv; col.k2; col.k3; col; }
                thead {
                    tr {
                        th { "Slot, " (times.zone_name()) } th.num { "Starts" } th.num.c-mv { "Movable" }
                        th.num { "Running" } th { "Capacity" } th.c-ex { span.sr { "Look closer" } }
                    }
                }
                tbody {
                    @for cell in busy {
                        tr {
                            td.nw { a href=(timeline_path(cell.window.start())) { b { (times.short(cell.window.start())) } } }
                            td.num { (count(cell.starts.into())) }
                            td.num.t2.c-mv { @if let Some(n) = cell.movable { (count(n.into())) } @else { "–" } }
                            td.num { @if let Some(demand) = cell.demand { (count(whole(demand))) } @else { "–" } }
                            td.nw { (room_mark(&cell, it)) }
                            td.c-ex.t2 { a.link href=(timeline_path(cell.window.start())) { "Who runs then" } }
                        }
                    }
                }
            }
        }
    }
}

fn room_mark(cell: &DayCell, it: &ScheduleDay) -> Markup {
    match cell.demand.map(|demand| it.capacity.too_many(demand)) {
        None => html! { span.mut { "not known yet" } },
        Some(0) => status_with(ConditionMark::Ok, "fits"),
        Some(n) => status_with(ConditionMark::Error, &format!("{} queue", count(n))),
    }
}
