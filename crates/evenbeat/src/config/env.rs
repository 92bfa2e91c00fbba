//! Which variables mean something.

use super::table::{self, KEYS, Key, NAME};

/// What all of ours begin with.
pub(super) const PREFIX: &str = "EVENBEAT_";

/// What names the file itself.
pub(super) const CONFIG_VARIABLE: &str = "EVENBEAT_CONFIG";

/// Variables that begin as ours do and are not for a node to read: what runs are told (X1), so that a run may call
/// `evenbeat`.
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

/// What the command line goes by, which may be set where a node is started too.
const OF_COMMANDS: &str = "EVENBEAT_SERVER";

/// What tests and benchmarks are told: whoever works on Evenbeat has these set where a node is started.
const OF_TESTS: [&str; 7] = [
    "EVENBEAT_TEST_",
    "EVENBEAT_BENCH_",
    "EVENBEAT_CHAOS_",
    "EVENBEAT_FUZZ_",
    "EVENBEAT_ORACLE_",
    "EVENBEAT_DEATHS",
    "EVENBEAT_STORIES",
];

/// A variable without prefix, the key that it stands for, and whether it counts milliseconds.
pub(super) struct PlainVariable {
    pub(super) name: &'static str,
    pub(super) key: &'static str,
    pub(super) is_millis: bool,
}

/// Variables that schedulers have always had; anything else wins over them.
pub(super) const PLAIN: [PlainVariable; 5] = [
    PlainVariable { name: "SCHEDULER_INTERVAL", key: "scheduler_interval", is_millis: true },
    PlainVariable { name: "JOB_START_QUEUE", key: "queue.topic", is_millis: false },
    PlainVariable { name: "MAX_PAGES_PER_RUN", key: "quota.max_pages_per_run", is_millis: false },
    PlainVariable { name: "MAX_CONCURRENT_JOBS", key: "quota.max_concurrent_jobs", is_millis: false },
    PlainVariable { name: "MAX_RUN_TIME_MS", key: "quota.max_run_time", is_millis: true },
];

/// What a variable of ours stands for.
pub(super) enum Meaning {
    Key(&'static Key),
    /// A table of names, as one inline value.
    Table(&'static str),
}

/// The variable of a key or of a table.
pub(super) fn variable_of(path: &str) -> String {
    format!("{PREFIX}{}", path.replace('.', "_").to_uppercase())
}

/// Whether a variable that begins as ours do is somebody else's.
pub(super) fn is_left_alone(name: &str) -> bool {
    [CONFIG_VARIABLE, OF_COMMANDS].contains(&name)
        || OF_RUNS.contains(&name)
        || OF_TESTS.iter().any(|prefix| name.starts_with(prefix))
}

pub(super) fn meaning_of(name: &str) -> Option<Meaning> {
    let key = KEYS.iter().filter(|key| !key.path.contains(NAME)).find(|key| variable_of(key.path) == name);
    let table = || table::named_tables().find(|table| variable_of(table) == name);
    key.map(Meaning::Key).or_else(|| table().map(Meaning::Table))
}

/// Every variable that means something.
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
