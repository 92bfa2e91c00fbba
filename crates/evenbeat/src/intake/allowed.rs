//! What jobs may ask for here: what the configuration says about all of them, whatever they say of themselves.

use std::borrow::Cow;
use std::collections::BTreeMap;

use evenbeat_core::ids::Tenant;
use evenbeat_core::job::{Job, Target};
use evenbeat_core::time::Duration;

use super::IntakeError;

/// What jobs may ask for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobPolicy {
    /// Whether a shell may read a command.
    pub shell: bool,
    /// How soon a new job runs at the latest, unless it says otherwise itself.
    pub first_run_within: Option<Duration>,
    /// What tenants may ask for.
    pub tenants: BTreeMap<Tenant, Quota>,
    /// What all others may.
    pub other_tenants: Quota,
    /// How long any run may take.
    pub max_run_time: Option<Duration>,
}

/// What a tenant may ask for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Quota {
    /// The plan that says so.
    pub plan: String,
    /// How long a run may take.
    pub max_run_time: Option<Duration>,
}

impl JobPolicy {
    /// Whether the job is one that can be run here.
    pub(super) fn check(&self, job: &Job) -> Result<(), IntakeError> {
        match &job.target {
            Target::Command(command) if command.shell && !self.shell => {
                Err(IntakeError::ShellNotAllowed { key: job.key.clone() })
            }
            Target::Command(_) => self.check_run_time(job),
            other @ (Target::Http(_) | Target::Queue(_)) => {
                Err(IntakeError::TargetNotSupported { key: job.key.clone(), target: other.kind() })
            }
        }
    }

    /// Refuses jobs that ask for more time than runs get: they would be ended early, for no visible reason.
    fn check_run_time(&self, job: &Job) -> Result<(), IntakeError> {
        let Some(asked) = job.limits.max_allowed else { return Ok(()) };
        let of_tenant = job.tenant.as_ref().and_then(|tenant| {
            let quota = self.tenants.get(tenant).unwrap_or(&self.other_tenants);
            let whose = format!("by the plan `{}` of tenant `{tenant}`", quota.plan);
            Some((quota.max_run_time?, whose))
        });
        let of_all = self.max_run_time.map(|most| (most, "by `quota.max_run_time`".to_owned()));
        match of_tenant.into_iter().chain(of_all).min() {
            Some((most, by)) if most < asked => {
                Err(IntakeError::OverQuota { key: job.key.clone(), asked, most, by })
            }
            _ => Ok(()),
        }
    }

    /// The job as it is placed.
    pub(super) fn placed_as<'a>(&self, job: &'a Job) -> Cow<'a, Job> {
        match self.first_run_within {
            Some(within) if job.first_run_within.is_none() => {
                Cow::Owned(Job { first_run_within: Some(within), ..job.clone() })
            }
            _ => Cow::Borrowed(job),
        }
    }
}

#[cfg(test)]
mod tests {
    use evenbeat_core::job::CommandTarget;
    use evenbeat_core::schedule::Schedule;

    use super::*;

    fn length(text: &str) -> Duration {
        text.parse().unwrap()
    }

    fn job(max_allowed: Option<&str>, tenant: Option<&str>) -> Job {
        let target =
            Target::Command(CommandTarget { argv: vec!["true".to_owned()], ..CommandTarget::default() });
        let mut job = Job::new("shop".parse().unwrap(), target, Schedule::Manual);
        job.limits.max_allowed = max_allowed.map(length);
        job.tenant = tenant.map(|it| it.parse().unwrap());
        job
    }

    #[test]
    fn nobody_asks_for_more_time_than_there_is() {
        let quota =
            |plan: &str, most: Option<&str>| Quota { plan: plan.to_owned(), max_run_time: most.map(length) };
        let allowed = JobPolicy {
            tenants: [("acme", quota("gold", Some("2h"))), ("big", quota("unlimited", None))]
                .map(|(tenant, quota)| (tenant.parse().unwrap(), quota))
                .into(),
            other_tenants: quota("free", Some("10m")),
            max_run_time: Some(length("1d")),
            ..JobPolicy::default()
        };
        let check = |asked: Option<&str>, tenant: Option<&str>, expected: &str| {
            let said = allowed
                .check(&job(asked, tenant))
                .map_or_else(|error| error.to_string(), |()| "ok".to_owned());
            assert_eq!(said, expected, "{asked:?} {tenant:?}");
        };
        check(None, Some("acme"), "ok");
        check(Some("2h"), Some("acme"), "ok");
        check(
            Some("3h"),
            Some("acme"),
            "`shop`: `max_allowed_duration` is 3h, and a run may take 2h at most by the plan `gold` of tenant `acme`; \
             lower it, or raise the limit in the configuration",
        );
        check(
            Some("11m"),
            Some("stranger"),
            "`shop`: `max_allowed_duration` is 11m, and a run may take 10m at most by the plan `free` of tenant \
             `stranger`; lower it, or raise the limit in the configuration",
        );
        check(
            Some("2d"),
            Some("big"),
            "`shop`: `max_allowed_duration` is 2d, and a run may take 1d at most by `quota.max_run_time`; lower it, or \
             raise the limit in the configuration",
        );
        check(Some("1d"), None, "ok");
    }

    #[test]
    fn a_first_run_comes_as_soon_as_the_configuration_says_unless_the_job_says_otherwise() {
        let allowed = JobPolicy { first_run_within: Some(length("10m")), ..JobPolicy::default() };
        assert_eq!(allowed.placed_as(&job(None, None)).first_run_within, Some(length("10m")));
        let own = Job { first_run_within: Some(length("1h")), ..job(None, None) };
        assert_eq!(allowed.placed_as(&own).first_run_within, Some(length("1h")));
        assert_eq!(JobPolicy::default().placed_as(&own), Cow::Borrowed(&own));
    }
}
