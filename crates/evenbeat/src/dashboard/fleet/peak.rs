//! The starts of the next day by the hour, with the busiest one marked.
#![expect(clippy::cast_precision_loss, reason = "a chart shows fewer digits than a float has")]

use evenbeat_core::distribution::Distribution;
use maud::{Markup, html};

use crate::dashboard::parts::{percent, rounded_up};
use crate::dashboard::times::{Distance, Times, count};

/// The chart's height, and where its base line is.
const HEIGHT: f64 = 172.0;
const BASE: f64 = HEIGHT - 18.0;
const TOP: f64 = 18.0;

/// An hour is a peak if it has this many times the mean number of starts.
const PEAK_MIN: f64 = 1.1;

pub(super) fn peak(day: &Distribution, times: &Times) -> Markup {
    let (peak_idx, peak_count) = day.peak_hour();
    let mean = mean(day);
    let peak_at = day.hour_start(peak_idx);
    let is_peak = PEAK_MIN * mean <= f64::from(peak_count);
    html! {
        section.sec.peak aria-labelledby="p-h" id="peak" data-l {
            div.sec-h {
                h2 id="p-h" {
                    @if peak_count == 0 { "No starts in the next 24 h" }
                    @else if !is_peak { "No peak in the next 24 h" }
                    @else if peak_idx == 0 { "The busiest hour is this one" }
                    @else { "Next peak " (times.short(peak_at)) ", " (times.distance(peak_at, Distance::In)) }
                }
                span.sp {}
                span.sub { "starts per hour, dashed: mean " (mean_text(day)) }
            }
            (chart(day, mean, is_peak, times))
            div.peak-l {
                p {
                    @if 0 < peak_count {
                        @if is_peak { (count(peak_count.into())) " of " (count(day.n_runs)) " starts fall into that hour. " }
                        @else { "Every hour has about as many starts as the others. " }
                        "Evenness " b { (format!("{:.2}", day.score())) } ", " (word(day.score())) "."
                    }
                }
                a.btn href="/schedule?rebalance=preview" { "Preview rebalance" }
            }
        }
    }
}

/// A score in a word.
fn word(score: f64) -> &'static str {
    match score {
        0.8.. => "good",
        0.6.. => "fair",
        _ => "poor",
    }
}

fn mean(day: &Distribution) -> f64 {
    day.n_runs as f64 / (day.hours.len().max(1)) as f64
}

/// The mean as text: `103`, or `1.5` where a digit matters.
fn mean_text(day: &Distribution) -> String {
    let n_hours = day.hours.len().max(1) as u64;
    let tenths = (day.n_runs * 10 + n_hours / 2) / n_hours;
    match (tenths / 10, tenths % 10) {
        (whole @ 10.., _) | (whole, 0) => count(whole),
        (whole, tenth) => format!("{whole}.{tenth}"),
    }
}

fn chart(day: &Distribution, mean: f64, is_peak: bool, times: &Times) -> Markup {
    let (peak_idx, peak_count) = day.peak_hour();
    let most = rounded_up(f64::from(peak_count)).max(1.0);
    let y = |value: f64| BASE - value / most * (BASE - TOP);
    let n = day.hours.len().max(1) as f64;
    let middle = |idx: usize| percent((idx as f64 + 0.5) / n * 100.0);
    let px = |value: f64| format!("{value:.1}");
    let ticks = [0.0, most / 2.0, most];
    let label = format!(
        "Planned starts per hour for the next 24 hours. Peak {peak_count} starts from {}, mean {}.",
        times.clock(day.hour_start(peak_idx)),
        mean_text(day)
    );
    html! {
        figure.chart {
            svg.yax height=(HEIGHT) aria-hidden="true" {
                @for tick in ticks { @if tick == 0.0 || 1.0 <= tick { text x="28" y=(px(y(tick) + 4.0)) { (axis(tick)) } } }
            }
            svg height=(HEIGHT) role="img" aria-label=(label) {
                @for tick in ticks.into_iter().skip(1) { line.g x1="0" x2="100%" y1=(px(y(tick))) y2=(px(y(tick))) {} }
                @for (idx, starts) in day.hours.iter().enumerate() {
                    @let from = day.hour_start(idx);
                    @let to = day.hour_start(idx + 1);
                    rect class=(if is_peak && idx == peak_idx { "bpk" } else { "b" }) x=(percent(idx as f64 / n * 100.0 + 0.55))
                        width=(percent(100.0 / n - 1.1)) y=(px(y(f64::from(*starts)))) height=(px(BASE - y(f64::from(*starts)))) rx="1.5" {
                        title { (times.clock(from)) " to " (times.clock(to)) ", " (count((*starts).into())) " starts" }
                    }
                    @if idx % 4 == 0 {
                        text class=[(idx % 8 != 0).then_some("hs-x")] x=(middle(idx)) y=(HEIGHT - 3.0) text-anchor="middle" { (times.clock(from)) }
                    }
                }
                line.g0 x1="0" x2="100%" y1=(BASE) y2=(BASE) {}
                @if 0.0 < mean { line.cap x1="0" x2="100%" y1=(px(y(mean))) y2=(px(y(mean))) {} }
                @if is_peak {
                    text.lbl x=(middle(peak_idx)) y=(px(y(f64::from(peak_count)) - 6.0)) text-anchor="middle" { (count(peak_count.into())) }
                }
            }
        }
    }
}

/// A number on the axis, which has room for four letters: `200`, `25k`.
fn axis(value: f64) -> String {
    match value {
        10_000_000.0.. => format!("{:.0}M", value / 1_000_000.0),
        10_000.0.. => format!("{:.0}k", value / 1_000.0),
        10.0.. => format!("{value:.0}"),
        _ => format!("{value:.1}").trim_end_matches(".0").to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_fit_the_axis() {
        assert_eq!(
            [0.0, 2.5, 100.0, 4_000.0, 25_000.0, 20_000_000.0].map(axis),
            ["0", "2.5", "100", "4000", "25k", "20M"]
        );
        assert_eq!([word(0.84), word(0.6), word(0.1)], ["good", "fair", "poor"]);
    }
}
