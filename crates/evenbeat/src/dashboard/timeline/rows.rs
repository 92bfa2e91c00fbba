//! Groups of a time line and the jobs in them.

use evenbeat_core::run::Outcome;
use maud::{Markup, html};

use super::address;
use super::chart::{Axis, density};
use crate::dashboard::parts::{ConditionMark, icon, job_link, percent, url_query};
use crate::dashboard::times::{Times, count, counted};
use crate::printable;
use crate::views::timeline::{
    Bar, BarKind, GroupRows, TimelineBy, TimelineGroup, TimelineQuestion, TimelineRow, TimelineView,
};

/// A row with more bars than this has neighbours of the same kind drawn as one.
const BARS_MAX: usize = 40;
/// A row with more bars than this does not explain planned ones: they are too small to point at.
const EXPLAINED_MAX: usize = 16;

pub(super) fn group(
    question: &TimelineQuestion,
    view: &TimelineView,
    group: &TimelineGroup,
    axis: &Axis,
    times: &Times,
) -> Markup {
    let name = printable::line(&group.name);
    let mut about = counted(group.n_jobs, "job");
    if 0 < group.n_running {
        about += &format!(", {} running", count(group.n_running));
    }
    if 0 < group.n_bad {
        about += &format!(", {} bad", count(group.n_bad));
    }
    let said = format!("{name}: {about}{}", if 0 < group.n_bad { " in view" } else { "" });
    html! {
        details.tlg data-group=(group.name) open[group.rows.is_some()] data-open=[group.rows.is_some().then_some("")] {
            summary id={ "ts-" (group.name) } data-l data-r=(said) {
                span.nm { (icon("right")) b { (name) } span.mut { (about) } }
                (density(&name, &group.density, group.capacity, axis))
            }
            @match &group.rows {
                Some(rows) => (jobs(question, group, rows, axis, times)),
                None => p.tlm { a.link href=(opened(question, view, group)) { "Show its jobs" } },
            }
        }
    }
}

/// The address with this group open, too.
fn opened(question: &TimelineQuestion, view: &TimelineView, group: &TimelineGroup) -> String {
    let open = view.groups.iter().filter(|it| it.rows.is_some() || it.name == group.name);
    let open = open.map(|it| it.name.clone()).collect();
    address(&TimelineQuestion { open: Some(open), ..question.clone() })
}

fn jobs(
    question: &TimelineQuestion,
    group: &TimelineGroup,
    rows: &GroupRows,
    axis: &Axis,
    times: &Times,
) -> Markup {
    html! {
        div.tlb id={ "tb-" (group.name) } data-rows { @for row in &rows.rows { (job(row, axis, times)) } }
        @if 0 < rows.n_others {
            p.tlm {
                @if rows.can_show_all && rows.n_others <= 90 {
                    @let all = TimelineQuestion { all_of: Some(group.name.clone()), ..question.clone() };
                    a.link href=(address(&all)) { "Show the other " (counted(rows.n_others, "job")) }
                } @else {
                    a.link href=(fleet_list(question, group)) { "List all " (counted(group.n_jobs, "job")) }
                    @if rows.can_show_all {
                        @let all = TimelineQuestion { all_of: Some(group.name.clone()), ..question.clone() };
                        " or " a.link href=(address(&all)) { "show 100 here" }
                    }
                }
            }
        } @else if rows.rows.is_empty() {
            p.tlm.mut { "No jobs." }
        }
    }
}

/// The fleet page with the jobs of a group.
fn fleet_list(question: &TimelineQuestion, group: &TimelineGroup) -> String {
    let label = match &question.by {
        TimelineBy::Label(name) => format!("{name}={}", group.name),
        TimelineBy::Pool | TimelineBy::Site => group.name.clone(),
    };
    let field = match &question.by {
        TimelineBy::Pool => "pool",
        TimelineBy::Site => "site",
        TimelineBy::Label(_) => "label",
    };
    url_query("/", [("tab", "all"), (field, label.as_str())])
}

fn job(row: &TimelineRow, axis: &Axis, times: &Times) -> Markup {
    let said = said(row, axis, times);
    let mark = row.condition.as_deref().map(ConditionMark::of);
    html! {
        div.tlr data-key=(row.key) id={ "tr-" (row.key) } data-r={ (row.key) ": " (said) } {
            span.nm {
                (job_link(&row.key))
                @if let Some(mark @ (ConditionMark::Error | ConditionMark::Warning)) = mark {
                    (mark.icon()) span.sr { (mark.word()) }
                }
            }
            svg.tb height="24" role="group" aria-label=(said) {
                (axis.grid(24))
                @for window in &row.blackouts {
                    @let (from, to) = (axis.x(window.start()), axis.x(window.end()));
                    rect.blk x=(percent(from)) width=(percent(to - from)) y="2" height="20" {
                        title { "Blackout " (times.short_text(window.start())) " to " (times.short_text(window.end())) }
                    }
                }
                line.g0 x1="0" x2="100%" y1="17.5" y2="17.5" {}
                @let drawn = merged(&row.bars, axis);
                @for bar in &drawn { (bar.draw(axis, times, drawn.len() <= EXPLAINED_MAX)) }
                @if let Some(since) = row.waiting_since {
                    line.wait x1=(percent(axis.x(since))) x2=(percent(axis.x(axis.now))) y1="11" y2="11" {}
                }
                (axis.now_line(24))
            }
        }
    }
}

