//! When runs ended: good ones stand on the line, bad ones hang below.

use evenbeat_core::time::{Duration, Timestamp};
use maud::{Markup, html};

use crate::dashboard::parts::percent;
use crate::dashboard::times::{Times, brief, counted};
use crate::views::run_board::{EndedStrip, N_PARTS};

/// Where the line is, how high bars may stand, and how far they may hang, in pixels.
const LINE: f64 = 58.0;
const HIGH: f64 = 50.0;
const DEEP: f64 = 20.0;

/// The strip.
pub(super) fn strip(strip: &EndedStrip, times: &Times) -> Markup {
    if strip.n_ended == 0 {
        return html! { figure.ofc.gap id="runs-strip" data-l hidden {} };
    }
    let most = strip.parts.iter().map(|(good, bad)| *good.max(bad)).max().unwrap_or(0).max(1);
    let part = Duration::from_millis(strip.window.as_millis() / i64::try_from(N_PARTS).unwrap_or(1));
    let label = format!(
        "Ended runs per {} in {}: {}, {} of them bad",
        brief(part),
        brief(strip.window),
        counted(strip.n_ended, "run"),
        strip.n_bad()
    );
    html! {
        figure.ofc.gap id="runs-strip" data-l {
            svg.hs.rs height="102" role="img" aria-label=(label) {
                @for (idx, (good, bad)) in strip.parts.iter().enumerate() {
                    @let x = percent(left(idx));
                    @let from = strip.since + Duration::from_millis(part.as_millis() * i64::try_from(idx).unwrap_or(0));
                    @if 0 < *good {
                        @let height = height(*good, most, HIGH);
                        rect.good x=(x) width="1.75%" y=(px(LINE - height)) height=(px(height)) rx="1" {
                            title { (times.short_text(from)) ": " (good) " good" }
                        }
                    }
                    @if 0 < *bad {
                        rect.fail x=(x) width="1.75%" y="60" height=(px(height(*bad, most, HIGH).clamp(4.0, DEEP))) rx="1" {
                            title { (times.short_text(from)) ": " (bad) " bad" }
                        }
                    }
                }
                line.g0 x1="0" x2="100%" y1="58.5" y2="58.5" {}
                @for (idx, (at, text)) in labels(strip, times).iter().enumerate() {
                    text class=[(!idx.is_multiple_of(2)).then_some("hs-x")] x=(percent(*at)) y="98" text-anchor="middle" { (text) }
                }
            }
        }
    }
}

fn left(idx: usize) -> f64 {
    let idx = u32::try_from(idx).unwrap_or(0);
    f64::from(idx) / 0.48 + 0.15
}

/// How high a bar stands. Few runs are seen too.
fn height(n: u64, most: u64, high: f64) -> f64 {
    let share = |n: u64| f64::from(u32::try_from(n).unwrap_or(u32::MAX));
    (share(n) / share(most) * high).max(1.5)
}

fn px(value: f64) -> String {
    format!("{value:.1}")
}

/// Times below the line: six, at whole steps of the window.
fn labels(strip: &EndedStrip, times: &Times) -> Vec<(f64, String)> {
    let step = strip.window.as_millis() / 6;
    let since = strip.since.as_millis();
    let has_seconds = step < 120_000;
    // In the viewer's zone whole hours are whole hours of UTC, in nearly all zones.
    let first = if 0 < step { since.div_euclid(step) * step + step } else { since };
    (0..6)
        .map(|no| Timestamp::from_millis(first + no * step))
        .filter_map(|at| {
            let share = (at - strip.since).as_millis_f64() / strip.window.as_millis_f64() * 100.0;
            let text = if has_seconds { times.clock_s(at) } else { times.clock(at) };
            (5.0..=95.0).contains(&share).then_some((share, text))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_are_seen_and_many_stay_inside() {
        let heights = [height(0, 10, HIGH), height(1, 1_000, HIGH), height(10, 10, HIGH)];
        assert_eq!(heights.map(|it| it.to_string()), ["1.5", "1.5", "50"]);
        assert!(left(47) + 1.75 <= 100.0);
    }
}
