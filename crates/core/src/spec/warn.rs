//! What is doubtful about a valid job (J6).

use super::{JobSpec, SpecWarning, Warning};
use crate::job::Job;
use crate::schedule::{OnceAt, Schedule};
use crate::time::{Duration, Timestamp};
use crate::unsatisfiable::{Unsatisfiable, unsatisfiable};
use crate::value::Path;

pub(super) fn warnings(spec: &JobSpec, job: &Job, now: Timestamp) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let mut warn = |field: &str, warning| {
        warnings.push(Warning { place: spec.place_of(&Path::root().key(field)), warning });
    };
    // What is known about the length of a run before there was one (B1).
    let expected = job.estimate.or(job.limits.max_expected).unwrap_or(Duration::ZERO);
    for why in unsatisfiable(job, expected) {
        warn(field_of(spec, job, &why), SpecWarning::Unsatisfiable(why));
    }
    if let Schedule::Once { at: OnceAt::Instant(at), .. } = job.schedule
        && at < now
    {
        warn("at", SpecWarning::OncePassed { at });
    }
    if let Some(at) = job.bounds.ends_at.filter(|at| *at <= now) {
        warn("ends_at", SpecWarning::Ended { at });
    }
    for field in ["paused_by", "pause_reason"] {
        if job.paused.is_none() && spec.table.contains_key(field) {
            warn(field, SpecWarning::NotPaused { field });
        }
    }
    warnings
}

/// The field to look at first: one that was written, if any of those concerned was.
fn field_of(spec: &JobSpec, job: &Job, why: &Unsatisfiable) -> &'static str {
    let length = if job.estimate.is_some() { "estimate" } else { "max_expected_duration" };
    let wanted: &[&'static str] = match why {
        Unsatisfiable::CooldownTooLong { .. } => &["cooldown", length, "fresh"],
        Unsatisfiable::RunTooLong { .. } => &[length],
        other => return other.field(),
    };
    let written = wanted.iter().find(|field| spec.table.contains_key(**field));
    written.or(wanted.first()).copied().unwrap_or("schedule")
}
