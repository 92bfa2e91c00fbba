//! Jobs over their defaults.

use super::{now, shown_fault, shown_faults};
use crate::spec::sample::table;
use crate::spec::{JobSpec, Origin};
use crate::zone::Zones;

fn over(own: &str, defaults: &str) -> JobSpec {
    JobSpec::read(&table(own)).over(&JobSpec::read_from(Origin::Defaults, &table(defaults)))
}

#[track_caller]
fn check_over(own: &str, defaults: &str, expected: &str) {
    assert_eq!(over(own, defaults).table(), &table(expected), "{own} over {defaults}");
}

#[test]
fn what_a_job_does_not_say_its_defaults_may() {
    check_over("name: 'a'", "pool: 'web', tz: 'UTC'", "name: 'a', pool: 'web', tz: 'UTC'");
    check_over("pool: 'own'", "pool: 'web'", "pool: 'own'");
    check_over(
        "labels: {a: '1'}, retry: {scale: true}, params: {x: {y: 1}}",
        "labels: {a: '2', b: '2'}, pause_after_failures: 3, params: {x: 2, z: 3}",
        "labels: {a: '1', b: '2'}, retry: {scale: true, pause_after_failures: 3}, params: {x: {y: 1}, z: 3}",
    );
    check_over("run_on_nodes: ['a']", "run_on_nodes: ['b']", "run_on_nodes: ['a']");
}

#[test]
fn a_job_that_chooses_takes_no_part_of_another_choice() {
    check_over("every: '1h'", "cron: '@daily', tz: 'Asia/Tokyo'", "every: '1h', tz: 'Asia/Tokyo'");
    check_over("schedule: 'hourly'", "fresh: '1d', cooldown: '1h', max_runs: 3", "every: '1h', max_runs: 3");
    check_over("fresh: '1d'", "cron: '@daily', finish_within: '1h'", "fresh: '1d'");
    check_over("fresh: '2d'", "fresh: '1d', cooldown: '1h'", "fresh: '2d', cooldown: '1h'");
    check_over("cooldown: '2h'", "fresh: '1d', cooldown: '1h'", "fresh: '1d', cooldown: '2h'");
    check_over(
        "cron: 'CRON_TZ=Asia/Tokyo 0 6 * * *'",
        "tz: 'UTC', every: '1h', finish_within: '1h'",
        "cron: '0 6 * * *', tz: 'Asia/Tokyo', finish_within: '1h'",
    );
    check_over("http: 'http://h'", "command: ['a'], pool: 'p'", "http: 'http://h', pool: 'p'");
    check_over("overlap: 'skip'", "overlap: 'allow', max_parallel: 4", "overlap: 'skip'");
    check_over("overlap: 'allow'", "max_parallel: 4", "overlap: 'allow', max_parallel: 4");
    check_over("paused: false", "paused: true, pause_reason: 'all'", "paused: false");
}

#[test]
fn how_commands_run_is_merged_into_a_command_of_a_jobs_own() {
    let shared =
        "command: {cwd: '/srv', env: {A: '1', B: '1'}, env_pass: ['HOME'], grace: '30s', stdin: {x: 1}}";
    check_over(
        "command: ['scrapy', 'crawl']",
        shared,
        "command: {argv: ['scrapy', 'crawl'], cwd: '/srv', env: {A: '1', B: '1'}, env_pass: ['HOME'], grace: '30s',
                   stdin: {x: 1}}",
    );
    check_over(
        "command: {argv: ['x'], cwd: '/own', env: {B: '2', C: '2'}}",
        shared,
        "command: {argv: ['x'], cwd: '/own', env: {A: '1', B: '2', C: '2'}, env_pass: ['HOME'], grace: '30s',
                   stdin: {x: 1}}",
    );
    // The program itself is a choice of its own, and so is a shell.
    check_over("command: ['x']", "command: {argv: 'y', shell: true}", "command: ['x']");
    check_over("http: 'http://h'", shared, "http: 'http://h'");
    // A template over defaults, and a job over both.
    let template = JobSpec::read_from(Origin::Template("t".to_owned()), &table("command: {cwd: '/t'}"));
    let defaults = JobSpec::read_from(Origin::Defaults, &table("command: {cwd: '/d', grace: '5s'}"));
    let spec = JobSpec::read(&table("command: ['x']")).over(&template).over(&defaults);
    assert_eq!(spec.table(), &table("command: {argv: ['x'], cwd: '/t', grace: '5s'}"));
    // A fault still points to where it was written.
    assert_eq!(
        shown_faults(&over("name: 'a', manual: true, command: []", "command: {cwd: 1}")),
        [
            "command: `command` is empty (name the program to run)",
            "defaults: command.cwd: `command.cwd` must be a string, not the number `1` (write `\"1\"`)",
        ]
    );
}

#[test]
fn a_fault_in_a_default_points_to_the_default() {
    let spec = over(
        "name: 'a', command: ['x'], retry: {scale: 1}, labels: {b: 'x'}",
        "cron: '0 99 * * *', pause_after_failures: 0, labels: {a: 1}, max_parallel: 3, colour: 'red'",
    );
    assert_eq!(
        shown_faults(&spec),
        [
            "defaults: colour: unknown field `colour`",
            "defaults: cron<2..4>: `99` is out of range for the hour field (0 to 23)",
            "retry.scale: `retry.scale` must be `true` or `false`, not the number `1`",
            "defaults: pause_after_failures: `pause_after_failures` is 0, but must be at least 1",
            "defaults: max_parallel: `max_parallel` works only with `overlap = \"allow\"`, but this job has `overlap = \"skip\"`",
            "defaults: labels.a: `labels.a` must be a string, not the number `1` (write `\"1\"`)",
        ]
    );
}

#[test]
fn defaults_are_looked_at_even_if_nobody_uses_them() {
    let faults = |fields: &str| -> Vec<String> {
        let spec = JobSpec::read_from(Origin::Template("x".to_owned()), &table(fields));
        spec.faults_as_defaults(now(), &mut Zones::new()).iter().map(shown_fault).collect()
    };
    assert_eq!(faults("pool: 'web', cooldown: '5m', max_parallel: 3"), [""; 0]);
    assert_eq!(faults("command: {cwd: '/srv', env: {A: '1'}}"), [""; 0]);
    assert_eq!(
        faults("name: 'a', key: 'b', every: '1x'"),
        [
            "template x: key: `key` is specific to one job and cannot be a default",
            "template x: name: `name` is specific to one job and cannot be a default",
            "template x: every: duration `1x` has an unknown unit `x` (the units are w, d, h, m, s, ms)",
        ]
    );
}
