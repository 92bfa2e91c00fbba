//! A set of days of the week, as people list them.

use std::fmt;

use super::BlackoutError;
use crate::nearest::{nearest, shortened};

/// Short and full names; 0 is Sunday, as in cron.
const NAMES: [(&str, &str); 7] = [
    ("sun", "sunday"),
    ("mon", "monday"),
    ("tue", "tuesday"),
    ("wed", "wednesday"),
    ("thu", "thursday"),
    ("fri", "friday"),
    ("sat", "saturday"),
];

/// Days of the week; never none of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Weekdays(u8);

impl Weekdays {
    /// Every day.
    pub const ALL: Weekdays = Weekdays(0b111_1111);

    /// The days of these names: `mon` or `monday`, in any case, in any order, also repeated.
    ///
    /// An error comes with the place in the list of the name that it is about.
    pub fn from_names(names: &[&str]) -> Result<Weekdays, (usize, BlackoutError)> {
        let mut bits = 0;
        for (idx, name) in names.iter().enumerate() {
            let day = day_named(name).map_err(|error| (idx, error))?;
            bits |= bit(day);
        }
        if bits == 0 {
            return Err((0, BlackoutError::NoDays));
        }
        Ok(Weekdays(bits))
    }

    /// Whether the day is one of them; 0 is Sunday, and from 7 on there are no days.
    pub fn contains(self, day: u8) -> bool {
        self.0 & bit(day) != 0
    }

    /// The short name of each, from Monday on; [`Weekdays::from_names`] reads them back.
    pub fn names(self) -> Vec<&'static str> {
        from_monday().filter(|(day, _)| self.contains(*day)).map(|(_, name)| name).collect()
    }
}

/// `every day`, or the days from Monday on, where three or more in a row are a range: `mon-fri, sun`.
impl fmt::Display for Weekdays {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Weekdays::ALL {
            return f.write_str("every day");
        }
        let week: Vec<(u8, &str)> = from_monday().collect();
        let shown: Vec<String> = week
            .chunk_by(|(one, _), (other, _)| self.contains(*one) == self.contains(*other))
            .filter(|row| row.iter().all(|(day, _)| self.contains(*day)))
            .flat_map(|row| match row {
                [(_, first), _, .., (_, last)] => vec![format!("{first}-{last}")],
                few => few.iter().map(|(_, name)| (*name).to_owned()).collect(),
            })
            .collect();
        f.write_str(&shown.join(", "))
    }
}

/// The days in the order in which people think of a week.
fn from_monday() -> impl Iterator<Item = (u8, &'static str)> {
    let from_sunday = (0..).zip(NAMES.iter().map(|(short, _)| *short));
    from_sunday.clone().skip(1).chain(from_sunday.take(1))
}

fn bit(day: u8) -> u8 {
    if day < 7 { 1 << day } else { 0 }
}

fn day_named(text: &str) -> Result<u8, BlackoutError> {
    let text = text.trim();
    (0..)
        .zip(NAMES)
        .find(|(_, (short, full))| text.eq_ignore_ascii_case(short) || text.eq_ignore_ascii_case(full))
        .map(|(day, _)| day)
        .ok_or_else(|| BlackoutError::NotADay {
            text: shortened(text),
            nearest: nearest(text, NAMES.iter().flat_map(|(short, full)| [*short, *full])).map(str::to_owned),
        })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(names: &[&str], expected: &str) {
        let shown = match Weekdays::from_names(names) {
            Ok(days) => days.to_string(),
            Err((idx, error)) => format!("[{idx}] {error}"),
        };
        assert_eq!(shown, expected, "for {names:?}");
    }

    #[test]
    fn days_are_shown_as_people_write_them() {
        check(&["mon"], "mon");
        check(&["tue", "mon"], "mon, tue");
        check(&["sun", "mon"], "mon, sun");
        check(&["mon", "tue", "wed"], "mon-wed");
        check(&["mon", "tue", "wed", "thu", "fri"], "mon-fri");
        check(&["sat", "sun"], "sat, sun");
        check(&["sun", "sat", "fri", "mon", "tue"], "mon, tue, fri-sun");
        check(&["mon", "wed", "fri"], "mon, wed, fri");
        check(&["mon", "tue", "wed", "thu", "fri", "sat"], "mon-sat");
        check(&["mon", "tue", "wed", "thu", "fri", "sat", "sun"], "every day");
    }

    #[test]
    fn names_may_be_full_in_any_case_and_repeated() {
        check(&["Monday", "TUE", "tuesday", "mon", " wEdNesday "], "mon-wed");
        check(&["Thursday", "Friday", "Saturday", "Sunday"], "thu-sun");
    }

    #[test]
    fn what_names_no_day_is_refused_with_its_place() {
        check(
            &[],
            "[0] a blackout with an empty list of days never happens (name a day, or leave `days` out for every day)",
        );
        check(&["mon", "tues"], "[1] `tues` is not a day of the week (did you mean `tue`?)");
        check(&["Wendesday"], "[0] `Wendesday` is not a day of the week (did you mean `wednesday`?)");
        for text in ["mon-fri", "", "0", "weekend", "lundi"] {
            check(
                &["mon", "tue", text],
                &format!(
                    "[2] `{text}` is not a day of the week (write each day separately: `mon`, `tue`, `wed`, `thu`, `fri`, `sat` or `sun`)"
                ),
            );
        }
    }

    #[test]
    fn sunday_is_0_and_there_is_no_8th_day() {
        let days = Weekdays::from_names(&["sun", "sat"]).unwrap();
        let found: Vec<u8> = (0..=u8::MAX).filter(|day| days.contains(*day)).collect();
        assert_eq!(found, [0, 6]);
        assert_eq!((0..=u8::MAX).filter(|day| Weekdays::ALL.contains(*day)).count(), 7);
    }

    #[test]
    fn naming_and_reading_are_inverse_for_all_127_sets() {
        let mut shown = std::collections::BTreeSet::new();
        for bits in 1..=Weekdays::ALL.0 {
            let days = Weekdays(bits);
            assert_eq!(Weekdays::from_names(&days.names()), Ok(days));
            assert!(shown.insert(days.to_string()), "{days} is shown for two sets");
        }
    }

    proptest! {
        #[test]
        fn any_list_is_answered(names in prop::collection::vec("\\PC{0,12}|[a-zA-Z]{1,4}|mon|SUN", 0..10)) {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            match Weekdays::from_names(&names) {
                Ok(days) => prop_assert!(!days.names().is_empty()),
                Err((idx, _)) => prop_assert!(idx < names.len().max(1)),
            }
        }
    }
}
