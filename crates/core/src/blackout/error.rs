//! Why blackouts are refused as they were written.

use super::PERIODS_MAX;

/// Why a text or a list is not a blackout.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BlackoutError {
    /// The text does not have the shape of a time.
    #[error("`{text}` is not a time of day (write `HH:MM` or `HH:MM:SS`, such as `09:00`)")]
    NotATime {
        /// What was written.
        text: String,
    },
    /// The shape is right, but no clock shows it.
    #[error("time of day `{text}` does not exist (a day goes from `00:00` to `24:00`)")]
    TimeOutOfRange {
        /// What was written.
        text: String,
    },
    /// The period begins where its day is over.
    #[error("a blackout cannot start at `24:00` (write `00:00`, and the day after if it has `days`)")]
    StartsAtDayEnd,
    /// Start and end are the same; nothing and a whole day are both a fair guess.
    #[error(
        "a blackout from `{time}` to `{time}` has no length (write `00:00` to `24:00` for the whole day)"
    )]
    NoLength {
        /// The start and the end.
        time: String,
    },
    /// The list of days names none.
    #[error(
        "a blackout with an empty list of days never happens (name a day, or leave `days` out for every day)"
    )]
    NoDays,
    /// The text names no day of the week.
    #[error("`{text}` is not a day of the week{}", suggestion(.nearest.as_deref()))]
    NotADay {
        /// What was written.
        text: String,
        /// The name of a day that looks most like it.
        nearest: Option<String>,
    },
    /// There are more than [`PERIODS_MAX`].
    #[error(
        "{n_periods} blackout periods are too many, the maximum is {PERIODS_MAX} (list several `days` in one period)"
    )]
    TooManyPeriods {
        /// How many there are.
        n_periods: usize,
    },
}

fn suggestion(nearest: Option<&str>) -> String {
    match nearest {
        Some(name) => format!(" (did you mean `{name}`?)"),
        None => " (write each day separately: `mon`, `tue`, `wed`, `thu`, `fri`, `sat` or `sun`)".to_owned(),
    }
}
