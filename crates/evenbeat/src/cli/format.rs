//! Formats instants, lengths and conditions for text output.

use std::error::Error;
use std::fmt::Write as _;
use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use evenbeat_core::civil::{Date, day_of, weekday};
use evenbeat_core::condition::Condition;
use evenbeat_core::time::{Duration, Timestamp};
use evenbeat_core::zone::Zone;

use crate::printable;

/// A heading.
pub(crate) const BOLD: Style = Style::new().bold();
/// Details that are there for completeness.
pub(crate) const DIM: Style = Style::new().dimmed();
/// What deserves a second look.
pub(crate) const NOTICE: Style = AnsiColor::Yellow.on_default();

/// `Sun 2026-03-29 03:00 CEST`, with seconds and milliseconds only if they are not zero.
pub(crate) fn local(zone: &Zone, at: Timestamp) -> String {
    format!("{} {}", local_clock(zone, at), zone.abbreviation(at))
}

/// A local time with its offset, for JSON: `2026-03-29T03:00:00+02:00`.
pub(crate) fn local_rfc3339(zone: &Zone, at: Timestamp) -> String {
    let local = zone.local(at);
    let Date { year, month, day } = local.date;
    let (hour, minute, second) = clock_parts(local.second_of_day);
    let millis = match at.as_millis().rem_euclid(1_000) {
        0 => String::new(),
        millis => format!(".{millis:03}"),
    };
    let offset = local.offset_s;
    let sign = if offset < 0 { '-' } else { '+' };
    let (offset_hour, offset_minute, _) = clock_parts(u32::try_from(offset.unsigned_abs()).unwrap_or(0));
    format!(
        "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{millis}{sign}{offset_hour:02}:{offset_minute:02}"
    )
}

/// The local time of day without seconds: `03:00`.
pub(crate) fn clock(zone: &Zone, at: Timestamp) -> String {
    let (hour, minute, _) = clock_parts(zone.local(at).second_of_day);
    format!("{hour:02}:{minute:02}")
}

/// The local time of day with seconds: `03:00:00`.
pub(crate) fn time_of_day(zone: &Zone, at: Timestamp) -> String {
    date_and_time(zone, at).1
}

/// The distance from `now` to `at` in at most two units: `in 3h 20m`, `2d 4h ago`, `now`.
pub(crate) fn relative(at: Timestamp, now: Timestamp) -> String {
    let difference = at - now;
    let (before, after) = if difference.is_negative() { ("", " ago") } else { ("in ", "") };
    match rough(if difference.is_negative() { -difference } else { difference }) {
        rough if rough.is_empty() => "now".to_owned(),
        rough => format!("{before}{rough}{after}"),
    }
}

