//! The names that may be written in a job, and what each stands for.

use super::field::{FieldKind, FieldSpec, Standing};
use super::table::{self, JOB_FIELDS};

/// The canonical fields, apart from the rest so that names are compared quickly: nearly every name that is read is one of
/// them.
const FIELDS: [&str; N_CANONICAL] = canonical_names();

const N_CANONICAL: usize = {
    let (mut n, mut rest) = (0, JOB_FIELDS.as_slice());
    while let [first, more @ ..] = rest {
        if matches!(first.standing, Standing::Canonical) {
            n += 1;
        }
        rest = more;
    }
    n
};

#[expect(clippy::indexing_slicing, reason = "it runs in the compiler")]
const fn canonical_names() -> [&'static str; N_CANONICAL] {
    let mut names = [""; N_CANONICAL];
    let (mut n, mut rest) = (0, JOB_FIELDS.as_slice());
    while let [first, more @ ..] = rest {
        if matches!(first.standing, Standing::Canonical) {
            names[n] = first.name;
            n += 1;
        }
        rest = more;
    }
    names
}

/// The fields of tables inside a job.
pub(super) const COMMAND_NAMES: [&str; 7] = table::names_of(&table::COMMAND_FIELDS);
pub(super) const HTTP_NAMES: [&str; 4] = table::names_of(&table::HTTP_FIELDS);
pub(super) const QUEUE_NAMES: [&str; 3] = table::names_of(&table::QUEUE_FIELDS);
pub(super) const RETRY_NAMES: [&str; 6] = table::names_of(&table::RETRY_FIELDS);
pub(super) const ALERT_NAMES: [&str; 4] = table::names_of(&table::ALERT_FIELDS);
pub(super) const BLACKOUT_NAMES: [&str; 3] = table::names_of(&table::BLACKOUT_FIELDS);

/// The fields of which a job has exactly one: each chooses a kind of schedule.
pub(super) const SCHEDULE_KINDS: [&str; 5] = ["every", "fresh", "cron", "at", "manual"];

/// The fields of which a job has exactly one: each is a kind of target.
pub(super) const TARGET_KINDS: [&str; 3] = ["command", "http", "queue"];

/// What other tools call something, and how it is said here.
const ELSEWHERE: [(&str, &str); 25] = [
    ("timeout", "write `max_allowed_duration`"),
    ("max_duration", "write `max_allowed_duration`"),
    ("max_runtime", "write `max_allowed_duration`"),
    ("time_limit", "write `max_allowed_duration`"),
    ("deadline", "write `finish_within`, or `fresh` for data that may not be older than this"),
    ("retries", "write `retry = { delays = [\"5m\", \"1h\"] }`"),
    ("max_retries", "write `retry = { delays = [\"5m\", \"1h\"] }`"),
    ("retry_delay", "write `retry = { delays = [\"5m\"] }`"),
    ("concurrency", "write `overlap = \"allow\"` with `max_parallel`"),
    ("max_instances", "write `overlap = \"allow\"` with `max_parallel`"),
    ("max_active_runs", "write `overlap = \"allow\"` with `max_parallel`"),
    ("timezone", "write `tz`"),
    ("time_zone", "write `tz`"),
    ("tags", "write `labels = { team = \"prices\" }`"),
    ("owner", "write `contact`, or a label"),
    ("email", "write `contact`, or `alerts` for a channel that sends mail"),
    ("disabled", "write `enabled = false`"),
    ("catchup", "write `missed = \"once\"`, `\"skip\"` or `\"all\"`"),
    ("depends_on", "jobs do not wait for each other; one job can run both commands in turn"),
    ("after", "jobs do not wait for each other; one job can run both commands in turn"),
    ("priority", "the job closest to missing its deadline runs first; set `fresh` or `finish_within`"),
    ("notify", "write `alerts = [\"CHANNEL\"]`; channels are set up in the node's configuration"),
    ("on_failure", "write `alerts = [\"CHANNEL\"]`; channels are set up in the node's configuration"),
    ("user", "runs use the node's user; start a second node for another user"),
    ("run_as", "runs use the node's user; start a second node for another user"),
];

