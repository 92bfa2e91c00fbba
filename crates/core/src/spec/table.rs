//! The one table of everything that may be written in a job. Names, aliases, limits and the fields of inner tables are
//! taken from here when jobs are read; the reference, the JSON Schema of job files and the API document are made of it.

use super::field::{FieldDefault, FieldKind as K, FieldSpec, Section as S, Standing};
use super::fields::Translation;
use super::reader::LIST_MAX;

use FieldDefault::{None, Required, Value, Words};

/// Largest `description` or `contact`, in bytes.
pub(super) const WORDS_BYTES_MAX: usize = 4_096;

/// Most labels of a job.
pub(super) const LABELS_MAX: usize = 64;

/// Most delays after failures.
pub(super) const RETRY_DELAYS_MAX: usize = 32;

const TEXT: K = K::Text { bytes_max: usize::MAX };
const NOTE: K = K::Text { bytes_max: WORDS_BYTES_MAX };
const COUNT: K = K::Whole { min: 1, max: u32::MAX as i64 };
const NAMES: K = K::List { item: &K::Name, min: 0, max: LIST_MAX };
const STRINGS: K = K::List { item: &TEXT, min: 0, max: LIST_MAX };
const ARGV: K = K::List { item: &TEXT, min: 1, max: LIST_MAX };
const HOURS: K = K::List { item: &K::Hour, min: 1, max: LIST_MAX };

/// The presets that a schedule can be named by.
const PRESETS: [&str; 7] =
    ["manual", "every_5_min", "every_15_min", "hourly", "every_6_hours", "daily", "custom_cron"];

