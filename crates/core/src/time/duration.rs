//! Lengths of time: `90s`, `1h30m`, `2d`, `PT6H`.

use std::fmt;
use std::ops::{Add, Mul, Neg, Sub};
use std::str::FromStr;

use crate::nearest::shortened;

/// A length of time in whole milliseconds. Differences may be negative; what people write may not.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(i64);

/// The units in the order in which they are written, with their length in milliseconds.
const UNITS: [(&str, i64); 6] =
    [("w", 604_800_000), ("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// Other spellings that people use, and the unit each stands for.
const SPELLINGS: [(&str, &str); 21] = [
    ("week", "w"),
    ("weeks", "w"),
    ("day", "d"),
    ("days", "d"),
    ("hour", "h"),
    ("hours", "h"),
    ("hr", "h"),
    ("hrs", "h"),
    ("minute", "m"),
    ("minutes", "m"),
    ("min", "m"),
    ("mins", "m"),
    ("second", "s"),
    ("seconds", "s"),
    ("sec", "s"),
    ("secs", "s"),
    ("millisecond", "ms"),
    ("milliseconds", "ms"),
    ("milli", "ms"),
    ("millis", "ms"),
    ("msec", "ms"),
];

impl Duration {
    /// No time at all.
    pub const ZERO: Duration = Duration(0);
    /// The longest that can be written: a hundred years of 365.25 days.
    pub const LONGEST: Duration = Duration::from_days(36_525);

    /// A duration of whole milliseconds.
    pub const fn from_millis(millis: i64) -> Duration {
        Duration(millis)
    }

    /// A duration of whole seconds.
    pub const fn from_secs(seconds: i64) -> Duration {
        Duration(seconds.saturating_mul(1_000))
    }

    /// A duration of whole minutes.
    pub const fn from_mins(minutes: i64) -> Duration {
        Duration(minutes.saturating_mul(60_000))
    }

    /// A duration of whole hours.
    pub const fn from_hours(hours: i64) -> Duration {
        Duration(hours.saturating_mul(3_600_000))
    }

    /// A duration of whole days of 24 hours.
    pub const fn from_days(days: i64) -> Duration {
        Duration(days.saturating_mul(86_400_000))
    }

    /// The length in milliseconds.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// The length in milliseconds, for averages. Exact for anything shorter than 285,000 years.
    #[expect(clippy::cast_precision_loss, reason = "no length that can be written needs more than 53 bits")]
    pub const fn as_millis_f64(self) -> f64 {
        self.0 as f64
    }

    /// A duration in milliseconds, rounded to the nearest whole one.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "float to integer casts stop at the ends of the range"
    )]
    pub fn from_millis_f64(millis: f64) -> Duration {
        Duration(millis.round() as i64)
    }

    /// Whether this is less than nothing.
    pub const fn is_negative(self) -> bool {
        self.0 < 0
    }
}

impl Add for Duration {
    type Output = Duration;

    fn add(self, other: Duration) -> Duration {
        Duration(self.0.saturating_add(other.0))
    }
}

impl Sub for Duration {
    type Output = Duration;

    fn sub(self, other: Duration) -> Duration {
        Duration(self.0.saturating_sub(other.0))
    }
}

impl Mul<i64> for Duration {
    type Output = Duration;

    fn mul(self, times: i64) -> Duration {
        Duration(self.0.saturating_mul(times))
    }
}

impl Neg for Duration {
    type Output = Duration;

    fn neg(self) -> Duration {
        Duration(self.0.saturating_neg())
    }
}

