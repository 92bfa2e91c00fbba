//! Blackouts on the time line of a zone.

use super::week::{Side, Week, second_of_week};
use super::{BlackoutError, BlackoutPeriod};
use crate::time::{Duration, TimeWindow, Timestamp};
use crate::zone::{Segment, Zone};

/// The most periods that one job may have.
pub const PERIODS_MAX: usize = 64;

/// The blackouts of one job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Blackouts {
    periods: Box<[BlackoutPeriod]>,
    week: Week,
}

impl Blackouts {
    /// The blackouts of these periods, which may overlap. Without periods there are no blackouts.
    pub fn new(periods: Vec<BlackoutPeriod>) -> Result<Blackouts, BlackoutError> {
        if PERIODS_MAX < periods.len() {
            return Err(BlackoutError::TooManyPeriods { n_periods: periods.len() });
        }
        // The fields of a period are open, so it may have been put together without its `new`.
        for BlackoutPeriod { start, end, days } in &periods {
            BlackoutPeriod::new(*start, *end, *days)?;
        }
        Ok(Blackouts { week: Week::of(&periods), periods: periods.into() })
    }

    /// The periods as they were written.
    pub fn periods(&self) -> &[BlackoutPeriod] {
        &self.periods
    }

    /// Whether there is not a single blackout.
    pub fn is_empty(&self) -> bool {
        self.periods.is_empty()
    }

    /// Whether there is no second at which the job may run (J6).
    pub fn covers_all_week(&self) -> bool {
        !self.week.has(Side::Outside)
    }

    /// Whether an instant is inside a blackout.
    pub fn contains(&self, zone: &Zone, at: Timestamp) -> bool {
        // Most jobs have no blackouts and are asked all the time: they need no look at the zone.
        !self.is_empty() && Walk::from(self, zone, at).side() == Side::Inside
    }

    /// The first instant at or after `at` that is outside; none if the blackouts cover all week, or
    /// the calendar ends before them.
    pub fn exit(&self, zone: &Zone, at: Timestamp) -> Option<Timestamp> {
        if self.is_empty() {
            return Some(at);
        }
        Walk::from(self, zone, at).seek(Side::Outside)
    }

    /// The first instant at or after `at` that is inside; none if there are no blackouts, or the
    /// calendar ends before the next.
    pub fn next_start(&self, zone: &Zone, at: Timestamp) -> Option<Timestamp> {
        Walk::from(self, zone, at).seek(Side::Inside)
    }

    /// All that is blacked out of a window: ascending, clipped to it, and what touches is one.
    ///
    /// There may be [`PERIODS_MAX`] of them a day, so ask for days or weeks, not for centuries.
    pub fn windows_in(&self, zone: &Zone, window: TimeWindow) -> Vec<TimeWindow> {
        let mut windows = Vec::new();
        let mut walk = Walk::from(self, zone, window.start());
        while let Some(start) = walk.seek(Side::Inside).filter(|start| window.contains(*start)) {
            let exit = walk.seek(Side::Outside);
            windows.push(TimeWindow::new(start, exit.unwrap_or(window.end()).min(window.end())));
            if exit.is_none() {
                break;
            }
        }
        windows
    }

    /// The longest stretch of the week without blackout, by the clock on the wall: zero if the
    /// blackouts cover all week, None if there are no blackouts.
    pub fn longest_gap(&self) -> Option<Duration> {
        self.week.longest_gap_s().map(Duration::from_secs)
    }

    /// The first instant at or after `at` from which `length` passes before the next blackout.
    ///
    /// What is longer than every gap of the week would wait for ever, so it may start as soon as
    /// nothing forbids it: at [`Blackouts::exit`].
    pub fn earliest_fit(&self, zone: &Zone, at: Timestamp, length: Duration) -> Option<Timestamp> {
        if self.is_empty() {
            return Some(at);
        }
        let mut walk = Walk::from(self, zone, at);
        let mut start = walk.seek(Side::Outside)?;
        if self.longest_gap().is_some_and(|gap| gap < length) {
            return Some(start);
        }
        // A clock change may cut the one gap that is long enough, but then there is the next week's.
        while let Some(end) = walk.seek(Side::Inside) {
            if length <= end - start {
                break;
            }
            start = walk.seek(Side::Outside)?;
        }
        Some(start)
    }
}

