//! The lists, what is looked for in them, and what narrows them down.

use maud::{Markup, html};

use super::address::ListAddress;
use super::causes;
use crate::dashboard::parts::icon;
use crate::dashboard::times::count;
use crate::views::job_list::{JobTab, ListedCondition};
use crate::views::overview::FleetOverview;

pub(super) fn filters(address: &ListAddress, fleet: &FleetOverview) -> Markup {
    let query = &address.query;
    let pool = query.pool.as_ref().map(ToString::to_string);
    // What the fields of the form do not say themselves.
    let kept = address.with(|it| {
        it.text = None;
        it.pool = None;
        it.site = None;
        it.condition = None;
        // The form has one field for labels, which is the last one.
        it.labels.pop();
    });
    html! {
        div.bar-f {
            nav.tabs id="tabs" data-l aria-label="Job lists" {
                @for tab in JobTab::ALL {
                    a href=(address.in_tab(tab).path()) data-tab=(tab.as_str()) aria-current=[(tab == query.tab).then_some("true")] {
                        (name(tab)) " " span.n { (count(number(tab, fleet))) }
                    }
                }
            }
            span.sp {}
            form.flt role="search" aria-label="Filter this list" action="/" {
                @for (name, value) in kept.fields() { input type="hidden" name=(name) value=(value); }
                (chips(address))
                label.sr for="q" { "Filter by job" }
                span.field {
                    (icon("search"))
                    input.in id="q" name="q" type="search" value=[query.text.as_deref()] placeholder="Filter by job" autocomplete="off";
                    kbd aria-hidden="true" { "/" }
                }
                @if 1 < fleet.pools.len() || pool.is_some() {
                    label.sr for="fo" { "Pool" }
                    select.sel id="fo" name="pool" data-submit {
                        option value="" { "All pools" }
                        // A pool that is not among the listed ones is still a filter.
                        @if let Some(it) = pool.as_ref().filter(|it| !fleet.pools.contains(it)) { option value=(it) selected { (it) } }
                        @for it in &fleet.pools {
                            option value=(it) selected[pool.as_deref() == Some(it)] { (it) }
                        }
                    }
                }
                (more(address))
                button.btn.no-js type="submit" { "Filter" }
            }
        }
    }
}

/// Filters that are needed less often.
fn more(address: &ListAddress) -> Markup {
    let query = &address.query;
    let label = query.labels.last().map(|(name, value)| format!("{name}={value}"));
    html! {
        details.flt-m {
            summary.btn { "More" (icon("down")) }
            div.flt-p {
                p { label for="fc" { "Condition" }
                    select.sel id="fc" name="condition" {
                        option value="" { "Any" }
                        @for it in ListedCondition::ALL {
                            option value=(it.as_str()) selected[query.condition == Some(it)] { (word(it)) }
                        }
                    }
                }
                p { label for="fs" { "Site" }
                    input.in id="fs" name="site" value=[query.site.as_ref()] placeholder="shop.example" autocomplete="off"; }
                p { label for="fl" { "Label" }
                    input.in id="fl" name="label" value=[label] placeholder="team=news" autocomplete="off"; }
                p { button.btn.pri type="submit" { "Apply" } }
            }
        }
    }
}

/// What narrows the list down, each with a way to take it off.
fn chips(address: &ListAddress) -> Markup {
    let query = &address.query;
    let mut chips: Vec<(String, ListAddress)> = Vec::new();
    if let Some(condition) = query.condition {
        chips.push((word(condition).to_owned(), address.with(|it| it.condition = None)));
    }
    if let Some(cause) = query.cause {
        chips.push((causes::name(cause).to_owned(), address.with(|it| it.cause = None)));
    }
    if let Some(site) = &query.site {
        chips.push((format!("Site {site}"), address.with(|it| it.site = None)));
    }
    for (idx, (name, value)) in query.labels.iter().enumerate() {
        let label = crate::printable::line(&format!("{name}={value}")).into_owned();
        chips.push((label, address.with(|it| drop(it.labels.remove(idx)))));
    }
    html! {
        span.chips id="chips" data-l {
            @for (text, without) in &chips {
                span.chip { (text) a href=(without.path()) aria-label={ "Remove the filter " (text) } { (icon("x")) } }
            }
        }
    }
}

fn word(condition: ListedCondition) -> &'static str {
    match condition {
        ListedCondition::Error => "Error",
        ListedCondition::Warning => "Warning",
        ListedCondition::Ok => "OK",
        ListedCondition::New => "New",
    }
}

fn name(tab: JobTab) -> &'static str {
    match tab {
        JobTab::Attention => "Needs attention",
        JobTab::All => "All",
        JobTab::Running => "Running",
        JobTab::Waiting => "Waiting for a slot",
        JobTab::Paused => "Paused",
    }
}

fn number(tab: JobTab, fleet: &FleetOverview) -> u64 {
    let jobs = &fleet.jobs;
    match tab {
        JobTab::Attention => jobs.error + jobs.warning,
        JobTab::All => jobs.all,
        JobTab::Running => jobs.running,
        JobTab::Waiting => jobs.queued,
        JobTab::Paused => jobs.paused,
    }
}