impl Duration {
    /// For people, in at most two units and no finer than a second: `30s`, `1m 19s`, `2d 4h`.
    pub fn rounded(self) -> String {
        let mut rest = self.0.unsigned_abs() / 1_000;
        let mut parts = Vec::new();
        for (unit, seconds) in [("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)] {
            // Two units that follow each other: an hour and a second are an hour.
            if seconds <= rest && parts.is_empty() {
                parts.push(format!("{}{unit}", rest / seconds));
            } else if parts.len() == 1 {
                parts.extend((seconds <= rest).then(|| format!("{}{unit}", rest / seconds)));
                break;
            }
            rest %= seconds;
        }
        match parts.is_empty() {
            true if self.0 == 0 => "0s".to_owned(),
            true => "less than 1s".to_owned(),
            false if self.is_negative() => format!("-{}", parts.join(" ")),
            false => parts.join(" "),
        }
    }
}

/// The shortest exact form, largest units first, nothing that is zero: `1h30m`, `7d`, `90ms`. Days are the largest unit
/// that is printed: people who wrote `30d` do not recognise `4w2d`.
impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("0s");
        }
        if self.is_negative() {
            f.write_str("-")?;
        }
        let mut rest = self.0.unsigned_abs();
        for (unit, millis) in UNITS.into_iter().filter(|(unit, _)| *unit != "w") {
            let millis = millis.unsigned_abs();
            if millis <= rest {
                write!(f, "{}{unit}", rest / millis)?;
                rest %= millis;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Why a text is not a length of time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// Nothing was written.
    #[error("the duration is empty (write `15m`, `2h` or `1d`)")]
    Empty,
    /// A bare number: seconds to some, minutes to others.
    #[error("duration `{text}` has no unit (write `{text}s`, `{text}m` or `{text}h`)")]
    MissingUnit {
        /// What was written.
        text: String,
    },
    /// A unit we do not know.
    #[error("duration `{text}` has an unknown unit `{unit}` (the units are w, d, h, m, s, ms)")]
    UnknownUnit {
        /// What was written.
        text: String,
        /// The part that is not a unit.
        unit: String,
    },
    /// Months and years have no fixed length.
    #[error("duration `{text}` uses months or years, whose length varies (write it in days: `30d`)")]
    NoFixedLength {
        /// What was written.
        text: String,
    },
    /// `30m1h`, `1h2h`: most likely a slip.
    #[error("duration `{text}` has repeated or misordered units (write the largest first: `1h30m`)")]
    UnitOrder {
        /// What was written.
        text: String,
    },
    /// Nothing at all.
    #[error("duration `{text}` must be longer than zero")]
    Zero {
        /// What was written.
        text: String,
    },
    /// Less than nothing.
    #[error("duration `{text}` must not be negative")]
    Negative {
        /// What was written.
        text: String,
    },
    /// More than [`Duration::LONGEST`].
    #[error("duration `{text}` is longer than the maximum of 100 years")]
    TooLong {
        /// What was written.
        text: String,
    },
    /// Not a whole number of milliseconds.
    #[error("duration `{text}` is more precise than a millisecond")]
    TooFine {
        /// What was written.
        text: String,
    },
    /// Anything else.
    #[error("`{text}` is not a duration (write `15m`, `1h30m`, `2d` or `PT15M`)")]
    Malformed {
        /// What was written.
        text: String,
    },
}

impl FromStr for Duration {
    type Err = DurationError;

    fn from_str(text: &str) -> Result<Duration, DurationError> {
        let text = text.trim();
        let shown = || shortened(text);
        if text.is_empty() {
            return Err(DurationError::Empty);
        }
        if let Some(rest) = text.strip_prefix('-') {
            // Only what would be a length without its sign is a negative one.
            return Err(match rest.parse::<Duration>() {
                Ok(_) | Err(DurationError::Zero { .. } | DurationError::TooLong { .. }) => {
                    DurationError::Negative { text: shown() }
                }
                Err(_) => DurationError::Malformed { text: shown() },
            });
        }
        let parts = match text.strip_prefix(['P', 'p']) {
            Some(rest) => parts_iso(rest),
            None => parts_plain(text),
        };
        let millis = parts.and_then(|parts| total_millis(&parts)).map_err(|fault| fault.named(shown()))?;
        if millis == 0 {
            return Err(DurationError::Zero { text: shown() });
        }
        if Duration::LONGEST.0 < millis {
            return Err(DurationError::TooLong { text: shown() });
        }
        Ok(Duration(millis))
    }
}

/// One `number unit` of a text, the number still as written.
struct Part<'a> {
    number: &'a str,
    millis_per_unit: i64,
}

/// What went wrong, before the whole text is attached to it.
enum ParseFailure {
    Malformed,
    MissingUnit,
    UnknownUnit(String),
    NoFixedLength,
    UnitOrder,
    TooFine,
    TooLong,
}

impl ParseFailure {
    fn named(self, text: String) -> DurationError {
        match self {
            ParseFailure::Malformed => DurationError::Malformed { text },
            ParseFailure::MissingUnit => DurationError::MissingUnit { text },
            ParseFailure::UnknownUnit(unit) => DurationError::UnknownUnit { text, unit: shortened(&unit) },
            ParseFailure::NoFixedLength => DurationError::NoFixedLength { text },
            ParseFailure::UnitOrder => DurationError::UnitOrder { text },
            ParseFailure::TooFine => DurationError::TooFine { text },
            ParseFailure::TooLong => DurationError::TooLong { text },
        }
    }
}

