//! Mutes suppress alerts about some jobs for a while. The jobs are still watched, and every mute has an end.

use super::cause::AlertSubject;
use super::route::KeyPattern;
use crate::ids::{Site, Tenant};
use crate::job::Job;
use crate::time::{Duration, Timestamp};

/// Longest mute. To silence a job for longer, set `alerts = "none"` in its definition.
pub const MUTE_MAX: Duration = Duration::from_days(90);

/// Suppresses alerts about some jobs for a while. It can start now or later, as a maintenance window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mute {
    /// A UUID, created by the caller.
    pub id: u128,
    /// What is muted.
    pub scope: MuteScope,
    /// When it starts.
    pub starts_at: Timestamp,
    /// When it ends.
    pub ends_at: Timestamp,
    /// The reason that was given.
    pub reason: String,
    /// Who muted it.
    pub actor: String,
}

/// What is muted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MuteScope {
    /// Everything, also alerts about the scheduler itself.
    Fleet,
    /// Jobs whose keys match.
    Jobs(KeyPattern),
    /// Jobs with this label.
    Label(String, String),
    /// Jobs of a site.
    Site(Site),
    /// Jobs of a tenant.
    Tenant(Tenant),
}

impl Mute {
    /// Whether it is in force.
    pub fn is_active(&self, now: Timestamp) -> bool {
        self.starts_at <= now && now < self.ends_at
    }

    /// Whether it applies to a subject. A job that was removed is matched by its key alone.
    pub fn covers(&self, subject: &AlertSubject, job: Option<&Job>) -> bool {
        match (&self.scope, subject) {
            (MuteScope::Fleet, _) => true,
            (MuteScope::Jobs(pattern), AlertSubject::Job(key)) => pattern.matches(key),
            (MuteScope::Label(name, value), AlertSubject::Job(_)) => {
                job.is_some_and(|job| job.labels.get(name) == Some(value))
            }
            (MuteScope::Site(site), AlertSubject::Job(_)) => {
                job.is_some_and(|job| job.site.as_ref() == Some(site))
            }
            (MuteScope::Tenant(tenant), AlertSubject::Job(_)) => {
                job.is_some_and(|job| job.tenant.as_ref() == Some(tenant))
            }
            (_, AlertSubject::System(_)) => false,
        }
    }
}

impl MuteScope {
    /// The scope as it is stored and shown: its kind and its value.
    pub fn parts(&self) -> (&'static str, String) {
        match self {
            MuteScope::Fleet => ("fleet", String::new()),
            MuteScope::Jobs(pattern) => ("jobs", pattern.as_str().to_owned()),
            MuteScope::Label(name, value) => ("label", format!("{name}={value}")),
            MuteScope::Site(site) => ("site", site.to_string()),
            MuteScope::Tenant(tenant) => ("tenant", tenant.to_string()),
        }
    }

    /// Parses a scope. The error is a sentence for people.
    pub fn of_parts(kind: &str, value: &str) -> Result<MuteScope, String> {
        match kind {
            "fleet" if value.is_empty() => Ok(MuteScope::Fleet),
            "fleet" => Err("a mute of the fleet has no value".to_owned()),
            "jobs" => KeyPattern::parse(value).map(MuteScope::Jobs),
            "label" => match value.split_once('=') {
                Some((name, value)) if !name.is_empty() => {
                    Ok(MuteScope::Label(name.to_owned(), value.to_owned()))
                }
                _ => Err(format!("`{value}` is not a label; write `name=value`")),
            },
            "site" => value.parse().map(MuteScope::Site).map_err(|error| format!("{error}")),
            "tenant" => value.parse().map(MuteScope::Tenant).map_err(|error| format!("{error}")),
            _ => Err(format!("`{kind}` cannot be muted; use `fleet`, `jobs`, `label`, `site` or `tenant`")),
        }
    }
}
