//! Random blackouts in difficult zones, against a person who reads the clock on the wall.

use proptest::prelude::*;

use super::{BlackoutPeriod, Blackouts, PERIODS_MAX, Weekdays};
use crate::civil;
use crate::time::{Duration, TimeWindow, Timestamp};
use crate::zone::Zone;

const ZONES: [&str; 7] = [
    "Europe/Berlin",
    "Australia/Lord_Howe",
    "Pacific/Apia",
    "America/New_York",
    "Asia/Gaza",
    "Africa/Casablanca",
    "UTC",
];
const MINUTE_S: i64 = 60;
const DAY_S: i64 = 86_400;
const WEEK_S: i64 = 7 * DAY_S;

/// Inside, by the periods as they are written and a reading of the clock: nothing is merged, and a
/// window that crosses midnight is seen from each of its two days.
fn reads_inside(periods: &[BlackoutPeriod], weekday: u8, second: u32) -> bool {
    periods.iter().any(|BlackoutPeriod { start, end, days }| {
        let (start, end) = (start.as_second(), end.as_second());
        if start < end {
            return days.contains(weekday) && start <= second && second < end;
        }
        let begun_today = days.contains(weekday) && start <= second;
        let begun_yesterday = days.contains((weekday + 6) % 7) && second < end;
        begun_today || begun_yesterday
    })
}

fn inside(blackouts: &Blackouts, zone: &Zone, utc_s: i64) -> bool {
    let local = zone.local(Timestamp::from_second(utc_s));
    reads_inside(blackouts.periods(), civil::weekday(civil::day_of(local.date)), local.second_of_day)
}

/// A job's blackouts, a zone, and an instant around which something happens.
#[derive(Clone, Debug)]
struct Case {
    blackouts: Blackouts,
    zone: Zone,
    at: Timestamp,
    /// Every period and every clock change lies on a multiple of it.
    grain_s: i64,
}

impl Case {
    /// `at` and every grain after it, up to a horizon: between two of them nothing can change.
    fn steps(&self, horizon_s: i64) -> impl Iterator<Item = i64> {
        let at_s = self.at.as_second();
        let first_s = (at_s.div_euclid(self.grain_s) + 1) * self.grain_s;
        let n_steps = horizon_s / self.grain_s;
        [at_s].into_iter().chain((0..n_steps).map(move |n| first_s + n * self.grain_s))
    }

    fn horizon_s(&self) -> i64 {
        self.grain_s * 12_000
    }

    /// The first instant that is, or is not, inside; none if that lies beyond the horizon.
    fn first(&self, wanted: bool) -> Option<Timestamp> {
        let found = self
            .steps(self.horizon_s())
            .find(|step_s| inside(&self.blackouts, &self.zone, *step_s) == wanted)?;
        Some(Timestamp::from_second(found).max(self.at))
    }

    fn within_horizon(&self, found: Option<Timestamp>) -> Option<Timestamp> {
        let last_s = self.steps(self.horizon_s()).last()?;
        found.filter(|at| at.as_second() <= last_s)
    }
}

fn time(grain_s: i64) -> impl Strategy<Value = String> {
    // Hours make neighbours that touch; the first ones of the day are those of the clock changes.
    let second = prop_oneof![
        2 => (0..24_i64).prop_map(|hour| hour * 3_600),
        2 => (0..16_i64).prop_map(|quarter| quarter * 900),
        1 => (0..DAY_S / 60).prop_map(|minute| minute * 60),
        1 => 0..DAY_S,
    ];
    second.prop_map(move |second| {
        let second = second / grain_s * grain_s;
        format!("{:02}:{:02}:{:02}", second / 3_600, second / 60 % 60, second % 60)
    })
}

fn days() -> impl Strategy<Value = Weekdays> {
    let names = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
    prop_oneof![
        1 => Just(Weekdays::ALL),
        2 => prop::sample::subsequence(names.to_vec(), 1..=7).prop_map(|names| Weekdays::from_names(&names).unwrap()),
    ]
}

fn blackouts(grain_s: i64) -> impl Strategy<Value = Blackouts> {
    let end = prop_oneof![4 => time(grain_s), 1 => Just("24:00".to_owned())];
    let period = (time(grain_s), end, days()).prop_filter_map("no length", |(start, end, days)| {
        BlackoutPeriod::new(start.parse().unwrap(), end.parse().unwrap(), days).ok()
    });
    let period = period.boxed();
    let few = prop::collection::vec(period.clone(), 0..=5);
    let many = prop::collection::vec(period, 0..=PERIODS_MAX);
    prop_oneof![9 => few, 1 => many].prop_map(|periods| Blackouts::new(periods).unwrap())
}

