//! A job, written back as the table it would be read from.

use std::collections::BTreeMap;
use std::fmt::Display;

use super::alerts::NOBODY;
use super::policy::MAX_PARALLEL_DEFAULT;
use super::schedule_fields;
use crate::blackout::{BlackoutPeriod, Blackouts, Weekdays};
use crate::job::{
    CommandTarget, Exclusive, HourSet, HttpTarget, Job, JobAlerts, Overlap, Pause, PausedBy, QueueTarget,
    Target, Terms, Where,
};
use crate::missed::{MissedPolicy, MissedRuns};
use crate::retry::RetryPolicy;
use crate::run::RunLimits;
use crate::schedule::Bounds;
use crate::value::{Table, Value};
use crate::zone::Zone;

/// A job as the table that reading it back makes the very same job of
/// ([`JobSpec::restore`](super::JobSpec::restore)). What stands at its default is left out.
///
/// A job put together by hand may hold what no table can say, and then its table is refused or is another
/// job: a length of nothing, less or over a hundred years; an interval under a second; no delays at all;
/// hours that are none; a `max_runs` of 0 or over `i64::MAX`; a standard input of `Null`; more entries or
/// levels than a spec may have; parts that contradict each other.
pub fn written(job: &Job) -> Table {
    // Taken apart to the last field, so that a new one cannot be forgotten here.
    let Job {
        key,
        target,
        terms,
        preferred_hours,
        avoid_hours,
        first_run_within,
        next_run_hint,
        paused,
        description,
        contact,
        alerts,
        labels,
        params,
    } = job;
    let Terms {
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
    } = terms;
    let mut fields = Fields(schedule_fields(schedule));
    fields.text("name", key.name());
    fields.maybe_text("configuration", key.configuration());
    fields.target(target);
    fields.bounds(bounds);
    fields.zone(zone);
    fields.unless(true, "enabled", *enabled);
    fields.pause(paused.as_ref());
    fields.blackouts(blackouts);
    fields.limits(limits);
    fields.maybe_text("estimate", *estimate);
    fields.table_if_any("retry", self::retry(retry));
    fields.missed(missed);
    fields.overlap(*overlap);
    match exclusive {
        Exclusive::Strict => {}
        Exclusive::BestEffort => fields.text("exclusive", "best_effort"),
    }
    fields.maybe("max_parallel_of_name", *max_parallel_of_name);
    fields.place(place);
    fields.maybe_text("site", site.as_ref());
    fields.maybe_text("tenant", tenant.as_ref());
    fields.hours("preferred_hours", *preferred_hours);
    fields.hours("avoid_hours", *avoid_hours);
    fields.maybe_text("first_run_within", *first_run_within);
    fields.maybe_text("next_run_at", *next_run_hint);
    fields.maybe_text("description", description.as_ref());
    fields.maybe_text("contact", contact.as_ref());
    fields.alerts(alerts);
    fields.table_if_any("labels", texts(labels));
    fields.table_if_any("params", params.clone());
    fields.0
}

/// A table in the making.
#[derive(Default)]
struct Fields(Table);

impl Fields {
    fn put(&mut self, field: &str, value: Value) {
        self.0.insert(field.to_owned(), value);
    }

    fn text(&mut self, field: &str, text: impl Display) {
        self.put(field, Value::Text(text.to_string()));
    }

    fn maybe_text(&mut self, field: &str, text: Option<impl Display>) {
        if let Some(text) = text {
            self.text(field, text);
        }
    }

    fn maybe(&mut self, field: &str, number: Option<u32>) {
        if let Some(number) = number {
            self.put(field, Value::Int(number.into()));
        }
    }

    fn number_unless(&mut self, default: u32, field: &str, number: u32) {
        self.maybe(field, Some(number).filter(|it| *it != default));
    }

    fn text_unless<T: Display + PartialEq>(&mut self, default: &T, field: &str, value: &T) {
        self.maybe_text(field, Some(value).filter(|it| *it != default));
    }

