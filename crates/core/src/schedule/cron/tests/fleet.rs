//! Long windows and many expressions: the walk is by months, and sums are known.

use super::{all_in, at, plan};
use crate::time::TimeWindow;
use crate::zone::Zone;

#[test]
fn centuries_are_counted_without_visiting_each_occurrence() {
    let window = TimeWindow::new(at("2000-01-01T00:00:00Z"), at("2100-01-01T00:00:00Z"));
    let berlin = Zone::named("Europe/Berlin").unwrap();
    for (text, zone, expected) in [
        ("* * * * * *", Zone::utc(), 36_525 * 86_400),
        ("* * * * *", berlin.clone(), 36_525 * 1_440),
        ("0 0 * * *", berlin.clone(), 36_525),
        // One a year is moved out of its gap, and none comes twice.
        ("30 2 * * *", berlin.clone(), 36_525),
        // The elapsed hours of a year do not care.
        ("30 * * * *", berlin.clone(), 36_525 * 24),
        ("0 0 29 2 *", berlin.clone(), 25),
        ("0 0 L * *", berlin, 1_200),
    ] {
        let plan = plan(text);
        assert_eq!(plan.count_in(&zone, window), expected, "{text}");
        let last = plan.nth_in(&zone, window, expected - 1).unwrap();
        assert_eq!(plan.nth_in(&zone, window, expected), None, "{text}");
        assert!(plan.next_after(&zone, last).unwrap() >= window.end(), "{text}");
    }
}

#[test]
fn the_ends_of_the_calendar_are_walked_to() {
    let whole = TimeWindow::new(crate::time::Timestamp::MIN, crate::time::Timestamp::MAX);
    for zone in ["Asia/Tokyo", "America/New_York", "Pacific/Apia"] {
        let zone = Zone::named(zone).unwrap();
        let plan = plan("0 12 1 1 *");
        let all = all_in(&plan, &zone, whole);
        assert_eq!(plan.count_in(&zone, whole), u64::try_from(all.len()).unwrap());
        assert!((9_998..=9_999).contains(&all.len()), "{}", all.len());
    }
}
