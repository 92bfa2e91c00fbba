//! The whole job: every part read, all faults at once.

use super::read::Subject;
use super::reader::Reader;
use super::{JobSpec, SpecError, SpecFault, Warning, alerts, hours, policy, scalar, schedule, target, warn};
use crate::ids::JobKey;
use crate::job::{Job, Terms};
use crate::time::Timestamp;
use crate::value::Path;
use crate::zone::{Zone, Zones};

/// A job that may be stored, and what its owner should know about it.
#[derive(Clone, Debug, PartialEq)]
pub struct ValidJob {
    /// The job.
    pub job: Job,
    /// What is doubtful about it; empty for most jobs.
    pub warnings: Vec<Warning>,
}

impl JobSpec {
    /// The job that was meant, or everything that keeps it from being one.
    pub fn validate(&self, now: Timestamp, zones: &mut Zones) -> Result<ValidJob, Vec<SpecFault>> {
        let mut reader = Reader::new(self);
        let job = read(&mut reader, Occasion::Written { now }, zones, Completeness::Whole);
        match job {
            Some(job) if reader.faults.is_empty() => {
                Ok(ValidJob { warnings: warn::warnings(self, &job, now), job })
            }
            _ => Err(reader.faults),
        }
    }

    /// The job that was stored as [`written`](super::written) wrote it.
    ///
    /// Nothing in it depends on the time: what was accepted once is not refused because its moment has
    /// passed meanwhile. Its warnings were shown when it was accepted, and are not computed again.
    pub fn restore(&self, zones: &mut Zones) -> Result<Job, Vec<SpecFault>> {
        let mut reader = Reader::new(self);
        match read(&mut reader, Occasion::Stored, zones, Completeness::Whole) {
            Some(job) if reader.faults.is_empty() => Ok(job),
            _ => Err(reader.faults),
        }
    }

    /// What is wrong with a table of defaults in itself: every job could override a bad value, and
    /// it would go unnoticed.
    pub fn faults_as_defaults(&self, now: Timestamp, zones: &mut Zones) -> Vec<SpecFault> {
        let mut reader = Reader::new(self);
        let _ = read(&mut reader, Occasion::Written { now }, zones, Completeness::Part);
        reader.faults
    }
}

/// Why something is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Occasion {
    /// Someone has written it just now.
    Written {
        /// The time of it.
        now: Timestamp,
    },
    /// It was accepted once.
    Stored,
}

/// Whether what a job must have may be missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Completeness {
    Whole,
    Part,
}

fn read(reader: &mut Reader<'_>, occasion: Occasion, zones: &mut Zones, want: Completeness) -> Option<Job> {
    let key = key(reader, want);
    let target = target::read(reader, want);
    let zone = zone(reader, zones);
    let seed = key.as_ref().map_or(0, JobKey::stable_hash);
    let schedule = schedule::read(reader, occasion, &zone, seed, want);
    let bounds = schedule::bounds(reader);
    let (preferred_hours, avoid_hours) = hours::both(reader);
    let enabled = reader.truth("enabled").unwrap_or(true);
    let paused = policy::pause(reader);
    let blackouts = policy::blackouts(reader);
    let limits = policy::limits(reader);
    let estimate = reader.duration("estimate");
    let retry = policy::retry(reader);
    let missed = policy::missed(reader);
    let overlap = policy::overlap(reader, want);
    let exclusive = policy::exclusive(reader);
    let max_parallel_of_name = reader.count("max_parallel_of_name");
    let place = policy::place(reader);
    let site = reader.name("site");
    let tenant = reader.name("tenant");
    let first_run_within = reader.duration("first_run_within");
    let next_run_hint = reader.field("next_run_at", scalar::instant_or_millis);
    let description = policy::words(reader, "description");
    let contact = policy::words(reader, "contact");
    let alerts = alerts::read(reader);
    let labels = policy::labels(reader);
    let params = policy::params(reader);
    Some(Job {
        key: key?,
        target: target?,
        terms: Terms {
            schedule: schedule?,
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
        },
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
    })
}

fn key(reader: &mut Reader<'_>, want: Completeness) -> Option<JobKey> {
    let Some(name) = reader.get("name") else {
        let missing = want == Completeness::Whole && !reader.spec.speaks_of(Subject::Name);
        if missing {
            reader.fault(&Path::root(), SpecError::NoName);
        }
        return None;
    };
    let configuration = reader.get("configuration");
    // Each half is checked alone, so that the fault points at the right one.
    let name = reader.read(&name, |field, value| {
        let text = scalar::text(field, value)?;
        JobKey::new(text, None)?;
        Ok(text)
    });
    let configuration = match configuration {
        None => Some(None),
        Some(node) => reader
            .read(&node, |field, value| {
                let text = scalar::text(field, value)?;
                JobKey::new("name", Some(text))?;
                Ok(text)
            })
            .map(Some),
    };
    JobKey::new(name?, configuration?).ok()
}

fn zone(reader: &mut Reader<'_>, zones: &mut Zones) -> Zone {
    let zone = reader.field("tz", |field, value| Ok(zones.get(scalar::text(field, value)?)?));
    zone.unwrap_or_else(|| zones.utc())
}
