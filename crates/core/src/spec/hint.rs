//! What stands beside an error: a word under the caret, and a way out that is a choice.

use super::SpecError;
use crate::ids::NameError;
use crate::nearest::shortened;
use crate::schedule::Preset;
use crate::schedule::cron::CronText;
use crate::time::{Duration, DurationError, TimestampError};

impl SpecError {
    /// A way out that does not fit into the message.
    pub fn hint(&self) -> Option<String> {
        match self {
            SpecError::UnknownField { way_out: Some(way_out), .. } => Some(way_out.clone()),
            SpecError::UnknownField { nearest: Some(nearest), .. } => {
                Some(format!("did you mean `{nearest}`?"))
            }
            SpecError::UnknownField { inside: Some(table), known, .. } => {
                Some(format!("the fields of `{table}` are {}", listed(known, "and")))
            }
            SpecError::UnknownField { .. } => Some(
                "put values for the run into `params`, and notes for people into `labels` or `description`"
                    .to_owned(),
            ),
            SpecError::NotInSchedule { field } => Some(format!("write `{field}` next to `schedule`")),
            SpecError::Computed { .. } => {
                Some("to set the expected length of a run by hand, write `estimate = \"10m\"`".to_owned())
            }
            SpecError::WrittenTwice { first, second, .. } => Some(format!("keep `{first}` or `{second}`")),
            SpecError::TwoTargets { first, second } | SpecError::TwoSchedules { first, second } => {
                Some(format!("keep `{first}` or `{second}`, or make it two jobs"))
            }
            SpecError::UnknownWord { nearest: Some(nearest), .. } => {
                Some(format!("did you mean `\"{nearest}\"`?"))
            }
            SpecError::UnknownWord { text, choices, .. } if Preset::names().eq(choices.iter().copied()) => {
                Some(preset_hint(text))
            }
            SpecError::UnknownWord { choices, .. } => Some(format!("write {}", one_of(choices))),
            SpecError::Name(NameError::Empty { .. }) => Some("write a name, or remove the field".to_owned()),
            SpecError::NoSchedule => Some(
                "write one of `every = \"6h\"`, `fresh = \"24h\"`, `cron = \"0 6 * * *\"`, \
                 `at = \"2026-12-01T09:00:00Z\"` or `manual = true`"
                    .to_owned(),
            ),
            SpecError::TextNeedsShell { text, .. } if needs_shell(text) => Some(format!(
                "run it in a shell: `command = {{ argv = {:?}, shell = true }}` (the node must set \
                 `commands.allow_shell = true`)",
                shortened(text)
            )),
            SpecError::TextNeedsShell { argv, .. } => {
                let argv: Vec<String> = argv.iter().map(|word| format!("{word:?}")).collect();
                Some(format!("write the program and its arguments as a list: `[{}]`", argv.join(", ")))
            }
            SpecError::CronNever { .. } => {
                Some("look at the day and the month together: does that date exist?".to_owned())
            }
            _ => None,
        }
    }

