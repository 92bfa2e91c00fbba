//! What is known about a field of a job: names, values, default and meaning. The table itself is in `table.rs`.

use std::fmt;

use super::fields::Translation;

/// One field that may be written in a job.
#[derive(Clone, Copy, Debug)]
pub struct FieldSpec {
    /// The name that documents use.
    pub name: &'static str,
    /// Other names with the same values.
    pub aliases: &'static [&'static str],
    /// The values that it takes.
    pub kind: FieldKind,
    /// What happens if it is not written.
    pub default: FieldDefault,
    /// What it is for, in Markdown.
    pub meaning: &'static str,
    /// A value as it would be written, in JSON; empty if the kind says enough.
    pub example: &'static str,
    /// The part of the reference that it belongs to.
    pub section: Section,
    /// How it is understood.
    pub(super) standing: Standing,
    /// Whether it may also be written inside `schedule`.
    pub in_schedule: bool,
}

/// How a name is understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// It is a field of a job.
    Canonical,
    /// It stands for other fields.
    Translated(Translation),
    /// It is shown and never written.
    Computed,
    /// Only job files have it: it is gone before a job is read.
    FileOnly,
    /// It is a field of a table inside a job.
    Nested,
}

/// A part of the reference of job files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// What a job is and runs.
    Identity,
    /// When it runs.
    Schedule,
    /// What it may take, and what happens after failures.
    Limits,
    /// Where it runs.
    Where,
    /// Names that other tools use.
    Other,
    /// Fields of `command`.
    Command,
    /// Fields of `http`.
    Http,
    /// Fields of `queue`.
    Queue,
    /// Fields of `retry`.
    Retry,
    /// Fields of each of the `blackout_periods`.
    Blackout,
    /// Fields of `alerts`.
    Alerts,
}

/// What happens if a field is not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldDefault {
    /// Nothing.
    None,
    /// A job must have it.
    Required,
    /// The same as with this value, which is written in JSON.
    Value(&'static str),
    /// What these words say.
    Words(&'static str),
}

/// The values of a field.
#[derive(Clone, Copy, Debug)]
pub enum FieldKind {
    /// Text of at most this many bytes.
    Text {
        /// The most bytes.
        bytes_max: usize,
    },
    /// `true` or `false`.
    Truth,
    /// `true`.
    OnlyTrue,
    /// A whole number between two limits, both included.
    Whole {
        /// The least.
        min: i64,
        /// The most.
        max: i64,
    },
    /// A part of one, from 0 to 1.
    Share,
    /// A length of time.
    Duration,
    /// A length of time of at least a second.
    Interval,
    /// An instant.
    Instant,
    /// An instant, or milliseconds since 1970.
    InstantOrMillis,
    /// An instant, or `now`.
    Once,
    /// A time of day.
    TimeOfDay,
    /// A name.
    Name,
    /// A name, or two with an `@` between them.
    Key,
    /// A time zone by its IANA name.
    Zone,
    /// A cron expression.
    Cron,
    /// An `http` or `https` address.
    Url,
    /// An hour, or a range of hours.
    Hour,
    /// A day of the week.
    Weekday,
    /// One of these words.
    Words(&'static [&'static str]),
    /// A list.
    List {
        /// What is in it.
        item: &'static FieldKind,
        /// The fewest items.
        min: usize,
        /// The most items.
        max: usize,
    },
    /// A table with free keys.
    Map {
        /// What each key has.
        value: &'static FieldKind,
        /// The most keys.
        max: usize,
    },
    /// A table with these fields.
    Table {
        /// What its schema is called.
        name: &'static str,
        /// Its fields.
        fields: &'static [FieldSpec],
    },
    /// A table with those fields of a job that may be written inside `schedule`.
    ScheduleTable,
    /// One of several kinds.
    Either(&'static [FieldKind]),
    /// Any table.
    AnyTable,
    /// Anything.
    Any,
}

impl FieldSpec {
    pub(super) const fn new(
        section: Section,
        name: &'static str,
        kind: FieldKind,
        default: FieldDefault,
        meaning: &'static str,
    ) -> FieldSpec {
        let standing = match section {
            Section::Command
            | Section::Http
            | Section::Queue
            | Section::Retry
            | Section::Blackout
            | Section::Alerts => Standing::Nested,
            _ => Standing::Canonical,
        };
        FieldSpec {
            name,
            aliases: &[],
            kind,
            default,
            meaning,
            example: "",
            section,
            standing,
            in_schedule: false,
        }
    }

    pub(super) const fn aliases(self, aliases: &'static [&'static str]) -> FieldSpec {
        FieldSpec { aliases, ..self }
    }

    pub(super) const fn such_as(self, example: &'static str) -> FieldSpec {
        FieldSpec { example, ..self }
    }

    pub(super) const fn in_schedule(self) -> FieldSpec {
        FieldSpec { in_schedule: true, ..self }
    }

    pub(super) const fn stands(self, standing: Standing) -> FieldSpec {
        FieldSpec { standing, ..self }
    }

    /// Whether it is only shown.
    pub fn is_computed(&self) -> bool {
        self.standing == Standing::Computed
    }

    /// Whether only job files have it.
    pub fn is_file_only(&self) -> bool {
        self.standing == Standing::FileOnly
    }

    /// Whether it is a field of the job itself, under its own name.
    pub fn is_canonical(&self) -> bool {
        self.standing == Standing::Canonical
    }
}

/// The values in a few words, in Markdown.
impl fmt::Display for FieldKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FieldKind::Text { .. } => f.write_str("string"),
            FieldKind::Truth => f.write_str("`true` or `false`"),
            FieldKind::OnlyTrue => f.write_str("`true`"),
            FieldKind::Whole { min, max } if 1_000_000 < *max => write!(f, "whole number from {min}"),
            FieldKind::Whole { min, max } => write!(f, "whole number from {min} to {max}"),
            FieldKind::Share => f.write_str("number from 0 to 1"),
            FieldKind::Duration => f.write_str("duration"),
            FieldKind::Interval => f.write_str("duration of at least `1s`"),
            FieldKind::Instant => f.write_str("instant"),
            FieldKind::InstantOrMillis => f.write_str("instant, or milliseconds since 1970"),
            FieldKind::Once => f.write_str("instant, or `\"now\"`"),
            FieldKind::TimeOfDay => f.write_str("time of day"),
            FieldKind::Name => f.write_str("name"),
            FieldKind::Key => f.write_str("`name` or `name@configuration`"),
            FieldKind::Zone => f.write_str("IANA time zone"),
            FieldKind::Cron => f.write_str("cron expression"),
            FieldKind::Url => f.write_str("URL"),
            FieldKind::Hour => f.write_str("hours"),
            FieldKind::Weekday => f.write_str("weekdays"),
            FieldKind::Words(words) => {
                let words: Vec<String> = words.iter().map(|it| format!("`{it}`")).collect();
                f.write_str(&words.join(", "))
            }
            FieldKind::List { item, .. } => write!(f, "list: {item}"),
            FieldKind::Map { value, .. } => write!(f, "table: {value} by name"),
            FieldKind::Table { .. } | FieldKind::ScheduleTable | FieldKind::AnyTable => f.write_str("table"),
            FieldKind::Either(kinds) => {
                let kinds: Vec<String> = kinds.iter().map(ToString::to_string).collect();
                f.write_str(&kinds.join("; or "))
            }
            FieldKind::Any => f.write_str("any value"),
        }
    }
}