/// Up to `around_s` before or after a clock change of the years 2005 to 2035.
fn place(around_s: i64) -> impl Strategy<Value = (Zone, Timestamp)> {
    let zones: Vec<(Zone, Vec<i64>)> = ZONES
        .iter()
        .map(|name| {
            let zone = Zone::named(name).unwrap();
            let [from_s, to_s] = [1_104_537_600, 2_051_222_400];
            let mut segment = zone.segment_at(from_s);
            let mut changes_s = vec![from_s];
            while segment.end_s < to_s {
                changes_s.push(segment.end_s);
                segment = zone.segment_after(segment).unwrap();
            }
            (zone, changes_s)
        })
        .collect();
    let delta_ms = prop_oneof![-around_s..around_s, -7_200..7_200_i64]
        .prop_flat_map(|second| prop_oneof![Just(second * 1_000), second * 1_000..second * 1_000 + 1_000]);
    (prop::sample::select(zones), any::<prop::sample::Index>(), delta_ms).prop_map(
        |((zone, changes_s), idx, delta_ms)| {
            let at = Timestamp::from_second(*idx.get(&changes_s)) + Duration::from_millis(delta_ms);
            (zone, at)
        },
    )
}

/// Minutes over eight days, or seconds over three hours.
fn case() -> impl Strategy<Value = Case> {
    let by = |grain_s: i64, around_s: i64| {
        (blackouts(grain_s), place(around_s)).prop_map(move |(blackouts, (zone, at))| Case {
            blackouts,
            zone,
            at,
            grain_s,
        })
    };
    prop_oneof![3 => by(MINUTE_S, 4 * DAY_S), 1 => by(1, 7_200)]
}

/// The longest gap of the week in seconds, read off minute by minute; none without blackouts.
fn longest_gap_by_minutes(blackouts: &Blackouts) -> Option<i64> {
    let minutes = |n_weeks: i64| {
        (0..n_weeks * WEEK_S / MINUTE_S).map(|minute| {
            let second = minute * MINUTE_S;
            let weekday = u8::try_from(second / DAY_S % 7).unwrap();
            reads_inside(blackouts.periods(), weekday, u32::try_from(second % DAY_S).unwrap())
        })
    };
    minutes(1).find(|inside| *inside)?;
    // Twice around, so that a gap over the end of the week is seen whole.
    let mut longest = 0;
    let mut current = 0;
    for inside in minutes(2) {
        current = if inside { 0 } else { current + 1 };
        longest = longest.max(current);
    }
    Some(longest * MINUTE_S)
}

