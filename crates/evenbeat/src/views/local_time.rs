//! Readings of the clocks of a zone as instants: midnights, and what people write without a zone.

use evenbeat_core::civil::{DAY_S, Date, day_of, days_in_month};
use evenbeat_core::time::{TimeWindow, Timestamp};
use evenbeat_core::zone::Zone;

/// The first instant at which the clocks of a zone show this reading or a later one. A reading that the clocks skip is the
/// moment at which they are put forward; of one that they show twice it is the first.
pub(crate) fn instant_of(zone: &Zone, date: Date, second_of_day: u32) -> Timestamp {
    let local_s = day_of(date) * DAY_S + i64::from(second_of_day);
    // No zone is further from UTC than this.
    let mut segment = zone.segment_at(local_s - 2 * DAY_S);
    loop {
        let utc_s = (local_s - segment.offset_s).max(segment.start_s);
        if utc_s < segment.end_s {
            return Timestamp::from_second(utc_s);
        }
        match zone.segment_after(segment) {
            Some(next) => segment = next,
            None => return Timestamp::from_second(utc_s),
        }
    }
}

/// The day that an instant lies in, from midnight to midnight by the clocks of a zone: 23 or 25 hours when they change.
pub(crate) fn day_around(zone: &Zone, at: Timestamp) -> TimeWindow {
    let date = zone.local(at).date;
    TimeWindow::new(instant_of(zone, date, 0), instant_of(zone, next_day(date), 0))
}

/// The date after a date.
pub(crate) fn next_day(date: Date) -> Date {
    evenbeat_core::civil::date_of(day_of(date) + 1)
}

/// The instant of `2026-11-18T14:05`, as browsers send it, or of `2026-11-18`, by the clocks of a zone.
pub(crate) fn parse_local(zone: &Zone, text: &str) -> Option<Timestamp> {
    let (date, time) = text.split_once(['T', ' ']).unwrap_or((text, "00:00"));
    let numbers = |text: &str, separator: char, n_digits: &[usize]| -> Option<Vec<u32>> {
        let parts: Vec<&str> = text.split(separator).collect();
        let is_whole = parts.len() <= n_digits.len()
            && parts.iter().zip(n_digits).all(|(part, n)| part.len() == *n)
            && parts.iter().all(|part| part.bytes().all(|it| it.is_ascii_digit()));
        if is_whole { parts.iter().map(|part| part.parse().ok()).collect() } else { None }
    };
    let date = numbers(date, '-', &[4, 2, 2])?;
    let time = numbers(time, ':', &[2, 2, 2])?;
    let ([year, month, day], [hour, minute, seconds @ ..]) = (date.as_slice(), time.as_slice()) else {
        return None;
    };
    let (year, month, day) =
        (i32::try_from(*year).ok()?, u8::try_from(*month).ok()?, u8::try_from(*day).ok()?);
    let second = seconds.first().copied().unwrap_or(0);
    let is_date = (1..=12).contains(&month) && 1 <= day && day <= days_in_month(year, month);
    let is_time = *hour < 24 && *minute < 60 && second < 60;
    (1 <= year && is_date && is_time)
        .then(|| instant_of(zone, Date { year, month, day }, hour * 3_600 + minute * 60 + second))
}

/// An instant as browsers want it in a field: `2026-11-18T14:05`.
pub(crate) fn field_text(zone: &Zone, at: Timestamp) -> String {
    let local = zone.local(at);
    let Date { year, month, day } = local.date;
    let (hour, minute) = (local.second_of_day / 3_600, local.second_of_day / 60 % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(zone: &str, text: &str, expected: &str) {
        let found = parse_local(&Zone::named(zone).unwrap(), text);
        assert_eq!(found.map_or("none".to_owned(), |at| at.to_string()), expected, "{text} in {zone}");
    }

    #[test]
    fn a_reading_is_the_first_instant_that_the_clocks_show_it() {
        check("UTC", "2026-11-18T14:05", "2026-11-18T14:05:00Z");
        check("Europe/Berlin", "2026-11-18T14:05:09", "2026-11-18T13:05:09Z");
        check("America/New_York", "2026-11-18", "2026-11-18T05:00:00Z");
        // Skipped, and shown twice.
        check("Europe/Berlin", "2026-03-29T02:30", "2026-03-29T01:00:00Z");
        check("Europe/Berlin", "2026-10-25T02:30", "2026-10-25T00:30:00Z");
    }

    #[test]
    fn what_is_no_reading_is_none() {
        for text in [
            "",
            "x",
            "2026-13-01",
            "2026-02-30",
            "2026-11-18T24:00",
            "2026-11-18T10",
            "2026-11-18T1:00",
            "+026-01-01",
        ] {
            check("UTC", text, "none");
        }
    }

    #[test]
    fn a_day_with_a_clock_change_is_shorter_or_longer() {
        let hours = |zone: &str, at: &str| {
            let day = day_around(&Zone::named(zone).unwrap(), at.parse().unwrap());
            day.length().as_millis() / 3_600_000
        };
        assert_eq!(hours("Europe/Berlin", "2026-11-18T12:00:00Z"), 24);
        assert_eq!(hours("Europe/Berlin", "2026-03-29T12:00:00Z"), 23);
        assert_eq!(hours("Europe/Berlin", "2026-10-25T12:00:00Z"), 25);
        // The clocks go forward at midnight: the day begins at one.
        assert_eq!(hours("America/Asuncion", "2024-10-06T12:00:00Z"), 23);
    }

    #[test]
    fn a_field_is_read_back() {
        let zone = Zone::named("Asia/Tokyo").unwrap();
        let at: Timestamp = "2026-11-18T14:05:00Z".parse().unwrap();
        assert_eq!(parse_local(&zone, &field_text(&zone, at)), Some(at));
    }
}
