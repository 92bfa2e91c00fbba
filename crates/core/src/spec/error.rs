//! Why something written about a job cannot be accepted.

use crate::blackout::BlackoutError;
use crate::ids::NameError;
use crate::schedule::INTERVAL_MIN;
use crate::schedule::cron::CronError;
use crate::time::{Duration, DurationError, Timestamp, TimestampError};
use crate::zone::ZoneError;

/// Why something written about a job cannot be accepted.
///
/// A field in a message is shown as it was written. The way out stands in the message where it is
/// one of the value itself, and in [`SpecError::hint`] where it is a choice between several.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SpecError {
    /// A name that means nothing here.
    #[error("unknown field `{field}`{}", inside_of(*inside))]
    UnknownField {
        field: String,
        inside: Option<&'static str>,
        nearest: Option<String>,
        /// What to write instead, where that is more than another spelling.
        way_out: Option<String>,
        known: Vec<&'static str>,
    },
    /// A field of the job inside `schedule`.
    #[error("field `{field}` does not belong inside `schedule`")]
    NotInSchedule { field: String },
    /// A value that is worked out and only shown.
    #[error("`{field}` is computed from successful runs and cannot be set")]
    Computed { field: &'static str },
    /// What belongs to one job, among what holds for many.
    #[error("`{field}` is specific to one job and cannot be a default")]
    NotADefault { field: String },
    /// One field under two names.
    #[error("`{field}` is set twice: as `{first}` and as `{second}`")]
    WrittenTwice { field: String, first: String, second: String },
    /// A value of the wrong kind.
    #[error("`{field}` must be {expected}, not {found}{}", in_parentheses(.way_out.as_deref()))]
    WrongKind { field: String, expected: &'static str, found: String, way_out: Option<String> },
    /// A text that is not one of the allowed words.
    #[error("`{text}` is not a valid value for `{field}`")]
    UnknownWord { field: String, text: String, choices: Vec<&'static str>, nearest: Option<&'static str> },
    /// A number outside its limits.
    #[error("`{field}` is {found}, but must be {limits}")]
    OutOfRange { field: String, found: String, limits: String },
    /// A list or a text with nothing in it.
    #[error("`{field}` is empty{}", in_parentheses(Some(way_out)))]
    Empty { field: String, way_out: &'static str },
    /// A table without something that it must have.
    #[error("`{table}` has no `{field}` ({way_out})")]
    Missing { table: String, field: &'static str, way_out: &'static str },
    /// More entries than can be meant.
    #[error("`{field}` has {n_found} entries, more than the {n_most} allowed")]
    TooMany { field: String, n_found: usize, n_most: usize },
    /// A longer text than can be meant.
    #[error("`{field}` has {n_found} bytes, more than the {n_most} allowed")]
    TooLong { field: String, n_found: usize, n_most: usize },
    /// Tables within tables within tables.
    #[error("`{field}` is nested deeper than the {most} levels allowed")]
    TooDeep { field: String, most: usize },

    /// The job has no name.
    #[error("the job has no name (write `name`, or `key` for a name with its configuration)")]
    NoName,
    /// Nothing to run.
    #[error("the job has nothing to run (write `command`, `http` or `queue`)")]
    NoTarget,
    /// Two things to run.
    #[error("the job has two targets, `{first}` and `{second}`, but can have only one")]
    TwoTargets { first: String, second: String },
    /// No time to run it.
    #[error("the job has no schedule")]
    NoSchedule,
    /// Two rules for when to run it.
    #[error("the job has two schedules, `{first}` and `{second}`, but can have only one")]
    TwoSchedules { first: String, second: String },
    /// A preset that promises an expression.
    #[error("`custom_cron` needs an expression (add it as `cron`)")]
    PresetNeedsCron,
    /// A unit without its number.
    #[error("`interval_type` needs a number (add it as `interval_minutes`)")]
    UnitWithoutNumber,
    /// `manual = false` means nothing.
    #[error("`{field}` can only be `true` (remove it to use another schedule)")]
    ManualIsFalse { field: String },
    /// A field of another kind of schedule or policy.
    #[error("`{field}` works only with {with}{}", unlike(.has.as_deref()))]
    OnlyWith { field: String, with: &'static str, has: Option<String> },
    /// Shorter than [`INTERVAL_MIN`].
    #[error("`{field}` is {found}, shorter than the minimum interval of {INTERVAL_MIN}")]
    IntervalTooShort { field: String, found: Duration },
    /// The 30th of February.
    #[error("cron expression `{text}` has no occurrence in the next {years} years")]
    CronNever { text: String, years: u8 },
    /// `CRON_TZ=` says one thing, `tz` another.
    #[error("the expression is in `{in_cron}`, but `tz` is `{tz}` (keep one of them)")]
    TwoZones { in_cron: String, tz: String },
    /// The end of something before its beginning.
    #[error("`ends_at` ({ends_at}) is not after `starts_at` ({starts_at}), so the job never runs")]
    EndsBeforeStart { starts_at: Timestamp, ends_at: Timestamp },
    /// A run would be ended before it is late.
    #[error("`max_allowed_duration` ({allowed}) is shorter than `max_expected_duration` ({expected})")]
    AllowedBeforeExpected { allowed: Duration, expected: Duration },
    /// An hour that is liked and disliked.
    #[error("hour {hour} is both in `preferred_hours` and in `avoid_hours`")]
    HourBothWays { hour: u8 },
    /// Not an hour of the day, nor a range of them.
    #[error("`{text}` is not an hour or a range of hours (write `9`, or `\"22-4\"` for 22:00 to 04:59)")]
    BadHours { text: String },
    /// An argument list that a shell would have to read.
    #[error("`{field}` is a single string, not a program with its arguments")]
    TextNeedsShell { field: String, text: String, argv: Vec<String> },
    /// An argument list for something that reads one line.
    #[error("with `shell = true`, `{field}` must be a single string for the shell, not a list")]
    ShellNeedsText { field: String },
    /// A character that no process, header or variable can carry.
    #[error("`{field}` has the character {found:?}, which is not allowed in {what}")]
    BadCharacter { field: String, what: &'static str, found: char },
    /// Not an address of an HTTP server.
    #[error("`{text}` is not a URL to post to (write `https://host/path`)")]
    BadUrl { text: String },

    /// A text that is not a length of time.
    #[error(transparent)]
    Duration(#[from] DurationError),
    /// A text that is not an instant.
    #[error(transparent)]
    Instant(#[from] TimestampError),
    /// A text that is not a name.
    #[error(transparent)]
    Name(#[from] NameError),
    /// A text that is not a time zone.
    #[error(transparent)]
    Zone(#[from] ZoneError),
    /// A text that is not a cron expression.
    #[error(transparent)]
    Cron(#[from] CronError),
    /// Something that is not a blackout.
    #[error(transparent)]
    Blackout(#[from] BlackoutError),
}

fn inside_of(inside: Option<&str>) -> String {
    inside.map(|table| format!(" in `{table}`")).unwrap_or_default()
}

fn in_parentheses(way_out: Option<&str>) -> String {
    way_out.map(|it| format!(" ({it})")).unwrap_or_default()
}

fn unlike(has: Option<&str>) -> String {
    has.map(|it| format!(", but this job has {it}")).unwrap_or_default()
}
