//! An answer in words, figures and charts.

use evenbeat_core::time::{Duration, Timestamp};
use evenbeat_whatif::BreakKind;
use maud::{Markup, html};

use super::chart::{BarChart, whole};
use crate::dashboard::parts::{ConditionMark, percent as place, rounded_up, status_with};
use crate::dashboard::times::{Times, brief, count, counted, took};
use crate::views::whatif::{
    BrokenLimit, FirstLate, LimitName, PoolFigures, SlotShare, WhatIfAnswer, is_added, percent,
};

/// Tried capacities that are shown.
const SHARES_MAX: usize = 9;

/// The title and the body of a page.
pub(super) fn page(answer: &WhatIfAnswer, times: &Times) -> (String, Markup) {
    let (mark, heading) = heading(answer);
    let body = html! {
        section.verdict aria-labelledby="v" {
            div { h1 id="v" { (mark.icon()) (heading) } p.sub { (sub(answer)) } }
        }
        div.wif {
            (deltas(answer))
            section.sec aria-labelledby="wc-h" {
                h2.sr id="wc-h" { "Charts, as it is and as asked" }
                div.wcs {
                    (side(answer, &answer.before, "As it is", times))
                    (side(answer, &answer.after, &capital(&asked(answer)), times))
                }
            }
        }
        div.wtwo {
            (breaks(answer, times))
            (shares(answer))
        }
        p.mut.gap {
            "How it is computed: planned starts wait for a free slot, latest start first; runs take as long as good ones did, more or less. "
            @for note in &answer.notes { (crate::printable::line(note)) " " }
            "Answered in " (took(Duration::from_millis(i64::try_from(answer.took.as_millis()).unwrap_or(i64::MAX))))
            " by " (counted(answer.n_simulations as u64, "simulation")) " from " (times.short(answer.window.start()))
            " on. Nothing has changed: the simulator never changes anything."
        }
    };
    ("What if".to_owned(), body)
}

