//! All configuration keys, in the order in which they are printed.

use evenbeat_core::agenda::WINDOW_MAX;
use evenbeat_core::time::Duration;

use super::value_type::{SHORTEST, ValueType};

/// One key.
#[derive(Debug)]
pub(super) struct Key {
    /// Dotted path; `<name>` is a placeholder for a user-chosen name.
    pub(super) path: &'static str,
    pub(super) kind: ValueType,
    pub(super) default: KeyDefault,
    /// Description for the reference.
    pub(super) meaning: &'static str,
    /// Whether this version uses the key. A key without effect is rejected and never shown, so that no one relies on a
    /// limit or an alert that does not exist.
    pub(super) has_effect: bool,
}

/// The default of a key.
#[derive(Clone, Copy, Debug)]
pub(super) enum KeyDefault {
    /// A fixed value, written as in a variable.
    Text(&'static str),
    /// A description of a default that depends on the machine or on another key.
    Computed(&'static str),
}

/// The placeholder for a user-chosen name in a path.
pub(super) const NAME: &str = "<name>";

const ANY_LENGTH: ValueType = ValueType::Length { min: SHORTEST, max: Duration::LONGEST };
const A_SECOND_OR_MORE: ValueType = ValueType::Length { min: Duration::from_secs(1), max: Duration::LONGEST };
const AN_HOUR_OR_MORE: ValueType = ValueType::Length { min: Duration::from_hours(1), max: Duration::LONGEST };
const ONE_OR_MORE: ValueType = ValueType::Count { min: 1, max: u32::MAX };
const MAYBE_LENGTH: ValueType = ValueType::Optional(&ANY_LENGTH);
const MAYBE_COUNT: ValueType = ValueType::Optional(&ONE_OR_MORE);
const MAYBE_SIZE: ValueType = ValueType::Optional(&ValueType::Size { min: 1 });
const MAYBE_PATH: ValueType = ValueType::Optional(&ValueType::Path);

const fn key(path: &'static str, kind: ValueType, default: &'static str, meaning: &'static str) -> Key {
    Key { path, kind, default: KeyDefault::Text(default), meaning, has_effect: true }
}

const fn computed(path: &'static str, kind: ValueType, default: &'static str, meaning: &'static str) -> Key {
    Key { path, kind, default: KeyDefault::Computed(default), meaning, has_effect: true }
}

/// A key that this version does not support yet.
const fn idle(path: &'static str, kind: ValueType, default: &'static str, meaning: &'static str) -> Key {
    Key { has_effect: false, ..key(path, kind, default, meaning) }
}

const fn timing(path: &'static str, meaning: &'static str) -> Key {
    computed(path, ANY_LENGTH, "set by `lease.profile`", meaning)
}

/// The keys.
pub(super) static KEYS: &[Key] = &[
    computed("store", ValueType::Store, "`sqlite:<data_dir>/evenbeat.db`", "where jobs and runs are stored"),
    computed(
        "data_dir",
        ValueType::Path,
        "`$STATE_DIRECTORY`, or `$XDG_STATE_HOME/evenbeat`, or `~/.local/state/evenbeat`",
        "directory for the node's own files: run logs, locks and the socket",
    ),
    key(
        "listen",
        ValueType::Address,
        "127.0.0.1:8060",
        "address and port of the API; must be a loopback address, because this version has no authentication",
    ),
    computed(
        "socket",
        ValueType::Path,
        "`<data_dir>/evenbeat.sock`",
        "Unix socket that the command line uses",
    ),
    idle(
        "tokens_file",
        MAYBE_PATH,
        "none",
        "file with the tokens that the API accepts; must be readable only by the node's own user",
    ),
    key(
        "scheduler_interval",
        ValueType::Length { min: Duration::from_millis(100), max: Duration::from_hours(1) },
        "5s",
        "how often to check the store for changes, even without a notification",
    ),
    idle(
        "start_within",
        A_SECOND_OR_MORE,
        "5m",
        "how long a run that was handed to a broker waits for a worker before it is given up",
    ),
    key("default_plan", ValueType::Text, "unlimited", "plan of tenants without a plan of their own"),
    key("jobs", ValueType::Paths, "", "job files or directories that `serve` applies when it starts"),
    computed("node.name", ValueType::NodeName, "the host name", "name of this node"),
    key(
        "node.instance",
        ValueType::NodeName,
        "main",
        "instance name, to tell several nodes of the same name apart",
    ),
    computed(
        "pools.<name>.capacity",
        ValueType::Count { min: 0, max: 1_000_000 },
        "4 per core for the pool `default`, which always exists; required for any other",
        "how much this pool can run at the same time on this node, in units of cost",
    ),
    key(
        "pools.<name>.reserved",
        ValueType::Count { min: 0, max: 1_000_000 },
        "0",
        "units that only manual and short runs may use",
    ),
    key(
        "balance.by",
        ValueType::Word(&["runs", "work"]),
        "runs",
        "what to balance: the number of starts, or starts weighted by expected length and cost",
    ),
    key(
        "balance.strategy",
        ValueType::Word(&["phase", "least_loaded", "none"]),
        "phase",
        "how start times are chosen: by all occurrences of a job, by the next one only, or not at all",
    ),
    key("balance.slot_minutes", ValueType::SlotMinutes, "15", "width of a slot in minutes"),
    key(
        "balance.first_run_within",
        MAYBE_LENGTH,
        "none",
        "latest start of a new job's first run; by default within one interval",
    ),
    key(
        "dispatch.lookahead",
        ValueType::Truth,
        "true",
        "whether to hold room for jobs that will soon need it more",
    ),
    key(
        "dispatch.late_share",
        ValueType::Count { min: 0, max: 100 },
        "50",
        "percentage of capacity that late jobs may use while other jobs can still be on time",
    ),
    key(
        "dispatch.short",
        MAYBE_LENGTH,
        "10s",
        "runs that are expected to take no longer than this count as short and may use reserved units",
    ),
    key("dispatch.start_rate", MAYBE_COUNT, "none", "maximum number of starts per second, on average"),
    key(
        "dispatch.start_burst",
        MAYBE_COUNT,
        "none",
        "maximum number of starts at once; by default the same as `dispatch.start_rate`",
    ),
    key("dispatch.prefer_for", MAYBE_LENGTH, "2s", "how long to leave a job to the node that should take it"),
    key(
        "dispatch.batch",
        ValueType::Count { min: 1, max: 10_000 },
        "1000",
        "maximum number of runs to claim at once",
    ),
    key(
        "agenda.lookahead",
        ValueType::Length { min: Duration::from_mins(1), max: WINDOW_MAX },
        "1h",
        "how far ahead occurrences are computed",
    ),
    key(
        "agenda.rebuild_every",
        A_SECOND_OR_MORE,
        "30s",
        "how often they are recomputed, even without a change",
    ),
    key(
        "lease.profile",
        ValueType::Word(&["default", "fast"]),
        "default",
        "how quickly other nodes take over the runs of a dead node; must be the same on all nodes. `fast` needs a fast and \
         reliable network. SQLite needs no leases",
    ),
    timing("lease.heartbeat", "how often a node sends a heartbeat"),
    timing("lease.attempt", "timeout of one attempt to reach the store"),
    timing(
        "lease.self_fence",
        "how long a node trusts its lease, counted from the start of its last successful heartbeat",
    ),
    timing("lease.stop_bound", "how long a freeze or a kill may take to take effect"),
    timing("lease.freeze_bound", "how long a freeze may take to be verified before the run is killed"),
    timing("lease.window", "how long a heartbeat must be silent before other nodes take over"),
    timing("lease.probe", "how often other nodes check heartbeats"),
    timing("lease.gap", "longest time between two checks that does not restart the window"),
    timing("lease.quarantine", "how long a new epoch of the store is observed before it opens"),
    timing("lease.backoff_cap", "longest pause between two attempts to reconnect"),
    key(
        "sites.<name>.max_concurrent",
        MAYBE_COUNT,
        "none",
        "maximum number of concurrent runs of this site, across all nodes",
    ),
    key("sites.<name>.min_gap", MAYBE_LENGTH, "none", "minimum time between two starts"),
    key("sites.<name>.max_per_hour", MAYBE_COUNT, "none", "maximum number of starts within any hour"),
    key(
        "plans.<name>.max_concurrent_jobs",
        MAYBE_COUNT,
        "none",
        "maximum number of concurrent jobs of a tenant; 2 for `free`. The plans `free` and `unlimited` always exist",
    ),
    key(
        "plans.<name>.max_run_time",
        MAYBE_LENGTH,
        "none",
        "maximum length of a run, whatever its job allows; 10m for `free`",
    ),
    idle(
        "plans.<name>.max_pages_per_run",
        MAYBE_COUNT,
        "none",
        "maximum number of pages per run; 100 for `free`",
    ),
    idle(
        "plans.<name>.max_snapshots",
        MAYBE_COUNT,
        "none",
        "maximum number of snapshots of a tenant; 1500 for `free`",
    ),
    idle(
        "plans.<name>.max_db_bytes",
        MAYBE_SIZE,
        "none",
        "maximum size of a tenant's data; jobs are paused at 90%",
    ),
    computed("tenants.<name>.plan", ValueType::Text, "`default_plan`", "plan of the tenant"),
    key(
        "quota.max_concurrent_jobs",
        MAYBE_COUNT,
        "none",
        "maximum number of concurrent jobs, across all tenants",
    ),
    key("quota.max_run_time", MAYBE_LENGTH, "none", "maximum length of any run, whatever its job allows"),
    idle("quota.max_pages_per_run", MAYBE_COUNT, "none", "maximum number of pages per run"),
    idle("quota.max_snapshots", MAYBE_COUNT, "none", "maximum number of snapshots, across all tenants"),
    idle(
        "quota.max_db_bytes",
        MAYBE_SIZE,
        "none",
        "maximum size of all data, across all tenants; jobs are paused at 90%",
    ),
    key("commands.allow_shell", ValueType::Truth, "false", "whether jobs may use `shell = true`"),
    key(
        "commands.grace",
        ANY_LENGTH,
        "10s",
        "how long a run may take to stop after SIGTERM, unless its job sets `grace`",
    ),
    key("commands.output_max", ValueType::Size { min: 1 << 10 }, "10MiB", "how much output of a run is kept"),
    key(
        "commands.env_pass",
        ValueType::VariableNames,
        "",
        "environment variables that every run inherits from the node",
    ),
    key(
        "commands.max_orphan",
        ANY_LENGTH,
        "10m",
        "how long a run may continue without its node before it is killed",
    ),
    key("commands.max_frozen", ANY_LENGTH, "24h", "how long a run may stay frozen before it is killed"),
    key(
        "commands.nofile",
        MAYBE_COUNT,
        "none",
        "maximum number of open files of a run; by default the same as for the node",
    ),
    key("retention.runs", AN_HOUR_OR_MORE, "30d", "how long ended runs are kept"),
    key(
        "retention.records",
        AN_HOUR_OR_MORE,
        "30d",
        "how long records of skipped and missed occurrences are kept",
    ),
    key("retention.logs", AN_HOUR_OR_MORE, "14d", "how long the output of runs is kept"),
    key("retention.scores", AN_HOUR_OR_MORE, "30d", "how long the history of the distribution score is kept"),
    key("retention.audit", AN_HOUR_OR_MORE, "365d", "how long audit entries are kept"),
    idle("alerts.score_below", ValueType::Share, "0.6", "distribution score below which an alert is sent"),
    idle("queue.topic", ValueType::Text, "job.start", "topic for start messages, unless a job sets its own"),
    key(
        "log.level",
        ValueType::Word(&["error", "warn", "info", "debug", "trace"]),
        "info",
        "lowest level to log",
    ),
    key(
        "log.format",
        ValueType::Word(&["auto", "human", "json"]),
        "auto",
        "log format; `auto` is `human` on a terminal and `json` elsewhere",
    ),
];

/// The keys that this version uses.
pub(super) fn effective_keys() -> impl Iterator<Item = &'static Key> {
    KEYS.iter().filter(|key| key.has_effect)
}

/// The names in a table that a hint may suggest.
pub(super) fn suggestions(table: &str, names: &[&'static str]) -> Vec<&'static str> {
    let path = |name: &str| if table.is_empty() { name.to_owned() } else { format!("{table}.{name}") };
    names.iter().copied().filter(|name| find(&path(name)).is_none_or(|key| key.has_effect)).collect()
}

/// The names that a table may contain; "" is the top level.
pub(super) fn children(table: &str) -> Vec<&'static str> {
    let mut found: Vec<&'static str> = Vec::new();
    for key in KEYS {
        let below = match table {
            "" => Some(key.path),
            _ => key.path.strip_prefix(table).and_then(|rest| rest.strip_prefix('.')),
        };
        if let Some(child) = below.and_then(|rest| rest.split('.').next())
            && !found.contains(&child)
        {
            found.push(child);
        }
    }
    found
}

/// Finds a key by its path, with `<name>` as placeholder.
pub(super) fn find(path: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.path == path)
}

/// The tables with user-chosen names: `pools`, `sites`.
pub(super) fn named_tables() -> impl Iterator<Item = &'static str> {
    children("").into_iter().filter(|table| children(table) == [NAME])
}