    fn unless(&mut self, default: bool, field: &str, truth: bool) {
        if truth != default {
            self.put(field, Value::Bool(truth));
        }
    }

    fn table_if_any(&mut self, field: &str, table: Table) {
        if !table.is_empty() {
            self.put(field, Value::Table(table));
        }
    }

    fn list_if_any<T>(&mut self, field: &str, items: &[T], value: impl Fn(&T) -> Value) {
        if !items.is_empty() {
            self.put(field, Value::List(items.iter().map(value).collect()));
        }
    }

    fn target(&mut self, target: &Target) {
        let written = match target {
            Target::Command(command) => self::command(command),
            Target::Http(http) => self::http(http),
            Target::Queue(queue) => self::queue(queue),
        };
        self.put(target.kind(), written);
    }

    fn bounds(&mut self, Bounds { starts_at, ends_at, max_runs }: &Bounds) {
        self.maybe_text("starts_at", *starts_at);
        self.maybe_text("ends_at", *ends_at);
        if let Some(most) = max_runs {
            self.put("max_runs", Value::Int(i64::try_from(*most).unwrap_or(i64::MAX)));
        }
    }

    fn zone(&mut self, zone: &Zone) {
        if zone.name() != UTC {
            self.text("tz", zone.name());
        }
    }

    fn pause(&mut self, pause: Option<&Pause>) {
        let Some(Pause { by, reason }) = pause else { return };
        self.put("paused", Value::Bool(true));
        match by {
            PausedBy::Operator => {}
            PausedBy::Quota => self.text("paused_by", "quota"),
            PausedBy::Failures => self.text("paused_by", "failures"),
            PausedBy::Invalid => self.text("paused_by", "invalid"),
        }
        self.maybe_text("pause_reason", reason.as_ref());
    }

    fn blackouts(&mut self, blackouts: &Blackouts) {
        self.list_if_any("blackout_periods", blackouts.periods(), |BlackoutPeriod { start, end, days }| {
            let mut period = Fields::default();
            period.text("start", start);
            period.text("end", end);
            if *days != Weekdays::ALL {
                period.list_if_any("days", &days.names(), |name| (*name).into());
            }
            Value::Table(period.0)
        });
    }

    fn limits(&mut self, RunLimits { max_expected, max_allowed }: &RunLimits) {
        self.maybe_text("max_expected_duration", *max_expected);
        self.maybe_text("max_allowed_duration", *max_allowed);
    }

    fn missed(&mut self, MissedPolicy { runs, window, most, grace }: &MissedPolicy) {
        let default = MissedPolicy::default();
        match runs {
            MissedRuns::Once => {}
            MissedRuns::Skip => self.text("missed", "skip"),
            MissedRuns::All => self.text("missed", "all"),
        }
        self.text_unless(&default.window, "missed_window", window);
        self.number_unless(default.most, "missed_max", *most);
        self.text_unless(&default.grace, "missed_grace", grace);
    }

    fn overlap(&mut self, overlap: Overlap) {
        match overlap {
            Overlap::Skip => {}
            Overlap::Queue => self.text("overlap", "queue"),
            Overlap::Allow { max_parallel } => {
                self.text("overlap", "allow");
                self.number_unless(MAX_PARALLEL_DEFAULT, "max_parallel", max_parallel);
            }
        }
    }

    fn place(&mut self, Where { pool, cost, run_on_nodes, dont_run_on_nodes }: &Where) {
        let default = Where::default();
        self.text_unless(&default.pool, "pool", pool);
        self.number_unless(default.cost, "cost", *cost);
        self.list_if_any("run_on_nodes", run_on_nodes, |node| node.as_str().into());
        self.list_if_any("dont_run_on_nodes", dont_run_on_nodes, |node| node.as_str().into());
    }