/// The two largest units, rounded down to whole seconds.
fn rough(length: Duration) -> String {
    let mut rest = length.as_millis() / 1_000;
    let mut parts = Vec::new();
    for (unit, seconds) in [("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)] {
        if seconds <= rest && parts.len() < 2 {
            parts.push(format!("{}{unit}", rest / seconds));
        }
        rest %= seconds;
    }
    parts.join(" ")
}

/// How long something took: `250ms`, `2.0s`, `1m 19s`, `3h 20m`. A negative length is shown as zero.
pub(crate) fn length(length: Duration) -> String {
    match length.as_millis().max(0) {
        0 => "0s".to_owned(),
        millis if millis < 1_000 => format!("{millis}ms"),
        millis if millis < 60_000 => format!("{}.{}s", millis / 1_000, millis / 100 % 10),
        _ => rough(length),
    }
}

/// Formats instants in the reader's zone.
#[derive(Clone, Debug)]
pub(crate) struct LocalClock {
    pub(crate) zone: Zone,
    pub(crate) now: Timestamp,
}

impl LocalClock {
    /// `2026-03-29 03:00:00 CEST`.
    pub(crate) fn at(&self, at: Timestamp) -> String {
        let (date, time) = date_and_time(&self.zone, at);
        format!("{date} {time} {}", self.zone.abbreviation(at))
    }

    /// `Sun 2026-03-29 03:00:00 CEST`.
    pub(crate) fn day_at(&self, at: Timestamp) -> String {
        format!("{} {}", day_name(&self.zone, at), self.at(at))
    }

    /// The zone in a table head: `CEST`, or its name where the clocks may change within the table.
    pub(crate) fn zone_name(&self) -> String {
        self.zone.abbreviation(self.now)
    }

    /// `2026-03-29 03:00`.
    pub(crate) fn minute_at(&self, at: Timestamp) -> String {
        let (date, _) = date_and_time(&self.zone, at);
        format!("{date} {}", clock(&self.zone, at))
    }

    /// `2026-03-29 03:00:00 CEST  in 3h 20m`.
    pub(crate) fn at_and_distance(&self, at: Timestamp) -> String {
        format!("{}  {DIM}{}{DIM:#}", self.at(at), relative(at, self.now))
    }

    /// A sentence of the server in one line, with its instants converted to this zone. The server writes them in UTC, to
    /// the millisecond.
    pub(crate) fn sentence(&self, text: &str) -> String {
        let mut shown = String::with_capacity(text.len());
        let safe = printable::line(text);
        let mut rest = &*safe;
        while let Some(letter) = rest.chars().next() {
            if let Some((at, n_bytes)) = instant_at_start(rest) {
                shown.push_str(&self.at(at));
                rest = &rest[n_bytes..];
            } else {
                shown.push(letter);
                rest = &rest[letter.len_utf8()..];
            }
        }
        shown
    }
}

/// Parses an RFC 3339 instant in UTC at the start of a text. Returns it with its length in bytes.
fn instant_at_start(text: &str) -> Option<(Timestamp, usize)> {
    const LENGTH_MAX: usize = "2026-03-29T01:00:00.123456789Z".len();
    let is_likely =
        text.as_bytes().get(10) == Some(&b'T') && text.starts_with(|it: char| it.is_ascii_digit());
    let end = is_likely.then(|| text.bytes().take(LENGTH_MAX).position(|it| it == b'Z')).flatten()?;
    Some((text.get(..=end)?.parse().ok()?, end + 1))
}

/// Prints one JSON document and a line break.
pub(crate) fn json(out: &mut dyn Write, document: &serde_json::Value) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, document)?;
    writeln!(out)
}

/// An error with all its causes.
pub(crate) fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let _ = write!(text, ": {error}");
        cause = error.source();
    }
    text
}

/// The reason code to show beside a condition; empty if it would only repeat it.
pub(crate) fn reason_beside(condition: &str, reason: &str) -> String {
    if reason == condition { String::new() } else { format!(" {DIM}{reason}{DIM:#}") }
}

/// The colour of a condition. The word beside it says the same without colour.
pub(crate) fn style_of(condition: Condition) -> Style {
    match condition {
        Condition::Ok => AnsiColor::Green.on_default(),
        Condition::Warning => AnsiColor::Yellow.on_default().bold(),
        Condition::Error => AnsiColor::Red.on_default().bold(),
    }
}

/// The colour of a condition or an outcome that the server sent.
pub(crate) fn style_of_word(word: &str) -> Style {
    match word {
        "ok" | "succeeded" => style_of(Condition::Ok),
        "warning" => style_of(Condition::Warning),
        "error" | "failed" | "timed_out" | "lost" | "blackout" | "unknown" => style_of(Condition::Error),
        _ => Style::new(),
    }
}

fn day_name(zone: &Zone, at: Timestamp) -> &'static str {
    const DAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
    DAYS[usize::from(weekday(day_of(zone.local(at).date)))]
}

