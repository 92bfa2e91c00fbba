//! What is accepted, what is refused, and in which words.

mod defaults;
mod fields;
mod schedules;
mod table;
mod warnings;
mod write;

use super::sample::table;
use super::{JobSpec, Origin, Place, SpecFault, ValidJob};
use crate::time::Timestamp;
use crate::zone::Zones;

fn now() -> Timestamp {
    "2026-02-04T10:00:00Z".parse().unwrap()
}

fn validate(spec: &JobSpec) -> Result<ValidJob, Vec<SpecFault>> {
    spec.validate(now(), &mut Zones::new())
}

fn shown_place(place: &Place) -> String {
    let origin = match &place.origin {
        Origin::Job => String::new(),
        Origin::Defaults => "defaults: ".to_owned(),
        Origin::Template(name) => format!("template {name}: "),
    };
    let part = place.part.as_ref().map(|part| format!("<{}..{}>", part.start, part.end)).unwrap_or_default();
    format!("{origin}{}{part}", place.path)
}

fn shown_fault(fault: &SpecFault) -> String {
    let other = fault.other.as_ref().map(|it| format!(" & {}", shown_place(it))).unwrap_or_default();
    format!("{}{other}: {}", shown_place(&fault.place), fault.error)
}

fn shown_faults(spec: &JobSpec) -> Vec<String> {
    match validate(spec) {
        Ok(_) => vec!["accepted".to_owned()],
        Err(faults) => {
            assert_ne!(faults, [], "refused without a word");
            faults.iter().map(shown_fault).collect()
        }
    }
}

/// A job that is complete without these fields, unless they replace its own.
fn job(fields: &str) -> JobSpec {
    let fields = table(fields);
    let says = |names: &[&str]| names.iter().any(|name| fields.contains_key(*name));
    let mut all = fields.clone();
    if !says(&["name", "key"]) {
        all.insert("name".to_owned(), "shop".into());
    }
    if !says(&["command", "http", "queue"]) {
        all.extend(table("command: ['true']"));
    }
    let kinds = ["every", "fresh", "cron", "at", "manual", "schedule", "interval"];
    let aliases = ["scheduling_period", "cron_schedule", "interval_minutes", "interval_type"];
    if !says(&kinds) && !says(&aliases) {
        all.extend(table("manual: true"));
    }
    JobSpec::read(&all)
}

#[track_caller]
fn check_faults(fields: &str, expected: &[&str]) {
    assert_eq!(shown_faults(&job(fields)), expected, "{fields}");
}
