//! Instants and lengths on pages: in the viewer's zone, with UTC at hand, in at most two units.

use evenbeat_core::civil::{Date, day_of, weekday};
use evenbeat_core::time::{Duration, Timestamp};
use evenbeat_core::zone::Zone;
use maud::{Markup, html};

/// The viewer's zone, and the time of the page.
#[derive(Clone, Debug)]
pub(super) struct Times {
    pub(super) zone: Zone,
    pub(super) now: Timestamp,
}

/// How the script keeps the distance from now up to date.
#[derive(Clone, Copy, Debug)]
pub(super) enum Distance {
    /// `in 3h 20m`, and `now` from then on.
    In,
    /// `3h 20m ago`.
    Ago,
    /// `3h 20m`, since then.
    Since,
    /// `3h 20m left`, then `5m late`.
    Left,
}

impl Distance {
    fn word(self) -> &'static str {
        match self {
            Distance::In => "in",
            Distance::Ago => "ago",
            Distance::Since => "since",
            Distance::Left => "left",
        }
    }
}

impl Times {
    /// `14:05`; with the weekday or the date if it is not today.
    pub(super) fn short(&self, at: Timestamp) -> Markup {
        self.element(at, &format!("{}{}", self.day_prefix(at), self.clock(at)))
    }

    /// `14:05:09`; with the weekday or the date if it is not today.
    pub(super) fn exact(&self, at: Timestamp) -> Markup {
        self.element(at, &format!("{}{}", self.day_prefix(at), self.clock_s(at)))
    }

    /// `14:05` as text.
    pub(super) fn clock(&self, at: Timestamp) -> String {
        let (hour, minute, _) = self.parts(at);
        format!("{hour:02}:{minute:02}")
    }

    /// `14:05:09` as text.
    pub(super) fn clock_s(&self, at: Timestamp) -> String {
        let (hour, minute, second) = self.parts(at);
        format!("{hour:02}:{minute:02}:{second:02}")
    }

    /// `14:05`, `Thu 14:05` or `12 Nov 14:05` as text.
    pub(super) fn short_text(&self, at: Timestamp) -> String {
        format!("{}{}", self.day_prefix(at), self.clock(at))
    }

    /// Like [`Times::short_text`], with seconds where minutes would not tell it from now.
    pub(super) fn moment_text(&self, at: Timestamp) -> String {
        if self.is_near(at) {
            format!("{}{}", self.day_prefix(at), self.clock_s(at))
        } else {
            self.short_text(at)
        }
    }

    /// Like [`Times::short`], with seconds where minutes would not tell it from now.
    pub(super) fn moment(&self, at: Timestamp) -> Markup {
        if self.is_near(at) { self.exact(at) } else { self.short(at) }
    }

    fn is_near(&self, at: Timestamp) -> bool {
        let far = Duration::from_mins(10);
        -far < at - self.now && at - self.now < far
    }

    /// `Thu 12`: a day as text, for the axes of long charts.
    pub(super) fn day(&self, at: Timestamp) -> String {
        format!("{} {}", self.weekday(at), self.zone.local(at).date.day)
    }

    /// The seconds since midnight of the viewer's day.
    pub(super) fn second_of_day(&self, at: Timestamp) -> u32 {
        self.zone.local(at).second_of_day
    }

    /// The zone's short name now, for table heads: `CET`.
    pub(super) fn zone_name(&self) -> String {
        self.zone.abbreviation(self.now)
    }

    /// A distance from now that goes on by itself.
    pub(super) fn distance(&self, at: Timestamp, how: Distance) -> Markup {
        html! { span data-rel=(at) data-rel-as=(how.word()) { (self.distance_text(at, how)) } }
    }

    /// A distance from now as text.
    pub(super) fn distance_text(&self, at: Timestamp, how: Distance) -> String {
        let ahead = at - self.now;
        let length = brief(if ahead.is_negative() { -ahead } else { ahead });
        match how {
            Distance::In if ahead.is_negative() || length == "0s" => "now".to_owned(),
            Distance::In => format!("in {length}"),
            Distance::Ago => format!("{length} ago"),
            Distance::Since => length,
            Distance::Left if ahead.is_negative() => format!("{length} late"),
            Distance::Left => format!("{length} left"),
        }
    }

    fn element(&self, at: Timestamp, text: &str) -> Markup {
        html! { time datetime=(at) title=(self.full(at)) { (text) } }
    }

