//! Routes from jobs and causes to channels.
//!
//! All routes that match apply, in any order: their channels are joined. The default applies to what no route matches. A
//! job that names channels of its own, or `"none"`, is not routed at all.

use std::collections::{BTreeMap, BTreeSet};

use super::cause::Severity;
use crate::ids::{Channel, JobKey, Pool, Site, Tenant};
use crate::job::Job;
use crate::nearest::shortened;
use crate::time::Duration;

/// A pattern for job keys. `*` matches any text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPattern(String);

impl KeyPattern {
    /// Longest pattern.
    const BYTES_MAX: usize = 256;

    /// Parses a pattern. The error is a sentence for people.
    pub fn parse(text: &str) -> Result<KeyPattern, String> {
        let is_of_keys =
            |it: char| it.is_ascii_alphanumeric() || ['.', '_', ':', '-', '@', '*'].contains(&it);
        if text.is_empty() {
            return Err("a pattern for job keys is empty; write a key, or `*` for all".to_owned());
        }
        if KeyPattern::BYTES_MAX < text.len() || !text.chars().all(is_of_keys) {
            let shown = shortened(text);
            return Err(format!("no job key matches `{shown}`; write a key, or part of one with `*`"));
        }
        Ok(KeyPattern(text.to_owned()))
    }

    /// The pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it can match only one key.
    pub fn is_exact(&self) -> bool {
        !self.0.contains('*')
    }

    /// Whether a key matches.
    pub fn matches(&self, key: &JobKey) -> bool {
        let Some((first, rest)) = self.0.split_once('*') else { return self.0 == key.as_str() };
        let Some(mut left) = key.as_str().strip_prefix(first) else { return false };
        // Match each part at its first occurrence, and the last part at the end.
        let mut parts = rest.split('*').peekable();
        while let Some(part) = parts.next() {
            if parts.peek().is_none() {
                return left.ends_with(part);
            }
            let Some(at) = left.find(part) else { return false };
            left = left.get(at + part.len()..).unwrap_or_default();
        }
        true
    }
}

/// One route. Each kind of condition that is empty matches everything; of several kinds, all must match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AlertRoute {
    /// Keys, one of which must match.
    pub jobs: Vec<KeyPattern>,
    /// Labels, all of which the job must have.
    pub labels: Vec<(String, String)>,
    /// One of these sites.
    pub sites: Vec<Site>,
    /// One of these tenants.
    pub tenants: Vec<Tenant>,
    /// One of these pools.
    pub pools: Vec<Pool>,
    /// One of these severities.
    pub conditions: Vec<Severity>,
    /// One of these causes or events, by code.
    pub reasons: Vec<String>,
    /// Who is told.
    pub channels: Vec<Channel>,
}

impl AlertRoute {
    fn matches(&self, job: &Job, severity: Severity, code: &str) -> bool {
        fn has<T: PartialEq>(all: &[T], one: Option<&T>) -> bool {
            all.is_empty() || one.is_some_and(|one| all.contains(one))
        }
        (self.jobs.is_empty() || self.jobs.iter().any(|it| it.matches(&job.key)))
            && self.labels.iter().all(|(name, value)| job.labels.get(name) == Some(value))
            && has(&self.sites, job.site.as_ref())
            && has(&self.tenants, job.tenant.as_ref())
            && has(&self.pools, Some(&job.place.pool))
            && has(&self.conditions, Some(&severity))
            && (self.reasons.is_empty() || self.reasons.iter().any(|it| it == code))
    }
}

/// The alert settings of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlertRules {
    /// Who is told about what no route matches, and about the scheduler itself.
    pub default: Vec<Channel>,
    /// The routes.
    pub routes: Vec<AlertRoute>,
    /// All channels, and how many messages an hour each takes.
    pub channels: BTreeMap<Channel, u32>,
    /// How long to wait for more of the same cause before it is announced.
    pub group_wait: Duration,
    /// How often an open incident is announced again.
    pub remind_every: Option<Duration>,
    /// Failures in a row from which on a job alerts although it is still being retried.
    pub after_failures: u32,
    /// Good runs in a row after which an incident is over.
    pub recover_after: u32,
    /// A gap of this length between two looks counts as an outage of the scheduler.
    pub away_after: Duration,
    /// How long the fleet may take to catch up after that.
    pub catch_up_for: Duration,
}

impl Default for AlertRules {
    fn default() -> AlertRules {
        AlertRules {
            default: Vec::new(),
            routes: Vec::new(),
            channels: BTreeMap::new(),
            group_wait: Duration::from_secs(10),
            remind_every: Some(Duration::from_days(1)),
            after_failures: 3,
            recover_after: 1,
            away_after: Duration::from_mins(5),
            catch_up_for: Duration::from_mins(10),
        }
    }
}

impl AlertRules {
    /// Whether any channel is set up.
    pub fn is_on(&self) -> bool {
        !self.channels.is_empty()
    }

    /// Who is told about a job in this state.
    pub fn channels_for(&self, job: &Job, severity: Severity, code: &str) -> BTreeSet<Channel> {
        if let Some(own) = &job.alerts.channels {
            let known = |it: &&Channel| self.channels.contains_key(*it);
            let own_known: BTreeSet<Channel> = own.iter().filter(known).cloned().collect();
            // Removing a channel from the configuration must not silence the jobs that name it.
            let is_lost = own_known.is_empty() && !own.is_empty();
            return if is_lost { self.of_system() } else { own_known };
        }
        let routes = self.routes.iter().filter(|it| it.matches(job, severity, code));
        let routed: BTreeSet<Channel> = routes.flat_map(|it| &it.channels).cloned().collect();
        if routed.is_empty() { self.of_system() } else { routed }
    }

    /// Who is told about the scheduler itself.
    pub fn of_system(&self) -> BTreeSet<Channel> {
        self.default.iter().cloned().collect()
    }

    /// Failures in a row from which on a job alerts.
    pub fn after_failures(&self, job: &Job) -> u32 {
        job.alerts.after_failures.unwrap_or(self.after_failures).max(1)
    }

    /// Good runs in a row after which the incident of a job is over.
    pub fn recover_after(&self, job: &Job) -> u32 {
        job.alerts.recover_after.unwrap_or(self.recover_after).max(1)
    }
}