/// Formats a local time to the second.
fn date_and_time(zone: &Zone, at: Timestamp) -> (String, String) {
    let local = zone.local(at);
    let Date { year, month, day } = local.date;
    let (hour, minute, second) = clock_parts(local.second_of_day);
    (format!("{year:04}-{month:02}-{day:02}"), format!("{hour:02}:{minute:02}:{second:02}"))
}

fn local_clock(zone: &Zone, at: Timestamp) -> String {
    let local = zone.local(at);
    let Date { year, month, day } = local.date;
    let day_name = day_name(zone, at);
    let (hour, minute, second) = clock_parts(local.second_of_day);
    let seconds = match (second, at.as_millis().rem_euclid(1_000)) {
        (0, 0) => String::new(),
        (second, 0) => format!(":{second:02}"),
        (second, millis) => format!(":{second:02}.{millis:03}"),
    };
    format!("{day_name} {year:04}-{month:02}-{day:02} {hour:02}:{minute:02}{seconds}")
}

fn clock_parts(second_of_day: u32) -> (u32, u32, u32) {
    (second_of_day / 3_600, second_of_day / 60 % 60, second_of_day % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_read_as_people_say_them() {
        let zone = Zone::named("Europe/Berlin").unwrap();
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        assert_eq!(local(&zone, at("2026-03-29T01:00:00Z")), "Sun 2026-03-29 03:00 CEST");
        assert_eq!(local(&zone, at("2026-01-01T11:00:07.250Z")), "Thu 2026-01-01 12:00:07.250 CET");
        assert_eq!(local_rfc3339(&zone, at("2026-03-29T01:00:00Z")), "2026-03-29T03:00:00+02:00");
        assert_eq!(clock(&zone, at("2026-01-01T11:09:59Z")), "12:09");
        let new_york = Zone::named("America/New_York").unwrap();
        assert_eq!(local_rfc3339(&new_york, at("2026-03-29T01:00:00.5Z")), "2026-03-28T21:00:00.500-04:00");
    }

    #[test]
    fn distances_are_rough() {
        let now = Timestamp::from_second(1_000_000);
        assert_eq!(relative(now + Duration::from_secs(12_345), now), "in 3h 25m");
        assert_eq!(relative(now - Duration::from_secs(187_200), now), "2d 4h ago");
        assert_eq!(relative(now + Duration::from_millis(400), now), "now");
    }

    #[test]
    fn lengths_are_read_at_a_glance_and_never_negative() {
        let check = |millis, expected: &str| assert_eq!(length(Duration::from_millis(millis)), expected);
        check(0, "0s");
        check(-1, "0s");
        check(3, "3ms");
        check(999, "999ms");
        check(2_004, "2.0s");
        check(59_999, "59.9s");
        check(60_187, "1m");
        check(79_390, "1m 19s");
        check(12_345_678, "3h 25m");
        check(187_200_000, "2d 4h");
    }

    #[test]
    fn a_sentence_of_the_server_is_told_in_local_time() {
        let zone = Zone::named("Europe/Berlin").unwrap();
        let clock = LocalClock { zone, now: Timestamp::from_second(0) };
        let check = |text: &str, expected: &str| assert_eq!(clock.sentence(text), expected);
        check(
            "Site api.example has no room before 2026-11-17T04:29:00.022Z.",
            "Site api.example has no room before 2026-11-17 05:29:00 CET.",
        );
        check(
            "2026-07-01T00:00:00Z to 2026-07-02T00:00:00Z",
            "2026-07-01 02:00:00 CEST to 2026-07-02 02:00:00 CEST",
        );
        check("The last run failed: größer, 2026-11-1 T Z.", "The last run failed: größer, 2026-11-1 T Z.");
        let at = "2026-03-29T01:00:00.9Z".parse().unwrap();
        assert_eq!(clock.at(at), "2026-03-29 03:00:00 CEST");
        assert_eq!(clock.day_at(at), "Sun 2026-03-29 03:00:00 CEST");
        assert_eq!(clock.minute_at(at), "2026-03-29 03:00");
    }
}