/// Fields of `command`.
pub const COMMAND_FIELDS: [FieldSpec; 7] = [
    FieldSpec::new(
        S::Command,
        "argv",
        K::Either(&[ARGV, TEXT]),
        Words("required; may come from a template"),
        "the program and its arguments; one text with `shell`",
    )
    .such_as(r#"["scrapy", "crawl", "prices"]"#),
    FieldSpec::new(S::Command, "cwd", TEXT, None, "the working directory"),
    FieldSpec::new(S::Command, "env", K::Map { value: &TEXT, max: usize::MAX }, None, "variables to set")
        .such_as(r#"{"TZ": "UTC"}"#),
    FieldSpec::new(S::Command, "env_pass", STRINGS, None, "variables to inherit from the node")
        .such_as(r#"["HOME"]"#),
    FieldSpec::new(S::Command, "stdin", K::Any, None, "a value that the run gets as JSON on standard input"),
    FieldSpec::new(
        S::Command,
        "grace",
        K::Duration,
        Words("`commands.grace` of the node"),
        "how long the run has to end when it is asked to",
    )
    .such_as(r#""30s""#),
    FieldSpec::new(
        S::Command,
        "shell",
        K::Truth,
        Value("false"),
        "`true`: `argv` is one text that a shell runs. The node must allow it with `commands.allow_shell`",
    ),
];

/// Fields of `http`.
pub const HTTP_FIELDS: [FieldSpec; 4] = [
    FieldSpec::new(S::Http, "url", K::Url, Required, "where to post to")
        .such_as(r#""https://example.org/run""#),
    FieldSpec::new(S::Http, "headers", K::Map { value: &TEXT, max: usize::MAX }, None, "headers to send"),
    FieldSpec::new(S::Http, "timeout", K::Duration, None, "how long an answer may take"),
    FieldSpec::new(S::Http, "idempotent", K::Truth, Value("false"), "`true`: a request may be sent twice"),
];

/// Fields of `queue`.
pub const QUEUE_FIELDS: [FieldSpec; 3] = [
    FieldSpec::new(S::Queue, "broker", TEXT, None, "the broker, by its name in the configuration"),
    FieldSpec::new(S::Queue, "topic", TEXT, None, "the topic to publish to"),
    FieldSpec::new(S::Queue, "cloudevents", K::Truth, Value("false"), "`true`: messages are CloudEvents"),
];

const CHANNELS: K =
    K::Either(&[K::Name, K::List { item: &K::Name, min: 1, max: super::alerts::CHANNELS_MAX }]);
pub(super) const UP_TO_1000: K = K::Whole { min: 1, max: 1_000 };

/// Fields of `alerts`.
pub const ALERT_FIELDS: [FieldSpec; 4] = [
    FieldSpec::new(
        S::Alerts,
        "channels",
        CHANNELS,
        Words("by the node's routes"),
        "the channels that alerts about the job go to, or `\"none\"`",
    ),
    FieldSpec::new(
        S::Alerts,
        "ping",
        K::Url,
        None,
        "an address that is called when a run starts (`/start` is added to it), succeeds or fails (`/fail`), as \
         Healthchecks expects it",
    ),
    FieldSpec::new(
        S::Alerts,
        "after_failures",
        UP_TO_1000,
        Words("`alerts.after_failures` of the node"),
        "failures in a row from which on the job alerts although it is still being retried",
    ),
    FieldSpec::new(
        S::Alerts,
        "recover_after",
        UP_TO_1000,
        Words("`alerts.recover_after` of the node"),
        "good runs in a row after which an incident is over",
    ),
];

/// Fields of `retry`.
pub const RETRY_FIELDS: [FieldSpec; 6] = [
    FieldSpec::new(
        S::Retry,
        "delays",
        K::List { item: &K::Duration, min: 1, max: RETRY_DELAYS_MAX },
        Value(r#"["5m", "1h", "4h"]"#),
        "the wait after the first failure in a row, the second, …; the last one repeats",
    ),
    FieldSpec::new(
        S::Retry,
        "holds_schedule",
        K::Truth,
        Value("false"),
        "`true`: a delay also holds up the regular occurrences of `every` and `cron`",
    ),
    FieldSpec::new(
        S::Retry,
        "jitter",
        K::Share,
        Value("0"),
        "the part of a delay that may be added to it: 0.1 adds up to a tenth",
    ),
    FieldSpec::new(
        S::Retry,
        "scale",
        K::Truth,
        Value("false"),
        "`true`: runs that failed early are retried sooner, runs that failed late are retried later",
    ),
    FieldSpec::new(
        S::Retry,
        "pause_after_failures",
        COUNT,
        Words("never"),
        "pause the job after this many failures in a row, until a person resumes it",
    ),
    FieldSpec::new(
        S::Retry,
        "not_on_exit_codes",
        K::List { item: &K::Whole { min: i32::MIN as i64, max: i32::MAX as i64 }, min: 0, max: LIST_MAX },
        None,
        "exit codes after which the same occurrence is not tried again",
    )
    .such_as("[2]"),
];

/// Fields of each of the `blackout_periods`.
pub const BLACKOUT_FIELDS: [FieldSpec; 3] = [
    FieldSpec::new(S::Blackout, "start", K::TimeOfDay, Required, "when it begins, in local time")
        .such_as(r#""22:00""#),
    FieldSpec::new(
        S::Blackout,
        "end",
        K::TimeOfDay,
        Required,
        "when it ends; before `start` if it crosses midnight",
    )
    .such_as(r#""01:30""#),
    FieldSpec::new(
        S::Blackout,
        "days",
        K::List { item: &K::Weekday, min: 1, max: LIST_MAX },
        Words("every day"),
        "the days on which it begins",
    )
    .such_as(r#"["sat", "sun"]"#),
];

/// Every field at the top of a job, in the order of the reference.
pub const JOB_FIELDS: [FieldSpec; 58] = [
    FieldSpec::new(S::Identity, "name", K::Name, Required, "the job's name").such_as(r#""ShopPrices""#),
    FieldSpec::new(
        S::Identity,
        "configuration",
        K::Name,
        None,
        "one of several configurations of that name; the job's key is then `name@configuration`",
    ),
    FieldSpec::new(S::Identity, "key", K::Key, None, "`name` and `configuration` as one value")
        .such_as(r#""ShopPrices@test""#)
        .stands(Standing::Translated(Translation::Key)),
    FieldSpec::new(
        S::Identity,
        "template",
        K::Text { bytes_max: usize::MAX },
        None,
        "take the fields of `[template.NAME]`; only in job files",
    )
    .stands(Standing::FileOnly),
    FieldSpec::new(
        S::Identity,
        "command",
        K::Either(&[ARGV, K::Table { name: "Command", fields: &COMMAND_FIELDS }]),
        None,
        "what to run: a list with the program and its arguments, or a [table](#command)",
    )
    .such_as(r#"["scrapy", "crawl", "prices"]"#),
    FieldSpec::new(
        S::Identity,
        "http",
        K::Either(&[K::Url, K::Table { name: "HttpCall", fields: &HTTP_FIELDS }]),
        None,
        "not supported yet: `check`, `apply` and `serve` refuse it. A URL, or a table with `url`, `headers`, `timeout`, `idempotent`",
    ),
    FieldSpec::new(
        S::Identity,
        "queue",
        K::Either(&[TEXT, K::Table { name: "QueueMessage", fields: &QUEUE_FIELDS }]),
        None,
        "not supported yet: `check`, `apply` and `serve` refuse it. A topic, or a table with `broker`, `topic`, `cloudevents`",
    ),
    FieldSpec::new(
        S::Identity,
        "description",
        NOTE,
        None,
        "what the job is for, in words for people; at most 4 KiB",
    ),
    FieldSpec::new(
        S::Identity,
        "contact",
        NOTE,
        None,
        "whom to ask about it: a team, an address; at most 4 KiB",
    ),
    FieldSpec::new(
        S::Identity,
        "alerts",
        K::Either(&[
            K::Name,
            K::List { item: &K::Name, min: 1, max: super::alerts::CHANNELS_MAX },
            K::Table { name: "JobAlerts", fields: &ALERT_FIELDS },
        ]),
        Words("by the node's routes"),
        "the channels that alerts about the job go to, `\"none\"`, or a [table](#alerts)",
    )
    .such_as(r#"["ops"]"#),
    FieldSpec::new(
        S::Identity,
        "labels",
        K::Map { value: &TEXT, max: LABELS_MAX },
        None,
        "texts by name, for people and filters; at most 64",
    )
    .such_as(r#"{"team": "prices"}"#),
    FieldSpec::new(S::Identity, "params", K::AnyTable, None, "any table; every run gets it"),
    FieldSpec::new(
        S::Identity,
        "enabled",
        K::Truth,
        Value("true"),
        "`false`: the job is stored, but not placed and not run",
    )
    .aliases(&["schedule_enabled"]),
    FieldSpec::new(S::Identity, "paused", K::Truth, Value("false"), "`true`: create the job paused")
        .aliases(&["is_paused"]),
    FieldSpec::new(
        S::Identity,
        "paused_by",
        K::Words(&["operator", "system", "quota", "failures", "invalid"]),
        Words("`operator`"),
        "who paused it: `operator`, `system`, or a cause of the system; it is then paused",
    ),
    FieldSpec::new(
        S::Identity,
        "pause_reason",
        TEXT,
        None,
        "why it is paused, for people; it is then paused",
    )
    .aliases(&["pauseReason"]),
    FieldSpec::new(
        S::Schedule,
        "every",
        K::Interval,
        None,
        "run at this interval, at least 1s, at a time chosen by load",
    )
    .such_as(r#""6h""#)
    .in_schedule(),
    FieldSpec::new(
        S::Schedule,
        "fresh",
        K::Interval,
        None,
        "the data may never be older than this, counted from the start of the last good run",
    )
    .such_as(r#""24h""#)
    .aliases(&["scheduling_period"])
    .in_schedule(),
    FieldSpec::new(S::Schedule, "cron", K::Cron, None, "run by a [cron expression](#cron)")
        .such_as(r#""0 6 * * *""#)
        .aliases(&["cron_schedule"])
        .in_schedule(),
    FieldSpec::new(
        S::Schedule,
        "at",
        K::Once,
        None,
        "run once, at this instant, or as soon as possible with `\"now\"`",
    )
    .such_as(r#""2026-12-01T09:00:00+01:00""#)
    .in_schedule(),
    FieldSpec::new(S::Schedule, "manual", K::OnlyTrue, None, "`true`: run only when triggered").in_schedule(),
    FieldSpec::new(
        S::Schedule,
        "schedule",
        K::Either(&[K::Words(&PRESETS), K::ScheduleTable]),
        None,
        "a preset (`custom_cron` needs `cron`), or a table with the fields of this section",
    )
    .stands(Standing::Translated(Translation::Schedule)),
    FieldSpec::new(
        S::Schedule,
        "cooldown",
        K::Duration,
        Words("half of `fresh`"),
        "with `fresh`: the rest between the end of a good run and the next start",
    )
    .aliases(&["cooldown_duration"])
    .in_schedule(),
    FieldSpec::new(
        S::Schedule,
        "finish_within",
        K::Duration,
        Words("`every`: the interval; `cron`: until the next occurrence; `at`: 1h"),
        "with `every`, `cron`, `at`: how long after its occurrence a run must be complete",
    )
    .aliases(&["cron_max_schedule_duration"])
    .in_schedule(),
    FieldSpec::new(
        S::Schedule,
        "tz",
        K::Zone,
        Value(r#""UTC""#),
        "the time zone of `cron`, blackouts and hours",
    )
    .such_as(r#""Europe/Berlin""#)
    .in_schedule(),
    FieldSpec::new(S::Schedule, "starts_at", K::Instant, None, "nothing is due before this").in_schedule(),
    FieldSpec::new(S::Schedule, "ends_at", K::Instant, None, "nothing is due at this instant or after it")
        .in_schedule(),
    FieldSpec::new(
        S::Schedule,
        "max_runs",
        K::Whole { min: 1, max: i64::MAX },
        None,
        "stop after this many occurrences with a run",
    )
    .in_schedule(),
    FieldSpec::new(
        S::Schedule,
        "next_run_at",
        K::InstantOrMillis,
        None,
        "when another scheduler would have run the job next; its rhythm is kept",
    )
    .aliases(&["nextRunAt"])
    .in_schedule(),
    FieldSpec::new(
        S::Schedule,
        "first_run_within",
        K::Duration,
        Words("one interval"),
        "the first run comes within this time after the job is added",
    ),
    FieldSpec::new(S::Schedule, "preferred_hours", HOURS, None, "hours that placement should use")
        .such_as(r#"[1, 2, "22-4"]"#),
    FieldSpec::new(S::Schedule, "avoid_hours", HOURS, None, "hours that placement should avoid")
        .such_as(r#"["9-17"]"#),
    FieldSpec::new(
        S::Schedule,
        "blackout_periods",
        K::List {
            item: &K::Table { name: "BlackoutPeriod", fields: &BLACKOUT_FIELDS },
            min: 0,
            max: LIST_MAX,
        },
        None,
        "when the job must not run, see [Blackouts](#blackouts)",
    ),
    FieldSpec::new(
        S::Limits,
        "estimate",
        K::Duration,
        Words("learned from good runs"),
        "how long a run takes, if you want to set it by hand",
    ),
    FieldSpec::new(
        S::Limits,
        "max_expected_duration",
        K::Duration,
        None,
        "a longer run is logged and causes a warning",
    ),
    FieldSpec::new(
        S::Limits,
        "max_allowed_duration",
        K::Duration,
        None,
        "a longer run is ended and counts as a failure",
    ),
    FieldSpec::new(
        S::Limits,
        "retry",
        K::Table { name: "Retry", fields: &RETRY_FIELDS },
        Words("delays of `5m`, `1h`, `4h`"),
        "what happens after a failure, see [Retries](#retries)",
    ),
    FieldSpec::new(S::Limits, "pause_after_failures", COUNT, Words("never"), "the same as in `retry`")
        .stands(Standing::Translated(Translation::PauseAfterFailures)),
    FieldSpec::new(
        S::Limits,
        "missed",
        K::Words(&["once", "skip", "all"]),
        Value(r#""once""#),
        "[occurrences that got no run in time](#missed-occurrences): `once` (one run now, the rest on record), `skip`, `all` (oldest first)",
    ),
    FieldSpec::new(
        S::Limits,
        "missed_window",
        K::Duration,
        Value(r#""1d""#),
        "with `all`: how old they may be",
    ),
    FieldSpec::new(
        S::Limits,
        "missed_max",
        K::Whole { min: 0, max: 1_000 },
        Value("10"),
        "with `all`: how many get a run",
    ),
    FieldSpec::new(
        S::Limits,
        "missed_grace",
        K::Duration,
        Value(r#""1m""#),
        "an occurrence that is at most this late is not missed",
    ),
    FieldSpec::new(
        S::Limits,
        "overlap",
        K::Words(&["skip", "queue", "allow"]),
        Value(r#""skip""#),
        "[occurrences that come due during a run](#missed-occurrences): `skip`, `queue` (the first one waits), `allow`",
    ),
    FieldSpec::new(
        S::Limits,
        "max_parallel",
        K::Whole { min: 1, max: 1_000 },
        Words("2"),
        "with `allow`: how many runs at once",
    ),
    FieldSpec::new(
        S::Limits,
        "max_parallel_of_name",
        COUNT,
        None,
        "how many runs at once of all configurations of the name",
    ),
    FieldSpec::new(
        S::Limits,
        "exclusive",
        K::Words(&["strict", "best_effort"]),
        Value(r#""strict""#),
        "`strict`: never two copies, even through outages. `best_effort`: keep running, perhaps twice",
    ),
    FieldSpec::new(S::Where, "pool", K::Name, Value(r#""default""#), "the capacity that the job uses"),
    FieldSpec::new(S::Where, "cost", COUNT, Value("1"), "how many units of it"),
    FieldSpec::new(S::Where, "run_on_nodes", NAMES, Words("any"), "only on these nodes"),
    FieldSpec::new(S::Where, "dont_run_on_nodes", NAMES, None, "never on these nodes"),
    FieldSpec::new(
        S::Where,
        "site",
        K::Name,
        None,
        "a limit shared with other jobs: a domain, an account, an API",
    ),
    FieldSpec::new(S::Where, "tenant", K::Name, None, "whose quota the job counts against"),
    FieldSpec::new(S::Other, "interval", K::Words(&PRESETS), None, "a preset, as in `schedule`")
        .in_schedule()
        .stands(Standing::Translated(Translation::Interval)),
    FieldSpec::new(
        S::Other,
        "interval_minutes",
        K::Whole { min: 1, max: i64::MAX },
        None,
        "`every`, in the unit of `interval_type`",
    )
    .in_schedule()
    .stands(Standing::Translated(Translation::IntervalNumber)),
    FieldSpec::new(
        S::Other,
        "interval_type",
        K::Words(&["minutes", "hours", "days"]),
        Words("`minutes`"),
        "the unit of `interval_minutes`",
    )
    .in_schedule()
    .stands(Standing::Translated(Translation::IntervalUnit)),
    FieldSpec::new(S::Other, "pausedBySystem", K::Truth, Value("false"), "`true`: `paused_by = \"system\"`")
        .stands(Standing::Translated(Translation::PausedBySystem)),
    FieldSpec::new(
        S::Other,
        "allowParallelRuns",
        K::Truth,
        Value("false"),
        "`true`: `overlap = \"allow\"`; `false`: `overlap = \"skip\"`",
    )
    .stands(Standing::Translated(Translation::AllowParallelRuns)),
    FieldSpec::new(S::Other, "average_good_duration", K::Duration, None, "shown with a job, never written")
        .stands(Standing::Computed),
];

/// The names of fields, in their order.
#[expect(clippy::indexing_slicing, reason = "it runs in the compiler")]
pub(super) const fn names_of<const N: usize>(fields: &[FieldSpec; N]) -> [&'static str; N] {
    let mut names = [""; N];
    let mut idx = 0;
    while idx < N {
        names[idx] = fields[idx].name;
        idx += 1;
    }
    names
}
