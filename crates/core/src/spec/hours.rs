//! Hours of the day: `[9, "22-4"]`.

use std::fmt::Display;

use super::reader::{LIST_MAX, Reader};
use super::{SpecError, scalar};
use crate::job::HourSet;
use crate::nearest::shortened;
use crate::value::{Path, Value};

/// The hours that placement should use, and those it should leave free.
pub(super) fn both(reader: &mut Reader<'_>) -> (Option<HourSet>, Option<HourSet>) {
    let preferred = hours(reader, "preferred_hours");
    let avoid = hours(reader, "avoid_hours");
    if let (Some(preferred), Some(avoid)) = (preferred, avoid)
        && let Some(hour) = preferred.iter().find(|hour| avoid.contains(*hour))
    {
        let (path, other) = (Path::root().key("avoid_hours"), Path::root().key("preferred_hours"));
        reader.fault_between(&path, &other, SpecError::HourBothWays { hour });
    }
    (preferred, avoid)
}

fn hours(reader: &mut Reader<'_>, field: &'static str) -> Option<HourSet> {
    let node = reader.get(field)?;
    let n_faults = reader.faults.len();
    let mut hours = Vec::new();
    for item in reader.list(&node, "a list", LIST_MAX) {
        hours.extend(reader.read(&item, range).into_iter().flatten());
    }
    if n_faults < reader.faults.len() {
        return None;
    }
    if hours.is_empty() {
        let field = reader.shown(&node.path());
        let way_out = "name an hour, or leave it out for every hour";
        reader.fault(&node.path(), SpecError::Empty { field, way_out });
        return None;
    }
    Some(HourSet::new(hours))
}

/// `9`, `"9"` or `"22-4"`, both ends included, as cron has it.
fn range(field: &dyn Display, value: &Value) -> Result<Vec<u8>, SpecError> {
    let bad = |text: &str| SpecError::BadHours { text: shortened(text) };
    let text = match value {
        Value::Int(hour) => hour.to_string(),
        Value::Text(text) => text.clone(),
        _ => return Err(scalar::wrong_kind(field, "an hour, or a range of hours", value)),
    };
    let hour = |part: &str| part.trim().parse::<u8>().ok().filter(|hour| *hour < 24);
    // A minus in front is not the middle of a range.
    let (first, last) = match text.split_once('-') {
        Some((first, last)) => (hour(first), hour(last)),
        None => (hour(&text), hour(&text)),
    };
    let (Some(first), Some(last)) = (first, last) else { return Err(bad(&text)) };
    if first <= last {
        return Ok((first..=last).collect());
    }
    Ok((first..24).chain(0..=last).collect())
}
