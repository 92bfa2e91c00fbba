//! The names that may be written in a job, and what each stands for.

/// The canonical fields, in the order in which they are documented.
pub(super) const FIELDS: [&str; 47] = [
    "name",
    "configuration",
    "command",
    "http",
    "queue",
    "every",
    "fresh",
    "cooldown",
    "cron",
    "finish_within",
    "at",
    "manual",
    "next_run_at",
    "tz",
    "starts_at",
    "ends_at",
    "max_runs",
    "enabled",
    "paused",
    "paused_by",
    "pause_reason",
    "blackout_periods",
    "max_expected_duration",
    "max_allowed_duration",
    "estimate",
    "retry",
    "missed",
    "missed_window",
    "missed_max",
    "missed_grace",
    "overlap",
    "max_parallel",
    "exclusive",
    "max_parallel_of_name",
    "pool",
    "cost",
    "run_on_nodes",
    "dont_run_on_nodes",
    "site",
    "tenant",
    "preferred_hours",
    "avoid_hours",
    "first_run_within",
    "description",
    "contact",
    "labels",
    "params",
];

/// Other names of a field, with the same values.
const ALIASES: [(&str, &str); 8] = [
    ("scheduling_period", "fresh"),
    ("cooldown_duration", "cooldown"),
    ("cron_schedule", "cron"),
    ("cron_max_schedule_duration", "finish_within"),
    ("schedule_enabled", "enabled"),
    ("is_paused", "paused"),
    ("pauseReason", "pause_reason"),
    ("nextRunAt", "next_run_at"),
];

/// Names whose values say it in their own way.
const TURNS: [(&str, Translation); 8] = [
    ("key", Translation::Key),
    ("schedule", Translation::Schedule),
    ("interval", Translation::Interval),
    ("interval_minutes", Translation::IntervalNumber),
    ("interval_type", Translation::IntervalUnit),
    ("pausedBySystem", Translation::PausedBySystem),
    ("allowParallelRuns", Translation::AllowParallelRuns),
    ("pause_after_failures", Translation::PauseAfterFailures),
];

/// Shown with a job, and not for people to write.
const COMPUTED: [&str; 1] = ["average_good_duration"];

/// The fields of which a job has exactly one: each chooses a kind of schedule.
pub(super) const SCHEDULE_KINDS: [&str; 5] = ["every", "fresh", "cron", "at", "manual"];

/// The fields of which a job has exactly one: each is a kind of target.
pub(super) const TARGET_KINDS: [&str; 3] = ["command", "http", "queue"];

/// What other tools call something, and how it is said here.
const ELSEWHERE: [(&str, &str); 24] = [
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
    ("email", "write `contact`"),
    ("disabled", "write `enabled = false`"),
    ("catchup", "write `missed = \"once\"`, `\"skip\"` or `\"all\"`"),
    ("depends_on", "jobs do not wait for each other; one job can run both commands in turn"),
    ("after", "jobs do not wait for each other; one job can run both commands in turn"),
    ("priority", "the job closest to missing its deadline runs first; set `fresh` or `finish_within`"),
    ("notify", "jobs send no notifications; monitor `evenbeat probe`, and set `contact` for people"),
    ("user", "runs use the node's user; start a second node for another user"),
    ("run_as", "runs use the node's user; start a second node for another user"),
];

/// What is part of `command`, and is often written beside it.
const IN_COMMAND: [&str; 8] = ["argv", "args", "cwd", "env", "env_pass", "stdin", "shell", "grace"];

/// The way out for a name that means something to people and nothing here.
pub(super) fn way_out(written: &str) -> Option<String> {
    let said = ELSEWHERE.iter().find(|(name, _)| *name == written).map(|(_, way_out)| (*way_out).to_owned());
    said.or_else(|| match written {
        "args" => Some("write the program and its arguments in one list: `command = [\"curl\", \"-f\"]`".to_owned()),
        "shell" => Some(
            "write it in the command: `command = { argv = \"…\", shell = true }` (the node needs `commands.allow_shell`)"
                .to_owned(),
        ),
        name if IN_COMMAND.contains(&name) => {
            Some(format!("write it in the command: `command = {{ argv = [\"…\"], {name} = … }}`"))
        }
        _ => None,
    })
}

/// The fields that may also stand inside `schedule`.
const IN_SCHEDULE: [&str; 15] = [
    "every",
    "fresh",
    "cooldown",
    "cron",
    "finish_within",
    "at",
    "manual",
    "next_run_at",
    "tz",
    "starts_at",
    "ends_at",
    "max_runs",
    "interval",
    "interval_minutes",
    "interval_type",
];

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
    // Nearly every name that is read is a canonical one.
    if let Some(field) = FIELDS.iter().find(|field| **field == written) {
        return Meaning::Field(field);
    }
    if let Some((_, turn)) = TURNS.iter().find(|(name, _)| *name == written) {
        return Meaning::Translation(*turn);
    }
    if let Some(name) = COMPUTED.iter().find(|name| **name == written) {
        return Meaning::Computed(name);
    }
    match ALIASES.iter().find(|(alias, _)| *alias == written) {
        Some((_, field)) => Meaning::Field(field),
        None => Meaning::Unknown,
    }
}

/// Whether a name, or what it stands for, may stand inside `schedule`.
pub(super) fn fits_in_schedule(written: &str) -> bool {
    match meaning(written) {
        Meaning::Field(field) => IN_SCHEDULE.contains(&field),
        _ => IN_SCHEDULE.contains(&written),
    }
}

/// Every name that may be written at the top of a job: for documentation and completion.
pub fn all_names() -> impl Iterator<Item = &'static str> {
    let aliases = ALIASES.iter().map(|(alias, _)| *alias);
    let turns = TURNS.iter().map(|(name, _)| *name);
    FIELDS.into_iter().chain(turns).chain(aliases)
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
