//! Why a text is not a cron expression: one case a trouble, each with its place in the text.

use std::ops::Range;

use super::CronField;
use crate::time::DurationError;

/// Why a text is not a cron expression.
///
/// The message says nothing about the place; [`CronError::span`] does.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CronError {
    /// Nothing was written.
    #[error("the cron expression is empty (write five fields such as `0 6 * * *`, or `@daily`)")]
    Empty { span: Range<usize> },
    /// A hostile or generated text.
    #[error("a cron expression of {n_bytes} bytes is longer than the 256 allowed (split it into two jobs)")]
    TooLong { n_bytes: usize, span: Range<usize> },
    /// Neither five nor six.
    #[error(
        "a cron expression has five fields (minute, hour, day of month, month, day of week) or six (seconds first), not {n_fields}"
    )]
    FieldCount { n_fields: usize, span: Range<usize> },
    /// A seventh field.
    #[error("a year field is not supported (leave it out and limit the job with `starts_at` and `ends_at`)")]
    YearField { span: Range<usize> },
    /// Two commas in a row, or one at an end.
    #[error("the {field} field has nothing on one side of a comma (remove the comma)")]
    EmptyItem { field: CronField, span: Range<usize> },
    /// Not to be read as anything.
    #[error(
        "`{text}` is not valid in the {field} field (write a number from {} to {}, a range `a-b`, a step `*/n` or a list of them)",
        field.first(), field.last()
    )]
    Malformed { field: CronField, text: String, span: Range<usize> },
    /// Letters where a name could stand.
    #[error("`{text}` is not a {field}{}", name_hint(*field, *nearest))]
    UnknownName { field: CronField, text: String, nearest: Option<&'static str>, span: Range<usize> },
    /// A number that the field does not have.
    #[error("`{text}` is out of range for the {field} field ({} to {}{})", field.first(), field.last(), midnight_hint(*field, text))]
    OutOfRange { field: CronField, text: String, span: Range<usize> },
    /// `5-` or `-5`.
    #[error("range `{text}` in the {field} field lacks an end (write both, as in `{}-{}`)", field.first(), field.last())]
    OpenRange { field: CronField, text: String, span: Range<usize> },
    /// `/15`.
    #[error("step `{text}` in the {field} field has no range (write `*{text}`)")]
    StepWithoutRange { field: CronField, text: String, span: Range<usize> },
    /// `*/` or `*/x`.
    #[error("step `{text}` in the {field} field is not a number (write `*/2` for every second value)")]
    StepNotNumber { field: CronField, text: String, span: Range<usize> },
    /// `*/0`.
    #[error("a step of 0 in the {field} field never moves on (write `*/1` or `*` for every value)")]
    StepZero { field: CronField, span: Range<usize> },
    /// `*/90` would silently mean once an hour.
    #[error(
        "step `{text}` is larger than the {field} field, which has {} values (for an interval of any length, write `@every 90m`)",
        field.n_values()
    )]
    StepTooLarge { field: CronField, text: String, span: Range<usize> },
    /// `?` is about days.
    #[error("`?` stands for any day and cannot be used in the {field} field (write `*`)")]
    QuestionMark { field: CronField, span: Range<usize> },
    /// `?/2` or `?,5`.
    #[error("`?` must be the whole {field} field, not a part of `{text}` (write `*` instead)")]
    QuestionMarkNotAlone { field: CronField, text: String, span: Range<usize> },
    /// Quartz takes it for Saturday, others for the last day of the month.
    #[error(
        "`L` alone is unclear in the day-of-week field (write `5L` or `FRIL` for the last Friday of the month, `6` for Saturday)"
    )]
    BareLast { span: Range<usize> },
    /// `L` where no last day is meant.
    #[error(
        "`{text}` cannot be used here in the {field} field (the last day of the month is `L` in the day-of-month field, the last Friday `FRIL` in the day-of-week field, both without range or step)"
    )]
    MisplacedLast { field: CronField, text: String, span: Range<usize> },
    /// `L-0`, `L-31`, `L-x`.
    #[error("`{text}` is not a day before the end of the month (write `L-1` to `L-30`)")]
    LastOffset { text: String, span: Range<usize> },
    /// `W` in another field, or with a range.
    #[error(
        "`{text}` cannot be used in the {field} field (`W` follows one day of the month: write `15W` or `LW` in the day-of-month field)"
    )]
    MisplacedWorkday { field: CronField, text: String, span: Range<usize> },
    /// `#` in another field.
    #[error(
        "`{text}` cannot be used in the {field} field (the third Friday is `FRI#3` in the day-of-week field)"
    )]
    MisplacedNth { field: CronField, text: String, span: Range<usize> },
    /// `5#0`, `5#6`, `5#x`.
    #[error("`{text}` counts a weekday that no month has (write `FRI#1` to `FRI#5`, or `FRIL` for the last)")]
    NthOutOfRange { text: String, span: Range<usize> },
    /// `H` that is not one of its four forms.
    #[error("`{text}` is not a form of `H` (write `H`, `H/15`, `H(0-29)` or `H(0-29)/10`)")]
    HashedForm { text: String, span: Range<usize> },
    /// `H(50-10)`.
    #[error(
        "the range of `{text}` runs backwards; with `H` it cannot wrap around (write the smaller end first)"
    )]
    HashedWraps { text: String, span: Range<usize> },
    /// More than can be stored with a placement.
    #[error("a cron expression has more than 8 `H` (write fixed values for some of them)")]
    HashedTooMany { span: Range<usize> },
    /// `@dayly`.
    #[error("`{text}` is not a nickname{}", nickname_hint(nearest.as_deref()))]
    UnknownNickname { text: String, nearest: Option<String>, span: Range<usize> },
    /// `@daily 5`.
    #[error("`{text}` after `{nickname}` has no meaning (a nickname stands alone)")]
    AfterNickname { nickname: String, text: String, span: Range<usize> },
    /// It is not about time.
    #[error("`@reboot` is not supported (for a single run right away, write `at = \"now\"`)")]
    Reboot { span: Range<usize> },
    /// Where only a cron rule will do.
    #[error("`@every` is an interval, not a cron expression (write it as `every = \"15m\"`)")]
    EveryNotCron { span: Range<usize> },
    /// What follows `@every` is not a duration.
    #[error("`@every` needs a duration: {error}")]
    EveryDuration { error: DurationError, span: Range<usize> },
    /// Less than a second.
    #[error("`@every {text}` is shorter than the minimum of 1s")]
    EveryTooShort { text: String, span: Range<usize> },
    /// Where the zone has its own place.
    #[error("`{text}` is not part of a cron expression (write the zone as `tz = \"{zone}\"`)")]
    ZoneNotCron { text: String, zone: String, span: Range<usize> },
    /// `CRON_TZ=` and nothing.
    #[error("`{text}` has no zone (write `CRON_TZ=Europe/Berlin`)")]
    ZoneMissing { text: String, span: Range<usize> },
}

