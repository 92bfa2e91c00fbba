//! Instants and tables as people read them.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use evenbeat_core::civil::{Date, day_of, weekday};
use evenbeat_core::condition::Condition;
use evenbeat_core::time::{Duration, Timestamp};
use evenbeat_core::zone::Zone;

/// A heading.
pub(crate) const BOLD: Style = Style::new().bold();
/// What is there for completeness.
pub(crate) const DIM: Style = Style::new().dimmed();
/// What deserves a second look.
pub(crate) const NOTICE: Style = AnsiColor::Yellow.on_default();

/// `Sun 2026-03-29 03:00 CEST`; seconds and milliseconds only where there are any.
pub(crate) fn local(zone: &Zone, at: Timestamp) -> String {
    format!("{} {}", local_clock(zone, at), zone.abbreviation(at))
}

/// The same with the offset instead of its name, for machines: `2026-03-29T03:00:00+02:00`.
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

/// What a clock on the wall shows, without seconds: `03:00`.
pub(crate) fn clock(zone: &Zone, at: Timestamp) -> String {
    let (hour, minute, _) = clock_parts(zone.local(at).second_of_day);
    format!("{hour:02}:{minute:02}")
}

/// How far `at` lies from `now`, in at most two units: `in 3h 20m`, `2d 4h ago`, `now`.
pub(crate) fn relative(at: Timestamp, now: Timestamp) -> String {
    let difference = at - now;
    let (before, after) = if difference.is_negative() { ("", " ago") } else { ("in ", "") };
    match rough(if difference.is_negative() { -difference } else { difference }) {
        rough if rough.is_empty() => "now".to_owned(),
        rough => format!("{before}{rough}{after}"),
    }
}

/// The two largest units, the rest cut off; nothing under a second.
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

/// One JSON document, and the end of its last line.
pub(crate) fn json(out: &mut dyn Write, document: &serde_json::Value) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, document)?;
    writeln!(out)
}

/// The colour of a condition; its word says the same to those who see none.
pub(crate) fn style_of(condition: Condition) -> Style {
    match condition {
        Condition::Ok => AnsiColor::Green.on_default(),
        Condition::Warning => AnsiColor::Yellow.on_default().bold(),
        Condition::Error => AnsiColor::Red.on_default().bold(),
    }
}

/// The same for a word that came over the wire: of a condition or an outcome.
pub(crate) fn style_of_word(word: &str) -> Style {
    match word {
        "ok" | "succeeded" => style_of(Condition::Ok),
        "warning" => style_of(Condition::Warning),
        "error" | "failed" | "timed_out" | "lost" | "blackout" | "unknown" => style_of(Condition::Error),
        _ => Style::new(),
    }
}

fn local_clock(zone: &Zone, at: Timestamp) -> String {
    const DAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
    let local = zone.local(at);
    let Date { year, month, day } = local.date;
    let day_name = DAYS[usize::from(weekday(day_of(local.date)))];
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
}