/// A bar, or several that nearly touch.
#[derive(Debug, PartialEq)]
struct DrawnBar {
    bar: Bar,
    n_runs: u64,
}

/// Bars as they are drawn. Where there are many, neighbours of the same kind become one.
fn merged(bars: &[Bar], axis: &Axis) -> Vec<DrawnBar> {
    let gap = if bars.len() <= BARS_MAX { f64::MIN } else { 2.2 };
    let mut drawn: Vec<DrawnBar> = Vec::new();
    for bar in bars {
        match drawn.last_mut() {
            Some(last)
                if is_alike(last.bar.kind, bar.kind) && axis.x(bar.from) - axis.x(last.bar.to) < gap =>
            {
                last.bar.to = last.bar.to.max(bar.to);
                last.n_runs += 1;
            }
            _ => drawn.push(DrawnBar {
                n_runs: if let BarKind::PlannedMany { n_runs } = bar.kind { n_runs } else { 1 },
                bar: bar.clone(),
            }),
        }
    }
    drawn
}

fn is_alike(one: BarKind, other: BarKind) -> bool {
    match (one, other) {
        (BarKind::Ended { outcome: one, .. }, BarKind::Ended { outcome: other, .. }) => one == other,
        (BarKind::Planned { .. }, BarKind::Planned { .. }) => true,
        _ => false,
    }
}

impl DrawnBar {
    /// Several runs as one are a thin strip: nothing runs all the time there.
    fn draw(&self, axis: &Axis, times: &Times, is_explained: bool) -> Markup {
        let Bar { from, to, kind } = &self.bar;
        let (x, end) = (axis.x(*from), axis.x(*to));
        let span = format!("{} to {}", times.short_text(*from), times.short_text(*to));
        let several = 1 < self.n_runs;
        match kind {
            BarKind::Ended { run, outcome } => {
                let (class, y, height) = match outcome {
                    Outcome::Succeeded if several => ("good", "11", "6"),
                    Outcome::Succeeded => ("good", "5", "12"),
                    Outcome::TimedOut | Outcome::Blackout | Outcome::Cancelled => ("kill", "15", "8"),
                    _ => ("fail", "15", "8"),
                };
                let word = outcome_word(*outcome);
                let title = match self.n_runs {
                    1 => format!("{word}, {span}"),
                    n => format!("{} runs, {}, {span}", count(n), word.to_lowercase()),
                };
                let drawn = html! {
                    rect class=(class) x=(percent(x)) width=(percent((end - x).max(0.28))) y=(y) height=(height) rx="1" {
                        title { (title) }
                    }
                };
                html! { @if several { (drawn) } @else { a href={ "/runs/" (run) } tabindex="-1" { (drawn) } } }
            }
            BarKind::Running { run } => {
                let now = axis.x(axis.now);
                html! {
                    a href={ "/runs/" (run) } tabindex="-1" {
                        @if axis.now < *to { rect.rest x=(percent(now)) width=(percent((end - now).max(0.3))) y="5.5" height="11" {} }
                        rect.run x=(percent(x)) width=(percent((now - x).max(0.28))) y="5" height="12" {
                            title {
                                "Running since " (times.short_text(*from))
                                @if axis.now < *to { ", expected until " (times.short_text(*to)) }
                            }
                        }
                    }
                }
            }
            BarKind::Planned { .. } | BarKind::PlannedMany { .. } if several => html! {
                rect.plan x=(percent(x)) width=(percent((end - x).max(0.35))) y="10.5" height="6" rx="1.5" {
                    title { (count(self.n_runs)) " planned runs, " (span) }
                }
            },
            BarKind::Planned { .. } | BarKind::PlannedMany { .. } => html! {
                rect.plan x=(percent(x)) width=(percent((end - x).max(0.35))) y="5.5" height="11" rx="1.5" {
                    @if is_explained {
                        title { "Planned " (span) @if let BarKind::Planned { is_held_up: true } = kind { ", later than due" } }
                    }
                }
            },
        }
    }
}

fn outcome_word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Succeeded => "Good",
        Outcome::Failed => "Failed",
        Outcome::TimedOut => "Killed at its limit",
        Outcome::Blackout => "Ended by a blackout",
        Outcome::Cancelled => "Cancelled",
        Outcome::Lost => "Lost",
        Outcome::Unknown => "No answer",
        Outcome::Superseded => "Superseded",
    }
}

