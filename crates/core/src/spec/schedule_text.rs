//! A schedule, written as the fields of a job.

use super::schedule::cooldown_default;
use crate::schedule::{OnceAt, Schedule};
use crate::value::{Table, Value};

/// The fields that say this schedule; read again, they are the same schedule.
pub fn schedule_fields(schedule: &Schedule) -> Table {
    let text = |it: &dyn std::fmt::Display| Value::Text(it.to_string());
    let mut fields = Table::new();
    let mut put = |field: &str, value: Value| {
        fields.insert(field.to_owned(), value);
    };
    let finish_within = match schedule {
        Schedule::Every { interval, finish_within } => {
            put("every", text(interval));
            *finish_within
        }
        Schedule::Fresh { max_age, cooldown } => {
            put("fresh", text(max_age));
            if *cooldown != cooldown_default(*max_age) {
                put("cooldown", text(cooldown));
            }
            None
        }
        Schedule::Cron(cron) => {
            put("cron", text(cron.expr()));
            cron.finish_within
        }
        Schedule::Once { at, finish_within } => {
            match at {
                OnceAt::Now => put("at", "now".into()),
                OnceAt::Instant(at) => put("at", text(at)),
            }
            *finish_within
        }
        Schedule::Manual => {
            put("manual", Value::Bool(true));
            None
        }
    };
    if let Some(finish_within) = finish_within {
        put("finish_within", text(&finish_within));
    }
    fields
}
