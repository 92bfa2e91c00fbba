//! How the fleet is, in one sentence, four facts and a bar.

use maud::{Markup, html};

use crate::dashboard::parts::{icon, job_link, percent};
use crate::dashboard::times::{Distance, Times, count, counted};
use crate::views::overview::{FleetOverview, JobNumbers};

/// The title of the tab: the worst comes first.
pub(super) fn title(jobs: &JobNumbers) -> String {
    match jobs {
        JobNumbers { stale: 1.., .. } => format!("{} late · Fleet", count(jobs.stale)),
        JobNumbers { error: 1.., .. } => format!("{} in error · Fleet", count(jobs.error)),
        JobNumbers { warning: 1.., .. } => format!("{} at risk · Fleet", count(jobs.warning)),
        _ => "Fleet".to_owned(),
    }
}

/// The sentence, and the icon beside it.
fn sentence(jobs: &JobNumbers) -> (&'static str, String) {
    let of_all = |n: u64| match (n, jobs.all) {
        (1, 1) => "The only job".to_owned(),
        (n, all) if n == all => format!("All {} jobs", count(all)),
        (n, all) => format!("{} of {}", count(n), counted(all, "job")),
    };
    let is_one = |n: u64| n == 1;
    if 0 < jobs.stale {
        let verb = if is_one(jobs.stale) { "serves" } else { "serve" };
        return ("error", format!("{} {verb} stale data", of_all(jobs.stale)));
    }
    if 0 < jobs.error {
        let verb = if is_one(jobs.error) { "was" } else { "were" };
        return ("error", format!("{} {verb} paused by the system", of_all(jobs.error)));
    }
    if 0 < jobs.warning {
        let verb = if is_one(jobs.warning) { "is" } else { "are" };
        return ("warning", format!("{} {verb} at risk", of_all(jobs.warning)));
    }
    if jobs.untracked == jobs.all {
        return ("paused", "No job is active".to_owned());
    }
    if jobs.ok == 0 {
        return ("new", "No job has run yet, and none is late".to_owned());
    }
    let subject = if jobs.untracked == 0 { "All jobs are" } else { "All active jobs are" };
    ("ok", format!("{subject} fresh"))
}

/// The sentence with what comes next, and the facts.
pub(super) fn verdict(fleet: &FleetOverview, times: &Times) -> Markup {
    let jobs = &fleet.jobs;
    let (symbol, sentence) = sentence(jobs);
    let given_up = jobs.error.saturating_sub(jobs.stale);
    html! {
        section.verdict aria-labelledby="v" {
            div {
                h1 id="v" data-l aria-live="polite" { (icon(symbol)) (sentence) }
                p.sub id="v-next" data-l {
                    @if 0 < jobs.stale && 0 < given_up {
                        (counted(given_up, "job")) " " (if given_up == 1 { "was" } else { "were" }) " paused by the system. "
                    }
                    @if 0 < jobs.error && 0 < jobs.warning {
                        (count(jobs.warning)) " more " (if jobs.warning == 1 { "is" } else { "are" }) " at risk. "
                    }
                    @if let Some((key, at)) = &fleet.next_miss {
                        "Next miss " b { (times.distance(*at, Distance::In)) } ": " (job_link(key.as_str()))
                    } @else if jobs.error == 0 && jobs.warning == 0 && jobs.ok + jobs.new > 0 {
                        "No deadline is expected to be missed."
                    }
                }
            }
            (facts(fleet))
        }
    }
}

fn facts(fleet: &FleetOverview) -> Markup {
    let jobs = &fleet.jobs;
    let n_answering = fleet.n_nodes.saturating_sub(fleet.n_silent);
    html! {
        dl.facts id="facts" data-l {
            div {
                dt { "Running" }
                dd { a href="/?tab=running" { (count(jobs.running)) } " " small { "on " (counted(fleet.capacity.into(), "slot")) } }
            }
            div { dt { "Ready, waiting for a slot" } dd { a href="/?tab=waiting" { (count(jobs.queued)) } } }
            div {
                dt { "Starts in the next 24 h" }
                dd { a href="/schedule" { (count(fleet.day.n_runs)) } }
            }
            div {
                dt { "Nodes" }
                dd { a href="/nodes" { (n_answering) } " " small { "of " (fleet.n_nodes) (if n_answering == 1 { " answers" } else { " answer" }) } }
            }
        }
    }
}

