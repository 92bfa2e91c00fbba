//! Environment variables that set configuration keys.

use super::table::{self, KEYS, Key, NAME};

/// The prefix of all our variables.
pub(super) const PREFIX: &str = "EVENBEAT_";

/// The variable that names the configuration file.
pub(super) const CONFIG_VARIABLE: &str = "EVENBEAT_CONFIG";

/// Variables with our prefix that are not configuration: those that runs receive (X1), so that a run may call `evenbeat`.
const OF_RUNS: [&str; 11] = [
    "EVENBEAT_JOB",
    "EVENBEAT_RUN_ID",
    "EVENBEAT_FENCE",
    "EVENBEAT_TRIGGER",
    "EVENBEAT_SCHEDULED_FOR",
    "EVENBEAT_DEADLINE",
    "EVENBEAT_LAST_GOOD_START",
    "EVENBEAT_PARAMS",
    "EVENBEAT_RESULT_FILE",
    "EVENBEAT_API",
    "EVENBEAT_TOKEN",
];

/// Variables of the command line, which may also be set where a node is started.
const OF_COMMANDS: [&str; 2] = ["EVENBEAT_SERVER", "EVENBEAT_CA"];

/// Variables of tests and benchmarks, which developers may have set where a node is started.
const OF_TESTS: [&str; 7] = [
    "EVENBEAT_TEST_",
    "EVENBEAT_BENCH_",
    "EVENBEAT_CHAOS_",
    "EVENBEAT_FUZZ_",
    "EVENBEAT_ORACLE_",
    "EVENBEAT_DEATHS",
    "EVENBEAT_STORIES",
];

/// A variable without our prefix, the key that it sets, and whether it is in milliseconds.
pub(super) struct PlainVariable {
    pub(super) name: &'static str,
    pub(super) key: &'static str,
    pub(super) is_millis: bool,
}

/// Variables that other schedulers use. Every other source takes precedence.
pub(super) const PLAIN: [PlainVariable; 5] = [
    PlainVariable { name: "SCHEDULER_INTERVAL", key: "scheduler_interval", is_millis: true },
    PlainVariable { name: "JOB_START_QUEUE", key: "queue.topic", is_millis: false },
    PlainVariable { name: "MAX_PAGES_PER_RUN", key: "quota.max_pages_per_run", is_millis: false },
    PlainVariable { name: "MAX_CONCURRENT_JOBS", key: "quota.max_concurrent_jobs", is_millis: false },
    PlainVariable { name: "MAX_RUN_TIME_MS", key: "quota.max_run_time", is_millis: true },
];

/// What one of our variables sets.
pub(super) enum VariableTarget {
    Key(&'static Key),
    /// A whole table with user-chosen names, as one inline value.
    Table(&'static str),
}

/// The variable for a key or a table.
pub(super) fn variable_of(path: &str) -> String {
    format!("{PREFIX}{}", path.replace('.', "_").to_uppercase())
}

/// Whether a variable with our prefix is not configuration.
pub(super) fn is_left_alone(name: &str) -> bool {
    name == CONFIG_VARIABLE
        || OF_COMMANDS.contains(&name)
        || OF_RUNS.contains(&name)
        || OF_TESTS.iter().any(|prefix| name.starts_with(prefix))
}

pub(super) fn target_of(name: &str) -> Option<VariableTarget> {
    let key = KEYS.iter().filter(|key| !key.path.contains(NAME)).find(|key| variable_of(key.path) == name);
    let table = || table::named_tables().find(|table| variable_of(table) == name);
    key.map(VariableTarget::Key).or_else(|| table().map(VariableTarget::Table))
}

/// Every known variable.
pub(super) fn all_variables() -> Vec<String> {
    let keys = table::effective_keys().map(|key| key.path).filter(|path| !path.contains(NAME));
    let names = keys.chain(table::named_tables()).map(variable_of);
    names.chain([CONFIG_VARIABLE.to_owned()]).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_variable_means_two_things() {
        let all = all_variables();
        let distinct: BTreeSet<&String> = all.iter().collect();
        assert_eq!(distinct.len(), all.len());
        let taken: Vec<&String> =
            all.iter().filter(|name| is_left_alone(name) && *name != CONFIG_VARIABLE).collect();
        assert!(taken.is_empty(), "{taken:?}");
    }

    #[test]
    fn what_tests_and_commands_are_told_is_not_for_a_node() {
        for name in [
            "EVENBEAT_SERVER",
            "EVENBEAT_STORIES",
            "EVENBEAT_DEATHS",
            "EVENBEAT_BENCH_DIR",
            "EVENBEAT_FUZZ_SECONDS",
            "EVENBEAT_CHAOS_SEED",
            "EVENBEAT_ORACLE_PYTHON",
            "EVENBEAT_RUN_ID",
        ] {
            assert!(is_left_alone(name), "{name}");
        }
        for name in ["EVENBEAT_SERVERS", "EVENBEAT_BENCH", "EVENBEAT_STORY", "EVENBEAT_"] {
            assert!(!is_left_alone(name), "{name}");
        }
    }

    #[test]
    fn plain_variables_stand_for_keys_that_exist() {
        for plain in PLAIN {
            assert!(table::find(plain.key).is_some(), "{}", plain.key);
        }
    }
}
