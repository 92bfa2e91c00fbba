//! Any job at all, for tests that must hold for every one: each field at its default or at anything valid.

use std::collections::BTreeMap;

use proptest::collection::{btree_map, vec};
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::select;

use crate::blackout::{BlackoutPeriod, Blackouts, TimeOfDay, Weekdays};
use crate::ids::{JobKey, NameError};
use crate::job::{
    CommandTarget, Exclusive, HourSet, HttpTarget, Job, JobAlerts, Overlap, Pause, PausedBy, QueueTarget,
    Target, Terms, Where,
};
use crate::missed::{MissedPolicy, MissedRuns};
use crate::retry::RetryPolicy;
use crate::run::RunLimits;
use crate::schedule::{Bounds, Cron, OnceAt, Schedule};
use crate::time::{Duration, Timestamp};
use crate::value::Value;
use crate::zone::Zone;

pub(super) fn any_job() -> impl Strategy<Value = Job> {
    let first_run_within = of(length());
    let about = (of("[a-zé ]{0,8}[a-z]"), of("[a-z@]{1,8}"), alerts(), labels());
    (key(), target(), terms(), hours(), first_run_within, of(any_instant()), of(pause()), about, params())
        .prop_map(
            |(
                key,
                target,
                terms,
                (preferred_hours, avoid_hours),
                first,
                next_run_hint,
                paused,
                (description, contact, alerts, labels),
                params,
            )| {
                Job {
                    key,
                    target,
                    terms,
                    preferred_hours,
                    avoid_hours,
                    first_run_within: first,
                    next_run_hint,
                    paused,
                    description: description.map(|it: String| it.trim().to_owned()),
                    contact,
                    alerts,
                    labels,
                    params,
                }
            },
        )
}

pub(super) fn any_schedule() -> impl Strategy<Value = Schedule> {
    let within = || of(length());
    let interval = || (1_000..=Duration::LONGEST.as_millis()).prop_map(Duration::from_millis);
    let cron = select(vec!["0 6 * * *", "*/5 22-2 * * MON", "H H(0-7) * * *", "@daily", "0 0 L * ?"]);
    prop_oneof![
        (interval(), within())
            .prop_map(|(interval, finish_within)| Schedule::Every { interval, finish_within }),
        (interval(), length()).prop_map(|(max_age, cooldown)| Schedule::Fresh { max_age, cooldown }),
        interval().prop_map(|max_age| {
            Schedule::Fresh { max_age, cooldown: Duration::from_millis(max_age.as_millis() / 2) }
        }),
        (cron, within()).prop_map(|(text, within)| Schedule::Cron(Cron::new(text.parse().unwrap(), within))),
        (any_instant(), within())
            .prop_map(|(at, finish_within)| { Schedule::Once { at: OnceAt::Instant(at), finish_within } }),
        within().prop_map(|finish_within| Schedule::Once { at: OnceAt::Now, finish_within }),
        Just(Schedule::Manual),
    ]
}

/// One of the whole calendar.
pub(super) fn any_instant() -> impl Strategy<Value = Timestamp> {
    let range = Timestamp::MIN.as_millis()..=Timestamp::MAX.as_millis();
    prop_oneof![0_i64..4_000_000_000_000, range].prop_map(Timestamp::from_millis)
}

fn length() -> impl Strategy<Value = Duration> {
    prop_oneof![1_i64..100_000, 1..=Duration::LONGEST.as_millis()].prop_map(Duration::from_millis)
}

fn name<T: std::str::FromStr<Err = NameError> + std::fmt::Debug>() -> impl Strategy<Value = T> {
    "[A-Za-z0-9][A-Za-z0-9._:-]{0,12}".prop_map(|text| text.parse().unwrap())
}

fn key() -> impl Strategy<Value = JobKey> {
    (name::<JobKey>(), of(name::<JobKey>())).prop_map(|(name, configuration)| {
        JobKey::new(name.as_str(), configuration.as_ref().map(JobKey::as_str)).unwrap()
    })
}

