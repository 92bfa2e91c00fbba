//! When a job recurs.

use super::{check_faults, job, shown_faults, validate};
use crate::spec::JobSpec;
use crate::spec::sample::table;
use crate::zone::Zones;

#[track_caller]
fn check_schedule(fields: &str, expected: &str) {
    let job = validate(&job(fields)).unwrap_or_else(|faults| panic!("{fields}: {faults:?}")).job;
    let mut shown = job.schedule.to_string();
    if job.zone.name() != "UTC" {
        shown = format!("{shown} in {}", job.zone.name());
    }
    if let Some(hint) = job.next_run_hint {
        shown = format!("{shown}, next {hint}");
    }
    assert_eq!(shown, expected, "{fields}");
}

#[test]
fn every_kind_of_schedule_has_its_spellings() {
    check_schedule("every: '6h'", "every 6h");
    check_schedule("schedule: {every: '6h'}", "every 6h");
    check_schedule("fresh: '24h'", "fresh 1d, cooldown 12h");
    check_schedule("scheduling_period: '24h', cooldown_duration: '1h'", "fresh 1d, cooldown 1h");
    check_schedule("cron: '0 6 * * *'", "cron 0 6 * * *");
    check_schedule("cron_schedule: '0 6 * * *', tz: 'europe/berlin'", "cron 0 6 * * * in Europe/Berlin");
    check_schedule("cron: 'CRON_TZ=Asia/Tokyo 0 6 * * *'", "cron 0 6 * * * in Asia/Tokyo");
    check_schedule("cron: 'CRON_TZ=Asia/Tokyo 0 6 * * *', tz: 'asia/tokyo'", "cron 0 6 * * * in Asia/Tokyo");
    check_schedule("cron: '@every 15m'", "every 15m");
    check_schedule("cron: 'H H * * *'", "cron H H * * *");
    check_schedule("at: '2026-12-01T09:00:00+01:00'", "once, at 2026-12-01T08:00:00Z");
    check_schedule("at: 'now'", "once, now");
    check_schedule("manual: true", "manual");
    check_schedule("schedule: 'manual'", "manual");
    check_schedule("schedule: 'every_5_min'", "every 5m");
    check_schedule("schedule: 'daily'", "every 1d");
    check_schedule("schedule: 'custom_cron', cron: '5 4 * * *'", "cron 5 4 * * *");
    check_schedule("interval: 'hourly'", "every 1h");
    check_schedule("interval_minutes: 20", "every 20m");
    check_schedule("interval_minutes: 6, interval_type: 'hours'", "every 6h");
    check_schedule("interval_minutes: 2, interval_type: 'days'", "every 2d");
    check_schedule(
        "schedule: {interval: 'every_15_min', nextRunAt: 1712345600000}",
        "every 15m, next 2024-04-05T19:33:20Z",
    );
    check_schedule(
        "interval: 'every_15_min', next_run_at: '2026-03-01T00:00:00Z', cron: null",
        "every 15m, next 2026-03-01T00:00:00Z",
    );
}

#[test]
fn a_job_has_exactly_one_schedule() {
    assert_eq!(
        shown_faults(&JobSpec::read(&table("name: 'shop', command: ['true']"))),
        [": the job has no schedule"]
    );
    let two = |first: &str, second: &str| {
        format!("the job has two schedules, `{first}` and `{second}`, but can have only one")
    };
    check_faults("every: '1h', cron: '@daily'", &[&format!("cron & every: {}", two("every", "cron"))]);
    check_faults(
        "schedule: 'hourly', scheduling_period: '1d'",
        &[&format!("scheduling_period & schedule: {}", two("schedule", "scheduling_period"))],
    );
    check_faults(
        "schedule: 'hourly', every: '1h'",
        &[&format!("schedule & every: {}", two("every", "schedule"))],
    );
    check_faults("cron: '@every 5m', every: '1h'", &[&format!("cron & every: {}", two("every", "cron"))]);
    check_faults(
        "every: '1h', schedule: {every: '1h'}",
        &["schedule.every & every: `every` is set twice: as `every` and as `schedule.every`"],
    );
    // Both are checked, so that the one that stays is right.
    check_faults(
        "every: '1x', fresh: '1h', cooldown: '2m'",
        &[
            "fresh & every: the job has two schedules, `every` and `fresh`, but can have only one",
            "every: duration `1x` has an unknown unit `x` (the units are w, d, h, m, s, ms)",
        ],
    );
}

