//! Every key there is, in the order in which they are printed.

use evenbeat_core::agenda::WINDOW_MAX;
use evenbeat_core::time::Duration;

use super::kind::{Kind, SHORTEST};

/// One key.
#[derive(Debug)]
pub(super) struct Key {
    /// With dots; `<name>` stands for a name that people choose.
    pub(super) path: &'static str,
    pub(super) kind: Kind,
    pub(super) default: Default,
    /// For the reference.
    pub(super) meaning: &'static str,
    /// Whether this version does anything with it. A key without effect is refused and shown nowhere, so that nobody
    /// relies on a limit or an alert that does not exist.
    pub(super) has_effect: bool,
}

/// What holds where nothing is said.
#[derive(Clone, Copy, Debug)]
pub(super) enum Default {
    /// This, as a variable would say it.
    Text(&'static str),
    /// Something that depends on the machine or on another key; for people.
    Worked(&'static str),
}

/// What stands in a path for a name.
pub(super) const NAME: &str = "<name>";

const ANY_LENGTH: Kind = Kind::Length { min: SHORTEST, max: Duration::LONGEST };
const A_SECOND_OR_MORE: Kind = Kind::Length { min: Duration::from_secs(1), max: Duration::LONGEST };
const AN_HOUR_OR_MORE: Kind = Kind::Length { min: Duration::from_hours(1), max: Duration::LONGEST };
const ONE_OR_MORE: Kind = Kind::Count { min: 1, max: u32::MAX };
const MAYBE_LENGTH: Kind = Kind::Optional(&ANY_LENGTH);
const MAYBE_COUNT: Kind = Kind::Optional(&ONE_OR_MORE);
const MAYBE_SIZE: Kind = Kind::Optional(&Kind::Size { min: 1 });
const MAYBE_PATH: Kind = Kind::Optional(&Kind::Path);

const fn key(path: &'static str, kind: Kind, default: &'static str, meaning: &'static str) -> Key {
    Key { path, kind, default: Default::Text(default), meaning, has_effect: true }
}

const fn worked(path: &'static str, kind: Kind, default: &'static str, meaning: &'static str) -> Key {
    Key { path, kind, default: Default::Worked(default), meaning, has_effect: true }
}

/// A key whose feature this version does not have yet.
const fn idle(path: &'static str, kind: Kind, default: &'static str, meaning: &'static str) -> Key {
    Key { has_effect: false, ..key(path, kind, default, meaning) }
}

const fn timing(path: &'static str, meaning: &'static str) -> Key {
    worked(path, ANY_LENGTH, "by `lease.profile`", meaning)
}

/// The keys.
pub(super) static KEYS: &[Key] = &[
    worked("store", Kind::Store, "`sqlite:<data_dir>/evenbeat.db`", "where jobs and runs are kept"),
    worked(
        "data_dir",
        Kind::Path,
        "`$STATE_DIRECTORY`, else `$XDG_STATE_HOME/evenbeat`, else `~/.local/state/evenbeat`",
        "the node's own files: logs of runs, locks, the socket",
    ),
    key(
        "listen",
        Kind::Address,
        "127.0.0.1:8060",
        "where the API is served; only an address of this machine, since there are no tokens yet",
    ),
    worked("socket", Kind::Path, "`<data_dir>/evenbeat.sock`", "the Unix socket that the command line uses"),
    idle(
        "tokens_file",
        MAYBE_PATH,
        "none",
        "the tokens that the API accepts; nobody but the node's own user may be able to read it",
    ),
    key(
        "scheduler_interval",
        Kind::Length { min: Duration::from_millis(100), max: Duration::from_hours(1) },
        "5s",
        "how often the store is looked at for changes, nudged or not",
    ),
    idle(
        "start_within",
        A_SECOND_OR_MORE,
        "5m",
        "how long a run that was handed to a broker waits for a worker before it is given up",
    ),
    key("default_plan", Kind::Text, "unlimited", "the plan of tenants that have none of their own"),
    key("jobs", Kind::Paths, "", "job files, or directories of them, that `serve` applies when it starts"),
    worked("node.name", Kind::NodeName, "the host's name", "the server that this node is"),
    key("node.instance", Kind::NodeName, "main", "which of several nodes on that server"),
    worked(
        "pools.<name>.capacity",
        Kind::Count { min: 0, max: 1_000_000 },
        "4 for each core in the pool `default`, which is always there; required in any other",
        "what the node carries of this pool at a time, in units of cost",
    ),
    key(
        "pools.<name>.reserved",
        Kind::Count { min: 0, max: 1_000_000 },
        "0",
        "how many of these units only manual and short runs may use",
    ),
    key(
        "balance.by",
        Kind::Word(&["runs", "work"]),
        "runs",
        "what is levelled: starts, or starts times expected length times cost",
    ),
    key(
        "balance.strategy",
        Kind::Word(&["phase", "least_loaded", "none"]),
        "phase",
        "how places are chosen: by all occurrences of every job, by the next ones alone, or not at all",
    ),
    key("balance.slot_minutes", Kind::SlotMinutes, "15", "how wide a slot is"),
    key(
        "balance.first_run_within",
        MAYBE_LENGTH,
        "none",
        "how soon a new job runs at the latest; without it, within one interval",
    ),
    key("dispatch.lookahead", Kind::Truth, "true", "whether room is kept for what will soon need it more"),
    key(
        "dispatch.late_share",
        Kind::Count { min: 0, max: 100 },
        "50",
        "the percentage of capacity that late work may use while other work can still be in time",
    ),
    key(
        "dispatch.short",
        MAYBE_LENGTH,
        "10s",
        "runs expected to be no longer than this may use what is reserved",
    ),
    key("dispatch.start_rate", MAYBE_COUNT, "none", "how many runs may start in a second, in the long run"),
    key(
        "dispatch.start_burst",
        MAYBE_COUNT,
        "none",
        "how many runs may start at once; without it, as many as `dispatch.start_rate`",
    ),
    key(
        "dispatch.prefer_for",
        MAYBE_LENGTH,
        "2s",
        "how long a job that another node should take is left to it",
    ),
    key(
        "dispatch.batch",
        Kind::Count { min: 1, max: 10_000 },
        "1000",
        "how many runs are claimed at once at most",
    ),
    key(
        "agenda.lookahead",
        Kind::Length { min: Duration::from_mins(1), max: WINDOW_MAX },
        "1h",
        "how far ahead occurrences are worked out",
    ),
    key(
        "agenda.rebuild_every",
        A_SECOND_OR_MORE,
        "30s",
        "how often they are worked out anew, changed or not",
    ),
    key(
        "lease.profile",
        Kind::Word(&["default", "fast"]),
        "default",
        "how quickly a dead node's runs go on elsewhere; the same on all nodes. `fast` needs a quick and quiet network. \
         SQLite needs no leases",
    ),
    timing("lease.heartbeat", "how often a node beats"),
    timing("lease.attempt", "how long one attempt to reach the store may take"),
    timing("lease.self_fence", "how long after the beginning of its last good beat a node trusts its lease"),
    timing("lease.stop_bound", "how long a freeze or a kill may take to be effective"),
    timing("lease.freeze_bound", "how long a freeze may take to be verified; then it becomes a kill"),
    timing("lease.window", "how long others must see a beat stand still"),
    timing("lease.probe", "how often others look"),
    timing("lease.gap", "how far apart two looks may be without the window beginning anew"),
    timing("lease.quarantine", "how long a new epoch of the store is watched before it is opened"),
    timing("lease.backoff_cap", "the longest pause between two attempts to reconnect"),
    key(
        "sites.<name>.max_concurrent",
        MAYBE_COUNT,
        "none",
        "how many runs may use this site at a time, over all nodes",
    ),
    key("sites.<name>.min_gap", MAYBE_LENGTH, "none", "at least so long from start to start"),
    key("sites.<name>.max_per_hour", MAYBE_COUNT, "none", "how many runs may start within any hour"),
    key(
        "plans.<name>.max_concurrent_jobs",
        MAYBE_COUNT,
        "none",
        "how many jobs of a tenant run at a time; `free`: 2. The plans `free` and `unlimited` are always there",
    ),
    key(
        "plans.<name>.max_run_time",
        MAYBE_LENGTH,
        "none",
        "how long a run may take, whatever its job says; `free`: 10m",
    ),
    idle(
        "plans.<name>.max_pages_per_run",
        MAYBE_COUNT,
        "none",
        "how many pages a run may process; `free`: 100",
    ),
    idle(
        "plans.<name>.max_snapshots",
        MAYBE_COUNT,
        "none",
        "how many snapshots a tenant may have; `free`: 1500",
    ),
    idle(
        "plans.<name>.max_db_bytes",
        MAYBE_SIZE,
        "none",
        "how much a tenant may keep; jobs are paused at 90%",
    ),
    worked("tenants.<name>.plan", Kind::Text, "`default_plan`", "the tenant's plan"),
    key("quota.max_concurrent_jobs", MAYBE_COUNT, "none", "how many jobs run at a time, over all tenants"),
    key("quota.max_run_time", MAYBE_LENGTH, "none", "how long any run may take, whatever its job says"),
    idle("quota.max_pages_per_run", MAYBE_COUNT, "none", "how many pages any run may process"),
    idle("quota.max_snapshots", MAYBE_COUNT, "none", "how many snapshots there may be, over all tenants"),
    idle(
        "quota.max_db_bytes",
        MAYBE_SIZE,
        "none",
        "how much may be kept, over all tenants; jobs are paused at 90%",
    ),
    key("commands.allow_shell", Kind::Truth, "false", "whether jobs may say `shell = true`"),
    key(
        "commands.grace",
        ANY_LENGTH,
        "10s",
        "how long a run has to end when it is asked to, unless its job says otherwise",
    ),
    key("commands.output_max", Kind::Size { min: 1 << 10 }, "10MiB", "how much output of a run is kept"),
    key("commands.env_pass", Kind::VariableNames, "", "variables of the node that every run inherits"),
    key("commands.max_orphan", ANY_LENGTH, "10m", "how long a run goes on without a node; then it is killed"),
    key("commands.max_frozen", ANY_LENGTH, "24h", "how long a run stays frozen; then it is killed"),
    key(
        "commands.nofile",
        MAYBE_COUNT,
        "none",
        "how many files a run may have open; without it, as many as the node",
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
    key("retention.audit", AN_HOUR_OR_MORE, "365d", "how long it is kept who changed what"),
    idle(
        "alerts.score_below",
        Kind::Share,
        "0.6",
        "an alert is sent when the distribution score falls below this",
    ),
    idle("queue.topic", Kind::Text, "job.start", "where start messages go, unless a job says otherwise"),
    key(
        "log.level",
        Kind::Word(&["error", "warn", "info", "debug", "trace"]),
        "info",
        "what is logged: this and whatever is more important",
    ),
    key(
        "log.format",
        Kind::Word(&["auto", "human", "json"]),
        "auto",
        "how it is logged; `auto` is for people on a terminal and JSON elsewhere",
    ),
];

/// The keys that this version does something with.
pub(super) fn effective_keys() -> impl Iterator<Item = &'static Key> {
    KEYS.iter().filter(|key| key.has_effect)
}

/// Those of the names below a table that are worth suggesting.
pub(super) fn suggestions(table: &str, names: &[&'static str]) -> Vec<&'static str> {
    let path = |name: &str| if table.is_empty() { name.to_owned() } else { format!("{table}.{name}") };
    names.iter().copied().filter(|name| find(&path(name)).is_none_or(|key| key.has_effect)).collect()
}

/// The names that may stand below a table, the top being "".
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

/// The key of a path, with `<name>` for a name.
pub(super) fn find(path: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.path == path)
}

/// The tables whose entries have names that people choose: `pools`, `sites`.
pub(super) fn named_tables() -> impl Iterator<Item = &'static str> {
    children("").into_iter().filter(|table| children(table) == [NAME])
}