/// A place on the time line that moves forward from one side to the other.
struct Walk<'a> {
    week: &'a Week,
    zone: &'a Zone,
    /// The stretch of constant offset around `at`.
    segment: Segment,
    at: Timestamp,
}

impl<'a> Walk<'a> {
    fn from(blackouts: &'a Blackouts, zone: &'a Zone, at: Timestamp) -> Walk<'a> {
        Walk { week: &blackouts.week, zone, segment: zone.segment_at(at.as_second()), at }
    }

    fn side(&self) -> Side {
        self.week.look(second_of_week(self.at.as_second() + self.segment.offset_s)).side
    }

    /// Moves to the first instant from here on that is on this side, and stays if this one is.
    ///
    /// It looks at every change of side and of offset on the way. Whatever the week has, it has
    /// within the first segment that lasts for a week, and shorter ones are rare everywhere.
    fn seek(&mut self, side: Side) -> Option<Timestamp> {
        if !self.week.has(side) {
            return None;
        }
        loop {
            let at_s = self.at.as_second();
            let reading = self.week.look(second_of_week(at_s + self.segment.offset_s));
            if reading.side == side {
                return Some(self.at);
            }
            let changes_s = at_s + reading.lasts_s;
            let next_s = changes_s.min(self.segment.end_s);
            assert!(at_s < next_s, "a walk through blackouts stood still at {}", self.at);
            if Timestamp::MAX.as_second() < next_s {
                return None;
            }
            self.at = Timestamp::from_second(next_s);
            if next_s == self.segment.end_s {
                self.segment = self.zone.segment_at(next_s);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blackout::{TimeOfDay, Weekdays, sample};

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    /// `written` in `zone` between two instants of one month, as `day hour:minute` in UTC.
    #[track_caller]
    fn check_windows(zone: &str, written: &str, month: &str, (from, to): (&str, &str), expected: &str) {
        let instant = |text: &str| at(&format!("{month}-{}:00Z", text.replace(' ', "T")));
        let window = TimeWindow::new(instant(from), instant(to));
        let windows = sample::blackouts(written).windows_in(&Zone::named(zone).unwrap(), window);
        let short = |at: Timestamp| at.to_string()[8..16].replace('T', " ");
        let shown: Vec<String> =
            windows.iter().map(|it| format!("{} to {}", short(it.start()), short(it.end()))).collect();
        assert_eq!(shown.join(", "), expected, "{written} in {zone}");
    }

    #[test]
    fn days_name_the_day_on_which_a_window_begins() {
        // The 2nd of February 2026 was a Monday.
        let days = ("01 00:00", "08 00:00");
        check_windows("UTC", "00:00-01:00 mon", "2026-02", days, "02 00:00 to 02 01:00");
        check_windows("UTC", "22:00-06:00 mon", "2026-02", days, "02 22:00 to 03 06:00");
        check_windows("UTC", "22:00-02:00 sun; 02:00-03:00 mon", "2026-02", days, "01 22:00 to 02 03:00");
        check_windows("Asia/Tokyo", "00:00-01:00 mon", "2026-02", days, "01 15:00 to 01 16:00");
        check_windows(
            "UTC",
            "12:00-13:00 tue thu",
            "2026-02",
            days,
            "03 12:00 to 03 13:00, 05 12:00 to 05 13:00",
        );
    }

    #[test]
    fn windows_are_clipped_and_merged() {
        check_windows(
            "UTC",
            "22:00-06:00",
            "2026-02",
            ("03 00:00", "03 23:00"),
            "03 00:00 to 03 06:00, 03 22:00 to 03 23:00",
        );
        check_windows(
            "UTC",
            "22:00-24:00; 00:00-06:00",
            "2026-02",
            ("02 12:00", "03 12:00"),
            "02 22:00 to 03 06:00",
        );
        check_windows(
            "UTC",
            "22:00-24:00 sat; 00:00-02:00 sun",
            "2026-02",
            ("07 12:00", "08 12:00"),
            "07 22:00 to 08 02:00",
        );
        check_windows("UTC", "00:00-24:00", "2026-02", ("01 12:00", "28 12:00"), "01 12:00 to 28 12:00");
        check_windows("UTC", "", "2026-02", ("01 12:00", "28 12:00"), "");
        check_windows("UTC", "12:00-13:00", "2026-02", ("03 13:00", "04 12:00"), "");
        check_windows("UTC", "12:00-13:00", "2026-02", ("03 12:30", "03 12:30"), "");
    }

    #[test]
    fn a_window_in_a_spring_gap_does_not_happen() {
        // In Berlin, 02:00 became 03:00 at 01:00 UTC.
        let night = ("28 12:00", "29 12:00");
        check_windows("Europe/Berlin", "02:00-03:00", "2026-03", night, "");
        check_windows("Europe/Berlin", "02:30-03:30", "2026-03", night, "29 01:00 to 29 01:30");
        check_windows("Europe/Berlin", "01:30-02:30", "2026-03", night, "29 00:30 to 29 01:00");
        check_windows("Europe/Berlin", "01:30-03:30", "2026-03", night, "29 00:30 to 29 01:30");
        // On Lord Howe, 02:00 became 02:30 at 15:30 UTC.
        let day = ("03 12:00", "04 12:00");
        check_windows("Australia/Lord_Howe", "02:00-02:30", "2026-10", day, "");
        check_windows("Australia/Lord_Howe", "02:15-02:45", "2026-10", day, "03 15:30 to 03 15:45");
    }

    #[test]
    fn a_window_in_an_autumn_fold_happens_twice() {
        // In Berlin, 03:00 became 02:00 at 01:00 UTC.
        let night = ("24 12:00", "25 12:00");
        check_windows(
            "Europe/Berlin",
            "02:15-02:45",
            "2026-10",
            night,
            "25 00:15 to 25 00:45, 25 01:15 to 25 01:45",
        );
        check_windows(
            "Europe/Berlin",
            "01:30-02:30",
            "2026-10",
            night,
            "24 23:30 to 25 00:30, 25 01:00 to 25 01:30",
        );
        check_windows(
            "Europe/Berlin",
            "02:30-03:30",
            "2026-10",
            night,
            "25 00:30 to 25 01:00, 25 01:30 to 25 02:30",
        );
        check_windows("Europe/Berlin", "02:00-03:00", "2026-10", night, "25 00:00 to 25 02:00");
        // On Lord Howe, 02:00 became 01:30 at 15:00 UTC.
        let day = ("04 12:00", "05 12:00");
        check_windows("Australia/Lord_Howe", "01:30-02:00", "2026-04", day, "04 14:30 to 04 15:30");
        check_windows(
            "Australia/Lord_Howe",
            "01:40-01:50",
            "2026-04",
            day,
            "04 14:40 to 04 14:50, 04 15:10 to 04 15:20",
        );
    }

    #[test]
    fn a_day_that_a_zone_left_out_takes_its_windows_with_it() {
        // In Apia, Thursday the 29th was followed by Saturday the 31st at 10:00 UTC.
        let days = ("29 12:00", "31 09:00");
        check_windows("Pacific/Apia", "08:00-17:00 fri", "2011-12", days, "");
        check_windows("Pacific/Apia", "00:00-24:00 fri", "2011-12", days, "");
        check_windows("Pacific/Apia", "22:00-06:00 thu", "2011-12", days, "30 08:00 to 30 10:00");
        check_windows("Pacific/Apia", "22:00-06:00 fri", "2011-12", days, "30 10:00 to 30 16:00");
        check_windows(
            "Pacific/Apia",
            "22:00-24:00 thu; 00:00-02:00 sat",
            "2011-12",
            days,
            "30 08:00 to 30 12:00",
        );
    }

    /// Is it inside, and where are the next exit and the next start?
    #[track_caller]
    fn check_instant(written: &str, instant: &str, inside: bool, exit: &str, next_start: &str) {
        let (blackouts, zone, instant) = (sample::blackouts(written), Zone::utc(), at(instant));
        let show = |found: Option<Timestamp>| found.map_or("none".to_owned(), |at| at.to_string());
        assert_eq!(blackouts.contains(&zone, instant), inside, "{instant}");
        assert_eq!(show(blackouts.exit(&zone, instant)), exit, "{instant}");
        assert_eq!(show(blackouts.next_start(&zone, instant)), next_start, "{instant}");
    }

    #[test]
    fn windows_are_half_open_in_whole_seconds() {
        let noon = "12:00-13:00 tue";
        let (before, after) = ("2026-02-03T11:59:59.999Z", "2026-02-03T13:00:00.001Z");
        let (start, end) = ("2026-02-03T12:00:00Z", "2026-02-03T13:00:00Z");
        check_instant(noon, before, false, before, start);
        check_instant(noon, start, true, end, start);
        check_instant(noon, "2026-02-03T12:00:00.001Z", true, end, "2026-02-03T12:00:00.001Z");
        check_instant(noon, "2026-02-03T12:59:59.999Z", true, end, "2026-02-03T12:59:59.999Z");
        check_instant(noon, end, false, end, "2026-02-10T12:00:00Z");
        check_instant(noon, after, false, after, "2026-02-10T12:00:00Z");
    }

    #[test]
    fn all_week_has_no_exit_and_none_has_no_start() {
        let now = "2026-02-03T12:00:00.5Z";
        check_instant("", now, false, now, "none");
        check_instant("06:00-18:00; 18:00-06:00", now, true, "none", now);
        assert!(sample::blackouts("06:00-18:00; 18:00-06:00").covers_all_week());
        assert!(!sample::blackouts("06:00-18:00; 18:00-05:59:59").covers_all_week());
        assert!(!Blackouts::default().covers_all_week());
        assert!(Blackouts::default().is_empty());
        assert_eq!(Blackouts::new(Vec::new()), Ok(Blackouts::default()));
    }

    #[test]
    fn the_calendar_ends_before_the_next_change() {
        // The first instant is a Monday, the last a Thursday, both at 00:00.
        check_instant(
            "00:00-01:00 mon",
            "0001-01-01T00:00:00Z",
            true,
            "0001-01-01T01:00:00Z",
            "0001-01-01T00:00:00Z",
        );
        check_instant("12:00-13:00", "9999-12-29T13:00:00Z", false, "9999-12-29T13:00:00Z", "none");
        check_instant(
            "23:00-00:00 wed",
            "9999-12-29T23:30:00Z",
            true,
            "9999-12-30T00:00:00Z",
            "9999-12-29T23:30:00Z",
        );
        check_instant("23:00-01:00 wed", "9999-12-29T23:30:00Z", true, "none", "9999-12-29T23:30:00Z");
        check_instant("00:00-01:00 thu", "9999-12-30T00:00:00Z", true, "none", "9999-12-30T00:00:00Z");
        let whole = TimeWindow::new(at("9999-12-29T23:30:00Z"), Timestamp::MAX);
        assert_eq!(sample::blackouts("23:00-01:00 wed").windows_in(&Zone::utc(), whole), [whole]);
    }

    #[track_caller]
    fn check_fit(zone: &str, written: &str, instant: &str, length: &str, expected: &str) {
        let zone = Zone::named(zone).unwrap();
        let length: Duration = length.parse().unwrap();
        let found = sample::blackouts(written).earliest_fit(&zone, at(instant), length);
        assert_eq!(found.map_or("none".to_owned(), |at| at.to_string()), expected, "{written}, {length}");
    }

    #[test]
    fn a_run_starts_where_it_ends_before_the_next_window() {
        let written = "00:00-01:00; 12:00-13:00";
        let late_morning = "2026-02-03T10:00:00.25Z";
        check_fit("UTC", written, late_morning, "1h59m59s750ms", late_morning);
        check_fit("UTC", written, late_morning, "1h59m59s751ms", "2026-02-03T13:00:00Z");
        check_fit("UTC", written, late_morning, "11h", "2026-02-03T13:00:00Z");
        check_fit("UTC", written, "2026-02-03T12:30:00Z", "1s", "2026-02-03T13:00:00Z");
        for length in [Duration::ZERO, Duration::from_secs(-1)] {
            let found =
                sample::blackouts(written).earliest_fit(&Zone::utc(), at("2026-02-03T12:30:00Z"), length);
            assert_eq!(found, Some(at("2026-02-03T13:00:00Z")), "{length}");
        }
        check_fit("UTC", "", late_morning, "5200w", late_morning);
        check_fit("UTC", "00:00-24:00", late_morning, "1s", "none");
    }

    #[test]
    fn a_run_that_fits_in_no_gap_starts_when_nothing_forbids_it() {
        let written = "00:00-01:00; 12:00-13:00";
        let late_morning = "2026-02-03T10:00:00.25Z";
        check_fit("UTC", written, late_morning, "11h1ms", late_morning);
        check_fit("UTC", written, "2026-02-03T12:30:00Z", "100d", "2026-02-03T13:00:00Z");
    }

    #[test]
    fn a_gap_that_a_clock_change_cuts_short_is_passed_over() {
        // All of the week but Sunday, 01:00 to 04:00: only two hours on the 29th of March.
        let written = "04:00-01:00 sun mon tue wed thu fri sat; 00:00-24:00 mon tue wed thu fri sat";
        let night = "2026-03-28T12:00:00Z";
        check_fit("Europe/Berlin", written, night, "2h", "2026-03-29T00:00:00Z");
        check_fit("Europe/Berlin", written, night, "2h0.001s", "2026-04-04T23:00:00Z");
        check_fit("Europe/Berlin", written, night, "3h", "2026-04-04T23:00:00Z");
        check_fit("Europe/Berlin", written, night, "3h0.001s", "2026-03-29T00:00:00Z");
    }

    #[test]
    fn too_many_periods_and_broken_ones_are_refused() {
        let period = sample::periods("00:00-01:00")[0];
        let message = |periods: Vec<BlackoutPeriod>| Blackouts::new(periods).unwrap_err().to_string();
        assert_eq!(Blackouts::new(vec![period; 64]).unwrap().periods(), [period; 64]);
        assert_eq!(
            message(vec![period; 65]),
            "65 blackout periods are too many, the maximum is 64 (list several `days` in one period)"
        );
        let empty =
            BlackoutPeriod { start: TimeOfDay::DAY_END, end: TimeOfDay::DAY_END, days: Weekdays::ALL };
        assert_eq!(
            message(vec![period, empty]),
            "a blackout from `24:00` to `24:00` has no length (write `00:00` to `24:00` for the whole day)"
        );
    }

    /// What bounds every walk: clocks that are changed are nearly always left alone for a week.
    #[test]
    fn no_zone_has_many_short_segments_in_a_row() {
        const WEEK_S: i64 = 604_800;
        for name in Zone::all_names() {
            let zone = Zone::named(&name).unwrap();
            let mut segment = zone.segment_at(Timestamp::MIN.as_second());
            let mut n_short = 0;
            while let Some(next) = zone.segment_after(segment).filter(|next| next.start_s < 7_258_118_400) {
                n_short = if next.end_s.saturating_sub(next.start_s) < WEEK_S { n_short + 1 } else { 0 };
                assert!(n_short <= 2, "{name} at {}", Timestamp::from_second(next.start_s));
                segment = next;
            }
        }
    }
}
