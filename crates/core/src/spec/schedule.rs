//! When a job recurs: exactly one rule, and what goes with it.

use std::fmt::Display;

use super::fields::{SCHEDULE_KINDS, kind_of, limits_of};
use super::job::{Completeness, Occasion};
use super::node::Node;
use super::read::Subject;
use super::reader::Reader;
use super::{SpecError, scalar};
use crate::nearest::shortened;
use crate::schedule::cron::{CronExpr, CronText};
use crate::schedule::{Bounds, Cron, INTERVAL_MIN, OnceAt, Schedule};
use crate::time::Duration;
use crate::value::{Path, Value};
use crate::zone::Zone;

/// An expression without any occurrence in this many years is a mistake. 29 February needs all eight of
/// them around 2100.
const CRON_YEARS_MAX: u8 = 8;
const CRON_SEARCH: Duration = Duration::from_days(2_922);

pub(super) fn read(
    reader: &mut Reader<'_>,
    occasion: Occasion,
    zone: &Zone,
    seed: u64,
    want: Completeness,
) -> Option<Schedule> {
    let kinds: Vec<Node<'_>> = SCHEDULE_KINDS.iter().filter_map(|kind| reader.get(kind)).collect();
    let Some((first, more)) = kinds.split_first() else {
        let missing = want == Completeness::Whole && !reader.spec.speaks_of(Subject::Schedule);
        if missing {
            reader.fault(&Path::root(), SpecError::NoSchedule);
        }
        // Without a rule there is nothing that these could not fit.
        reader.duration("cooldown");
        reader.duration("finish_within");
        return None;
    };
    for second in more {
        let error = SpecError::TwoSchedules {
            first: reader.shown(&first.path()),
            second: reader.shown(&second.path()),
        };
        reader.fault_between(&second.path(), &first.path(), error);
    }
    // Each is read even if there are too many: the one that stays must be right.
    let mut schedules: Vec<Option<Schedule>> = Vec::new();
    let companions = Companions::read(reader);
    for kind in &kinds {
        schedules.push(one(reader, kind, &companions, occasion, zone, seed));
    }
    if more.is_empty() {
        companions.check(reader, first);
    }
    schedules.into_iter().next().flatten()
}

/// What goes with some kinds of schedule and not with others.
struct Companions {
    cooldown: Option<Duration>,
    finish_within: Option<Duration>,
}

impl Companions {
    fn read(reader: &mut Reader<'_>) -> Companions {
        Companions { cooldown: reader.duration("cooldown"), finish_within: reader.duration("finish_within") }
    }

    fn check(&self, reader: &mut Reader<'_>, kind: &Node<'_>) {
        let mut only_with = |field: &str, with| {
            let path = Path::root().key(field);
            let has = Some(format!("`{}`", reader.shown(&kind.path())));
            let error = SpecError::OnlyWith { field: reader.shown(&path), with, has };
            reader.fault_between(&path, &kind.path(), error);
        };
        if self.cooldown.is_some() && !kind.is("fresh") {
            only_with("cooldown", "`fresh`");
        }
        if self.finish_within.is_some() && (kind.is("fresh") || kind.is("manual")) {
            only_with("finish_within", "`every`, `cron` or `at`");
        }
    }
}

fn one(
    reader: &mut Reader<'_>,
    node: &Node<'_>,
    companions: &Companions,
    occasion: Occasion,
    zone: &Zone,
    seed: u64,
) -> Option<Schedule> {
    let finish_within = companions.finish_within;
    if node.is("every") {
        let interval = reader.read(node, interval)?;
        Some(Schedule::Every { interval, finish_within })
    } else if node.is("fresh") {
        let max_age = reader.read(node, interval)?;
        let cooldown = companions.cooldown.unwrap_or_else(|| cooldown_default(max_age));
        Some(Schedule::Fresh { max_age, cooldown })
    } else if node.is("cron") {
        let expr = cron(reader, node, occasion, zone, seed)?;
        Some(Schedule::Cron(Cron::new(expr, finish_within)))
    } else if node.is("at") {
        let at = reader.read(node, |field, value| match value {
            Value::Text(text) if text == "now" => Ok(OnceAt::Now),
            _ => Ok(OnceAt::Instant(scalar::instant(field, value)?)),
        })?;
        Some(Schedule::Once { at, finish_within })
    } else {
        reader.read(node, |field, value| {
            if scalar::truth(field, value)? {
                Ok(Schedule::Manual)
            } else {
                Err(SpecError::ManualIsFalse { field: field.to_string() })
            }
        })
    }
}

/// The rest between two runs if nothing is said: half of the time between them.
pub(super) fn cooldown_default(max_age: Duration) -> Duration {
    Duration::from_millis((max_age.as_millis() / 2).max(1))
}

fn interval(field: &dyn Display, value: &Value) -> Result<Duration, SpecError> {
    let found = scalar::duration(field, value)?;
    if found < INTERVAL_MIN {
        return Err(SpecError::IntervalTooShort { field: field.to_string(), found });
    }
    Ok(found)
}

fn cron(
    reader: &mut Reader<'_>,
    node: &Node<'_>,
    occasion: Occasion,
    zone: &Zone,
    seed: u64,
) -> Option<CronExpr> {
    let text = reader.read(node, scalar::text)?;
    let expr = match text.parse::<CronExpr>() {
        Ok(expr) => expr,
        Err(error) => {
            // Only what could not be taken apart still has its prefix, and then the whole says why.
            let error = text.parse::<CronText>().err().unwrap_or(error);
            reader.fault_in(&node.path(), error.span(), error.into());
            return None;
        }
    };
    let Occasion::Written { now } = occasion else { return Some(expr) };
    // Where `H` leaves a choice, any choice will do to see whether there is a time at all.
    let plan = expr.plan().unwrap_or_else(|| expr.provisional(seed).0);
    if plan.next_after(zone, now).is_none_or(|next| now + CRON_SEARCH < next) {
        let error = SpecError::CronNever { text: shortened(text), years: CRON_YEARS_MAX };
        reader.fault(&node.path(), error);
        return None;
    }
    Some(expr)
}

/// Between which instants, and how often, it is in force.
pub(super) fn bounds(reader: &mut Reader<'_>) -> Bounds {
    let starts_at = reader.field("starts_at", scalar::instant);
    let ends_at = reader.field("ends_at", scalar::instant);
    if let (Some(starts_at), Some(ends_at)) = (starts_at, ends_at)
        && ends_at <= starts_at
    {
        let error = SpecError::EndsBeforeStart { starts_at, ends_at };
        reader.fault_between(&Path::root().key("ends_at"), &Path::root().key("starts_at"), error);
    }
    let (least, most) = limits_of(kind_of("max_runs"));
    let max_runs = reader.field("max_runs", |field, value| scalar::whole(field, value, least, most));
    Bounds { starts_at, ends_at, max_runs: max_runs.map(i64::unsigned_abs) }
}
