//! Instants as typed on the command line: RFC 3339, a local date or time, a length such as `1h`, or a word.

use std::str::FromStr;

use evenbeat_core::civil::{Date, date_of, day_of, days_in_month};
use evenbeat_core::time::{Duration, Timestamp};
use evenbeat_core::zone::Zone;

use super::format::LocalClock;

/// A typed instant. Its meaning depends on the zone and the current time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    /// A fixed instant.
    At(Timestamp),
    /// This far from now. The option decides whether that is in the past or in the future.
    Away(Duration),
    /// Midnight, this many days from today.
    Day(i64),
    /// A local date and second of the day.
    Local(Date, u32),
}

impl When {
    /// The instant, with a length counting into the past.
    pub(crate) fn before(self, clock: &LocalClock) -> Timestamp {
        self.resolve(clock, |now, length| now - length)
    }

    /// The instant, with a length counting into the future.
    pub(crate) fn ahead(self, clock: &LocalClock) -> Timestamp {
        self.resolve(clock, |now, length| now + length)
    }

    fn resolve(self, clock: &LocalClock, away: fn(Timestamp, Duration) -> Timestamp) -> Timestamp {
        let LocalClock { zone, now } = clock;
        match self {
            When::At(at) => at,
            When::Away(length) => away(*now, length),
            When::Day(days) => instant(zone, date_of(day_of(zone.local(*now).date) + days), 0),
            When::Local(date, second) => instant(zone, date, second),
        }
    }
}

/// When a local time first occurs in a zone, or when the clocks skip it.
fn instant(zone: &Zone, date: Date, second_of_day: u32) -> Timestamp {
    const DAY_S: i64 = 86_400;
    let local_s = day_of(date) * DAY_S + i64::from(second_of_day);
    // Offsets are shorter than a day, so the right segment is this one or one of the next.
    let mut segment = zone.segment_at(local_s - 2 * DAY_S);
    while segment.local_end() <= local_s {
        match zone.segment_after(segment) {
            Some(next) => segment = next,
            None => break,
        }
    }
    Timestamp::from_second((local_s - segment.offset_s).max(segment.start_s))
}

impl FromStr for When {
    type Err = String;

    fn from_str(text: &str) -> Result<When, String> {
        match text {
            "now" => return Ok(When::Away(Duration::ZERO)),
            "today" => return Ok(When::Day(0)),
            "yesterday" => return Ok(When::Day(-1)),
            "tomorrow" => return Ok(When::Day(1)),
            _ => {}
        }
        let typed = text.parse().map(When::At).ok().or_else(|| text.parse().map(When::Away).ok());
        typed.or_else(|| local(text)).ok_or_else(|| {
            "write a length such as `1h`, a date such as `2026-11-17`, `today`, `yesterday`, `tomorrow`, or an instant \
             such as `2026-11-17T04:30:00Z`"
                .to_owned()
        })
    }
}

/// `2026-11-17`, `2026-11-17 04:30`, `2026-11-17T04:30:15`.
fn local(text: &str) -> Option<When> {
    let (date, time) = text.split_once([' ', 'T']).unwrap_or((text, "00:00"));
    let [year, month, day] = numbers(date, '-')?[..] else { return None };
    let (year, month, day) = (year.try_into().ok()?, month.try_into().ok()?, day.try_into().ok()?);
    let is_date = (1..=9_999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=days_in_month(year, month)).contains(&day);
    let (hour, minute, second) = match numbers(time, ':')?[..] {
        [hour, minute] => (hour, minute, 0),
        [hour, minute, second] => (hour, minute, second),
        _ => return None,
    };
    let is_time = hour < 24 && minute < 60 && second < 60;
    (is_date && is_time)
        .then_some(When::Local(Date { year, month, day }, hour * 3_600 + minute * 60 + second))
}

fn numbers(text: &str, between: char) -> Option<Vec<u32>> {
    let is_number = |part: &&str| (1..=4).contains(&part.len()) && part.bytes().all(|it| it.is_ascii_digit());
    text.split(between).map(|part| Some(part).filter(is_number)?.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(zone: &str, text: &str, expected: &str) {
        let clock =
            LocalClock { zone: Zone::named(zone).unwrap(), now: "2026-03-29T10:15:30Z".parse().unwrap() };
        let shown = text.parse::<When>().map_or_else(|error| error, |it| it.before(&clock).to_string());
        assert_eq!(shown, expected, "{text}");
    }

    #[test]
    fn an_instant_is_understood_as_people_say_it() {
        check("Europe/Berlin", "now", "2026-03-29T10:15:30Z");
        check("Europe/Berlin", "1h", "2026-03-29T09:15:30Z");
        check("Europe/Berlin", "2d", "2026-03-27T10:15:30Z");
        check("Europe/Berlin", "2026-03-01T00:00:00Z", "2026-03-01T00:00:00Z");
        check("Europe/Berlin", "2026-03-01T00:00:00+05:00", "2026-02-28T19:00:00Z");
        check("Europe/Berlin", "today", "2026-03-28T23:00:00Z");
        check("Europe/Berlin", "yesterday", "2026-03-27T23:00:00Z");
        check("UTC", "today", "2026-03-29T00:00:00Z");
        check("America/New_York", "today", "2026-03-29T04:00:00Z");
        check("Europe/Berlin", "2026-07-01", "2026-06-30T22:00:00Z");
        check("Europe/Berlin", "2026-07-01 12:30", "2026-07-01T10:30:00Z");
        check("Europe/Berlin", "2026-07-01T12:30:15", "2026-07-01T10:30:15Z");
    }

    #[test]
    fn a_length_lies_ahead_where_an_option_means_it_so() {
        let clock = LocalClock { zone: Zone::utc(), now: "2026-03-29T10:15:30Z".parse().unwrap() };
        let ahead = |text: &str| text.parse::<When>().unwrap().ahead(&clock).to_string();
        assert_eq!(ahead("6h"), "2026-03-29T16:15:30Z");
        assert_eq!(ahead("tomorrow"), "2026-03-30T00:00:00Z");
        assert_eq!(ahead("now"), "2026-03-29T10:15:30Z");
    }

    #[test]
    fn clock_changes_have_one_answer() {
        // 02:30 is skipped in spring and occurs twice in autumn: we take the end of the gap, and the first of the two.
        check("Europe/Berlin", "2026-03-29 02:30", "2026-03-29T01:00:00Z");
        check("Europe/Berlin", "2026-10-25 02:30", "2026-10-25T00:30:00Z");
        check("Pacific/Apia", "2011-12-30 12:00", "2011-12-30T10:00:00Z");
    }

    #[test]
    fn anything_else_is_refused_with_what_would_be_right() {
        for text in
            ["", "lately", "2026-02-30", "2026-13-01", "2026-1", "12:30", "2026-07-01 24:00", "-1h", "1e5"]
        {
            let error = text.parse::<When>().expect_err(text);
            assert!(error.contains("`1h`") && error.contains("`today`"), "{error}");
        }
    }
}
