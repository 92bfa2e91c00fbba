//! The charts of the schedule: starts by slot, expected running against capacity, the score over time, and what a
//! rebalance changes.
//!
//! Bars are paths in a view box that is as wide as there are cells and as high as the chart in pixels: it is stretched in
//! one direction only, and a bar costs twenty bytes instead of a hundred. Text and lines stay outside of it.

use std::fmt::Write as _;

use evenbeat_core::time::Timestamp;
use maud::{Markup, html};

use crate::dashboard::parts::percent;
use crate::dashboard::times::{Times, count, counted};
use crate::intake::PlanSummary;
use crate::views::analysis::shown_score;
use crate::views::schedule::{DayCell, FleetCapacity, ScoreHistory, whole};

/// Space above the highest bar and below the axis, in pixels.
const TOP: f64 = 22.0;
const BOTTOM: f64 = 20.0;

/// The vertical axis of a chart.
#[derive(Clone, Copy, Debug)]
struct YAxis {
    height: f64,
    step: f64,
    end: f64,
}

impl YAxis {
    /// With room for a value, at most four steps.
    fn up_to(value: f64, height: f64) -> YAxis {
        let power = 10_f64.powf((value.max(1.0) / 4.0).log10().floor()).max(1.0);
        let steps = [1.0, 2.0, 2.5, 5.0, 10.0].into_iter().map(|it| it * power);
        let step =
            steps.filter(|it| it.fract() == 0.0).find(|step| value <= step * 4.0).unwrap_or(10.0 * power);
        YAxis { height, step, end: step * (value / step).ceil().max(1.0) }
    }

    fn base(&self) -> f64 {
        self.height - BOTTOM
    }

    fn y(&self, value: f64) -> f64 {
        self.base() - value / self.end * (self.base() - TOP)
    }

    fn ticks(&self) -> impl Iterator<Item = f64> {
        let YAxis { step, end, .. } = *self;
        (0_u8..=10).map(move |it| f64::from(it) * step).take_while(move |it| *it <= end + 1e-9)
    }

    /// The labels, in a column of their own.
    fn labels(&self) -> Markup {
        html! {
            svg.yax height=(self.height) aria-hidden="true" {
                @for tick in self.ticks() {
                    text x="28" y=(px(self.y(tick) + 4.0)) { (short_number(tick)) }
                }
            }
        }
    }

    fn grid(&self) -> Markup {
        html! {
            @for tick in self.ticks().skip(1) {
                line.g x1="0" x2="100%" y1=(px(self.y(tick))) y2=(px(self.y(tick))) {}
            }
        }
    }

    fn floor(&self) -> Markup {
        html! { line.g0 x1="0" x2="100%" y1=(px(self.base())) y2=(px(self.base())) {} }
    }
}

/// A number for an axis: `1,500`, `25k`, `2M`.
fn short_number(value: f64) -> String {
    match value {
        million if 1e6 <= million => format!("{}M", trimmed(million / 1e6)),
        thousand if 1e4 <= thousand => format!("{}k", trimmed(thousand / 1e3)),
        other => count(whole(other)),
    }
}

fn trimmed(value: f64) -> String {
    let text = format!("{value:.1}");
    text.trim_end_matches(".0").to_owned()
}

/// Pixels with at most one digit.
fn px(value: f64) -> String {
    trimmed(value)
}

/// Bars of one kind as one path.
#[derive(Debug, Default)]
struct Bars(String);

impl Bars {
    /// A bar in a cell, from one height to another, with a gap on both sides.
    fn add(&mut self, cell: usize, from: f64, to: f64) {
        self.add_wide(cell, from, to, ".07", ".86");
    }

    /// Without gaps.
    fn fill(&mut self, cell: usize, from: f64, to: f64) {
        self.add_wide(cell, from, to, "", "1");
    }

    fn add_wide(&mut self, cell: usize, from: f64, to: f64, gap: &str, width: &str) {
        if to < from {
            // Writing to a string cannot fail.
            let _ = write!(self.0, "M{cell}{gap} {}h{width}V{}h-{width}z", px(from), px(to));
        }
    }

    fn path(&self, class: &str) -> Markup {
        html! { @if !self.0.is_empty() { path class=(class) d=(self.0) {} } }
    }
}

