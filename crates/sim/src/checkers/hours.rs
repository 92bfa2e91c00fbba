//! Blackouts, worked out by walking over the days around an instant.

use evenbeat_core::job::Job;
use evenbeat_core::time::{Duration, Timestamp};

const DAY_S: i64 = 86_400;

/// The blackout around an instant, `[start, end)`: the one that began last if there are several.
/// Zones are left out: blackouts of simulated fleets are in UTC.
pub(super) fn blackout_around(job: &Job, at: Timestamp) -> Option<(Timestamp, Timestamp)> {
    windows_near(job, at).into_iter().filter(|(start, end)| *start <= at && at < *end).max()
}

/// Whether any blackout has an instant in common with `[from, to]`.
pub(super) fn has_blackout_between(job: &Job, from: Timestamp, to: Timestamp) -> bool {
    let mut day_at = from;
    while day_at <= to + Duration::from_days(1) {
        if windows_near(job, day_at).into_iter().any(|(start, end)| start <= to && from < end) {
            return true;
        }
        day_at = day_at + Duration::from_days(1);
    }
    false
}

/// The windows that begin on the day of an instant, the day before and the day after.
fn windows_near(job: &Job, at: Timestamp) -> Vec<(Timestamp, Timestamp)> {
    let today = at.as_second().div_euclid(DAY_S);
    let mut windows = Vec::new();
    for day in today - 1..=today + 1 {
        // The first of January 1970 was a Thursday; 0 is Sunday.
        let weekday = u8::try_from((day + 4).rem_euclid(7)).unwrap_or(0);
        for period in job.blackouts.periods() {
            if !period.days.contains(weekday) {
                continue;
            }
            let start_s = day * DAY_S + i64::from(period.start.as_second());
            let mut end_s = day * DAY_S + i64::from(period.end.as_second());
            if end_s <= start_s {
                end_s += DAY_S;
            }
            windows.push((Timestamp::from_second(start_s), Timestamp::from_second(end_s)));
        }
    }
    windows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkers::fact_builder::{every, with_blackout};

    #[track_caller]
    fn check(period: (&str, &str, &[&str]), at: &str, expected: &str) {
        let job = with_blackout(every("a", 60_000), period.0, period.1, period.2);
        let found = match blackout_around(&job, at.parse().unwrap()) {
            Some((start, end)) => format!("{start} {end}"),
            None => "none".to_owned(),
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn a_window_holds_its_start_and_not_its_end() {
        let day = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
        let found = "2026-02-04T10:00:00Z 2026-02-04T10:05:00Z";
        check(("10:00", "10:05", &day), "2026-02-04T10:00:00Z", found);
        check(("10:00", "10:05", &day), "2026-02-04T10:04:59.999Z", found);
        check(("10:00", "10:05", &day), "2026-02-04T10:05:00Z", "none");
        check(("10:00", "10:05", &["tue"]), "2026-02-04T10:01:00Z", "none");
        // A Wednesday's window lasts into Thursday.
        let night = "2026-02-04T23:00:00Z 2026-02-05T01:00:00Z";
        check(("23:00", "01:00", &["wed"]), "2026-02-05T00:30:00Z", night);
        check(("23:00", "01:00", &["thu"]), "2026-02-05T00:30:00Z", "none");
    }

    #[test]
    fn a_stretch_meets_a_window_that_begins_in_it_or_before_it() {
        let job = with_blackout(every("a", 60_000), "10:00", "10:05", &["wed"]);
        let meets =
            |from: &str, to: &str| has_blackout_between(&job, from.parse().unwrap(), to.parse().unwrap());
        assert!(meets("2026-02-04T09:00:00Z", "2026-02-04T10:00:00Z"));
        assert!(meets("2026-02-04T10:04:00Z", "2026-02-04T11:00:00Z"));
        assert!(!meets("2026-02-04T10:05:00Z", "2026-02-04T11:00:00Z"));
        assert!(!meets("2026-02-04T09:00:00Z", "2026-02-04T09:59:59Z"));
    }
}
