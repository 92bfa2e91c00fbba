//! Clock changes against brute force: the hands of the clock, tick by tick.
//!
//! The oracle asks another library for the offset at each tick and the [`Spec`] about single local
//! times. For a wall-clock job it remembers the latest time that the clock has shown: whatever the
//! hands pass for the first time is due at that tick, and a tick that shows nothing new is not.

use jiff::tz::{TimeZone, TimeZoneDatabase};
use proptest::prelude::*;

use super::spec::{Dialect, Spec, any_spec};
use super::{ODD_ZONES, all_in, plan};
use crate::time::{TimeWindow, Timestamp};
use crate::zone::Zone;

const DAY_S: i64 = 86_400;

fn brute_force(spec: &Spec, zone: &TimeZone, from_s: i64, to_s: i64, tick_s: i64) -> Vec<i64> {
    let local_at = |utc_s: i64| {
        utc_s + i64::from(zone.to_offset(jiff::Timestamp::from_second(utc_s).unwrap()).seconds())
    };
    let matches = |local_s: i64| {
        let at = TimeZone::UTC.to_datetime(jiff::Timestamp::from_second(local_s).unwrap());
        spec.matches(at)
    };
    // Before the window the last tick of each minute is enough: clocks change on whole minutes here.
    let mut shown = local_at(from_s - tick_s);
    let lead_in_s = (from_s - 3 * DAY_S).div_euclid(60) * 60;
    for utc_s in (lead_in_s + 60 - tick_s..from_s).step_by(60) {
        shown = shown.max(local_at(utc_s));
    }
    let mut due = Vec::new();
    for utc_s in (from_s..to_s).step_by(usize::try_from(tick_s).unwrap()) {
        let local_s = local_at(utc_s);
        let is_due = if spec.is_wall_clock() {
            let mut passed = (shown + tick_s..=local_s).step_by(usize::try_from(tick_s).unwrap());
            passed.any(matches)
        } else {
            matches(local_s)
        };
        if is_due {
            due.push(utc_s);
        }
        shown = shown.max(local_s);
    }
    due
}

/// A zone and a change of its clocks between 1975 and 2045.
fn any_change() -> impl Strategy<Value = (&'static str, i64)> {
    let changes: Vec<(&str, i64)> = ODD_ZONES
        .into_iter()
        .flat_map(|name| {
            let zone = TimeZoneDatabase::bundled().get(name).unwrap();
            let from = "1975-01-01T00:00:00Z".parse().unwrap();
            let to: jiff::Timestamp = "2045-01-01T00:00:00Z".parse().unwrap();
            let changes: Vec<i64> = zone
                .following(from)
                .map(|it| it.timestamp())
                .take_while(|at| *at < to)
                .map(jiff::Timestamp::as_second)
                .collect();
            changes.into_iter().map(move |at_s| (name, at_s))
        })
        .collect();
    proptest::sample::select(changes)
}

fn check(spec: &Spec, zone: &str, from_s: i64, to_s: i64, tick_s: i64) -> Result<(), TestCaseError> {
    let theirs = TimeZoneDatabase::bundled().get(zone).unwrap();
    let expected = brute_force(spec, &theirs, from_s, to_s, tick_s);
    let window = TimeWindow::new(Timestamp::from_second(from_s), Timestamp::from_second(to_s));
    let found = all_in(&plan(&spec.to_string()), &Zone::named(zone).unwrap(), window);
    let found: Vec<i64> = found.into_iter().map(Timestamp::as_second).collect();
    prop_assert_eq!(found, expected, "`{}` in {} from {}", spec, zone, window.start());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn minutes_around_clock_changes(
        mut spec in any_spec(Dialect::Ours),
        (zone, change_s) in any_change(),
        before_h in 0..40_i64,
        after_h in 1..40_i64,
    ) {
        spec.second = None;
        check(&spec, zone, change_s - before_h * 3600, change_s + after_h * 3600, 60)?;
    }

    #[test]
    fn seconds_around_clock_changes(
        spec in any_spec(Dialect::Ours),
        (zone, change_s) in any_change(),
        before_s in 0..1_000_i64,
        after_s in 1..5_000_i64,
    ) {
        check(&spec, zone, change_s - before_s, change_s + after_s, 1)?;
    }
}

/// Days on which the clocks of these zones changed twice within two days, and by a whole day.
#[test]
fn rare_changes_of_the_past() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;

    let mut runner = TestRunner::deterministic();
    for (zone, day) in [
        ("Pacific/Apia", "2011-12-30T10:00:00Z"),
        ("Pacific/Kwajalein", "1993-08-21T12:00:00Z"),
        ("Pacific/Kiritimati", "1994-12-31T10:40:00Z"),
        ("Asia/Gaza", "2011-08-01T00:00:00Z"),
        ("Africa/Casablanca", "2026-02-15T02:00:00Z"),
        ("Asia/Pyongyang", "2018-05-04T15:00:00Z"),
        ("America/Caracas", "2016-05-01T07:00:00Z"),
        ("Antarctica/Casey", "2020-10-03T16:00:00Z"),
    ] {
        let change_s = day.parse::<jiff::Timestamp>().unwrap().as_second();
        for _ in 0..12 {
            let mut spec = any_spec(Dialect::Ours).new_tree(&mut runner).unwrap().current();
            spec.second = None;
            check(&spec, zone, change_s - 2 * DAY_S, change_s + 2 * DAY_S, 60).unwrap();
        }
    }
}