impl CronError {
    /// The bytes of the given text that the trouble is about.
    pub fn span(&self) -> Range<usize> {
        match self {
            CronError::Empty { span }
            | CronError::TooLong { span, .. }
            | CronError::FieldCount { span, .. }
            | CronError::YearField { span }
            | CronError::EmptyItem { span, .. }
            | CronError::Malformed { span, .. }
            | CronError::UnknownName { span, .. }
            | CronError::OutOfRange { span, .. }
            | CronError::OpenRange { span, .. }
            | CronError::StepWithoutRange { span, .. }
            | CronError::StepNotNumber { span, .. }
            | CronError::StepZero { span, .. }
            | CronError::StepTooLarge { span, .. }
            | CronError::QuestionMark { span, .. }
            | CronError::QuestionMarkNotAlone { span, .. }
            | CronError::BareLast { span }
            | CronError::MisplacedLast { span, .. }
            | CronError::LastOffset { span, .. }
            | CronError::MisplacedWorkday { span, .. }
            | CronError::MisplacedNth { span, .. }
            | CronError::NthOutOfRange { span, .. }
            | CronError::HashedForm { span, .. }
            | CronError::HashedWraps { span, .. }
            | CronError::HashedTooMany { span }
            | CronError::UnknownNickname { span, .. }
            | CronError::AfterNickname { span, .. }
            | CronError::Reboot { span }
            | CronError::EveryNotCron { span }
            | CronError::EveryDuration { span, .. }
            | CronError::EveryTooShort { span, .. }
            | CronError::ZoneNotCron { span, .. }
            | CronError::ZoneMissing { span, .. } => span.clone(),
        }
    }
}

fn name_hint(field: CronField, nearest: Option<&str>) -> String {
    match (nearest, field.names()) {
        (Some(name), _) => format!(" (did you mean `{name}`?)"),
        (None, [first, .., last]) => {
            format!(" (write `{first}` to `{last}` or {} to {})", field.first(), field.last())
        }
        (None, _) => String::new(),
    }
}

fn midnight_hint(field: CronField, text: &str) -> &'static str {
    if field == CronField::Hour && text == "24" { "; midnight is 0" } else { "" }
}

fn nickname_hint(nearest: Option<&str>) -> String {
    match nearest {
        Some(name) => format!(" (did you mean `{name}`?)"),
        None => {
            " (there are @hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually and `@every 15m`)"
                .to_owned()
        }
    }
}
