//! The ticks of a time axis, at round times by the clocks of the viewer.

use evenbeat_core::civil::DAY_S;
use evenbeat_core::time::Timestamp;

use crate::dashboard::times::Times;

/// Distances between ticks, in seconds.
const STEPS: [i64; 20] = [
    2,
    5,
    10,
    30,
    60,
    120,
    300,
    600,
    900,
    1_800,
    3_600,
    2 * 3_600,
    3 * 3_600,
    6 * 3_600,
    12 * 3_600,
    DAY_S,
    2 * DAY_S,
    7 * DAY_S,
    28 * DAY_S,
    91 * DAY_S,
];

/// Most ticks of an axis.
const N_TICKS_MAX: i64 = 9;

/// A tick.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AxisTick {
    pub(super) at: Timestamp,
    pub(super) label: String,
    /// Whether narrow screens have no room for its label.
    pub(super) is_minor: bool,
}

/// The ticks between two instants; none so near to an edge that its label would be cut.
pub(super) fn ticks(from: Timestamp, to: Timestamp, times: &Times) -> Vec<AxisTick> {
    let length = (to.as_second() - from.as_second()).max(1);
    let year = 365 * DAY_S;
    let step = STEPS
        .into_iter()
        .find(|step| length / step <= N_TICKS_MAX)
        .unwrap_or((length / N_TICKS_MAX).max(year));
    let offset = times.zone.local(times.now).offset_s;
    let (edge, first) = (length * 3 / 100, (from.as_second() + offset).div_euclid(step) + 1);
    let mut found = Vec::new();
    for no in first.. {
        let at = no * step - offset;
        if to.as_second() - edge < at {
            break;
        }
        if at < from.as_second() + edge {
            continue;
        }
        let instant = Timestamp::from_second(at);
        let label = match step {
            0..60 => times.clock_s(instant),
            60..DAY_S => times.clock(instant),
            _ => times.short_text(instant).replace(" 00:00", ""),
        };
        found.push(AxisTick { at: instant, label, is_minor: no.rem_euclid(2) == 1 });
    }
    found
}

#[cfg(test)]
mod tests {
    use evenbeat_core::zone::Zone;

    use super::*;

    #[track_caller]
    fn check(zone: &str, from: &str, to: &str, expected: &str) {
        let times = Times { zone: Zone::named(zone).unwrap(), now: from.parse().unwrap() };
        let found = ticks(from.parse().unwrap(), to.parse().unwrap(), &times);
        let labels: Vec<&str> = found.iter().map(|it| it.label.as_str()).collect();
        assert_eq!(labels.join(" "), expected);
    }

    #[test]
    fn ticks_are_round_by_the_clocks_of_the_viewer() {
        check(
            "UTC",
            "2026-02-04T08:40:00Z",
            "2026-02-04T16:30:00Z",
            "09:00 10:00 11:00 12:00 13:00 14:00 15:00 16:00",
        );
        check(
            "Asia/Kolkata",
            "2026-02-04T08:40:00Z",
            "2026-02-04T16:30:00Z",
            "15:00 16:00 17:00 18:00 19:00 20:00 21:00",
        );
        check("UTC", "2026-02-04T08:00:00Z", "2026-02-04T08:31:00Z", "08:05 08:10 08:15 08:20 08:25 08:30");
        check("UTC", "2026-02-04T08:00:00Z", "2026-02-09T08:00:00Z", "Thu Fri Sat Sun Mon");
    }

    #[test]
    fn there_are_few_of_them_however_long_the_axis() {
        let times = Times { zone: Zone::utc(), now: "2026-02-04T08:00:00Z".parse().unwrap() };
        for days in [0, 1, 3, 10, 40, 400, 4_000, 40_000] {
            let to = times.now + evenbeat_core::time::Duration::from_days(days);
            assert!(ticks(times.now, to, &times).len() <= 10, "{days} days");
        }
    }
}
