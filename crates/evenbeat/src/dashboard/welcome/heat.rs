//! The starts of a day as a heat map: rows are hours, columns are minutes; below it the sum by minute of the hour, so that
//! the spike at the full hour is also a length.

use std::fmt::Write as _;

use evenbeat_core::zone::Zone;
use maud::{Markup, html};

use crate::dashboard::parts::{percent, rounded_up};
use crate::dashboard::times::{Times, count, counted};
use crate::views::analysis::{Side, shown_score};

/// The height of an hour, in pixels.
const ROW: usize = 10;

/// The height of the sums, in pixels.
const SUM_BASE: f64 = 56.0;

/// Starts in a minute by shade: each is a class, and as high as it is many.
const SHADES: [(u32, &str, f64); 4] = [(8, "h4", 9.0), (4, "h3", 9.0), (2, "h2", 6.0), (1, "h1", 3.0)];

/// One side of the comparison. The sums of both sides have the same scale, up to `most_a_minute`.
pub(super) fn heat_map(title: &str, side: &Side, most_a_minute: u32, zone: &Zone, times: &Times) -> Markup {
    let hours: Vec<&[u32]> = side.distribution.minutes.chunks(60).collect();
    let height = hours.len() * ROW;
    let local = Times { zone: zone.clone(), now: times.now };
    let peak = side.peak_minute;
    let label = format!(
        "{}: at most {} in one minute, at {}",
        title,
        counted(peak.n_starts.into(), "start"),
        local.clock(peak.at)
    );
    html! {
        div {
            h3 { b { (shown_score(side.score)) } (title) }
            figure.chart {
                svg.yax height=(height + 16) aria-hidden="true" {
                    @for hour in (0..hours.len()).step_by(6) {
                        @let clock = local.clock(side.distribution.hour_start(hour));
                        text x="28" y=(hour * ROW + 9) { (clock.split(':').next().unwrap_or_default()) "h" }
                    }
                }
                svg.hm1 height=(height + 16) role="img" aria-label=(label) {
                    rect.bk width="100%" height=(height) {}
                    svg width="100%" height=(height) viewBox={ "0 0 60 " (height) } preserveAspectRatio="none" {
                        @for (class, path) in shades(&hours) { path class=(class) d=(path) {} }
                    }
                    @for minute in ["00", "15", "30", "45"] {
                        text x=(percent(minute.parse::<f64>().unwrap_or(0.0) / 0.6)) y=(height + 12) { ":" (minute) }
                    }
                }
                (sums(side, most_a_minute))
            }
        }
    }
}

/// One path for each shade that occurs.
fn shades(hours: &[&[u32]]) -> Vec<(&'static str, String)> {
    let mut paths: Vec<(&'static str, String)> = Vec::new();
    for (from, class, high) in SHADES {
        let up_to = SHADES.iter().map(|it| it.0).filter(|it| from < *it).min().unwrap_or(u32::MAX);
        let mut path = String::new();
        for (row, minutes) in hours.iter().enumerate() {
            for (minute, n) in minutes.iter().enumerate() {
                if from <= *n && *n < up_to {
                    // Writing to a string cannot fail.
                    let _ = write!(path, "M{minute}.05 {}h.9v{high}h-.9z", top(row, high));
                }
            }
        }
        if !path.is_empty() {
            paths.push((class, path));
        }
    }
    paths
}

/// Where a mark of this height begins, so that it stands in the middle of its row.
#[expect(clippy::cast_precision_loss, reason = "a map has a few dozen rows")]
fn top(row: usize, high: f64) -> f64 {
    (row * ROW) as f64 + (ROW as f64 - high) / 2.0
}

/// Starts a day in each minute of the hour.
fn sums(side: &Side, most_a_minute: u32) -> Markup {
    let end = rounded_up(f64::from(most_a_minute));
    let y = |n: u32| SUM_BASE - f64::from(n) / end * (SUM_BASE - 10.0);
    let total: u64 = side.by_minute.iter().map(|it| u64::from(*it)).sum();
    let most = side.by_minute.iter().copied().max().unwrap_or(0);
    let minute = side.by_minute.iter().position(|it| *it == most).unwrap_or(0);
    // A minute that has far more than its share stands out.
    let is_spike = total < u64::from(most) * 10 && 1 < most;
    let (mut bars, mut spike) = (String::new(), String::new());
    for (idx, n) in side.by_minute.iter().enumerate().filter(|(_, n)| 0 < **n) {
        let path = if is_spike && *n == most { &mut spike } else { &mut bars };
        let _ = write!(path, "M{idx}.1 {SUM_BASE}h.8V{:.1}h-.8z", y(*n));
    }
    let note = if is_spike {
        format!("{} of {} a day at :{minute:02}", count(most.into()), count(total))
    } else {
        format!("at most {} of {} at any minute", count(most.into()), count(total))
    };
    html! {
        svg.yax height="62" aria-hidden="true" {
            text x="28" y="14" { (format!("{end:.0}")) } text x="28" y="60" { "0" }
        }
        svg.hbar height="62" role="img" aria-label={ "Starts a day by minute of the hour: " (note) } {
            line.g x1="0" x2="100%" y1="10" y2="10" {}
            line.g0 x1="0" x2="100%" y1="56.5" y2="56.5" {}
            svg width="100%" height="62" viewBox="0 0 60 62" preserveAspectRatio="none" {
                @if !bars.is_empty() { path.b d=(bars) {} }
                @if !spike.is_empty() { path.bpk d=(spike) {} }
            }
            text.lbl2.halo x="100%" y="24" text-anchor="end" { (note) }
        }
    }
}

pub(super) fn legend() -> Markup {
    let sample = |class: &str, y: f64, height: f64, text: &str| {
        html! {
            span { svg.hm1 viewBox="0 0 14 10" aria-hidden="true" { rect class=(class) y=(y) width="8" height=(height) {} } (text) }
        }
    };
    html! {
        div.lgd {
            (sample("h1", 3.5, 3.0, "1 start a minute")) (sample("h2", 2.0, 6.0, "2 to 3"))
            (sample("h3", 0.0, 10.0, "4 to 7")) (sample("h4", 0.0, 10.0, "8 and more"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_minute_with_a_start_is_in_one_shade() {
        let (mut first, mut second) = ([0; 60], [0; 60]);
        (first[0], first[5], second[59]) = (17, 1, 3);
        let paths = shades(&[&first, &second]);
        assert_eq!(
            paths,
            [
                ("h4", "M0.05 0.5h.9v9h-.9z".to_owned()),
                ("h2", "M59.05 12h.9v6h-.9z".to_owned()),
                ("h1", "M5.05 3.5h.9v3h-.9z".to_owned()),
            ]
        );
    }
}
