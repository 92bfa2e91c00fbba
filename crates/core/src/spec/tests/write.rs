//! What is written is read back as the very same job.

use std::fmt::Write;

use proptest::prelude::*;

use super::{job, table, validate};
use crate::job::sample;
use crate::job::{Job, Pause, PausedBy};
use crate::spec::any_job::{any_instant, any_job};
use crate::spec::{JobSpec, SpecError, written};
use crate::time::Timestamp;
use crate::value::{Table, Value};
use crate::zone::Zones;

/// As the tables of these tests are written.
fn shown(value: &Value) -> String {
    let entry = |(name, value): (&String, &Value)| format!("{name}: {}", shown(value));
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(truth) => truth.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Float(number) => format!("{number:?}"),
        Value::Text(text) => format!("'{text}'"),
        Value::List(values) => format!("[{}]", values.iter().map(shown).collect::<Vec<_>>().join(", ")),
        Value::Table(table) => format!("{{{}}}", table.iter().map(entry).collect::<Vec<_>>().join(", ")),
    }
}

fn lines(table: &Table) -> String {
    table.iter().fold(String::new(), |mut lines, (field, value)| {
        writeln!(lines, "{field}: {}", shown(value)).unwrap();
        lines
    })
}

/// Its table, after seeing that it is the same job again.
#[track_caller]
fn written_and_read(original: &Job) -> Table {
    let table = written(original);
    let spec = JobSpec::read(&table);
    assert_eq!(spec.table(), &table, "the names are not canonical");
    let restored = spec.restore(&mut Zones::new());
    assert_eq!(restored.as_ref(), Ok(original), "{}", lines(&table));
    table
}

/// The job of these fields is written as `expected`.
#[track_caller]
fn check(fields: &str, expected: &str) {
    let original = validate(&job(fields)).unwrap().job;
    assert_eq!(lines(&written_and_read(&original)), lines(&table(expected)), "{fields}");
}

#[test]
fn a_plain_job_says_its_key_its_target_and_its_schedule() {
    check("every: '1h'", "name: 'shop', command: ['true'], every: '1h'");
    check(
        "key: 'shop@test', queue: {}, manual: true",
        "name: 'shop', configuration: 'test', queue: {}, manual: true",
    );
    check("fresh: '24h'", "name: 'shop', command: ['true'], fresh: '1d'");
    check("cron: '@daily', http: {url: 'http://h'}", "name: 'shop', cron: '@daily', http: 'http://h'");
    check("at: 'now', queue: {topic: 'a'}", "name: 'shop', at: 'now', queue: 'a'");
}

/// What is written of one field of a job that is plain otherwise.
#[track_caller]
fn check_field(fields: &str, expected: &str) {
    check(fields, &format!("name: 'shop', command: ['true'], manual: true, {expected}"));
}

#[test]
fn what_stands_at_its_default_is_left_out() {
    check_field("tz: 'utc', enabled: true, paused: false, blackout_periods: []", "");
    check_field("retry: {delays: ['5m', '60m', '4h'], jitter: 0, scale: false, not_on_exit_codes: []}", "");
    check_field("retry: {holds_schedule: false}", "");
    check_field("missed: 'once', missed_window: '1d', missed_max: 10, missed_grace: '60s'", "");
    check_field("overlap: 'skip', exclusive: 'strict', pool: 'default', cost: 1, run_on_nodes: []", "");
    check_field("labels: {}, params: {}", "");
    check_field("command: {argv: ['true'], env: {}, env_pass: [], shell: false}", "");
    check_field("overlap: 'allow', max_parallel: 2", "overlap: 'allow'");
    check_field("retry: {jitter: 1}", "retry: {jitter: 1.0}");
}

#[test]
fn a_pause_keeps_its_cause() {
    check_field("paused: true", "paused: true");
    check_field("pause_reason: 'stale'", "paused: true, pause_reason: 'stale'");
    check_field("pausedBySystem: true", "paused: true, paused_by: 'quota'");
    for (by, word) in [(PausedBy::Failures, "failures"), (PausedBy::Invalid, "invalid")] {
        let mut job = sample::job("manual");
        job.paused = Some(Pause { by, reason: None });
        assert_eq!(written_and_read(&job).get("paused_by"), Some(&word.into()));
    }
}