    /// `Thu 2026-11-12 15:05:09 CET, 14:05:09 UTC`.
    pub(super) fn full(&self, at: Timestamp) -> String {
        let Date { year, month, day } = self.zone.local(at).date;
        let local = format!(
            "{} {year:04}-{month:02}-{day:02} {} {}",
            self.weekday(at),
            self.clock_s(at),
            self.zone.abbreviation(at)
        );
        if self.zone.name() == "UTC" {
            return local;
        }
        let utc = Times { zone: Zone::utc(), now: self.now };
        format!("{local}, {} UTC", utc.clock_s(at))
    }

    fn parts(&self, at: Timestamp) -> (u32, u32, u32) {
        let second = self.zone.local(at).second_of_day;
        (second / 3_600, second / 60 % 60, second % 60)
    }

    pub(super) fn weekday(&self, at: Timestamp) -> &'static str {
        let day = weekday(day_of(self.zone.local(at).date));
        ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"].get(usize::from(day)).copied().unwrap_or("")
    }

    fn day_prefix(&self, at: Timestamp) -> String {
        let (today, date) = (self.zone.local(self.now).date, self.zone.local(at).date);
        let Date { year, month, day } = date;
        match day_of(date) - day_of(today) {
            0 => String::new(),
            -6..=6 => format!("{} ", self.weekday(at)),
            _ if year == today.year => format!("{day} {} ", month_name(month)),
            _ => format!("{day} {} {year} ", month_name(month)),
        }
    }
}

/// `Jan` to `Dec`.
pub(super) fn month_name(month: u8) -> &'static str {
    const NAMES: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    NAMES.get(usize::from(month).saturating_sub(1)).copied().unwrap_or("")
}

/// A length in at most two units: `45s`, `1h 8m`, `2d 4h`. Below a second it is `0s`.
pub(super) fn brief(length: Duration) -> String {
    let length = if length.is_negative() { -length } else { length };
    if length < Duration::from_secs(1) { "0s".to_owned() } else { length.rounded() }
}

/// How long something took: `250ms`, `2.4s`, `1m 19s`.
pub(super) fn took(length: Duration) -> String {
    match length.as_millis().max(0) {
        0 => "0s".to_owned(),
        millis if millis < 1_000 => format!("{millis}ms"),
        millis if millis < 60_000 => format!("{}.{}s", millis / 1_000, millis / 100 % 10),
        _ => length.rounded(),
    }
}

/// A length that may be short: `250ms`, `2.4s`, `1h 8m`.
pub(super) fn length_text(length: Duration) -> String {
    if length < Duration::from_mins(1) { took(length) } else { brief(length) }
}

/// `1,234,567`.
pub(super) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if 0 < place && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 job`, `1,234 jobs`.
pub(super) fn counted(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", count(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(zone: &str) -> Times {
        Times { zone: Zone::named(zone).unwrap(), now: "2026-11-18T10:00:00Z".parse().unwrap() }
    }

    #[track_caller]
    fn check(zone: &str, at: &str, short: &str, full: &str) {
        let (times, at) = (times(zone), at.parse().unwrap());
        assert_eq!((times.short_text(at).as_str(), times.full(at).as_str()), (short, full));
    }

    #[test]
    fn an_instant_has_its_day_unless_it_is_today() {
        check("UTC", "2026-11-18T14:05:09Z", "14:05", "Wed 2026-11-18 14:05:09 UTC");
        check("UTC", "2026-11-19T14:05:09Z", "Thu 14:05", "Thu 2026-11-19 14:05:09 UTC");
        check("UTC", "2026-12-24T00:00:00Z", "24 Dec 00:00", "Thu 2026-12-24 00:00:00 UTC");
        check("UTC", "2027-01-02T00:00:00Z", "2 Jan 2027 00:00", "Sat 2027-01-02 00:00:00 UTC");
        check("Asia/Tokyo", "2026-11-18T16:00:00Z", "Thu 01:00", "Thu 2026-11-19 01:00:00 JST, 16:00:00 UTC");
    }

    #[test]
    fn a_distance_says_its_direction() {
        let times = times("UTC");
        let in_an_hour = times.now + Duration::from_mins(68);
        let before = times.now - Duration::from_secs(90);
        assert_eq!(times.distance_text(in_an_hour, Distance::In), "in 1h 8m");
        assert_eq!(times.distance_text(in_an_hour, Distance::Left), "1h 8m left");
        assert_eq!(times.distance_text(before, Distance::Left), "1m 30s late");
        assert_eq!(times.distance_text(before, Distance::Ago), "1m 30s ago");
        assert_eq!(times.distance_text(before, Distance::In), "now");
    }

    #[test]
    fn numbers_are_grouped() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([counted(1, "job"), counted(2, "job")], ["1 job", "2 jobs"]);
    }
}