#[test]
fn a_schedule_that_cannot_be_read_is_not_missing_as_well() {
    check_faults("schedule: 'hourlyy'", &["schedule: `hourlyy` is not a valid value for `schedule`"]);
    check_faults(
        "schedule: 'custom_cron'",
        &["schedule: `custom_cron` needs an expression (add it as `cron`)"],
    );
    check_faults("schedule: {evry: '1h'}", &["schedule.evry: unknown field `evry` in `schedule`"]);
    check_faults(
        "schedule: {pool: 'x', every: '1h'}",
        &["schedule.pool: field `pool` does not belong inside `schedule`"],
    );
    check_faults(
        "interval_type: 'hours'",
        &["interval_type: `interval_type` needs a number (add it as `interval_minutes`)"],
    );
    check_faults(
        "interval_minutes: 0, interval_type: 'fortnights'",
        &[
            "interval_type: `fortnights` is not a valid value for `interval_type`",
            "interval_minutes: `interval_minutes` is 0, but must be at least 1",
        ],
    );
    assert_eq!(
        shown_faults(&JobSpec::read(&table("nam: 'shop', comand: ['true'], evry: '1h'"))),
        ["comand: unknown field `comand`", "evry: unknown field `evry`", "nam: unknown field `nam`"]
    );
}

#[test]
fn schedules_are_held_against_their_rules() {
    check_faults(
        "every: 15",
        &["every: `every` must be a duration, not the number `15` (write `\"15s\"`, `\"15m\"` or `\"15h\"`)"],
    );
    check_faults("every: '500ms'", &["every: `every` is 500ms, shorter than the minimum interval of 1s"]);
    check_faults("every: '0s'", &["every: duration `0s` must be longer than zero"]);
    check_faults(
        "manual: false",
        &["manual: `manual` can only be `true` (remove it to use another schedule)"],
    );
    check_faults(
        "every: '1h', cooldown: '1m'",
        &["cooldown & every: `cooldown` works only with `fresh`, but this job has `every`"],
    );
    check_faults(
        "fresh: '1h', cron_max_schedule_duration: '1m'",
        &[
            "cron_max_schedule_duration & fresh: `cron_max_schedule_duration` works only with `every`, `cron` or `at`, but this job has `fresh`",
        ],
    );
    check_faults(
        "starts_at: '2026-03-01T00:00:00Z', ends_at: '2026-03-01T00:00:00Z'",
        &[
            "ends_at & starts_at: `ends_at` (2026-03-01T00:00:00Z) is not after `starts_at` (2026-03-01T00:00:00Z), so the job never runs",
        ],
    );
    check_faults("max_runs: 0", &["max_runs: `max_runs` is 0, but must be at least 1"]);
    check_faults(
        "at: '2026-03-01'",
        &["at: instant `2026-03-01` has no time of day (write `2026-03-01T00:00:00Z`)"],
    );
}

#[test]
fn a_fault_in_a_cron_text_knows_its_bytes() {
    check_faults("cron: '0 25 * * *'", &["cron<2..4>: `25` is out of range for the hour field (0 to 23)"]);
    check_faults(
        "cron: 'CRON_TZ=Asia/Tokyo 0 25 * * *'",
        &["cron<21..23>: `25` is out of range for the hour field (0 to 23)"],
    );
    check_faults(
        "cron: 'CRON_TZ=Asia/Toky 0 6 * * *'",
        &["cron<8..17>: `Asia/Toky` is not a time zone (did you mean `Asia/Tokyo`?)"],
    );
    check_faults(
        "cron: 'CRON_TZ=Asia/Tokyo 0 0 30 2 *'",
        &["cron<19..29>: cron expression `0 0 30 2 *` has no occurrence in the next 8 years"],
    );
    check_faults(
        "cron: 'CRON_TZ=Asia/Tokyo 0 6 * * *', tz: 'UTC'",
        &["cron<8..18> & tz: the expression is in `Asia/Tokyo`, but `tz` is `UTC` (keep one of them)"],
    );
    check_faults(
        "cron: 'H H 31 2 *'",
        &["cron: cron expression `H H 31 2 *` has no occurrence in the next 8 years"],
    );
}

#[test]
fn a_leap_day_is_found_and_one_that_never_comes_is_not() {
    let at = |now: &str| {
        let spec = job("cron: '0 0 29 2 *'");
        spec.validate(now.parse().unwrap(), &mut Zones::new()).is_ok()
    };
    assert!(at("2096-02-29T00:00:00Z"), "the next one is eight years away");
    assert!(at("2026-02-04T10:00:00Z"));
}
