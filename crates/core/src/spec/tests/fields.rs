//! Names, targets, policies, and hints for slips.

use super::{check_faults, job, validate};

#[test]
fn names_are_settled_once() {
    let key = |fields: &str| validate(&job(fields)).unwrap().job.key.to_string();
    assert_eq!(key("name: 'shop'"), "shop");
    assert_eq!(key("name: 'shop', configuration: 'test'"), "shop@test");
    assert_eq!(key("key: 'shop@test'"), "shop@test");
    assert_eq!(key("key: 'shop'"), "shop");
    check_faults(
        "key: 'shop@te st'",
        &["key<5..10>: configuration `te st` contains a space; use letters, digits, `.`, `_`, `:` and `-`"],
    );
    check_faults("key: 'shop', name: 'shop'", &["name & key: `name` is set twice: as `key` and as `name`"]);
    check_faults("name: 7", &["name: `name` must be a string, not the number `7` (write `\"7\"`)"]);
    check_faults(
        "fresh: '1d', scheduling_period: '1d'",
        &["scheduling_period & fresh: `fresh` is set twice: as `fresh` and as `scheduling_period`"],
    );
    check_faults(
        "average_good_duration: '5m'",
        &[
            "average_good_duration: `average_good_duration` is computed from successful runs and cannot be set",
        ],
    );
    check_faults(
        "pause_after_failures: 3, retry: {pause_after_failures: 4}",
        &[
            "pause_after_failures & retry.pause_after_failures: `pause_after_failures` is set twice: as `retry.pause_after_failures` and as `pause_after_failures`",
        ],
    );
    check_faults("pool: 'x', color: 'red'", &["color: unknown field `color`"]);
}

