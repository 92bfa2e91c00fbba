//! Finds times in a crontab that look like habit rather than intent.
//!
//! `0 3 * * *` rarely needs the very first minute of the hour; `7 3 * * *` may well need the seventh. So placement may
//! choose a fixed minute of 0, 15, 30 or 45, and a step through the whole hour. Hours, days and everything else stay the
//! same.
//!
//! This makes a difference on the two days a year when clocks change: cron runs `*/15 2 * * *` by elapsed time, because
//! its minute begins with `*`, but `7-59/15 2 * * *` by local time.

use evenbeat_core::schedule::cron::CronExpr;

/// The expressions behind cron's nicknames.
const NICKNAMES: [(&str, &str); 7] = [
    ("@hourly", "0 * * * *"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@weekly", "0 0 * * 0"),
    ("@monthly", "0 0 1 * *"),
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
];

/// An expression whose minute may be chosen.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Habit {
    /// The expression with `H` for its minute.
    pub(super) open: CronExpr,
    /// The choice that keeps the minute as written.
    pub(super) choice: u8,
}

impl Habit {
    /// The habit in an expression, if there is one.
    pub(super) fn of(expr: &CronExpr) -> Option<Habit> {
        let written = expr.as_str();
        let nickname = NICKNAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(written));
        let (minute, rest) = nickname.map_or(written, |(_, fields)| fields).split_once(' ')?;
        let (open, choice) = match minute.strip_prefix("*/") {
            Some(step) => match step.parse::<u8>().ok()? {
                60 => ("H".to_owned(), 0),
                // A step that does not divide the hour yields more starts from some minutes than from
                // others, and with `*/1` there is nothing to choose.
                step if 1 < step && 60 % step == 0 => (format!("H/{step}"), 0),
                _ => return None,
            },
            None => ("H".to_owned(), minute.parse::<u8>().ok().filter(|it| it % 15 == 0)?),
        };
        let open = CronExpr::parse(&format!("{open} {rest}")).ok()?;
        // With seconds, the first field is not the minute. With another `H`, placement already chooses.
        let is_about_minute = rest.split(' ').count() == 4 && open.hashed_terms().len() == 1;
        is_about_minute.then_some(Habit { open, choice })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(written: &str, expected: &str) {
        let habit = Habit::of(&CronExpr::parse(written).unwrap());
        let shown = habit.map_or("a wish".to_owned(), |it| format!("{} from {}", it.open, it.choice));
        assert_eq!(shown, expected, "{written}");
    }

    #[test]
    fn round_minutes_and_steps_are_habits() {
        check("0 3 * * *", "H 3 * * * from 0");
        check("00 3 1 * MON", "H 3 1 * MON from 0");
        check("45 9-17 * * *", "H 9-17 * * * from 45");
        check("*/15 * * * *", "H/15 * * * * from 0");
        check("*/60 * * * *", "H * * * * from 0");
        check("@daily", "H 0 * * * from 0");
        check("@Weekly", "H 0 * * 0 from 0");
    }

    #[test]
    fn anything_else_is_a_wish() {
        for wish in ["7 3 * * *", "0,30 * * * *", "* * * * *", "*/1 * * * *", "*/7 * * * *", "*/40 * * * *"] {
            check(wish, "a wish");
        }
        check("0-59/15 * * * *", "a wish");
        check("0 H * * *", "a wish");
        check("0 0 3 * * *", "a wish");
    }
}
