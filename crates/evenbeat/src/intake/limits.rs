//! What people may ask for: how long a pause, which reason, how much of the past.

use evenbeat_core::time::{Duration, TimeWindow, Timestamp};

/// The longest reason of a pause, in characters.
const REASON_MAX: usize = 1_000;

/// The longest pause that ends automatically.
const PAUSE_MAX: Duration = Duration::from_days(366);

/// The longest range of a backfill.
const RANGE_MAX: Duration = Duration::from_days(366);

/// Most runs that a backfill can ask for at once.
const RUNS_MAX: u32 = 1_000;

/// A field of a request that asks for what cannot be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestFault {
    pub field: &'static str,
    /// What is wrong, for people.
    pub detail: String,
}

impl RequestFault {
    fn new(field: &'static str, detail: impl Into<String>) -> RequestFault {
        RequestFault { field, detail: detail.into() }
    }
}

/// A reason that can be stored and shown.
pub fn pause_reason(reason: Option<String>) -> Result<Option<String>, RequestFault> {
    let Some(text) = &reason else { return Ok(None) };
    if text.contains('\0') {
        return Err(RequestFault::new("reason", "the reason contains a NUL character; leave it out"));
    }
    if REASON_MAX < text.chars().count() {
        let detail = format!("the reason has more than {REASON_MAX} characters; shorten it");
        return Err(RequestFault::new("reason", detail));
    }
    Ok(reason)
}

/// When a pause ends, if that can be.
pub fn pause_end(until: Option<Timestamp>, now: Timestamp) -> Result<Option<Timestamp>, RequestFault> {
    let Some(until) = until else { return Ok(None) };
    if until <= now {
        return Err(RequestFault::new("until", format!("{until} is not in the future")));
    }
    if now + PAUSE_MAX < until {
        let detail = "a pause ends within 366 days; leave `until` out for a pause without an end";
        return Err(RequestFault::new("until", detail));
    }
    Ok(Some(until))
}

/// The range of a backfill, up to now if it has no end.
pub fn backfill_range(
    from: Timestamp,
    to: Option<Timestamp>,
    max: Option<u32>,
    now: Timestamp,
) -> Result<TimeWindow, RequestFault> {
    let to = to.unwrap_or(now);
    if now < to {
        return Err(RequestFault::new("to", format!("{to} is in the future; a backfill is for the past")));
    }
    if to <= from {
        return Err(RequestFault::new("from", format!("{from} is not before {to}")));
    }
    if RANGE_MAX < to - from {
        return Err(RequestFault::new("from", "the range is longer than 366 days; choose a shorter one"));
    }
    if max.is_some_and(|max| !(1..=RUNS_MAX).contains(&max)) {
        return Err(RequestFault::new("max", format!("`max` is a whole number from 1 to {RUNS_MAX}")));
    }
    Ok(TimeWindow::new(from, to))
}
