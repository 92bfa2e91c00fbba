//! What a definition would do before it is saved: its next starts, and how the fleet would be spread.

use evenbeat_core::distribution::Distribution;
use evenbeat_core::schedule::Schedule;
use maud::{Markup, html};

use crate::dashboard::times::{Distance, Times};
use crate::intake::DefinitionPreview;
use crate::printable;

/// A field that changes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ChangedField {
    pub(super) name: String,
    pub(super) before: String,
    pub(super) after: String,
}

pub(super) fn preview(
    it: &DefinitionPreview,
    schedule: &Schedule,
    changes: &[ChangedField],
    is_new: bool,
    times: &Times,
) -> Markup {
    html! {
        section.sec.gap id="preview" aria-labelledby="p-h" {
            div.sec-h { h2 id="p-h" { "Preview" } span.sub { "nothing is saved yet" } }
            (changed(changes, is_new))
            div.prev {
                div {
                    h3 { "Next starts, " (times.zone_name()) }
                    @if it.starts.is_empty() {
                        p.mut { (nothing_starts(it, schedule)) }
                    } @else {
                        ol.nr.nr-w {
                            @for start in &it.starts {
                                li {
                                    b { (times.exact(start.at)) }
                                    span.t2 { (times.distance(start.at, Distance::In)) }
                                    span.t2 { @if let Some(why) = start.held_up_by { "after " (why.as_str()) } }
                                }
                            }
                        }
                        @if matches!(schedule, Schedule::Fresh { .. }) { p.mut { "Later starts depend on how long its runs take." } }
                        @else if !it.is_placed { p.mut { "It keeps its place on the time line." } }
                    }
                }
                div { h3 { "Evenness of the fleet, next 24 h" } (spread(it, times)) }
            }
        }
    }
}

fn nothing_starts(it: &DefinitionPreview, schedule: &Schedule) -> &'static str {
    match schedule {
        Schedule::Manual => "None: it runs only when someone asks for it.",
        _ if it.is_paused => "None while it is paused.",
        _ => "None: nothing of this schedule lies ahead, or the job is disabled.",
    }
}

fn changed(changes: &[ChangedField], is_new: bool) -> Markup {
    html! {
        @if is_new {}
        @else if changes.is_empty() { p.t2 { "Nothing would change." } }
        @else {
            table.tbl.chg {
                thead { tr { th { "Field" } th { "Now" } th { "Then" } } }
                tbody {
                    @for it in changes {
                        tr { td { code { (printable::line(&it.name)) } } td.t2 { (shown(&it.before)) } td { (shown(&it.after)) } }
                    }
                }
            }
        }
    }
}

fn shown(value: &str) -> Markup {
    html! { @if value.is_empty() { span.mut { "not set" } } @else { (printable::line(value)) } }
}

fn spread(it: &DefinitionPreview, times: &Times) -> Markup {
    let (Some(before), Some(after)) = (&it.before, &it.after) else {
        return html! { p.mut { "Not known at this moment; preview it again in a minute." } };
    };
    let peak = |day: &Distribution| {
        let (slot, n) = day.peak_slot();
        html! { (n) " at " (times.clock(day.slot_start(slot))) }
    };
    let row = |term: &str, before: Markup, after: Markup| {
        html! { dt { (term) } dd { (before) " → " b { (after) } } }
    };
    html! {
        dl.kv {
            (row("Score", html! { (score(before)) }, html! { (score(after)) }))
            (row("Busiest slot", peak(before), peak(after)))
            (row("Starts", html! { (before.n_runs) }, html! { (after.n_runs) }))
        }
        p.mut { (verdict(before.score(), after.score())) }
    }
}

fn score(day: &Distribution) -> String {
    format!("{:.3}", day.score())
}

fn verdict(before: f64, after: f64) -> &'static str {
    match after - before {
        it if 0.0005 <= it => "The starts of the fleet would be more even.",
        it if it <= -0.0005 => "The starts of the fleet would be less even.",
        _ => "The fleet would be as even as it is.",
    }
}