/// `1h30m`, `1h 30 min`, `1.5h`.
fn parts_plain(text: &str) -> Result<Vec<Part<'_>>, ParseFailure> {
    let mut parts = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (number, after_number) = split_number(rest);
        if number.is_empty() {
            return Err(ParseFailure::Malformed);
        }
        let after_number = after_number.trim_start();
        let unit_end = after_number.find(|it: char| !it.is_alphabetic()).unwrap_or(after_number.len());
        let (unit, after_unit) = after_number.split_at(unit_end);
        if unit.is_empty() {
            // `15` lacks its unit; `1,5h` and `1:30` are something else.
            return Err(if after_unit.is_empty() && parts.is_empty() {
                ParseFailure::MissingUnit
            } else {
                ParseFailure::Malformed
            });
        }
        parts.push(Part { number, millis_per_unit: unit_millis(unit)? });
        rest = after_unit.trim_start();
    }
    Ok(parts)
}

/// What follows the `P` of ISO 8601: `1DT12H`, `T15M`, `2W`.
fn parts_iso(rest: &str) -> Result<Vec<Part<'_>>, ParseFailure> {
    let (date, time) = match rest.split_once(['T', 't']) {
        Some((date, time)) if !time.is_empty() => (date, time),
        Some(_) => return Err(ParseFailure::Malformed),
        None => (rest, ""),
    };
    let mut parts = Vec::new();
    for (half, units) in [(date, ["w", "d", ""]), (time, ["h", "m", "s"])] {
        let mut rest = half;
        while !rest.is_empty() {
            let (number, after_number) = split_number(rest);
            let mut letters = after_number.chars();
            let unit = letters.next().map(|it| it.to_ascii_lowercase().to_string()).unwrap_or_default();
            if number.is_empty() || unit.is_empty() {
                return Err(ParseFailure::Malformed);
            }
            if units[0] == "w" && (unit == "m" || unit == "y") {
                return Err(ParseFailure::NoFixedLength);
            }
            if !units.contains(&unit.as_str()) {
                return Err(ParseFailure::Malformed);
            }
            parts.push(Part { number, millis_per_unit: unit_millis(&unit)? });
            rest = letters.as_str();
        }
    }
    if parts.is_empty() { Err(ParseFailure::Malformed) } else { Ok(parts) }
}

/// Splits off the leading digits, with at most one point among them.
fn split_number(text: &str) -> (&str, &str) {
    let mut seen_point = false;
    let end = text
        .find(|it: char| {
            let point = it == '.' && !seen_point;
            seen_point |= point;
            !(it.is_ascii_digit() || point)
        })
        .unwrap_or(text.len());
    text.split_at(end)
}

fn unit_millis(unit: &str) -> Result<i64, ParseFailure> {
    // `M` is a month to half of the world and a minute to the other.
    if ["M", "mo", "mon", "month", "months", "y", "yr", "year", "years"].contains(&unit) {
        return Err(ParseFailure::NoFixedLength);
    }
    let lower = unit.to_ascii_lowercase();
    let short = SPELLINGS.iter().find(|(long, _)| *long == lower).map_or(lower.as_str(), |(_, short)| *short);
    UNITS
        .iter()
        .find(|(name, _)| *name == short)
        .map(|(_, millis)| *millis)
        .ok_or_else(|| ParseFailure::UnknownUnit(unit.to_owned()))
}