/// `400 more jobs every 6h, without fra-1, 12 slots in pool browser`.
fn asked(answer: &WhatIfAnswer) -> String {
    let question = &answer.question;
    let mut parts = Vec::new();
    if let Some(added) = &question.added {
        parts.push(format!("{} every {}", counted(added.n.into(), "more job"), added.every.rounded()));
    }
    if let Some(node) = &question.lose {
        parts.push(format!("without {node}"));
    }
    if let Some(slots) = question.slots {
        parts.push(format!("{} in pool {}", counted(slots.into(), "slot"), question.pool));
    }
    parts.join(", ")
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

fn name(limit: &LimitName) -> String {
    match limit {
        LimitName::Pool(pool) => format!("pool {pool}"),
        LimitName::Site(site) => format!("site {site}"),
    }
}

fn after(answer: &WhatIfAnswer, at: Timestamp) -> String {
    let length = at - answer.window.start();
    if length < Duration::from_mins(1) {
        "in the first quarter of an hour".to_owned()
    } else {
        format!("after {}", brief(length))
    }
}

fn heading(answer: &WhatIfAnswer) -> (ConditionMark, String) {
    let asked = capital(&asked(answer));
    let when = |it: &BrokenLimit| match (&it.name, &answer.first_late) {
        // To the minute, where it is known.
        (LimitName::Pool(pool), Some(late)) if *pool == answer.pool && it.is_late() => after(answer, late.at),
        _ => after(answer, it.at),
    };
    match answer.breaks.first() {
        None if 0 < answer.after.n_late => {
            (ConditionMark::Warning, format!("{asked}: nothing gets worse than it is"))
        }
        None => (ConditionMark::Ok, format!("{asked}: nothing breaks")),
        Some(first) if first.is_late() => {
            (ConditionMark::Error, format!("{asked}: {} breaks first, {}", name(&first.name), when(first)))
        }
        Some(first) => {
            let text = format!(
                "{asked}: nothing is late, but the queue of {} grows {}",
                name(&first.name),
                when(first)
            );
            (ConditionMark::Warning, text)
        }
    }
}

fn sub(answer: &WhatIfAnswer) -> Markup {
    let n_asked = answer.question.added.as_ref().map(|it| it.n);
    let slots = answer.after.slots;
    html! {
        @if let (Some(n), Some(fit)) = (n_asked, answer.n_fit) {
            @if fit == n { @if n == 1 { "It fits. " } @else { "All " (count(n.into())) " fit. " } }
            @else if fit == 0 { "None of them fits. " }
            @else { (count(fit.into())) " of them " @if fit == 1 { "fits. " } @else { "fit. " } }
        }
        @match (answer.enough, answer.shares.is_empty()) {
            (Some(enough), _) => {
                @if let Some(n) = n_asked { "All " (count(n.into())) " need " } @else { "It needs " }
                b { (counted(enough.into(), "slot")) } " instead of " (count(slots.into())) ". "
            },
            (None, false) => { "No number of slots in pool " (answer.pool) " is enough: look at the limits of sites and at long runs. " },
            (None, true) => {},
        }
        "Nothing has changed: this is a simulation of " (counted(answer.n_runs, "run")) "."
    }
}

fn deltas(answer: &WhatIfAnswer) -> Markup {
    let (before, now) = (&answer.before, &answer.after);
    let delta = |title: &str, from: String, to: String, is_bad: bool| {
        html! {
            div {
                dt { (title) }
                dd { span.from { (from) " →" } " " @if is_bad { span.c-err { (to) } } @else { (to) } }
            }
        }
    };
    let wait = |it: &PoolFigures| brief(it.longest_wait);
    let days =
        if answer.question.days == 1 { "24 h".to_owned() } else { format!("{} days", answer.question.days) };
    html! {
        dl.delta aria-label={ "Pool " (answer.pool) } {
            (delta("In time", percent(before.in_time), percent(now.in_time), now.in_time < 0.999 && now.in_time < before.in_time))
            (delta(&format!("Deadlines missed in {days}"), count(before.n_late), count(now.n_late), false))
            (delta("Longest wait for a slot", wait(before), wait(now), false))
            (delta("Most waiting at once", count(whole(before.most_waiting)), count(whole(now.most_waiting)), false))
        }
    }
}

fn side(answer: &WhatIfAnswer, figures: &PoolFigures, title: &str, times: &Times) -> Markup {
    let both = [&answer.before, &answer.after];
    let most = |of: fn(&PoolFigures) -> f64| rounded_up(both.into_iter().map(of).fold(1.0, f64::max));
    let highest = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
    let use_most = most(|it| it.in_use.iter().copied().fold(f64::from(it.slots) * 1.1, f64::max));
    let queue_most = most(|it| it.waiting.iter().copied().fold(0.0, f64::max));
    let late_most = most(|it| it.late.iter().copied().max().map_or(0.0, units));
    let late: Vec<f64> = figures.late.iter().map(|it| units(*it)).collect();
    let (start, bar) = (answer.window.start(), figures.bar);
    let in_use = BarChart {
        values: &figures.in_use,
        most: use_most,
        class: "area",
        capacity: Some(figures.slots),
        note: None,
        label: format!("Running of {} slots, at most {:.0} at once", figures.slots, highest(&figures.in_use)),
        start,
        bar,
    };
    let waiting = BarChart {
        values: &figures.waiting,
        most: queue_most,
        class: "qu",
        capacity: None,
        note: Some(format!("most {}", count(whole(figures.most_waiting)))),
        label: format!("Waiting for a slot, at most {}", whole(figures.most_waiting)),
        start,
        bar,
    };
    let missed = BarChart {
        values: &late,
        most: late_most,
        class: "late",
        capacity: None,
        note: Some(format!("in all {}", count(figures.n_late))),
        label: format!("Missed deadlines, {} in all", figures.n_late),
        start,
        bar,
    };
    html! {
        div {
            h3.wc-h { (title) }
            h3 { "Running in pool " (answer.pool) ", dashed: " (counted(figures.slots.into(), "slot")) }
            (in_use.draw(times))
            h3 { "Waiting for a slot" }
            (waiting.draw(times))
            h3 { "Deadlines missed per " (brief(bar)) }
            (missed.draw(times))
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a count for a chart")]
fn units(n: u64) -> f64 {
    n as f64
}

/// A line of the table of what breaks.
struct BreakLine {
    mark: ConditionMark,
    name: String,
    at: Option<Timestamp>,
    what: String,
    fix: String,
}

fn breaks(answer: &WhatIfAnswer, times: &Times) -> Markup {
    let days =
        if answer.question.days == 1 { "24 h".to_owned() } else { format!("{} days", answer.question.days) };
    html! {
        section.sec aria-labelledby="b-h" {
            div.sec-h { h2 id="b-h" { "What breaks first" } span.sub { "in order of time" } }
            table.tbl.fix.brk1 {
                colgroup { col.w1; col.w2; col; col.w3; }
                thead { tr { th { "Limit" } th { "When, " (times.zone_name()) } th { "What happens" } th { "Smallest fix" } } }
                tbody {
                    @for line in lines(answer) {
                        tr {
                            td { (status_with(line.mark, &line.name)) }
                            td { @match line.at { Some(at) => { (times.short(at)) ", " (after(answer, at)) }, None => { "not in " (days) } } }
                            td.t2.b-w { (line.what) }
                            td.b-w { (line.fix) }
                        }
                    }
                }
            }
        }
    }
}

fn lines(answer: &WhatIfAnswer) -> Vec<BreakLine> {
    let fix = fix(answer);
    let mut lines: Vec<BreakLine> = Vec::new();
    for (place, it) in answer.breaks.iter().enumerate() {
        let is_asked = it.name == LimitName::Pool(answer.pool.clone());
        let late = answer.first_late.as_ref().filter(|_| is_asked && it.is_late());
        let slots = if is_asked {
            format!(", {}", counted(answer.after.slots.into(), "slot"))
        } else {
            String::new()
        };
        lines.push(BreakLine {
            mark: if it.is_late() { ConditionMark::Error } else { ConditionMark::Warning },
            name: format!("{}{slots}", capital(&name(&it.name))),
            at: Some(late.map_or(it.at, |late| late.at)),
            what: late.map_or_else(|| what(it), |late| format!("{} and misses its deadline", waits(late))),
            fix: match &it.name {
                _ if is_asked => fix.clone(),
                LimitName::Site(_) => match answer.n_fit {
                    Some(fit) => {
                        format!("a higher limit of the site, or at most {} new jobs", count(fit.into()))
                    }
                    None => "a higher limit of the site".to_owned(),
                },
                LimitName::Pool(_) if place == 0 => "more slots there".to_owned(),
                LimitName::Pool(_) => "fix the first one, then ask again".to_owned(),
            },
        });
    }
    let old = answer
        .first_old_late
        .as_ref()
        .filter(|_| answer.question.added.is_some() && !answer.breaks.is_empty());
    if let Some(late) = old.filter(|late| answer.first_late.as_ref() != Some(*late)) {
        lines.push(BreakLine {
            mark: ConditionMark::Error,
            name: "Jobs already there".to_owned(),
            at: Some(late.at),
            what: format!("{}, the first of the old jobs to be late", waits(late)),
            fix: "the same".to_owned(),
        });
    }
    lines.sort_by_key(|line| line.at);
    if !answer.calm.is_empty() {
        let names: Vec<String> = answer.calm.iter().take(5).map(|pool| format!("pool {pool}")).collect();
        let more = answer.calm.len().saturating_sub(names.len());
        let more = if more == 0 { String::new() } else { format!(" and {more} more") };
        lines.push(BreakLine {
            mark: ConditionMark::Ok,
            name: format!("{}{more}", capital(&names.join(", "))),
            at: None,
            what: "nothing gets later than it is".to_owned(),
            fix: "nothing to do".to_owned(),
        });
    }
    lines
}

fn waits(late: &FirstLate) -> String {
    let who = if is_added(&late.key) { "a new job".to_owned() } else { late.key.to_string() };
    if late.waited < Duration::from_secs(1) {
        return format!("{who} runs too long");
    }
    format!("{who} waits {}", brief(late.waited))
}

fn what(it: &BrokenLimit) -> String {
    match it.what {
        BreakKind::Freshness { before, after } => {
            format!("data is fresh {} of the time, before {}", percent(after), percent(before))
        }
        BreakKind::Queue { before, after } => {
            format!("the longest queue grows from {before:.1} to {after:.1} runs")
        }
    }
}

/// The smallest fix for the pool of the question.
fn fix(answer: &WhatIfAnswer) -> String {
    let slots = answer.enough.map(|it| counted(it.into(), "slot"));
    let n_asked = answer.question.added.as_ref().map(|it| it.n);
    let jobs = answer.n_fit.filter(|fit| n_asked != Some(*fit)).map(|fit| match fit {
        0 => "no new jobs".to_owned(),
        fit => format!("at most {}", counted(fit.into(), "new job")),
    });
    match (slots, jobs) {
        (Some(slots), Some(jobs)) => format!("{slots}, or {jobs}"),
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => "nothing to do yet".to_owned(),
    }
}

fn shares(answer: &WhatIfAnswer) -> Markup {
    let Some(first) = answer.shares.first() else { return html! {} };
    // As it would be, and the last ones.
    let skipped = answer.shares.len().saturating_sub(SHARES_MAX);
    let rest = answer.shares.iter().skip(1 + skipped);
    let shown: Vec<&SlotShare> = std::iter::once(first).chain(rest).collect();
    html! {
        section.sec aria-labelledby="k-h" {
            div.sec-h {
                h2 id="k-h" {
                    @match answer.enough {
                        Some(enough) => { (counted(enough.into(), "slot")) @if enough == 1 { " keeps" } @else { " keep" } " 99.9% in time" },
                        None => "No number of slots keeps 99.9% in time",
                    }
                }
                span.sub { "line: 99.9%" }
            }
            table.tbl.fix.capt {
                colgroup { col.c1; col; col.c3; }
                thead { tr { th { "Pool " (answer.pool) } th { "Share in time" } th.num { span.sr { "Percent" } } } }
                tbody {
                    @for it in shown {
                        @let is_enough = answer.enough == Some(it.slots);
                        tr class=[is_enough.then_some("pick")] {
                            td { (counted(it.slots.into(), "slot")) @if it.slots == answer.before.slots { " " span.mut { "now" } } }
                            td {
                                svg height="10" role="img" aria-label={ (percent(it.in_time)) " in time" } {
                                    rect.trk y="1" width="100%" height="8" rx="2" {}
                                    rect.use y="1" width=(place(it.in_time * 100.0)) height="8" rx="2" {}
                                    line.mx x1="99.9%" x2="99.9%" y1="-1" y2="11" {}
                                }
                            }
                            td.num.nw { @if is_enough { (ConditionMark::Ok.icon()) " " } (percent(it.in_time)) }
                        }
                    }
                }
            }
        }
    }
}