proptest! {
    #[test]
    fn membership_is_that_of_the_periods_as_written(case in case()) {
        for step_s in case.steps(case.grain_s * 1_500) {
            let at = Timestamp::from_second(step_s) + Duration::from_millis(step_s.rem_euclid(1_000));
            prop_assert_eq!(case.blackouts.contains(&case.zone, at), inside(&case.blackouts, &case.zone, step_s));
        }
    }

    #[test]
    fn exit_is_the_first_instant_outside(case in case()) {
        let found = case.blackouts.exit(&case.zone, case.at);
        prop_assert_eq!(case.within_horizon(found), case.first(false));
        if let Some(exit) = found {
            prop_assert!(!inside(&case.blackouts, &case.zone, exit.as_second()));
        }
        prop_assert_eq!(found.is_none(), case.blackouts.covers_all_week());
    }

    #[test]
    fn next_start_is_the_first_instant_inside(case in case()) {
        let found = case.blackouts.next_start(&case.zone, case.at);
        prop_assert_eq!(case.within_horizon(found), case.first(true));
        if let Some(start) = found {
            prop_assert!(inside(&case.blackouts, &case.zone, start.as_second()));
        }
        prop_assert_eq!(found.is_none(), case.blackouts.is_empty());
    }

    #[test]
    fn windows_are_what_the_clock_reads_step_by_step(case in case(), n_steps in 0..6_000_i64, rest_ms in 0..60_000_i64) {
        let end = case.at + Duration::from_secs(n_steps * case.grain_s) + Duration::from_millis(rest_ms);
        let mut expected: Vec<TimeWindow> = Vec::new();
        let mut open: Option<Timestamp> = None;
        for step_s in case.steps(case.grain_s * 6_200) {
            let here = Timestamp::from_second(step_s).max(case.at);
            if end <= here {
                break;
            }
            match (inside(&case.blackouts, &case.zone, step_s), open) {
                (true, None) => open = Some(here),
                (false, Some(start)) => {
                    expected.push(TimeWindow::new(start, here));
                    open = None;
                }
                _ => {}
            }
        }
        expected.extend(open.map(|start| TimeWindow::new(start, end)));
        let found = case.blackouts.windows_in(&case.zone, TimeWindow::new(case.at, end));
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn the_longest_gap_and_all_week_are_those_of_the_clock(blackouts in blackouts(MINUTE_S)) {
        let expected = longest_gap_by_minutes(&blackouts);
        prop_assert_eq!(blackouts.longest_gap(), expected.map(Duration::from_secs));
        prop_assert_eq!(blackouts.covers_all_week(), expected == Some(0));
    }

    #[test]
    fn a_fit_is_the_first_free_stretch_that_is_long_enough(
        blackouts in blackouts(MINUTE_S),
        (zone, at) in place(4 * DAY_S),
        // Thousandths of the longest gap, often exactly all of it.
        share in prop_oneof![1..1_000_i64, Just(1_000), 1_000..1_100_i64],
        rest_ms in 0..2_i64,
    ) {
        let gap_s = longest_gap_by_minutes(&blackouts).unwrap_or(WEEK_S);
        let length = Duration::from_millis((gap_s * share).max(1) + rest_ms);
        let case = Case { blackouts, zone, at, grain_s: MINUTE_S };
        let found = case.blackouts.earliest_fit(&case.zone, at, length);
        if case.blackouts.longest_gap().is_some_and(|gap| gap < length) {
            prop_assert_eq!(found, case.blackouts.exit(&case.zone, at));
            return Ok(());
        }
        // In five weeks there is a gap that no clock change cuts short.
        let mut free_since: Option<Timestamp> = None;
        let mut expected = None;
        for step_s in case.steps(5 * WEEK_S) {
            let here = Timestamp::from_second(step_s).max(at);
            if inside(&case.blackouts, &case.zone, step_s) {
                free_since = None;
                continue;
            }
            let since = *free_since.get_or_insert(here);
            // This step is free to its end, which is the next multiple of the grain.
            let free_until = Timestamp::from_second((step_s.div_euclid(MINUTE_S) + 1) * MINUTE_S);
            if length <= free_until - since {
                expected = Some(since);
                break;
            }
        }
        prop_assert!(expected.is_some());
        prop_assert_eq!(found, expected);
    }

    /// Any instant of the calendar, far from every table: nothing is equal to brute force here, but
    /// both sides of each border are.
    #[test]
    fn borders_hold_everywhere_in_the_calendar(
        blackouts in blackouts(1),
        name in prop::sample::select(ZONES.as_slice()),
        millis in prop_oneof![
            Timestamp::MIN.as_millis()..=Timestamp::MAX.as_millis(),
            Timestamp::MIN.as_millis()..=Timestamp::MIN.as_millis() + 700_000_000,
            Timestamp::MAX.as_millis() - 700_000_000..=Timestamp::MAX.as_millis(),
        ],
        length_min in 0..20_000_i64,
    ) {
        let zone = Zone::named(name).unwrap();
        let at = Timestamp::from_millis(millis);
        let here = inside(&blackouts, &zone, at.as_second());
        prop_assert_eq!(blackouts.contains(&zone, at), here);
        let last = Timestamp::MAX.as_second();
        let borders = [(blackouts.exit(&zone, at), false), (blackouts.next_start(&zone, at), true)];
        for (found, wanted) in borders {
            match found {
                Some(found) if found == at => prop_assert_eq!(here, wanted),
                Some(found) => {
                    prop_assert!(at < found && found.as_millis() % 1_000 == 0);
                    prop_assert_eq!(inside(&blackouts, &zone, found.as_second()), wanted);
                    prop_assert_eq!(inside(&blackouts, &zone, found.as_second() - 1), !wanted);
                }
                None => prop_assert_eq!(inside(&blackouts, &zone, last), !wanted),
            }
        }
        let fit = blackouts.earliest_fit(&zone, at, Duration::from_mins(length_min));
        prop_assert!(fit.is_none_or(|fit| at <= fit && !inside(&blackouts, &zone, fit.as_second())));
        let window = TimeWindow::starting_at(at, Duration::from_days(3));
        for found in blackouts.windows_in(&zone, window) {
            prop_assert!(window.start() <= found.start() && found.end() <= window.end() && !found.is_empty());
        }
    }
}
