//! The drawings of a time line: widths are percentages of the window, heights are pixels.

use evenbeat_core::time::{Duration, Timestamp};
use maud::{Markup, html};

use crate::dashboard::parts::percent;
use crate::dashboard::times::{Times, count};
use crate::fleet::PartedWindow;
use crate::views::timeline::{Density, TimelineView, Zoom};

/// Where instants stand.
#[derive(Debug)]
pub(super) struct Axis {
    pub(super) parts: PartedWindow,
    pub(super) now: Timestamp,
    /// Round local times, with their texts.
    ticks: Vec<(Timestamp, String)>,
}

impl Axis {
    pub(super) fn of(parts: PartedWindow, now: Timestamp, zoom: Zoom, times: &Times) -> Axis {
        let (step, every) = match zoom {
            Zoom::Hour => (Duration::from_mins(1), 600),
            Zoom::SixHours => (Duration::from_mins(15), 3_600),
            Zoom::Day => (Duration::from_mins(15), 7_200),
            Zoom::Week => (Duration::from_mins(15), 86_400),
        };
        // Zones are apart by quarters of an hour.
        let into = parts.start.as_millis().rem_euclid(step.as_millis());
        let mut at = if into == 0 {
            parts.start
        } else {
            parts.start + Duration::from_millis(step.as_millis() - into)
        };
        let mut ticks = Vec::new();
        while at <= parts.end() {
            if times.second_of_day(at).is_multiple_of(every) {
                ticks.push((at, if zoom == Zoom::Week { times.day(at) } else { times.clock(at) }));
            }
            at = at + step;
        }
        Axis { parts, now, ticks }
    }

    /// The place of an instant, in percent of the width.
    pub(super) fn x(&self, at: Timestamp) -> f64 {
        let length = (self.parts.end() - self.parts.start).as_millis_f64().max(1.0);
        ((at - self.parts.start).as_millis_f64() / length * 100.0).clamp(0.0, 100.0)
    }

    fn is_now_in_view(&self) -> bool {
        self.parts.start <= self.now && self.now < self.parts.end()
    }

    fn part_width(&self) -> f64 {
        100.0 / f64::from(u32::try_from(self.parts.n_parts).unwrap_or(u32::MAX).max(1))
    }

    /// Whether a part is over.
    fn is_past(&self, idx: usize) -> bool {
        self.parts.at(idx) < self.now
    }

    pub(super) fn grid(&self, height: u32) -> Markup {
        html! {
            @for (at, _) in &self.ticks {
                @let x = percent(self.x(*at));
                line.g x1=(x) x2=(x) y1="0" y2=(height) {}
            }
        }
    }

    pub(super) fn now_line(&self, height: u32) -> Markup {
        html! {
            @if self.is_now_in_view() {
                @let x = percent(self.x(self.now));
                line.now x1=(x) x2=(x) y1="0" y2=(height) {}
            }
        }
    }
}

fn px(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or_else(|| text.clone(), str::to_owned)
}

#[expect(clippy::cast_precision_loss, reason = "slots")]
fn slots(n: u64) -> f64 {
    n as f64
}

/// All that runs, against all that can.
pub(super) fn capacity_strip(view: &TimelineView, axis: &Axis, times: &Times) -> Markup {
    let (height, base) = (82, 62.0);
    let capacity = slots(view.capacity);
    let most = view.all.most().max(capacity).max(1.0) * 1.02;
    let y = |units: f64| base - units / most * (base - 18.0);
    let width = axis.part_width();
    let label = format!(
        "Slots in use against {} available: at most {} in this window",
        count(view.capacity),
        view.all.most().ceil()
    );
    let every = if axis.ticks.len() < 9 { 2 } else { 3 };
    html! {
        svg.td height=(height) role="img" aria-label=(label) {
            (axis.grid(62))
            @for (idx, wanted) in view.all.wanted.iter().enumerate() {
                @let shown = wanted.min(capacity);
                @let x = percent(width * place(idx));
                @let w = percent(width + 0.03);
                @if 0.005 < shown {
                    rect class=(if axis.is_past(idx) { "good" } else { "fut" }) x=(x) width=(w) y=(px(y(shown)))
                        height=(px(base - y(shown))) {}
                    @if !axis.is_past(idx) { rect.sky x=(x) width=(w) y=(px(y(shown))) height="1.2" {} }
                }
                @if capacity + 0.05 < *wanted && !axis.is_past(idx) {
                    rect.over x=(x) width=(w) y=(px(y(*wanted))) height=(px(y(capacity) - y(*wanted))) {}
                }
            }
            line.cap x1="0" x2="100%" y1=(px(y(capacity))) y2=(px(y(capacity))) {}
            text.halo x="0" y=(px(y(capacity) - 4.0)) { "capacity " (count(view.capacity)) }
            line.g0 x1="0" x2="100%" y1="62.5" y2="62.5" {}
            @for (place, (at, text)) in axis.ticks.iter().enumerate() {
                @let x = axis.x(*at);
                @let anchor = if x < 1.0 { "start" } else if 99.0 < x { "end" } else { "middle" };
                text class=[(place % every != 0).then_some("hs-x")] x=(percent(x)) y="77" text-anchor=(anchor) { (text) }
            }
            @if axis.is_now_in_view() {
                @let x = percent(axis.x(axis.now));
                line.now x1=(x) x2=(x) y1="0" y2="62" {}
                @let is_left = axis.x(axis.now) < 80.0;
                text.t-now.halo x=(x) dx=(if is_left { "5" } else { "-5" }) y="10" text-anchor=(if is_left { "start" } else { "end" }) {
                    "Now " (times.clock(axis.now))
                }
            }
        }
    }
}