/// The way out for a name that means something to people and nothing here.
pub(super) fn way_out(written: &str) -> Option<String> {
    let said = ELSEWHERE.iter().find(|(name, _)| *name == written).map(|(_, way_out)| (*way_out).to_owned());
    said.or_else(|| match written {
        "args" => Some("write the program and its arguments in one list: `command = [\"curl\", \"-f\"]`".to_owned()),
        "shell" => Some(
            "write it in the command: `command = { argv = \"…\", shell = true }` (the node needs `commands.allow_shell`)"
                .to_owned(),
        ),
        name if COMMAND_NAMES.contains(&name) => {
            Some(format!("write it in the command: `command = {{ argv = [\"…\"], {name} = … }}`"))
        }
        _ => None,
    })
}

/// A name that needs more than a new name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Translation {
    /// `name@configuration` in one.
    Key,
    /// A preset, or a table of schedule fields.
    Schedule,
    /// A preset.
    Interval,
    /// How many of the unit.
    IntervalNumber,
    /// Minutes, hours or days.
    IntervalUnit,
    /// Who paused it.
    PausedBySystem,
    /// What to do about overlap.
    AllowParallelRuns,
    /// A field of `retry`.
    PauseAfterFailures,
}

/// What a written name is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// This canonical field.
    Field(&'static str),
    /// Something to be worked out.
    Translation(Translation),
    /// A value that is worked out and only shown.
    Computed(&'static str),
    /// Nothing.
    Unknown,
}

/// What a name at the top of a job means.
pub(super) fn meaning(written: &str) -> Meaning {
    if let Some(field) = FIELDS.iter().find(|field| **field == written) {
        return Meaning::Field(field);
    }
    match find(written) {
        None => Meaning::Unknown,
        Some(field) => match field.standing {
            Standing::Canonical | Standing::Nested => Meaning::Field(field.name),
            Standing::Translated(translation) => Meaning::Translation(translation),
            Standing::Computed => Meaning::Computed(field.name),
            Standing::FileOnly => Meaning::Unknown,
        },
    }
}

/// The field of this name or alias.
fn find(written: &str) -> Option<&'static FieldSpec> {
    JOB_FIELDS.iter().find(|it| it.name == written || it.aliases.contains(&written))
}

/// Whether a name, or what it stands for, may stand inside `schedule`.
pub(super) fn fits_in_schedule(written: &str) -> bool {
    find(written).is_some_and(|field| field.in_schedule)
}

/// The limits of a whole number, both included.
pub(super) fn limits_of(kind: &FieldKind) -> (i64, i64) {
    match kind {
        FieldKind::Whole { min, max } => (*min, *max),
        _ => (i64::MIN, i64::MAX),
    }
}

/// The kind of a field of a job.
pub(super) fn kind_of(name: &str) -> &'static FieldKind {
    find(name).map_or(&FieldKind::Any, |field| &field.kind)
}

/// The kind of a field of `retry`.
pub(super) fn kind_in_retry(name: &str) -> &'static FieldKind {
    table::RETRY_FIELDS.iter().find(|it| it.name == name).map_or(&FieldKind::Any, |field| &field.kind)
}

/// Every name that may be written at the top of a job: for documentation and completion.
pub fn all_names() -> impl Iterator<Item = &'static str> {
    let of = |wanted: fn(Standing) -> bool| JOB_FIELDS.iter().filter(move |it| wanted(it.standing));
    let fields = of(|it| it == Standing::Canonical).map(|it| it.name);
    let translations = of(|it| matches!(it, Standing::Translated(_))).map(|it| it.name);
    let aliases = JOB_FIELDS.iter().flat_map(|it| it.aliases.iter().copied());
    fields.chain(translations).chain(aliases)
}

/// Every name that may be written inside `schedule`.
pub(super) fn schedule_names() -> impl Iterator<Item = &'static str> {
    all_names().filter(|name| fits_in_schedule(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_documented_name_has_a_meaning() {
        for name in all_names() {
            assert_ne!(meaning(name), Meaning::Unknown, "{name}");
        }
        assert_eq!(meaning("scheduling_period"), Meaning::Field("fresh"));
        assert_eq!(meaning("fresh"), Meaning::Field("fresh"));
        assert_eq!(meaning("schedulingPeriod"), Meaning::Unknown);
        assert_eq!(meaning("average_good_duration"), Meaning::Computed("average_good_duration"));
    }

    #[test]
    fn what_chooses_a_schedule_may_stand_inside_it() {
        assert!(SCHEDULE_KINDS.into_iter().all(fits_in_schedule));
        assert!(["cron_schedule", "nextRunAt", "interval", "tz"].into_iter().all(fits_in_schedule));
        assert!(!["name", "pool", "schedule", "key", "retry"].into_iter().any(fits_in_schedule));
    }
}
