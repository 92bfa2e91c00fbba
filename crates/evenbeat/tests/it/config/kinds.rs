//! What each kind of key accepts, and what is said about anything else.

use super::*;

/// What a line of a file makes of a key, or the message and the way out.
#[track_caller]
fn check(line: &str, expected: &str) {
    let key = line.split(" = ").next().unwrap();
    let sources = sources(line, &[], &[]);
    let found = match Config::read(&sources) {
        Ok(_) => held(&sources, key).replace(" from evenbeat.toml:1", ""),
        Err(faults) => {
            let said: Vec<String> = faults
                .iter()
                .map(|it| format!("{}; {}", it.message, it.help.as_deref().unwrap_or("-")))
                .collect();
            said.join("\n")
        }
    };
    assert_eq!(found, expected, "{line}");
}

#[test]
fn durations() {
    check("scheduler_interval = '1500ms'", "\"1s500ms\"");
    check("retention.runs = 'P7D'", "\"7d\"");
    check("dispatch.short = 'none'", "null");
    check(
        "scheduler_interval = 5",
        "`scheduler_interval` must be a duration, not the number `5` (write `\"5s\"` or `\"5m\"`); -",
    );
    check("scheduler_interval = '5'", "duration `5` has no unit (write `5s`, `5m` or `5h`); -");
    check("scheduler_interval = '50ms'", "`scheduler_interval` is 50ms, but must be at least 100ms; -");
    check("agenda.lookahead = '32d'", "`agenda.lookahead` is 32d, but must be at most 31d; -");
    check("commands.grace = 'none'", "`none` is not a duration (write `15m`, `1h30m`, `2d` or `PT15M`); -");
}

#[test]
fn numbers() {
    check("dispatch.late_share = 0", "0");
    check("dispatch.late_share = 101", "`dispatch.late_share` is 101, but must be from 0 to 100; -");
    check("dispatch.batch = 0", "`dispatch.batch` is 0, but must be from 1 to 10000; -");
    check("dispatch.start_rate = 0", "`dispatch.start_rate` is 0, but must be at least 1; -");
    check(
        "dispatch.start_rate = 5000000000",
        "`dispatch.start_rate` is 5000000000, but must be from 1 to 4294967295; -",
    );
    check(
        "dispatch.batch = '7'",
        "`dispatch.batch` must be a whole number, not the string `7` (write `7` without quotes); -",
    );
    check("alerts.score_below = 60", "`alerts.score_below` is 60, but must be from 0 to 1; -");
    check("alerts.score_below = nan", "`alerts.score_below` is NaN, but must be from 0 to 1; -");
    check("balance.slot_minutes = 20", "20");
    check(
        "balance.slot_minutes = 7",
        "a slot of 7 minutes does not divide an hour (use 1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30 or 60); -",
    );
}

#[test]
fn sizes() {
    check("commands.output_max = '64KiB'", "\"64KiB\"");
    check("commands.output_max = 2048", "\"2KiB\"");
    check("commands.output_max = '1B'", "`commands.output_max` is 1B, but must be at least 1KiB; -");
    check("quota.max_db_bytes = 'much'", "`much` is not a size (write `512KiB`, `10MiB` or `2GiB`); -");
    check("quota.max_db_bytes = -1", "`quota.max_db_bytes` is -1, but must be at least 1B; -");
}

#[test]
fn words_and_truths() {
    check("balance.by = 'work'", "\"work\"");
    check(
        "balance.strategy = 'phases'",
        "`phases` is not a valid value for `balance.strategy`; did you mean `\"phase\"`?",
    );
    check(
        "log.format = 'xml'",
        "`xml` is not a valid value for `log.format`; write `\"auto\"`, `\"human\"` or `\"json\"`",
    );
    check("dispatch.lookahead = false", "false");
    check(
        "dispatch.lookahead = 'no'",
        "`dispatch.lookahead` must be `true` or `false`, not the string `no` (write `false`); -",
    );
}

#[test]
fn addresses_and_names() {
    check("listen = '[::1]:9000'", "\"[::1]:9000\"");
    check(
        "listen = 'localhost:9000'",
        "`localhost:9000` is not an address and a port; write an IP address and a port, such as `127.0.0.1:9000` or `[::1]:9000`",
    );
    check(
        "listen = '*:80'",
        "`*:80` is not an address and a port; to listen on all interfaces, write `0.0.0.0:80`",
    );
    check(
        "node.name = 'a b'",
        "node name `a b` contains a space; use letters, digits, `.`, `_`, `:` and `-`; -",
    );
    check("queue.topic = ' '", "`queue.topic` is empty (write a value, or remove the key); -");
}

#[test]
fn stores_and_paths() {
    check("store = 'sqlite:a.db'", "\"sqlite:a.db\"");
    check("store = 'postgres://ann@db/beat'", "\"postgres://ann@db/beat\"");
    check("store = 'postgres://ann:pw@db/beat?x=y'", "\"postgres://db/beat\"");
    check(
        "store = 'a.db'",
        "`a.db` is not a store; write `sqlite:PATH` or `postgres://USER@HOST/DATABASE`; -",
    );
    check("data_dir = '~/beat'", "`data_dir` starts with `~`; `~` is not expanded here; write the full path");
}

#[test]
fn lists() {
    check("jobs = ['a.toml', 'fleet/']", "[\"a.toml\",\"fleet/\"]");
    check(
        "jobs = 'a.toml'",
        "`jobs` must be a list of strings, not the string `a.toml` (write `[\"a.toml\"]`); -",
    );
    check("jobs = ['a', 3]", "`jobs[1]` must be a path, not the number `3`; -");
    check(
        "commands.env_pass = ['A=b']",
        "`A=b` is not the name of a variable; write only the name; the value comes from the node's environment",
    );
}