    /// The channels alone, where there is nothing else to say.
    fn alerts(&mut self, alerts: &JobAlerts) {
        let JobAlerts { channels, ping, after_failures, recover_after } = alerts;
        let channels = channels.as_ref().map(|channels| match channels.as_slice() {
            [] => NOBODY.into(),
            channels => Value::List(channels.iter().map(|it| it.as_str().into()).collect()),
        });
        let mut fields = Fields::default();
        fields.maybe_text("ping", ping.as_ref());
        fields.maybe("after_failures", *after_failures);
        fields.maybe("recover_after", *recover_after);
        match channels {
            Some(channels) if fields.0.is_empty() => self.put("alerts", channels),
            channels => {
                if let Some(channels) = channels {
                    fields.put("channels", channels);
                }
                self.table_if_any("alerts", fields.0);
            }
        }
    }

    fn hours(&mut self, field: &str, hours: Option<HourSet>) {
        if let Some(hours) = hours {
            self.put(field, Value::List(hours.iter().map(|hour| Value::Int(hour.into())).collect()));
        }
    }
}

/// The zone of jobs that name none.
const UTC: &str = "UTC";

fn texts(texts: &BTreeMap<String, String>) -> Table {
    texts.iter().map(|(name, text)| (name.clone(), text.as_str().into())).collect()
}

fn retry(policy: &RetryPolicy) -> Table {
    let RetryPolicy { delays, jitter, scale, holds_schedule, pause_after_failures, not_on_exit_codes } =
        policy;
    let default = RetryPolicy::default();
    let mut fields = Fields::default();
    if *delays != default.delays {
        fields
            .put("delays", Value::List(delays.iter().map(|delay| Value::Text(delay.to_string())).collect()));
    }
    // By its bits, as jitters are compared: there are two zeros.
    if jitter.to_bits() != default.jitter.to_bits() {
        fields.put("jitter", Value::Float(*jitter));
    }
    fields.unless(default.scale, "scale", *scale);
    fields.unless(default.holds_schedule, "holds_schedule", *holds_schedule);
    fields.maybe("pause_after_failures", *pause_after_failures);
    fields.list_if_any("not_on_exit_codes", not_on_exit_codes, |code| Value::Int((*code).into()));
    fields.0
}

/// The program and its arguments alone, where there is nothing else to say.
fn command(command: &CommandTarget) -> Value {
    let CommandTarget { argv, shell, cwd, env, env_pass, stdin, grace } = command;
    let mut fields = Fields::default();
    fields.unless(false, "shell", *shell);
    fields.maybe_text("cwd", cwd.as_ref());
    fields.table_if_any("env", texts(env));
    fields.list_if_any("env_pass", env_pass, |name| name.as_str().into());
    if let Some(stdin) = stdin {
        fields.put("stdin", stdin.clone());
    }
    fields.maybe_text("grace", *grace);
    let argv = match argv.as_slice() {
        [line] if *shell => line.as_str().into(),
        words => Value::List(words.iter().map(|word| word.as_str().into()).collect()),
    };
    if fields.0.is_empty() {
        return argv;
    }
    fields.put("argv", argv);
    Value::Table(fields.0)
}

/// The address alone, where there is nothing else to say.
fn http(HttpTarget { url, headers, timeout, idempotent }: &HttpTarget) -> Value {
    let mut fields = Fields::default();
    fields.table_if_any("headers", texts(headers));
    fields.maybe_text("timeout", *timeout);
    fields.unless(false, "idempotent", *idempotent);
    if fields.0.is_empty() {
        return url.as_str().into();
    }
    fields.text("url", url);
    Value::Table(fields.0)
}

/// The topic alone, where there is nothing else to say.
fn queue(QueueTarget { broker, topic, cloudevents }: &QueueTarget) -> Value {
    let mut fields = Fields::default();
    fields.maybe_text("broker", broker.as_ref());
    fields.unless(false, "cloudevents", *cloudevents);
    match topic {
        Some(topic) if fields.0.is_empty() => topic.as_str().into(),
        topic => {
            fields.maybe_text("topic", topic.as_ref());
            Value::Table(fields.0)
        }
    }
}