fn target() -> impl Strategy<Value = Target> {
    let texts = || btree_map("[A-Za-z-]{1,8}", "\\PC{0,8}", 0..3);
    let argv =
        ("\\PC{1,8}", vec("\\PC{0,8}", 0..3)).prop_map(|(program, more)| [vec![program], more].concat());
    let argv = prop_oneof![
        argv.prop_map(|argv| (argv, false)),
        "[a-z]\\PC{0,12}".prop_map(|line| (vec![line], true)),
    ];
    // Nothing to say is not said.
    let stdin = of(value().prop_filter("something", |it| *it != Value::Null));
    let names = vec("[A-Za-z_]{1,8}", 0..3);
    let command = (argv, of("\\PC{0,8}"), texts(), names, stdin, of(length())).prop_map(
        |((argv, shell), cwd, env, env_pass, stdin, grace)| {
            Target::Command(CommandTarget { argv, shell, cwd, env, env_pass, stdin, grace })
        },
    );
    let plain = vec("[a-z]{1,8}", 1..4)
        .prop_map(|argv| Target::Command(CommandTarget { argv, ..CommandTarget::default() }));
    let headers = prop_oneof![Just(BTreeMap::new()), texts()];
    let http = ("https?://[a-z.]{1,8}(/[a-z?#@]{0,4})?", headers, of(length()), any::<bool>()).prop_map(
        |(url, headers, timeout, idempotent)| Target::Http(HttpTarget { url, headers, timeout, idempotent }),
    );
    let word = || of("[a-z/.é]{1,8}");
    let queue = (word(), word(), any::<bool>())
        .prop_map(|(broker, topic, cloudevents)| Target::Queue(QueueTarget { broker, topic, cloudevents }));
    prop_oneof![command, plain, http, queue]
}

fn terms() -> impl Strategy<Value = Terms> {
    let zones =
        ["UTC", "Etc/UTC", "Europe/Berlin", "America/St_Johns"].map(|name| Zone::named(name).unwrap());
    let zone = prop_oneof![Just(Zone::utc()), select(zones.to_vec())];
    let when = (any_schedule(), bounds(), zone, any::<bool>(), blackouts());
    let whose = (of(name()), of(name()));
    let limits = (limits(), of(length()));
    let several = (overlap(), exclusive(), of(1..=u32::MAX));
    (when, limits, retry(), missed(), several, place(), whose).prop_map(
        |(when, limits, retry, missed, several, place, whose)| {
            let (schedule, bounds, zone, enabled, blackouts) = when;
            let (limits, estimate) = limits;
            let (overlap, exclusive, max_parallel_of_name) = several;
            let (site, tenant) = whose;
            Terms {
                schedule,
                bounds,
                zone,
                enabled,
                blackouts,
                limits,
                estimate,
                retry,
                missed,
                overlap,
                exclusive,
                max_parallel_of_name,
                place,
                site,
                tenant,
            }
        },
    )
}

fn bounds() -> impl Strategy<Value = Bounds> {
    let max_runs = of(1..=i64::MAX.unsigned_abs());
    (of(any_instant()), of(any_instant()), max_runs).prop_map(|(starts_at, ends_at, max_runs)| {
        let ends_at = ends_at.filter(|end| starts_at.is_none_or(|start| start < *end));
        Bounds { starts_at, ends_at, max_runs }
    })
}

fn blackouts() -> impl Strategy<Value = Blackouts> {
    let time = || {
        (0_u32..=86_400).prop_map(|second| -> TimeOfDay {
            format!("{:02}:{:02}:{:02}", second / 3_600, second / 60 % 60, second % 60).parse().unwrap()
        })
    };
    let names = proptest::sample::subsequence(vec!["mon", "tue", "wed", "thu", "fri", "sat", "sun"], 1..=7);
    let days = names.prop_map(|names| Weekdays::from_names(&names).unwrap());
    let period = (time(), time(), prop_oneof![Just(Weekdays::ALL), days])
        .prop_filter_map("has a length", |(start, end, days)| BlackoutPeriod::new(start, end, days).ok());
    vec(period, 0..4).prop_map(|periods| Blackouts::new(periods).unwrap())
}

fn limits() -> impl Strategy<Value = RunLimits> {
    (of(length()), of(length())).prop_map(|(max_expected, max_allowed)| {
        let max_allowed = max_allowed.filter(|most| max_expected.is_none_or(|usual| usual <= *most));
        RunLimits { max_expected, max_allowed }
    })
}

