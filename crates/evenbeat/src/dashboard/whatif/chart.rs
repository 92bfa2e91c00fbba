//! The charts of an answer: both sides on the same scales.

use evenbeat_core::time::{Duration, Timestamp};
use maud::{Markup, html};

use crate::dashboard::parts::percent;
use crate::dashboard::times::{Times, count};

const HEIGHT: u32 = 84;
const BASE: f64 = 66.0;

/// Bars over time.
#[derive(Debug)]
pub(super) struct BarChart<'a> {
    pub(super) values: &'a [f64],
    /// The end of the scale.
    pub(super) most: f64,
    pub(super) class: &'static str,
    /// A dashed line.
    pub(super) capacity: Option<u32>,
    /// What stands in the corner.
    pub(super) note: Option<String>,
    pub(super) label: String,
    pub(super) start: Timestamp,
    pub(super) bar: Duration,
}

impl BarChart<'_> {
    pub(super) fn draw(&self, times: &Times) -> Markup {
        let n_bars = f64::from(u32::try_from(self.values.len()).unwrap_or(1).max(1));
        let width = 100.0 / n_bars;
        let y = |value: f64| BASE - value.min(self.most) / self.most.max(0.001) * (BASE - 10.0);
        let is_area = self.class == "area";
        let x = |idx: usize| width * f64::from(u32::try_from(idx).unwrap_or(u32::MAX));
        html! {
            figure.chart {
                svg.yax height=(HEIGHT) aria-hidden="true" {
                    text x="28" y=(format!("{:.0}", y(self.most) + 4.0)) { (count(whole(self.most))) }
                    text x="28" y="70" { "0" }
                }
                svg height=(HEIGHT) role="img" aria-label=(self.label) {
                    line.g x1="0" x2="100%" y1="10" y2="10" {}
                    @for (idx, value) in self.values.iter().enumerate().filter(|(_, it)| 0.01 < **it) {
                        @let w = if is_area { width + 0.03 } else { (width - 0.15).max(0.1) };
                        rect class=(self.class) x=(percent(x(idx))) width=(percent(w)) y=(format!("{:.1}", y(*value)))
                            height=(format!("{:.1}", BASE - y(*value))) {}
                        @if is_area { rect.sky x=(percent(x(idx))) width=(percent(w)) y=(format!("{:.1}", y(*value))) height="1.4" {} }
                    }
                    @if let Some(capacity) = self.capacity {
                        @let at = format!("{:.0}", y(f64::from(capacity)));
                        line.cap x1="0" x2="100%" y1=(at) y2=(at) {}
                    }
                    @if let Some(note) = &self.note { text.lbl2.halo x="0" dx="4" y="22" { (note) } }
                    line.g0 x1="0" x2="100%" y1="66.5" y2="66.5" {}
                    @for (place, (idx, text)) in self.ticks(times).into_iter().enumerate() {
                        @let at = x(idx);
                        @let anchor = if at < 2.0 { "start" } else if 98.0 < at { "end" } else { "middle" };
                        text class=[(place % 2 == 1).then_some("hs-x")] x=(percent(at)) y="81" text-anchor=(anchor) { (text) }
                    }
                }
            }
        }
    }

    /// Bars that begin at a round local time: every four hours, or days.
    fn ticks(&self, times: &Times) -> Vec<(usize, String)> {
        let length = self.bar * i64::try_from(self.values.len()).unwrap_or(0);
        let is_short = length <= Duration::from_days(1);
        let every = if is_short { 4 * 3_600 } else { 86_400 };
        let seconds = u32::try_from(self.bar.as_millis() / 1_000).unwrap_or(900).max(1);
        let starts =
            (0..self.values.len()).map(|idx| (idx, self.start + self.bar * i64::try_from(idx).unwrap_or(0)));
        let round = starts.filter(|(_, at)| times.second_of_day(*at) % every < seconds);
        round.map(|(idx, at)| (idx, if is_short { times.clock(at) } else { times.day(at) })).collect()
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the end of a scale")]
pub(super) fn whole(value: f64) -> u64 {
    value.ceil() as u64
}

#[cfg(test)]
mod tests {
    use evenbeat_core::zone::Zone;

    use super::*;

    #[test]
    fn a_day_has_a_tick_every_four_hours() {
        let values = vec![1.0; 96];
        let chart = BarChart {
            values: &values,
            most: 2.0,
            class: "area",
            capacity: Some(1),
            note: None,
            label: "At most 1".to_owned(),
            start: "2026-02-04T13:45:00Z".parse().unwrap(),
            bar: Duration::from_mins(15),
        };
        let times = Times { zone: Zone::utc(), now: chart.start };
        let ticks: Vec<String> = chart.ticks(&times).into_iter().map(|(_, text)| text).collect();
        assert_eq!(ticks.join(" "), "16:00 20:00 00:00 04:00 08:00 12:00");
        let html = chart.draw(&times).into_string();
        assert!(html.contains(r#"<line class="cap" x1="0" x2="100%" y1="38" y2="38">"#), "{html}");
    }
}
