//! Clock changes against brute force: the hands of the clock, tick by tick.
//!
//! The oracle asks another library for the offset at each tick and the [`Spec`] about single local
//! times. For a wall-clock job it remembers the latest time that the clock has shown: whatever the
//! hands pass for the first time is due at that tick, and a tick that shows no change is not.

use jiff::tz::{TimeZone, TimeZoneDatabase};
use proptest::prelude::*;

use super::super::walk::Clocks;
use super::spec::{Dialect, Spec, any_spec};
use super::{ODD_ZONES, all_in, plan};
use crate::time::{TimeWindow, Timestamp};
use crate::zone::{Segment, Zone};

const DAY_S: i64 = 86_400;

fn brute_force(spec: &Spec, offset_at: impl Fn(i64) -> i64, from_s: i64, to_s: i64, tick_s: i64) -> Vec<i64> {
    let local_at = |utc_s: i64| utc_s + offset_at(utc_s);
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
    let offset_at = |utc_s| theirs.to_offset(jiff::Timestamp::from_second(utc_s).unwrap()).seconds().into();
    let expected = brute_force(spec, offset_at, from_s, to_s, tick_s);
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

/// Clocks that no country would stand for: any number of changes within hours. Each is the UTC
/// second from which an offset holds.
#[derive(Debug)]
struct MadeUpClocks(Vec<(i64, i64)>);

impl Clocks for MadeUpClocks {
    fn segment_at(&self, utc_s: i64) -> Segment {
        let next = self.0.partition_point(|(start_s, _)| *start_s <= utc_s);
        let end_s = self.0.get(next).map_or(i64::MAX, |(start_s, _)| *start_s);
        let (start_s, offset_s) = self.0[next - 1];
        Segment { start_s, end_s, offset_s }
    }
}

/// Offsets of whole quarters of an hour, up to 14 hours, in a week that begins on 1 June 2026.
fn any_clocks() -> impl Strategy<Value = MadeUpClocks> {
    let quarter_s = 900;
    let changes = proptest::collection::btree_map(0..7 * 96_i64, -56..=56_i64, 1..8);
    (-4..=8_i64, changes).prop_map(move |(first, changes)| {
        let later = changes.into_iter().map(|(at, offset)| (JUNE_S + at * quarter_s, offset * quarter_s));
        let mut clocks: Vec<(i64, i64)> =
            std::iter::once((i64::MIN, first * quarter_s)).chain(later).collect();
        clocks.dedup_by_key(|(_, offset_s)| *offset_s);
        MadeUpClocks(clocks)
    })
}

/// 2026-06-01T00:00:00Z.
const JUNE_S: i64 = 1_780_272_000;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn several_changes_within_days(
        mut spec in any_spec(Dialect::Ours),
        clocks in any_clocks(),
        from_min in 0..4 * 1440_i64,
        n_minutes in 1..6 * 1440_i64,
        part_min in 10..300_usize,
    ) {
        spec.second = None;
        let (from_s, to_s) = (JUNE_S + from_min * 60, JUNE_S + (from_min + n_minutes) * 60);
        let expected = brute_force(&spec, |utc_s| clocks.segment_at(utc_s).offset_s, from_s, to_s, 60);
        let plan = plan(&spec.to_string());
        let mut found = Vec::new();
        plan.for_each_second(&clocks, from_s, to_s, |at_s| found.push(at_s));
        prop_assert_eq!(&found, &expected, "`{}`", spec);
        // Each part must find out for itself what the clocks had shown before it.
        let mut found_in_parts = Vec::new();
        for start_s in (from_s..to_s).step_by(part_min * 60) {
            let end_s = to_s.min(start_s + i64::try_from(part_min * 60).unwrap());
            plan.for_each_second(&clocks, start_s, end_s, |at_s| found_in_parts.push(at_s));
        }
        prop_assert_eq!(&found_in_parts, &expected, "`{}` in parts of {} min", spec, part_min);
    }
}

/// Clocks of the past that were changed by a whole day, by a moon, or by decree.
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
