//! What the parts of the module mean together.

mod agreement;
mod clock_changes;
mod errors;
mod fleet;
mod grammar;
mod hashed;
mod oracle;
mod peers;
mod spec;

use super::{CronExpr, CronPlan};
use crate::time::{TimeWindow, Timestamp};
use crate::zone::Zone;

/// Zones whose clocks do unusual things: half hours, whole days, midnight, two hours, winter time
/// as the exception, changes that follow the moon.
const ODD_ZONES: [&str; 11] = [
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Pacific/Apia",
    "America/Santiago",
    "Antarctica/Troll",
    "Africa/Casablanca",
    "Asia/Gaza",
    "Europe/Dublin",
    "Pacific/Chatham",
    "America/Havana",
];

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn plan(text: &str) -> CronPlan {
    CronExpr::parse(text).unwrap_or_else(|error| panic!("{text}: {error}")).plan().unwrap()
}

fn all_in(plan: &CronPlan, zone: &Zone, window: TimeWindow) -> Vec<Timestamp> {
    let mut found = Vec::new();
    plan.for_each_in(zone, window, |it| found.push(it));
    found
}