#[test]
fn a_rich_job_says_all_of_it() {
    let rich = "key: 'shop@test', fresh: '1d12h', cooldown: '90ms', starts_at: '2026-01-01T00:00:00.007Z',
        ends_at: '2027-01-01T00:00:00+01:00', max_runs: 9, tz: 'europe/berlin', nextRunAt: 1770199200001,
        schedule_enabled: false, paused: true, paused_by: 'operator', pause_reason: 'moved',
        blackout_periods: [{start: '22:00', end: '24:00'}, {start: '23:30:15', end: '06:00', days: ['sun', 'Monday']}],
        max_expected_duration: '30m', max_allowed_duration: '1h', estimate: '1500ms', pause_after_failures: 5,
        retry: {delays: ['5m', '1h1ms'], jitter: 0.1, scale: true, holds_schedule: true, not_on_exit_codes: [2, -1]},
        missed: 'all', missed_window: '2d', missed_max: 0, missed_grace: '5m', overlap: 'allow', max_parallel: 3,
        exclusive: 'best_effort', max_parallel_of_name: 4, pool: 'web', cost: 7, run_on_nodes: ['n1', 'n2'],
        dont_run_on_nodes: ['n3'], site: 'example.org', tenant: 'acme', preferred_hours: ['22-2'], avoid_hours: [9, 8],
        first_run_within: '10m', labels: {team: 'data', x: ''}, params: {a: null, b: [1, 1.0, 'x', {}], c: {d: 0.5}},
        command: {argv: 'a | b', shell: true, cwd: '/tmp', env: {A: '1'}, env_pass: ['HOME'], stdin: {k: [null]}, grace: '10s'}";
    let rich = validate(&job(rich)).unwrap().job;
    insta::assert_snapshot!(lines(&written_and_read(&rich)));
}

#[test]
fn each_target_keeps_its_parts() {
    check(
        "http: {url: 'https://h/x', headers: {A: 'b'}, timeout: '61s', idempotent: true}",
        "name: 'shop', manual: true, http: {url: 'https://h/x', headers: {A: 'b'}, timeout: '1m1s', idempotent: true}",
    );
    check(
        "queue: {broker: 'b', cloudevents: true}",
        "name: 'shop', manual: true, queue: {broker: 'b', cloudevents: true}",
    );
    check("command: {argv: ['a', ' ']}", "name: 'shop', manual: true, command: ['a', ' ']");
}

/// A leap day that is a Sunday comes every 28 years: it was accepted shortly before, and is kept after.
#[test]
fn what_was_accepted_once_is_restored_whatever_time_it_is() {
    let at = |text: &str| -> Timestamp { text.parse().unwrap() };
    let spec = job("cron: '0 0 29 2 */7', tz: 'UTC'");
    let original = spec.validate(at("2031-01-01T00:00:00Z"), &mut Zones::new()).unwrap().job;
    let again = JobSpec::read(&written_and_read(&original));
    let faults = again.validate(at("2033-01-01T00:00:00Z"), &mut Zones::new()).unwrap_err();
    assert!(
        matches!(faults.as_slice(), [fault] if matches!(fault.error, SpecError::CronNever { .. })),
        "{faults:?}"
    );
    assert_eq!(again.restore(&mut Zones::new()), Ok(original));
}

#[test]
fn what_is_no_job_is_not_restored() {
    let spec = job("cron: '0 99 * * *', pool: ''");
    assert_eq!(spec.restore(&mut Zones::new()), validate(&spec).map(|it| it.job));
    assert_eq!(spec.restore(&mut Zones::new()).unwrap_err().len(), 2);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn every_job_that_is_written_is_read_as_the_same_job(original in any_job(), now in any_instant()) {
        let mut zones = Zones::new();
        let table = written(&original);
        let spec = JobSpec::read(&table);
        prop_assert_eq!(spec.table(), &table);
        prop_assert_eq!(spec.restore(&mut zones), Ok(original.clone()));
        // The calendar ends, and with it every expression.
        let now = now.min("9990-01-01T00:00:00Z".parse().unwrap());
        let validated = spec.validate(now, &mut zones);
        prop_assert_eq!(validated.map(|it| it.job), Ok(original));
    }
}
