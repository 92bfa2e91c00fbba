//! When a mute may end. There are four choices, and none of them is "never".

use evenbeat_core::civil::{day_of, weekday};
use evenbeat_core::time::{Duration, Timestamp};
use evenbeat_core::zone::Zone;

use crate::dashboard::times::{Times, month_name};

/// One of the ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MuteEnd {
    Soon,
    Later,
    Tomorrow,
    Monday,
}

/// When people come to work.
const MORNING_S: i64 = 8 * 3_600;

impl MuteEnd {
    pub(super) const ALL: [MuteEnd; 4] = [MuteEnd::Soon, MuteEnd::Later, MuteEnd::Tomorrow, MuteEnd::Monday];

    /// The value of the field.
    pub(super) fn value(self) -> &'static str {
        match self {
            MuteEnd::Soon => "20m",
            MuteEnd::Later => "2h",
            MuteEnd::Tomorrow => "tomorrow",
            MuteEnd::Monday => "monday",
        }
    }

    pub(super) fn of(value: &str) -> Option<MuteEnd> {
        MuteEnd::ALL.into_iter().find(|it| it.value() == value)
    }

    /// The instant, for someone in a zone.
    pub(super) fn at(self, times: &Times) -> Timestamp {
        let today = day_of(times.zone.local(times.now).date);
        match self {
            MuteEnd::Soon => times.now + Duration::from_mins(20),
            MuteEnd::Later => times.now + Duration::from_hours(2),
            MuteEnd::Tomorrow => instant(&times.zone, today + 1, MORNING_S),
            // On a Sunday, tomorrow is a choice of its own.
            MuteEnd::Monday => {
                let monday = (today + 2..today + 9).find(|day| weekday(*day) == 1).unwrap_or(today + 2);
                instant(&times.zone, monday, MORNING_S)
            }
        }
    }

    /// Beside its radio button: `20m, 14:12`, `tomorrow 08:00`.
    pub(super) fn label(self, times: &Times) -> String {
        let at = self.at(times);
        match self {
            MuteEnd::Soon | MuteEnd::Later => format!("{}, {}", self.value(), times.clock(at)),
            MuteEnd::Tomorrow => format!("tomorrow {}", times.clock(at)),
            MuteEnd::Monday => {
                let date = times.zone.local(at).date;
                format!("Monday {} {} {}", date.day, month_name(date.month), times.clock(at))
            }
        }
    }

    /// On the button: `Mute for 20m`, `Mute until tomorrow 08:00`.
    pub(super) fn verb(self, times: &Times) -> String {
        match self {
            MuteEnd::Soon | MuteEnd::Later => format!("Mute for {}", self.value()),
            MuteEnd::Tomorrow | MuteEnd::Monday => format!("Mute until {}", self.label(times)),
        }
    }
}

/// The instant of a local time. Of one that occurs twice, either; one that does not occur is an hour off.
fn instant(zone: &Zone, day: i64, second_of_day: i64) -> Timestamp {
    let local = day * 86_400 + second_of_day;
    let guess = local - zone.segment_at(local).offset_s;
    Timestamp::from_second(local - zone.segment_at(guess).offset_s)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(zone: &str, now: &str, ends: [&str; 4]) {
        let times = Times { zone: Zone::named(zone).unwrap(), now: now.parse().unwrap() };
        assert_eq!(MuteEnd::ALL.map(|it| it.at(&times).to_string()), ends);
    }

    #[test]
    fn ends_are_in_the_zone_of_the_person() {
        check(
            "UTC",
            "2026-11-18T13:52:00Z",
            ["2026-11-18T14:12:00Z", "2026-11-18T15:52:00Z", "2026-11-19T08:00:00Z", "2026-11-23T08:00:00Z"],
        );
        // It is Thursday there already.
        check(
            "Asia/Tokyo",
            "2026-11-18T16:00:00Z",
            ["2026-11-18T16:20:00Z", "2026-11-18T18:00:00Z", "2026-11-19T23:00:00Z", "2026-11-22T23:00:00Z"],
        );
        // The night before clocks go back.
        check(
            "Europe/Berlin",
            "2026-10-24T18:00:00Z",
            ["2026-10-24T18:20:00Z", "2026-10-24T20:00:00Z", "2026-10-25T07:00:00Z", "2026-10-26T07:00:00Z"],
        );
        // A Sunday: the Monday after tomorrow's.
        check(
            "UTC",
            "2026-11-22T10:00:00Z",
            ["2026-11-22T10:20:00Z", "2026-11-22T12:00:00Z", "2026-11-23T08:00:00Z", "2026-11-30T08:00:00Z"],
        );
    }

    #[test]
    fn the_button_repeats_the_end() {
        let times = Times { zone: Zone::utc(), now: "2026-11-18T13:52:00Z".parse().unwrap() };
        let verbs = MuteEnd::ALL.map(|it| it.verb(&times));
        assert_eq!(
            verbs,
            ["Mute for 20m", "Mute for 2h", "Mute until tomorrow 08:00", "Mute until Monday 23 Nov 08:00"]
        );
    }
}