fn total_millis(parts: &[Part<'_>]) -> Result<i64, ParseFailure> {
    let mut total: i64 = 0;
    let mut previous_unit = i64::MAX;
    for part in parts {
        if previous_unit <= part.millis_per_unit {
            return Err(ParseFailure::UnitOrder);
        }
        previous_unit = part.millis_per_unit;
        let millis = part_millis(part)?;
        total = total.checked_add(millis).ok_or(ParseFailure::TooLong)?;
    }
    Ok(total)
}

/// The exact value of a number with an optional fraction; no float takes part.
fn part_millis(part: &Part<'_>) -> Result<i64, ParseFailure> {
    let (whole, fraction) = part.number.split_once('.').unwrap_or((part.number, ""));
    if whole.is_empty() || (part.number.contains('.') && fraction.is_empty()) {
        return Err(ParseFailure::Malformed);
    }
    let whole: i64 = whole.parse().map_err(|_| ParseFailure::TooLong)?;
    let mut millis = whole.checked_mul(part.millis_per_unit).ok_or(ParseFailure::TooLong)?;
    let fraction = fraction.trim_end_matches('0');
    if !fraction.is_empty() {
        // Nine digits of a week are 0.6 ms: whatever needs more is more precise than a millisecond.
        let digits = u32::try_from(fraction.len()).ok().filter(|it| *it <= 9).ok_or(ParseFailure::TooFine)?;
        let numerator: i64 = fraction.parse().map_err(|_| ParseFailure::TooFine)?;
        let scaled = numerator.checked_mul(part.millis_per_unit).ok_or(ParseFailure::TooFine)?;
        let denominator = 10_i64.pow(digits);
        if scaled % denominator != 0 {
            return Err(ParseFailure::TooFine);
        }
        millis = millis.checked_add(scaled / denominator).ok_or(ParseFailure::TooLong)?;
    }
    Ok(millis)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let shown = match text.parse::<Duration>() {
            Ok(length) => length.to_string(),
            Err(error) => error.to_string(),
        };
        assert_eq!(shown, expected, "for {text:?}");
    }

    #[test]
    fn for_people_a_length_has_two_units_at_most() {
        for (length, expected) in [
            ("30s", "30s"),
            ("79s", "1m 19s"),
            ("1m19s390ms", "1m 19s"),
            ("1h1s", "1h"),
            ("2h5m7s", "2h 5m"),
            ("47h", "1d 23h"),
            ("30d", "30d"),
            ("390ms", "less than 1s"),
        ] {
            assert_eq!(length.parse::<Duration>().unwrap().rounded(), expected, "{length}");
        }
        assert_eq!(Duration::ZERO.rounded(), "0s");
    }

    #[test]
    fn texts_are_printed_back_in_the_shortest_form() {
        check("90s", "1m30s");
        check("15m", "15m");
        check("1h30m", "1h30m");
        check("90m", "1h30m");
        check("2d", "2d");
        check("48h", "2d");
        check("7d", "7d");
        check("1w", "7d");
        check("30d", "30d");
        check("52w1d", "365d");
        check("1500ms", "1s500ms");
        check("1.5h", "1h30m");
        check("0.5d", "12h");
        check(" 1h 30 min ", "1h30m");
        check("2 Hours", "2h");
        check("36525d", "36525d");
    }

    #[test]
    fn iso_8601_is_the_same_thing() {
        check("PT6H", "6h");
        check("PT15M", "15m");
        check("P1DT12H", "1d12h");
        check("P2W", "14d");
        check("pt1.5s", "1s500ms");
        check("PT90S", "1m30s");
    }

    #[test]
    fn nothing_less_than_nothing_and_too_much_are_refused() {
        check("0s", "duration `0s` must be longer than zero");
        check("PT0S", "duration `PT0S` must be longer than zero");
        check("-5m", "duration `-5m` must not be negative");
        check("-PT5M", "duration `-PT5M` must not be negative");
        check("--5m", "`--5m` is not a duration (write `15m`, `1h30m`, `2d` or `PT15M`)");
        check("36526d", "duration `36526d` is longer than the maximum of 100 years");
        check(
            "99999999999999999999h",
            "duration `99999999999999999999h` is longer than the maximum of 100 years",
        );
        check(
            "9223372036854775807ms9s",
            "duration `9223372036854775807ms9s` has repeated or misordered units (write the largest first: `1h30m`)",
        );
        check("0.0001s", "duration `0.0001s` is more precise than a millisecond");
    }

    #[test]
    fn slips_are_named() {
        check("", "the duration is empty (write `15m`, `2h` or `1d`)");
        check("15", "duration `15` has no unit (write `15s`, `15m` or `15h`)");
        check("15x", "duration `15x` has an unknown unit `x` (the units are w, d, h, m, s, ms)");
        check("1M", "duration `1M` uses months or years, whose length varies (write it in days: `30d`)");
        check("P1M", "duration `P1M` uses months or years, whose length varies (write it in days: `30d`)");
        check(
            "30m1h",
            "duration `30m1h` has repeated or misordered units (write the largest first: `1h30m`)",
        );
        for malformed in
            ["h", "1,5h", "1:30", "PT", "P", "P1H", "PT1D", "1h30", ".5h", "5.h", "1..5h", "soon", "5 5m"]
        {
            check(
                malformed,
                &format!("`{malformed}` is not a duration (write `15m`, `1h30m`, `2d` or `PT15M`)"),
            );
        }
    }

    proptest! {
        #[test]
        fn printing_and_parsing_are_inverse(millis in 1..=Duration::LONGEST.as_millis()) {
            let length = Duration::from_millis(millis);
            prop_assert_eq!(length.to_string().parse::<Duration>(), Ok(length));
        }

        #[test]
        fn any_text_is_answered(text in "\\PC{0,24}|[0-9.]{0,6}[PTpt]?[0-9.wdhmsMWDHS ]{0,16}") {
            if let Ok(length) = text.parse::<Duration>() {
                prop_assert!(Duration::ZERO < length && length <= Duration::LONGEST);
            }
        }
    }
}