fn retry() -> impl Strategy<Value = RetryPolicy> {
    let default = RetryPolicy::default();
    let delays = prop_oneof![Just(default.delays.clone()), vec(length(), 1..5)];
    let jitter = prop_oneof![Just(0.0), Just(-0.0), Just(1.0), 0.0..=1.0];
    let flags = (any::<bool>(), any::<bool>());
    let own =
        (delays, jitter, flags, of(1..=u32::MAX), vec(any::<i32>(), 0..3)).prop_map(
            |(delays, jitter, (scale, holds_schedule), pause_after_failures, not_on_exit_codes)| {
                RetryPolicy { delays, jitter, scale, holds_schedule, pause_after_failures, not_on_exit_codes }
            },
        );
    prop_oneof![1 => Just(default), 3 => own]
}

fn missed() -> impl Strategy<Value = MissedPolicy> {
    let default = MissedPolicy::default();
    let runs = select(vec![MissedRuns::Once, MissedRuns::Skip, MissedRuns::All]);
    let length_or = |default| prop_oneof![Just(default), length()];
    let most = prop_oneof![Just(default.most), 0..=1_000_u32];
    (runs, length_or(default.window), most, length_or(default.grace))
        .prop_map(|(runs, window, most, grace)| MissedPolicy { runs, window, most, grace })
}

fn overlap() -> impl Strategy<Value = Overlap> {
    let allow = prop_oneof![Just(2), 1..=1_000_u32].prop_map(|max_parallel| Overlap::Allow { max_parallel });
    prop_oneof![Just(Overlap::Skip), Just(Overlap::Queue), allow]
}

fn exclusive() -> impl Strategy<Value = Exclusive> {
    select(vec![Exclusive::Strict, Exclusive::BestEffort])
}

fn place() -> impl Strategy<Value = Where> {
    let default = Where::default();
    let pool = prop_oneof![Just(default.pool), name()];
    let cost = prop_oneof![Just(default.cost), 1..=u32::MAX];
    (pool, cost, vec(name(), 0..3), vec(name(), 0..3)).prop_map(
        |(pool, cost, run_on_nodes, dont_run_on_nodes)| Where { pool, cost, run_on_nodes, dont_run_on_nodes },
    )
}

/// Those to use and those to leave free: no hour is both.
fn hours() -> impl Strategy<Value = (Option<HourSet>, Option<HourSet>)> {
    vec(0..3_u8, 24).prop_map(|wishes| {
        let of_wish = |wish: u8| {
            let hours = HourSet::new((0..).zip(&wishes).filter(|(_, it)| **it == wish).map(|(hour, _)| hour));
            (!hours.is_empty()).then_some(hours)
        };
        (of_wish(1), of_wish(2))
    })
}

fn pause() -> impl Strategy<Value = Pause> {
    let by = select(vec![PausedBy::Operator, PausedBy::Quota, PausedBy::Failures, PausedBy::Invalid]);
    (by, of(any::<String>())).prop_map(|(by, reason)| Pause { by, reason })
}

fn alerts() -> impl Strategy<Value = JobAlerts> {
    let ping = of("https://ping\\.example/[a-z0-9]{1,8}");
    let counts = (of(1..=1_000_u32), of(1..=1_000_u32));
    let own = (of(vec(name(), 0..3)), ping, counts).prop_map(
        |(channels, ping, (after_failures, recover_after))| JobAlerts {
            channels,
            ping,
            after_failures,
            recover_after,
        },
    );
    prop_oneof![1 => Just(JobAlerts::default()), 2 => own]
}

fn labels() -> impl Strategy<Value = BTreeMap<String, String>> {
    btree_map(any::<String>(), any::<String>(), 0..3)
}

fn params() -> impl Strategy<Value = BTreeMap<String, Value>> {
    btree_map("\\PC{0,8}", value(), 0..4)
}

/// Any but what is not a number: that is not even equal to itself.
fn value() -> impl Strategy<Value = Value> {
    let number = any::<f64>().prop_filter("a number", |it| !it.is_nan());
    let number = prop_oneof![number, select(vec![0.0, -0.0, 0.1, f64::INFINITY])];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::Int),
        number.prop_map(Value::Float),
        any::<String>().prop_map(Value::Text),
    ];
    leaf.prop_recursive(4, 16, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::List),
            btree_map("\\PC{0,4}", inner, 0..4).prop_map(Value::Table),
        ]
    })
}
