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
    /// What to do instead, for a key that earlier versions had. Ignoring it could leave a door open.
    pub(super) retired: Option<&'static str>,
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
const MAYBE_ADDRESS: ValueType = ValueType::Optional(&ValueType::Address);
const MAYBE_PATH: ValueType = ValueType::Optional(&ValueType::Path);
const MAYBE_TEXT: ValueType = ValueType::Optional(&ValueType::Text);
const MAYBE_URL: ValueType = ValueType::Optional(&ValueType::Url);
const UP_TO_1000: ValueType = ValueType::Count { min: 1, max: 1_000 };

const fn key(path: &'static str, kind: ValueType, default: &'static str, meaning: &'static str) -> Key {
    Key { path, kind, default: KeyDefault::Text(default), meaning, has_effect: true, retired: None }
}

const fn computed(path: &'static str, kind: ValueType, default: &'static str, meaning: &'static str) -> Key {
    Key { path, kind, default: KeyDefault::Computed(default), meaning, has_effect: true, retired: None }
}

/// A key that this version does not support yet.
const fn idle(path: &'static str, kind: ValueType, default: &'static str, meaning: &'static str) -> Key {
    Key { has_effect: false, ..key(path, kind, default, meaning) }
}

/// A key that earlier versions had.
const fn retired(path: &'static str, kind: ValueType, instead: &'static str) -> Key {
    Key { retired: Some(instead), ..idle(path, kind, "none", "") }
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
        MAYBE_ADDRESS,
        "127.0.0.1:8060",
        "address and port of the API and the pages; `none` serves the socket alone. An address that other machines can \
         reach needs a token to exist",
    ),
    key(
        "hosts",
        ValueType::HostNames,
        "",
        "names and addresses by which clients reach this server, besides `localhost` and `listen`; requests for other \
         names are refused",
    ),
    computed(
        "socket",
        ValueType::Path,
        "`<data_dir>/evenbeat.sock`",
        "Unix socket that the command line uses",
    ),
    key(
        "public_url",
        MAYBE_URL,
        "none",
        "address under which people reach this server, for links in alerts: `https://beat.example`",
    ),
    retired(
        "tokens_file",
        MAYBE_PATH,
        "remove it; tokens are kept in the store, and `evenbeat token create` adds one",
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
    key(
        "auth.loopback",
        ValueType::Word(&["closed", "trust"]),
        "closed",
        "whether requests over the loopback interface need a token too; `trust` gives every user of this machine all \
         rights, so it is only for machines with one user",
    ),
    key(
        "auth.trusted_proxies",
        ValueType::Networks,
        "",
        "addresses or networks of reverse proxies, whose `X-Forwarded-For` and `X-Forwarded-Proto` are believed and whose \
         connections are not limited per address",
    ),
    key(
        "auth.request_rate",
        MAYBE_COUNT,
        "200",
        "maximum number of requests per second for each token, on average; twice as many may come at once",
    ),
    key(
        "tls.cert",
        MAYBE_PATH,
        "none",
        "certificate chain of the server in PEM format; `listen` then speaks HTTPS only",
    ),
    key(
        "tls.key",
        MAYBE_PATH,
        "none",
        "private key of the certificate in PEM format; must be readable only by the node's own user. Both files are read \
         again when they change",
    ),
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
    key(
        "retention.alerts",
        ValueType::Length { min: Duration::from_hours(1), max: Duration::LONGEST },
        "30d",
        "how long ended incidents, sent alerts and past mutes are kept",
    ),
    key(
        "http.allow_private",
        ValueType::Networks,
        "",
        "address ranges that are not public and may be called all the same by webhooks and pings: \
         `[\"10.0.0.0/8\"]`",
    ),
    key(
        "http.allow_metadata",
        ValueType::Truth,
        "false",
        "whether `http.allow_private` may include the addresses at which clouds hand out credentials",
    ),
    key(
        "alerts.default",
        ValueType::Texts,
        "",
        "channels for everything that no route matches, and for alerts about the scheduler itself; required as soon as \
         there is a channel",
    ),
    key(
        "alerts.group_wait",
        ValueType::Length { min: Duration::from_millis(1), max: Duration::from_hours(1) },
        "10s",
        "how long to wait for more alerts of the same cause, which then become one message",
    ),
    key(
        "alerts.remind_every",
        ValueType::Optional(&ValueType::Length { min: Duration::from_mins(1), max: Duration::LONGEST }),
        "24h",
        "how often an open incident is announced again",
    ),
    key(
        "alerts.after_failures",
        UP_TO_1000,
        "3",
        "failures in a row from which on a job alerts although it is still being retried; a job that will not be \
         retried, and one past its deadline, alert at once",
    ),
    key("alerts.recover_after", UP_TO_1000, "1", "good runs in a row after which an incident is over"),
    key(
        "alerts.away_after",
        A_SECOND_OR_MORE,
        "5m",
        "if no node was up for this long, late jobs become one alert about the scheduler",
    ),
    key(
        "alerts.catch_up_for",
        A_SECOND_OR_MORE,
        "10m",
        "how long jobs may take to catch up after that before they are announced on their own",
    ),
    key("alerts.score_below", ValueType::Share, "0.6", "distribution score below which an alert is sent"),
    key(
        "alerts.retry_for",
        A_SECOND_OR_MORE,
        "24h",
        "how long a message that cannot be delivered is tried again, less and less often",
    ),
    key(
        "alerts.heartbeat_url",
        MAYBE_URL,
        "none",
        "address to call while the scheduler can write to its store; a service such as Healthchecks alerts when the \
         calls stop",
    ),
    key(
        "alerts.heartbeat_every",
        ValueType::Length { min: Duration::from_secs(1), max: Duration::from_days(1) },
        "1m",
        "how often to call it",
    ),
    key(
        "alerts.channels.<name>.kind",
        ValueType::Word(&["email", "webhook", "slack", "command"]),
        "email",
        "how the channel is reached",
    ),
    key("alerts.channels.<name>.to", ValueType::Texts, "", "`email`: who gets the mail"),
    key("alerts.channels.<name>.from", MAYBE_TEXT, "none", "`email`: who it is from"),
    key("alerts.channels.<name>.smtp", MAYBE_TEXT, "none", "`email`: mail server, as `host:port`"),
    key(
        "alerts.channels.<name>.tls",
        ValueType::Word(&["starttls", "implicit", "none"]),
        "starttls",
        "`email`: how the connection is encrypted; `none` only for a server on this machine",
    ),
    key("alerts.channels.<name>.user", MAYBE_TEXT, "none", "`email`: who logs in at the mail server"),
    key(
        "alerts.channels.<name>.password_file",
        MAYBE_PATH,
        "none",
        "`email`: file with the password; read for each message",
    ),
    key(
        "alerts.channels.<name>.password_env",
        MAYBE_TEXT,
        "none",
        "`email`: name of an environment variable of the node with the password",
    ),
    key(
        "alerts.channels.<name>.url",
        MAYBE_URL,
        "none",
        "`webhook`, `slack`: address to post to; only its host is shown",
    ),
    key("alerts.channels.<name>.url_file", MAYBE_PATH, "none", "`webhook`, `slack`: file with the address"),
    key(
        "alerts.channels.<name>.secret_file",
        MAYBE_PATH,
        "none",
        "`webhook`: file with the secret that messages are signed with",
    ),
    key("alerts.channels.<name>.command", ValueType::Texts, "", "`command`: program and its arguments"),
    key(
        "alerts.channels.<name>.env_pass",
        ValueType::VariableNames,
        "",
        "`command`: environment variables that it inherits from the node",
    ),
    key(
        "alerts.channels.<name>.time_limit",
        ValueType::Length { min: Duration::from_millis(100), max: Duration::from_mins(5) },
        "15s",
        "how long one attempt may take",
    ),
    key(
        "alerts.channels.<name>.per_hour",
        ONE_OR_MORE,
        "60",
        "most messages within an hour; what exceeds it becomes one summary later",
    ),
    key(
        "alerts.routes.<name>.jobs",
        ValueType::Texts,
        "",
        "keys of jobs, with `*` for any text; any of them",
    ),
    key("alerts.routes.<name>.labels", ValueType::Texts, "", "labels as `name=value`; all of them"),
    key("alerts.routes.<name>.sites", ValueType::Texts, "", "sites; any of them"),
    key("alerts.routes.<name>.tenants", ValueType::Texts, "", "tenants; any of them"),
    key("alerts.routes.<name>.pools", ValueType::Texts, "", "pools; any of them"),
    key("alerts.routes.<name>.conditions", ValueType::Texts, "", "`warning`, `error`; any of them"),
    key("alerts.routes.<name>.reasons", ValueType::Texts, "", "reason codes and events; any of them"),
    key(
        "alerts.routes.<name>.channels",
        ValueType::Texts,
        "",
        "channels to send to; required. All routes that match apply",
    ),
    idle("queue.topic", ValueType::Text, "job.start", "topic for start messages, unless a job sets its own"),
    key(
        "metrics.listen",
        ValueType::Optional(&ValueType::Address),
        "none",
        "address and port that serve only `/metrics`, `/healthz` and `/readyz`, without a token",
    ),
    key(
        "metrics.jobs",
        ValueType::Optional(&ValueType::Text),
        "none",
        "jobs that have metrics of their own: those with a label, as in `alert=page`, or `*` for all",
    ),
    key(
        "metrics.jobs_max",
        ValueType::Count { min: 1, max: 10_000 },
        "1000",
        "maximum number of jobs that have metrics of their own",
    ),
    key(
        "traces.endpoint",
        ValueType::Optional(&ValueType::Text),
        "none",
        "OpenTelemetry collector that traces of runs are sent to, as in `http://127.0.0.1:4318` (OTLP over HTTP, as JSON)",
    ),
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

/// Whether a running node takes up another value of a key on SIGHUP.
pub(super) fn is_reloadable(path: &str) -> bool {
    let is_in = |table: &str| path.strip_prefix(table).is_some_and(|rest| rest.starts_with('.'));
    ["jobs", "public_url", "log.level"].contains(&path) || is_in("alerts") || is_in("retention")
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

/// The tables with user-chosen names: `pools`, `sites`, `alerts.channels`.
pub(super) fn named_tables() -> impl Iterator<Item = &'static str> {
    let tables = KEYS.iter().filter_map(|key| key.path.split_once(NAME)?.0.strip_suffix('.'));
    let mut last = None;
    // The keys of a table stand together.
    tables.filter(move |table| last.replace(*table) != Some(*table))
}
