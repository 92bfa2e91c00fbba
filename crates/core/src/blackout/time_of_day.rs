//! A time on the wall clock, without a date: `09:00`, `23:59:30`, `24:00`.

use std::fmt;
use std::str::FromStr;

use super::BlackoutError;
use crate::nearest::shortened;

const DAY_END_S: u32 = 86_400;

/// A time of day in whole seconds, from `00:00` to `24:00`, which is the end of the day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimeOfDay(u32);

impl TimeOfDay {
    /// `24:00`, the end of the day.
    pub const DAY_END: TimeOfDay = TimeOfDay(DAY_END_S);

    /// Seconds since midnight, 0 to 86,400.
    pub const fn as_second(self) -> u32 {
        self.0
    }
}

/// `HH:MM`, with the seconds only where there are any.
impl fmt::Display for TimeOfDay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (hour, minute, second) = (self.0 / 3_600, self.0 / 60 % 60, self.0 % 60);
        write!(f, "{hour:02}:{minute:02}")?;
        if second != 0 {
            write!(f, ":{second:02}")?;
        }
        Ok(())
    }
}

impl FromStr for TimeOfDay {
    type Err = BlackoutError;

    fn from_str(text: &str) -> Result<TimeOfDay, BlackoutError> {
        let text = text.trim();
        let Some((hour, minute, second)) = parts(text) else {
            return Err(BlackoutError::NotATime { text: shortened(text) });
        };
        let seconds = hour * 3_600 + minute * 60 + second;
        if 60 <= minute || 60 <= second || DAY_END_S < seconds {
            return Err(BlackoutError::TimeOutOfRange { text: shortened(text) });
        }
        Ok(TimeOfDay(seconds))
    }
}

fn parts(text: &str) -> Option<(u32, u32, u32)> {
    let mut parts = text.split(':');
    let hour = two_digits(parts.next()?)?;
    let minute = two_digits(parts.next()?)?;
    let second = parts.next().map_or(Some(0), two_digits)?;
    parts.next().is_none().then_some((hour, minute, second))
}

/// Exactly two: `9:00` may be a slip for `19:00`, and `+9` is a number only to a parser.
fn two_digits(part: &str) -> Option<u32> {
    let fits = part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit());
    part.parse().ok().filter(|_| fits)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let shown = match text.parse::<TimeOfDay>() {
            Ok(time) => time.to_string(),
            Err(error) => error.to_string(),
        };
        assert_eq!(shown, expected, "for {text:?}");
    }

    #[test]
    fn times_are_printed_back_in_the_shortest_form() {
        check("00:00", "00:00");
        check("00:00:00", "00:00");
        check("09:05", "09:05");
        check("09:05:07", "09:05:07");
        check("23:59:59", "23:59:59");
        check("24:00", "24:00");
        check("24:00:00", "24:00");
        check(" 12:30 ", "12:30");
        assert_eq!(TimeOfDay::DAY_END.to_string(), "24:00");
    }

    #[test]
    fn what_no_clock_shows_is_refused() {
        for text in ["24:01", "24:00:01", "25:00", "99:99:99", "12:60", "23:59:60"] {
            check(text, &format!("time of day `{text}` does not exist (a day goes from `00:00` to `24:00`)"));
        }
    }

    #[test]
    fn other_shapes_are_refused() {
        for text in [
            "",
            ":",
            "9:00",
            "09",
            "0900",
            "09:0",
            "09:00:",
            "09:00:0",
            "09:00:00:00",
            "09:00:00.5",
            "+9:00",
            "-1:00",
            "9am",
            "09:00 am",
            "09.00",
            "09:00Z",
            "noon",
            "٠٩:٠٠",
            "é:00",
        ] {
            check(
                text,
                &format!("`{text}` is not a time of day (write `HH:MM` or `HH:MM:SS`, such as `09:00`)"),
            );
        }
        let message = "7".repeat(5_000).parse::<TimeOfDay>().unwrap_err().to_string();
        assert!(message.len() < 200, "{message}");
    }

    /// All 86,401 of them.
    #[test]
    fn printing_and_parsing_are_inverse() {
        for second in 0..=DAY_END_S {
            let time = TimeOfDay(second);
            assert_eq!(time.to_string().parse(), Ok(time));
            assert_eq!(time.as_second(), second);
        }
    }

    proptest! {
        #[test]
        fn any_text_is_answered(text in "\\PC{0,12}|[0-9]{1,3}:[0-9]{1,3}(:[0-9]{0,3})?|[0-2][0-9]:[0-6][0-9]") {
            match text.parse::<TimeOfDay>() {
                Ok(time) => {
                    prop_assert!(time.as_second() <= DAY_END_S);
                    prop_assert!(text.trim().starts_with(&time.to_string()));
                }
                Err(error) => {
                    let quoted = format!("`{}`", text.trim());
                    prop_assert!(error.to_string().contains(&quoted));
                }
            }
        }
    }
}