/// What a group does: relative to its capacity, or to its own maximum.
pub(super) fn density(name: &str, density: &Density, capacity: Option<u64>, axis: &Axis) -> Markup {
    let height: u32 = if capacity.is_some() { 40 } else { 28 };
    let base = f64::from(height) - 9.0;
    let cap = capacity.map(slots);
    let most = density.most().max(cap.unwrap_or(0.0)).max(if cap.is_some() { 1.0 } else { 0.01 });
    // Room above the capacity for what goes beyond it.
    let y =
        |units: f64| base - units / most.min(cap.map_or(most, |cap| (cap * 1.25).max(1.0))) * (base - 3.0);
    let width = axis.part_width();
    let n_bad = density.n_bad_in_all();
    let label = format!("{name}: at most {} at once, {n_bad} bad runs", density.most().ceil());
    html! {
        svg.td height=(height) role="img" aria-label=(label) {
            (axis.grid(height))
            @for (idx, wanted) in density.wanted.iter().enumerate() {
                @let shown = cap.map_or(*wanted, |cap| wanted.min(cap));
                @let x = percent(width * place(idx) + 0.06);
                @let w = percent((width - 0.12).max(0.1));
                @if 0.02 < shown {
                    rect class=(if axis.is_past(idx) { "good" } else { "fut" }) x=(x) width=(w) y=(px(y(shown)))
                        height=(px((base - y(shown)).max(0.8))) {}
                }
                @if let Some(cap) = cap.filter(|cap| cap + 0.25 < *wanted && !axis.is_past(idx)) {
                    @let over = ((wanted - cap) / cap.max(1.0) * 6.0 + 2.0).min(6.0).min(y(cap));
                    rect.over x=(percent(width * place(idx))) width=(percent(width)) y=(px(y(cap) - over)) height=(px(over)) {}
                }
                @if let Some(n_bad) = density.n_bad.get(idx).filter(|it| 0 < **it) {
                    rect.bad x=(x) width=(w) y=(px(base + 2.0)) height=((2 + 2 * n_bad).min(7)) { title { (n_bad) " bad" } }
                }
            }
            line.g0 x1="0" x2="100%" y1=(px(base + 0.5)) y2=(px(base + 0.5)) {}
            @if let Some(cap) = cap { line.cap x1="0" x2="100%" y1=(px(y(cap))) y2=(px(y(cap))) {} }
            (axis.now_line(height))
        }
    }
}

fn place(idx: usize) -> f64 {
    f64::from(u32::try_from(idx).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use evenbeat_core::zone::Zone;

    use super::*;

    fn axis(zoom: Zoom, start: &str, hours: i64, zone: &str) -> Axis {
        let parts =
            PartedWindow { start: start.parse().unwrap(), part: Duration::from_hours(hours), n_parts: 1 };
        let now = parts.start + Duration::from_mins(30);
        Axis::of(parts, now, zoom, &Times { zone: Zone::named(zone).unwrap(), now })
    }

    #[test]
    fn ticks_stand_at_round_local_times() {
        let texts =
            |axis: &Axis| axis.ticks.iter().map(|(_, text)| text.clone()).collect::<Vec<_>>().join(" ");
        assert_eq!(
            texts(&axis(Zoom::SixHours, "2026-02-04T12:45:00Z", 6, "UTC")),
            "13:00 14:00 15:00 16:00 17:00 18:00"
        );
        assert_eq!(
            texts(&axis(Zoom::SixHours, "2026-02-04T12:45:00Z", 6, "Asia/Kolkata")),
            "19:00 20:00 21:00 22:00 23:00 00:00"
        );
        assert_eq!(texts(&axis(Zoom::Week, "2026-02-03T00:00:00Z", 60, "UTC")), "Tue 3 Wed 4 Thu 5");
    }

    #[test]
    fn instants_outside_the_window_stand_at_its_edges() {
        let axis = axis(Zoom::Hour, "2026-02-04T12:00:00Z", 1, "UTC");
        let x = |text: &str| axis.x(text.parse().unwrap());
        assert!((x("2026-02-04T12:30:00Z") - 50.0).abs() < 1e-9);
        assert!(
            (x("2026-02-04T11:00:00Z") - 0.0).abs() < 1e-9
                && (x("2026-02-04T14:00:00Z") - 100.0).abs() < 1e-9
        );
    }
}