#[test]
fn a_target_is_one_of_three() {
    let target = |fields: &str| format!("{:?}", validate(&job(fields)).unwrap().job.target);
    assert!(target("command: ['a', 'b']").contains(r#"argv: ["a", "b"], shell: false"#));
    assert!(target("command: {argv: 'a | b', shell: true}").contains(r#"argv: ["a | b"], shell: true"#));
    assert!(target("http: 'https://example.org/run'").contains(r#"url: "https://example.org/run""#));
    assert!(target("queue: 'crawl'").contains(r#"topic: Some("crawl")"#));
    assert!(target("queue: {}").contains("topic: None"));
    check_faults(
        "command: 'curl x'",
        &["command: `command` is a single string, not a program with its arguments"],
    );
    check_faults(
        "command: {argv: [' '], shell: true}",
        &["command.argv: `command.argv` is empty (name the program to run)"],
    );
    check_faults("command: []", &["command: `command` is empty (name the program to run)"]);
    check_faults(
        "command: {cwd: '/tmp'}",
        &[
            "command: `command` has no `argv` (write the program and its arguments, such as `[\"curl\", \"https://example.org\"]`)",
        ],
    );
    check_faults(
        "command: {argv: ['a', 'b'], shell: true}",
        &[
            "command.argv: with `shell = true`, `command.argv` must be a single string for the shell, not a list",
        ],
    );
    check_faults(
        "command: {argv: ['a', 3], env: {A: 1}, envs: {}}",
        &[
            "command.envs: unknown field `envs` in `command`",
            "command.argv[1]: `command.argv[1]` must be a string, not the number `3` (write `\"3\"`)",
            "command.env.A: `command.env.A` must be a string, not the number `1` (write `\"1\"`)",
        ],
    );
    for url in ["ftp://example.org", "example.org", "https://", "https://:80/", "https://a b/", "http:///x"] {
        check_faults(
            &format!("http: {{url: '{url}'}}"),
            &[&format!("http.url: `{url}` is not a URL to post to (write `https://host/path`)")],
        );
    }
}

#[test]
fn policies_are_held_against_their_limits() {
    check_faults(
        "retry: {delays: [], jitter: 1.5, jiter: 1}",
        &[
            "retry.jiter: unknown field `jiter` in `retry`",
            "retry.delays: `retry.delays` is empty (write at least one delay, such as `[\"5m\"]`)",
            "retry.jitter: `retry.jitter` is 1.5, but must be from 0 to 1 (0.1 is a tenth)",
        ],
    );
    check_faults("retry: '5m'", &["retry: `retry` must be a table, not the string `5m`"]);
    check_faults("overlap: 'skp'", &["overlap: `skp` is not a valid value for `overlap`"]);
    check_faults(
        "max_parallel: 3",
        &[
            "max_parallel: `max_parallel` works only with `overlap = \"allow\"`, but this job has `overlap = \"skip\"`",
        ],
    );
    check_faults(
        "overlap: 'allow', max_parallel: 1001",
        &["max_parallel: `max_parallel` is 1001, but must be from 1 to 1000"],
    );
    check_faults(
        "cost: 0, missed_max: -1",
        &[
            "missed_max: `missed_max` is -1, but must be from 0 to 1000",
            "cost: `cost` is 0, but must be at least 1",
        ],
    );
    check_faults(
        "max_expected_duration: '2h', max_allowed_duration: '1h'",
        &[
            "max_allowed_duration & max_expected_duration: `max_allowed_duration` (1h) is shorter than `max_expected_duration` (2h)",
        ],
    );
    check_faults(
        "preferred_hours: ['22-2'], avoid_hours: [9, 1]",
        &["avoid_hours & preferred_hours: hour 1 is both in `preferred_hours` and in `avoid_hours`"],
    );
    check_faults(
        "avoid_hours: []",
        &["avoid_hours: `avoid_hours` is empty (name an hour, or leave it out for every hour)"],
    );
    for bad in ["24", "'9-'", "'-1'", "'9-24'", "-1", "'nine'"] {
        check_faults(
            &format!("avoid_hours: [{bad}]"),
            &[&format!(
                "avoid_hours[0]: `{}` is not an hour or a range of hours (write `9`, or `\"22-4\"` for 22:00 to 04:59)",
                bad.replace('\'', "")
            )],
        );
    }
    check_faults(
        "blackout_periods: [{start: '22:00'}, {start: '1:00', end: '02:00', days: ['mon', 'tusday']}]",
        &[
            "blackout_periods[0]: `blackout_periods[0]` has no `end` (write a time of day, such as `\"22:00\"`)",
            "blackout_periods[1].start: `1:00` is not a time of day (write `HH:MM` or `HH:MM:SS`, such as `09:00`)",
            "blackout_periods[1].days[1]: `tusday` is not a day of the week (did you mean `tuesday`?)",
        ],
    );
    check_faults(
        "labels: {team: 3}, run_on_nodes: 'n1'",
        &[
            "run_on_nodes: `run_on_nodes` must be a list of strings, not the string `n1` (write `[\"n1\"]`)",
            "labels.team: `labels.team` must be a string, not the number `3` (write `\"3\"`)",
        ],
    );
    check_faults(
        "enabled: 'true', cost: '3'",
        &[
            "enabled: `enabled` must be `true` or `false`, not the string `true` (write `true` without quotes)",
            "cost: `cost` must be a whole number, not the string `3` (write `3` without quotes)",
        ],
    );
}

#[test]
fn what_is_handed_on_has_a_depth() {
    let nested = |levels: usize| format!("params: {{a: {}1{}}}", "[".repeat(levels), "]".repeat(levels));
    assert!(validate(&job(&nested(31))).is_ok());
    check_faults(&nested(32), &["params: `params` is nested deeper than the 32 levels allowed"]);
    let labels: Vec<String> = (0..65).map(|n| format!("l{n}: 'x'")).collect();
    check_faults(
        &format!("labels: {{{}}}", labels.join(", ")),
        &["labels: `labels` has 65 entries, more than the 64 allowed"],
    );
}

#[track_caller]
fn check_pause(fields: &str, expected: &str) {
    let shown = match validate(&job(fields)).unwrap().job.paused {
        Some(pause) => format!("by {}, {}", pause.by.as_str(), pause.reason.as_deref().unwrap_or("-")),
        None => "not paused".to_owned(),
    };
    assert_eq!(shown, expected, "{fields}");
}

#[test]
fn a_pause_of_another_tool_stays_a_pause() {
    check_pause("paused: true", "by operator, -");
    check_pause("is_paused: true, pausedBySystem: true, pauseReason: 'LIMIT'", "by system, LIMIT");
    check_pause("paused: false, pausedBySystem: false, pauseReason: null", "not paused");
    check_pause("paused_by: 'system'", "by system, -");
    check_pause("paused: false, pause_reason: 'stale'", "not paused");
}

#[test]
fn overlap_has_a_default_number() {
    let open = |fields: &str| validate(&job(fields)).unwrap().job.overlap.max_open();
    assert_eq!(open(""), 1);
    assert_eq!(open("allowParallelRuns: false"), 1);
    assert_eq!(open("allowParallelRuns: true"), 2);
    assert_eq!(open("overlap: 'allow', max_parallel: 5"), 5);
    assert_eq!(open("allowParallelRuns: true, max_parallel: 5"), 5);
}

#[track_caller]
fn check_hint(fields: &str, expected: &str) {
    let faults = validate(&job(fields)).unwrap_err();
    let hints: Vec<String> = faults.iter().filter_map(|fault| fault.error.hint()).collect();
    assert_eq!(hints.join("; "), expected, "{fields}");
}

#[test]
fn slips_get_a_hint() {
    check_hint("scheduel: 'hourly'", "did you mean `schedule`?");
    check_hint("coldown: '1h'", "did you mean `cooldown`?");
    check_hint(
        "telescope: 1",
        "put values for the run into `params`, and notes for people into `labels` or `description`",
    );
    check_hint("queue: {colour: 1}", "the fields of `queue` are `broker`, `topic` and `cloudevents`");
    check_hint(
        "schedule: 'sometimes'",
        "the presets are `manual`, `every_5_min`, `every_15_min`, `hourly`, `every_6_hours`, `daily` and `custom_cron`",
    );
    check_hint("pool: ''", "write a name, or remove the field");
    check_hint("overlap: 'alow'", "did you mean `\"allow\"`?");
    check_hint("exclusive: 'always'", "write `\"strict\"` or `\"best_effort\"`");
    check_hint("schedule: '15m'", "an interval is written as `every = \"15m\"`");
    check_hint("schedule: '0 6 * * *'", "a cron expression is written as `cron = \"0 6 * * *\"`");
    check_hint(
        "command: 'curl -s x'",
        "write the program and its arguments as a list: `[\"curl\", \"-s\", \"x\"]`",
    );
    check_hint(
        "average_good_duration: 1",
        "to set the expected length of a run by hand, write `estimate = \"10m\"`",
    );
}