    /// A few words to stand under the place itself.
    pub fn label(&self) -> Option<&'static str> {
        Some(match self {
            SpecError::UnknownField { .. } => "unknown field",
            SpecError::NotInSchedule { .. } => "not a part of the schedule",
            SpecError::Computed { .. } => "read-only",
            SpecError::NotADefault { .. } => "not a default",
            SpecError::WrittenTwice { .. } => "set again here",
            SpecError::WrongKind { expected, .. } => return Some(expected_label(expected)),
            SpecError::UnknownWord { .. } => "unknown value",
            SpecError::OutOfRange { .. } => "out of range",
            SpecError::Empty { .. } => "empty",
            SpecError::Missing { .. } => "incomplete",
            SpecError::TooMany { .. } => "too many",
            SpecError::TooLong { .. } => "too long",
            SpecError::TooDeep { .. } => "too deep",
            SpecError::NoName => "this job has no name",
            SpecError::NoTarget => "this job has no target",
            SpecError::NoSchedule => "this job has no schedule",
            SpecError::TwoTargets { .. } => "a second target",
            SpecError::TwoSchedules { .. } => "a second schedule",
            SpecError::PresetNeedsCron => "without `cron`",
            SpecError::UnitWithoutNumber => "without `interval_minutes`",
            SpecError::OnlyWith { .. } => "without effect here",
            SpecError::IntervalTooShort { .. } => "too short",
            SpecError::CronNever { .. } => "never happens",
            SpecError::TwoZones { .. } => "another zone",
            SpecError::EndsBeforeStart { .. } => "not after the start",
            SpecError::AllowedBeforeExpected { .. } => "shorter",
            SpecError::HourBothWays { .. } => "avoided here",
            SpecError::BadHours { .. } => "not an hour",
            SpecError::TextNeedsShell { .. } => "a single string",
            SpecError::ShellNeedsText { .. } => "a list",
            SpecError::BadUrl { .. } => "not an address",
            SpecError::Duration(error) => return duration_label(error),
            SpecError::Instant(TimestampError::NoOffset { .. }) => "no offset",
            SpecError::Instant(TimestampError::NoTime { .. }) => "no time of day",
            SpecError::Instant(_) => "not an instant",
            SpecError::Zone(_) => "not a zone",
            _ => return None,
        })
    }

    /// What is to be said about the other place, where there is one.
    pub fn label_of_other(&self) -> &'static str {
        match self {
            SpecError::WrittenTwice { .. } => "first set here",
            SpecError::TwoTargets { .. } => "the first target",
            SpecError::TwoSchedules { .. } => "the first schedule",
            SpecError::TwoZones { .. } => "one zone",
            SpecError::EndsBeforeStart { .. } => "the start",
            SpecError::AllowedBeforeExpected { .. } => "the expected length",
            SpecError::HourBothWays { .. } => "preferred here",
            _ => "because of this",
        }
    }

    /// Whether the trouble is the name that was written, not the value beside it.
    pub fn is_about_name(&self) -> bool {
        matches!(
            self,
            SpecError::UnknownField { .. }
                | SpecError::NotInSchedule { .. }
                | SpecError::Computed { .. }
                | SpecError::NotADefault { .. }
                | SpecError::WrittenTwice { .. }
                | SpecError::TwoTargets { .. }
                | SpecError::TwoSchedules { .. }
                | SpecError::UnitWithoutNumber
                | SpecError::OnlyWith { .. }
        )
    }
}

/// Whether a command line uses what only a shell understands.
fn needs_shell(text: &str) -> bool {
    text.contains(['|', '&', ';', '<', '>', '$', '`', '*', '(', '"', '\''])
}

fn expected_label(expected: &'static str) -> &'static str {
    match expected {
        "a duration" => "expected a duration",
        "a list" | "a list of strings" => "expected a list",
        "a table" => "expected a table",
        "a string" => "expected a string",
        "`true` or `false`" => "expected `true` or `false`",
        "a whole number" => "expected a whole number",
        _ => "wrong type",
    }
}

/// A rule where the name of one was expected is most likely meant as a rule.
fn preset_hint(text: &str) -> String {
    if text.parse::<Duration>().is_ok() {
        return format!("an interval is written as `every = \"{text}\"`");
    }
    if text.parse::<CronText>().is_ok() {
        return format!("a cron expression is written as `cron = \"{text}\"`");
    }
    let names: Vec<&str> = Preset::names().collect();
    format!("the presets are {}", listed(&names, "and"))
}

/// Words as they would be written: `"once"`, `"skip"` or `"all"`.
fn one_of(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
    let quoted: Vec<&str> = quoted.iter().map(String::as_str).collect();
    listed(&quoted, "or")
}

fn listed(items: &[&str], last_joined_by: &str) -> String {
    let marked: Vec<String> = items.iter().map(|item| format!("`{item}`")).collect();
    match marked.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} {last_joined_by} {last}", rest.join(", ")),
        None => String::new(),
    }
}

fn duration_label(error: &DurationError) -> Option<&'static str> {
    match error {
        DurationError::MissingUnit { .. } => Some("no unit"),
        DurationError::UnknownUnit { .. } => Some("unknown unit"),
        DurationError::Zero { .. } | DurationError::Negative { .. } => Some("too short"),
        DurationError::TooLong { .. } => Some("too long"),
        DurationError::Malformed { .. } => Some("not a duration"),
        _ => None,
    }
}