/// The bar of conditions, and its legend, in which every number leads to its list.
pub(super) fn condition_bar(jobs: &JobNumbers) -> Markup {
    let parts = [
        ("error", "Error", jobs.error, "/?tab=all&condition=error"),
        ("warning", "Warning", jobs.warning, "/?tab=all&condition=warning"),
        ("ok", "OK", jobs.ok, "/?tab=all&condition=ok"),
        ("new", "New", jobs.new, "/?tab=all&condition=new"),
        ("paused", "Paused", jobs.paused, "/?tab=paused"),
    ];
    let bar = [
        ("error", jobs.error),
        ("warning", jobs.warning),
        ("ok", jobs.ok),
        ("new", jobs.new),
        ("paused", jobs.untracked),
    ];
    let mut at = 0.0;
    let rects = bar.iter().zip(widths(bar.map(|(_, n)| n))).map(|((class, _), width)| {
        let x = at;
        at += width;
        html! {
            @if 0.0 < width { rect class=(class) x=(percent(x)) width=(percent(width - 0.15)) height="8" rx="1" {} }
        }
    });
    let label = parts.map(|(_, word, n, _)| format!("{} {word}", count(n))).join(", ");
    let rest = jobs.untracked.saturating_sub(jobs.paused);
    html! {
        svg.cbar id="cbar" data-l role="img" aria-label={ (label) " of " (count(jobs.all)) } { @for rect in rects { (rect) } }
        div.clgd id="legend" data-l aria-label="Jobs by condition" {
            @for (name, word, n, path) in parts {
                @if 0 < n || name != "new" { a href=(path) { (icon(name)) (word) " " b { (count(n)) } } }
            }
            @if 0 < rest { span.mut { (count(rest)) " disabled or done" } }
        }
    }
}

/// Widths in percent. A single job of a million is still to be seen, at the cost of the widest part.
#[expect(clippy::cast_precision_loss, reason = "a bar shows fewer digits than a float has")]
fn widths<const N: usize>(counts: [u64; N]) -> [f64; N] {
    const WIDTH_MIN: f64 = 0.5;
    let total = counts.iter().sum::<u64>().max(1) as f64;
    let mut widths = counts.map(|n| if n == 0 { 0.0 } else { (n as f64 / total * 100.0).max(WIDTH_MIN) });
    let excess = (widths.iter().sum::<f64>() - 100.0).max(0.0);
    if let Some(widest) = widths.iter_mut().max_by(|one, other| one.total_cmp(other)) {
        *widest -= excess;
    }
    widths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(jobs: JobNumbers, expected: (&str, &str), title_is: &str) {
        let (symbol, text) = sentence(&jobs);
        assert_eq!((symbol, text.as_str()), expected);
        assert_eq!(title(&jobs), title_is);
    }

    #[test]
    fn the_smallest_part_of_the_bar_is_seen_and_none_sticks_out() {
        let shown = |it: &[f64]| format!("{it:?}");
        assert_eq!(shown(&widths([1, 0, 999_999])), "[0.5, 0.0, 99.5]");
        assert_eq!(shown(&widths([25, 75])), "[25.0, 75.0]");
        assert_eq!(shown(&widths([0, 0])), "[0.0, 0.0]");
    }

    #[test]
    fn the_worst_comes_first() {
        let none = JobNumbers { all: 412, ok: 412, ..JobNumbers::default() };
        check(none, ("ok", "All jobs are fresh"), "Fleet");
        check(
            JobNumbers { stale: 7, error: 8, warning: 19, ..none },
            ("error", "7 of 412 jobs serve stale data"),
            "7 late · Fleet",
        );
        check(
            JobNumbers { stale: 1, error: 1, ..none },
            ("error", "1 of 412 jobs serves stale data"),
            "1 late · Fleet",
        );
        check(
            JobNumbers { error: 2, warning: 1, ..none },
            ("error", "2 of 412 jobs were paused by the system"),
            "2 in error · Fleet",
        );
        check(
            JobNumbers { warning: 19, ..none },
            ("warning", "19 of 412 jobs are at risk"),
            "19 at risk · Fleet",
        );
        check(JobNumbers { untracked: 12, ok: 400, ..none }, ("ok", "All active jobs are fresh"), "Fleet");
        check(JobNumbers { untracked: 412, ok: 0, ..none }, ("paused", "No job is active"), "Fleet");
        check(
            JobNumbers { ok: 0, new: 412, ..none },
            ("new", "No job has run yet, and none is late"),
            "Fleet",
        );
        let all = JobNumbers { all: 3, stale: 3, error: 3, ..JobNumbers::default() };
        check(all, ("error", "All 3 jobs serve stale data"), "3 late · Fleet");
        let one = JobNumbers { all: 1, stale: 1, error: 1, ..JobNumbers::default() };
        check(one, ("error", "The only job serves stale data"), "1 late · Fleet");
    }
}