/// The row in words.
fn said(row: &TimelineRow, axis: &Axis, times: &Times) -> String {
    let mut said = Vec::new();
    if let Some(since) = row.waiting_since {
        said.push(format!("waiting since {}", times.short_text(since)));
    }
    let mut n_good = 0_u64;
    let mut bad = Vec::new();
    for bar in &row.bars {
        match bar.kind {
            BarKind::Running { .. } => said.push(format!("running since {}", times.short_text(bar.from))),
            BarKind::Ended { outcome: Outcome::Succeeded, .. } => n_good += 1,
            BarKind::Ended { outcome, .. } => {
                bad.push(format!("{} {}", outcome_word(outcome).to_lowercase(), times.short_text(bar.to)));
            }
            BarKind::Planned { .. } | BarKind::PlannedMany { .. } => {}
        }
    }
    if 0 < n_good {
        said.push(counted(n_good, "good run"));
    }
    // The latest two; the drawing has all.
    said.extend(bad.into_iter().rev().take(2));
    let is_planned = |bar: &&Bar| matches!(bar.kind, BarKind::Planned { .. } | BarKind::PlannedMany { .. });
    let next = row.bars.iter().find(is_planned);
    if let Some(next) = next.filter(|bar| axis.now <= bar.from) {
        said.push(format!("next {}", times.short_text(next.from)));
    }
    let soon = row.blackouts.iter().find(|it| axis.now < it.end());
    if let Some(window) = soon {
        said.push(format!(
            "blackout {} to {}",
            times.short_text(window.start()),
            times.short_text(window.end())
        ));
    }
    if said.is_empty() { "no run in view".to_owned() } else { said.join(", ") }
}

#[cfg(test)]
mod tests {
    use evenbeat_core::ids::RunId;
    use evenbeat_core::time::{Duration, Timestamp};
    use evenbeat_core::zone::Zone;

    use super::*;
    use crate::fleet::PartedWindow;
    use crate::views::timeline::Zoom;

    fn at(minutes: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + Duration::from_mins(minutes)
    }

    fn bar(from: i64, to: i64, kind: BarKind) -> Bar {
        Bar { from: at(from), to: at(to), kind }
    }

    fn ended(outcome: Outcome) -> BarKind {
        BarKind::Ended { run: RunId(7), outcome }
    }

    fn axis() -> (Axis, Times) {
        let times = Times { zone: Zone::utc(), now: at(30) };
        let parts = PartedWindow { start: at(0), part: Duration::from_mins(1), n_parts: 60 };
        (Axis::of(parts, at(30), Zoom::Hour, &times), times)
    }

    fn row(bars: Vec<Bar>) -> TimelineRow {
        TimelineRow { key: "a".to_owned(), condition: None, bars, blackouts: Vec::new(), waiting_since: None }
    }

    #[test]
    fn a_row_is_told_in_words() {
        let (axis, times) = axis();
        assert_eq!(said(&row(Vec::new()), &axis, &times), "no run in view");
        let mut full = row(vec![
            bar(1, 2, ended(Outcome::Succeeded)),
            bar(5, 6, ended(Outcome::Failed)),
            bar(25, 35, BarKind::Running { run: RunId(8) }),
            bar(40, 41, BarKind::Planned { is_held_up: false }),
        ]);
        full.waiting_since = Some(at(20));
        assert_eq!(
            said(&full, &axis, &times),
            "waiting since 00:20, running since 00:25, 1 good run, failed 00:06, next 00:40"
        );
    }

    #[test]
    fn many_bars_become_few() {
        let (axis, _) = axis();
        let few: Vec<Bar> = (0..3).map(|n| bar(n, n + 1, ended(Outcome::Succeeded))).collect();
        assert_eq!(merged(&few, &axis).len(), 3);
        let seconds = |n: i64| at(0) + Duration::from_secs(n * 20);
        let outcome = |n: i64| if n == 50 { Outcome::Failed } else { Outcome::Succeeded };
        let many: Vec<Bar> =
            (0..90).map(|n| Bar { from: seconds(n), to: seconds(n + 1), kind: ended(outcome(n)) }).collect();
        let drawn = merged(&many, &axis);
        assert_eq!(drawn.iter().map(|it| it.n_runs).collect::<Vec<_>>(), [50, 1, 39]);
    }

    #[test]
    fn bad_runs_hang_below_the_line_and_lead_to_their_page() {
        let (axis, times) = axis();
        let html = job(&row(vec![bar(5, 6, ended(Outcome::TimedOut))]), &axis, &times).into_string();
        assert!(html.contains(&format!("href=\"/runs/{}\"", RunId(7))), "{html}");
        assert!(html.contains(r#"<rect class="kill" x="8.33%" width="1.67%" y="15" height="8""#), "{html}");
        assert!(html.contains("Killed at its limit, 00:05 to 00:06"), "{html}");
    }
}