/// The part of a chart that is stretched.
fn stretched(n_cells: usize, height: f64, paths: &Markup) -> Markup {
    html! {
        svg width="100%" height=(height) viewBox={ "0 0 " (n_cells) " " (height) } preserveAspectRatio="none" { (paths) }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a chart has a few hundred cells")]
fn share(idx: usize, n_cells: usize) -> f64 {
    idx as f64 / n_cells.max(1) as f64 * 100.0
}

/// The hours below a chart of a day. On small screens every third of them is left.
fn hours(starts: &[Timestamp], height: f64, times: &Times) -> Markup {
    let clocks = starts.iter().enumerate().map(|(idx, at)| (idx, times.clock(*at)));
    let even = clocks.filter(|(_, clock)| {
        let (hour, minute) = clock.split_at(2);
        minute == ":00" && hour.parse::<u8>().is_ok_and(|it| it.is_multiple_of(2))
    });
    html! {
        @for (idx, clock) in even {
            @let x = percent(share(idx, starts.len()));
            @let is_sixth = ["00:00", "06:00", "12:00", "18:00"].contains(&clock.as_str());
            // A label at the very edge would be cut off.
            @if 0 < idx || height < TOP {
                text class=[(!is_sixth).then_some("hs-x")] x=(x) y=(px(height - 4.0)) text-anchor="middle" { (clock) }
            }
            line.g0 x1=(x) x2=(x) y1=(px(height - BOTTOM)) y2=(px(height - BOTTOM + 4.0)) {}
        }
    }
}

fn now_mark(starts: &[Timestamp], base: f64, times: &Times) -> Markup {
    let (Some(first), Some(last)) = (starts.first(), starts.last()) else { return html! {} };
    let cell = (*last - *first).as_millis_f64() / share_len(starts.len()).max(1.0);
    let x = (times.now - *first).as_millis_f64() / (cell * share_len(starts.len() + 1)).max(1.0) * 100.0;
    let x = percent(x.clamp(0.0, 100.0));
    html! {
        line.now x1=(x) x2=(x) y1="12" y2=(px(base)) {}
        text.t-now x=(x) dx="5" y="20" { "Now" }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a chart has a few hundred cells")]
fn share_len(n_cells: usize) -> f64 {
    n_cells.saturating_sub(1) as f64
}

/// A label above a cell. It keeps away from the edges, and from "Now" at the left one.
fn cell_label(idx: usize, n_cells: usize, y: f64, class: &str, text: &str) -> Markup {
    let (left, right) = (share(idx, n_cells), share(idx + 1, n_cells));
    let (x, dx, anchor) = match left {
        at_now if at_now < 3.0 => (right, "36", "start"),
        near_start if near_start < 20.0 => (left, "0", "start"),
        near_end if 80.0 < near_end => (right, "0", "end"),
        _ => (f64::midpoint(left, right), "0", "middle"),
    };
    html! { text class=(class) x=(percent(x)) dx=(dx) y=(px(y)) text-anchor=(anchor) { (text) } }
}

/// What each cell says when it is pointed at.
fn hits(sentences: &[String], base: f64) -> Markup {
    let width = percent(share(1, sentences.len()));
    html! {
        @for (idx, sentence) in sentences.iter().enumerate() {
            rect.hit data-r=(sentence) x=(percent(share(idx, sentences.len()))) width=(width) height=(px(base)) {}
        }
    }
}

/// The sentence of a cell.
pub(super) fn sentence(cell: &DayCell, capacity: FleetCapacity, times: &Times) -> String {
    let (from, to) = (times.clock(cell.window.start()), times.clock(cell.window.end()));
    let mut text = format!("{from} to {to}: {}", counted(cell.starts.into(), "start"));
    if let Some(movable) = cell.movable {
        let _ = write!(text, ", {} movable", count(movable.into()));
    }
    if let Some(demand) = cell.demand {
        let _ = write!(text, ", at most {} of {} running", count(whole(demand)), count(capacity.units));
    }
    text
}

/// Starts by slot: fixed times below, movable ones above, the peak in ink.
pub(super) fn slot_chart(cells: &[DayCell], capacity: FleetCapacity, times: &Times) -> Markup {
    const HEIGHT: f64 = 220.0;
    let most = cells.iter().map(|it| it.starts).max().unwrap_or(0);
    let peak = cells.iter().position(|it| it.starts == most && 0 < most);
    let axis = YAxis::up_to(most.into(), HEIGHT);
    let (mut pinned, mut edge, mut movable) = (Bars::default(), Bars::default(), Bars::default());
    let (mut peak_pinned, mut peak_movable) = (Bars::default(), Bars::default());
    for (idx, cell) in cells.iter().enumerate() {
        let n_movable = cell.movable.unwrap_or(0);
        let split = axis.y((cell.starts - n_movable).into());
        let (below, above) = if peak == Some(idx) {
            (&mut peak_pinned, &mut peak_movable)
        } else {
            (&mut pinned, &mut movable)
        };
        below.add(idx, axis.base(), split);
        if 0 < n_movable {
            above.add(idx, split - 1.0, axis.y(cell.starts.into()).min(split - 1.6));
        } else if 0 < cell.starts && peak != Some(idx) {
            edge.add(idx, split + 1.5, split);
        }
    }
    let has_both = peak
        .and_then(|idx| cells.get(idx))
        .is_some_and(|it| it.movable.is_some_and(|n| 0 < n && n < it.starts));
    let bars = html! {
        (pinned.path("b2")) (edge.path("sky")) (movable.path("b"))
        (peak_pinned.path(if has_both { "bpk2" } else { "bpk" })) (peak_movable.path("bpk"))
    };
    let starts: Vec<Timestamp> = cells.iter().map(|it| it.window.start()).collect();
    let sentences: Vec<String> = cells.iter().map(|it| sentence(it, capacity, times)).collect();
    let peak_at = peak.and_then(|idx| starts.get(idx)).map(|at| times.clock(*at));
    let label = peak_at.as_ref().map_or("No starts are planned in the next 24 hours.".to_owned(), |at| {
        format!(
            "Planned starts in the next 24 hours. Highest at {at} with {}.",
            counted(most.into(), "start")
        )
    });
    html! {
        figure.chart.slots id="slots" tabindex="0" data-readout="slot-readout"
            aria-label="Slot chart. Use the left and right arrow keys to read the slots." {
            (axis.labels())
            svg height=(HEIGHT) role="img" aria-label=(label) {
                (axis.grid())
                (stretched(cells.len(), HEIGHT, &bars))
                (axis.floor()) (hours(&starts, HEIGHT, times)) (now_mark(&starts, axis.base(), times))
                @if let (Some(idx), Some(at)) = (peak, peak_at) {
                    (cell_label(idx, cells.len(), axis.y(most.into()) - 5.0, "lbl halo", &format!("{at}, {}", counted(most.into(), "start"))))
                }
                (hits(&sentences, axis.base()))
            }
        }
    }
}

/// Expected running against capacity; what finds no room is hatched.
pub(super) fn running_chart(cells: &[DayCell], capacity: FleetCapacity, times: &Times) -> Markup {
    const HEIGHT: f64 = 132.0;
    let demands: Vec<f64> = cells.iter().map(|it| it.demand.unwrap_or(0.0)).collect();
    let most = demands.iter().copied().fold(0.0, f64::max);
    let room = to_f64(capacity.units);
    // A capacity far above the demand would press it flat: then the axis ends at the demand.
    let shows_capacity = 0 < capacity.units && room <= most.max(1.0) * 8.0;
    let axis = YAxis::up_to(if shows_capacity { most.max(room) } else { most }, HEIGHT);
    let (mut area, mut edge) = (Bars::default(), Bars::default());
    let mut over: Vec<(usize, f64)> = Vec::new();
    for (idx, demand) in demands.iter().enumerate() {
        let top = axis.y(demand.min(room));
        area.fill(idx, axis.base(), top);
        if 0.0 < *demand {
            edge.fill(idx, (top + 1.5).min(axis.base()), top);
        }
        if 0 < capacity.too_many(*demand) {
            over.push((idx, *demand));
        }
    }
    let starts: Vec<Timestamp> = cells.iter().map(|it| it.window.start()).collect();
    let worst = over.iter().copied().reduce(|one, other| if one.1 < other.1 { other } else { one });
    let label = format!(
        "Runs expected at once, capacity {}. Highest: {}.",
        count(capacity.units),
        count(whole(most))
    );
    html! {
        figure.chart {
            (axis.labels())
            svg height=(HEIGHT) role="img" aria-label=(label) {
                (axis.grid())
                (stretched(cells.len(), HEIGHT, &html! { (area.path("area")) (edge.path("sky")) }))
                @for (idx, demand) in &over {
                    @let (from, to) = (axis.y(room), axis.y(*demand));
                    rect.over x=(percent(share(*idx, cells.len()))) width=(percent(share(1, cells.len()) + 0.03))
                        y=(px(to)) height=(px((from - to).max(2.0))) {}
                }
                @if shows_capacity {
                    line.cap x1="0" x2="100%" y1=(px(axis.y(room))) y2=(px(axis.y(room))) {}
                    text.halo x="100%" y=(px(axis.y(room) - 5.0)) text-anchor="end" { "capacity " (count(capacity.units)) }
                }
                @if let Some((idx, demand)) = worst {
                    @let text = format!("{} wanted, {} will queue", count(whole(demand)), count(capacity.too_many(demand)));
                    (cell_label(idx, cells.len(), axis.y(demand) - 5.0, "lbl t-err halo", &text))
                }
                (axis.floor()) (hours(&starts, HEIGHT, times))
            }
        }
    }
}

/// The score over the last day or week.
pub(super) fn score_chart(history: &ScoreHistory, times: &Times) -> Markup {
    const HEIGHT: f64 = 96.0;
    let n_cells = history.cells.len();
    let base = HEIGHT - BOTTOM;
    let y = |score: f64| base - score * (base - 8.0);
    let mut bars = Bars::default();
    for (idx, score) in history.cells.iter().enumerate() {
        if let Some(score) = score {
            // A score of nothing is still a sample.
            bars.fill(idx, base, y(*score).min(base - 1.0));
        }
    }
    let starts: Vec<Timestamp> = (0..n_cells).map(|idx| history.cell_start(idx)).collect();
    let is_week = n_cells == 168;
    let length = if is_week { "7 days" } else { "24 hours" };
    let label = history.lowest().map_or(format!("No samples in the last {length}."), |(idx, lowest)| {
        let at = starts.get(idx).map_or(String::new(), |at| times.short_text(*at));
        format!("Evenness over the last {length}. Lowest: {} at {at}.", shown_score(lowest))
    });
    html! {
        figure.chart {
            svg.yax height=(HEIGHT) aria-hidden="true" {
                // A label for 0.6 would touch that for 0.8.
                @for (score, label) in [(0.0, "0"), (0.8, "0.8"), (1.0, "1.0")] {
                    text x="28" y=(px(y(score) + 4.0)) { (label) }
                }
            }
            svg height=(HEIGHT) role="img" aria-label=(label) {
                @for score in [0.6, 1.0] { line.g x1="0" x2="100%" y1=(px(y(score))) y2=(px(y(score))) {} }
                (stretched(n_cells, HEIGHT, &bars.path("area")))
                line.cap x1="0" x2="100%" y1=(px(y(0.8))) y2=(px(y(0.8))) {}
                line.g0 x1="0" x2="100%" y1=(px(base)) y2=(px(base)) {}
                @if is_week {
                    @for (idx, day) in days(&starts, times) {
                        text x=(percent(share(idx, n_cells))) dx="3" y=(px(HEIGHT - 4.0)) { (day) }
                        line.g0 x1=(percent(share(idx, n_cells))) x2=(percent(share(idx, n_cells))) y1=(px(base)) y2=(px(base + 4.0)) {}
                    }
                } @else {
                    (hours(&starts.iter().map(|at| quarter(*at)).collect::<Vec<_>>(), HEIGHT, times))
                }
            }
        }
    }
}

/// The beginning of a quarter of an hour, so that cells that begin at odd minutes get labels at whole hours.
fn quarter(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second() - at.as_second().rem_euclid(900))
}

/// The cells in which a day begins, with its name.
fn days(starts: &[Timestamp], times: &Times) -> Vec<(usize, &'static str)> {
    let names: Vec<&'static str> = starts.iter().map(|at| times.weekday(*at)).collect();
    let pairs = names.windows(2).enumerate();
    pairs
        .filter_map(|(idx, pair)| match pair {
            [one, other] if one != other => Some((idx + 1, *other)),
            _ => None,
        })
        .collect()
}

/// What a plan changes: unchanged in grey, arriving in blue, leaving as an outline.
pub(super) fn change_chart(plan: &PlanSummary, times: &Times) -> Markup {
    const HEIGHT: f64 = 150.0;
    let pairs: Vec<(u32, u32)> =
        plan.before.slots.iter().copied().zip(plan.after.slots.iter().copied()).collect();
    let per_cell = (pairs.len() / 144 + 1).max(1);
    let cells: Vec<(u32, u32)> = pairs
        .chunks(per_cell)
        .map(|it| (it.iter().map(|it| it.0).sum(), it.iter().map(|it| it.1).sum()))
        .collect();
    let most = cells.iter().map(|(before, after)| *before.max(after)).max().unwrap_or(0);
    let axis = YAxis::up_to(most.into(), HEIGHT);
    let (mut same, mut edge, mut arrives) = (Bars::default(), Bars::default(), Bars::default());
    let mut leaves: Vec<(usize, u32, u32)> = Vec::new();
    for (idx, (before, after)) in cells.iter().enumerate() {
        let level = axis.y(f64::from(*before.min(after)));
        same.add(idx, axis.base(), level);
        if before < after {
            arrives.add(idx, level - 1.0, axis.y((*after).into()).min(level - 1.6));
        } else if 0 < *before {
            edge.add(idx, level + 1.5, level);
        }
        if after < before {
            leaves.push((idx, *after, *before));
        }
    }
    let starts: Vec<Timestamp> = (0..cells.len()).map(|idx| plan.slot_start(idx * per_cell)).collect();
    let (peak, _) = plan.before.peak();
    let peak = peak / per_cell;
    let (before, after) = cells.get(peak).copied().unwrap_or_default();
    let peak_at = starts.get(peak).map_or(String::new(), |at| times.clock(*at));
    let sentences: Vec<String> = cells
        .iter()
        .enumerate()
        .map(|(idx, (before, after))| {
            let from = starts.get(idx).map_or(String::new(), |at| times.clock(*at));
            format!("From {from}: {} → {} starts", count((*before).into()), count((*after).into()))
        })
        .collect();
    let label = format!(
        "Starts per slot before and after. The peak at {peak_at} goes from {before} to {after} starts."
    );
    html! {
        figure.chart.slots tabindex="0" data-readout="rc" aria-label="Preview chart. Use the left and right arrow keys to read the slots." {
            (axis.labels())
            svg height=(HEIGHT) role="img" aria-label=(label) {
                (axis.grid())
                (stretched(cells.len(), HEIGHT, &html! { (same.path("b2")) (edge.path("sky")) (arrives.path("b")) }))
                @for (idx, low, high) in leaves {
                    rect.bgh x=(percent(share(idx, cells.len()) + 0.07)) width=(percent(share(1, cells.len()) - 0.14))
                        y=(px(axis.y(high.into()))) height=(px(axis.y(low.into()) - axis.y(high.into()))) {}
                }
                (axis.floor()) (hours(&starts, HEIGHT, times)) (now_mark(&starts, axis.base(), times))
                (cell_label(peak, cells.len(), axis.y(before.into()) - 5.0, "lbl halo", &format!("{peak_at}: {before} → {after}")))
                (hits(&sentences, axis.base()))
            }
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a capacity is far below 2^53")]
fn to_f64(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use evenbeat_core::time::{Duration, TimeWindow};
    use evenbeat_core::zone::Zone;

    use super::*;

    #[track_caller]
    fn check_axis(value: f64, ticks: &[&str]) {
        let axis = YAxis::up_to(value, 220.0);
        assert_eq!(axis.ticks().map(short_number).collect::<Vec<_>>(), ticks, "{value}");
        assert!(TOP <= axis.y(value) + 1e-9, "{value} does not fit");
    }

    #[test]
    fn axes_have_a_few_round_ticks_and_room_for_the_highest_value() {
        check_axis(0.0, &["0", "1"]);
        check_axis(1.0, &["0", "1"]);
        check_axis(7.0, &["0", "2", "4", "6", "8"]);
        check_axis(82.0, &["0", "25", "50", "75", "100"]);
        check_axis(4_321.0, &["0", "2,000", "4,000", "6,000"]);
        check_axis(1_234_567.0, &["0", "500k", "1M", "1.5M"]);
    }

    #[test]
    fn bars_are_paths_from_the_bottom_up() {
        let mut bars = Bars::default();
        bars.add(3, 200.0, 72.5);
        bars.fill(4, 200.0, 200.0);
        assert_eq!(bars.0, "M3.07 200h.86V72.5h-.86z");
    }

    #[test]
    fn a_cell_says_what_is_known_of_it() {
        let start = "2026-02-04T18:00:00Z".parse().unwrap();
        let times = Times { zone: Zone::utc(), now: start };
        let window = TimeWindow::starting_at(start, Duration::from_mins(15));
        let capacity = FleetCapacity { units: 60, n_nodes: 8, n_pools: 1 };
        let mut cell = DayCell { window, starts: 1, movable: None, demand: None };
        assert_eq!(sentence(&cell, capacity, &times), "18:00 to 18:15: 1 start");
        cell = DayCell { starts: 82, movable: Some(39), demand: Some(79.4), ..cell };
        assert_eq!(
            sentence(&cell, capacity, &times),
            "18:00 to 18:15: 82 starts, 39 movable, at most 80 of 60 running"
        );
    }
}
