//! What a caller may do: four roles in order, and two narrow grants beside them (G5).

use std::fmt;
use std::str::FromStr;

/// What a person or a program may do. Each role may do what those before it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Look.
    Viewer,
    /// Pause, resume, trigger, cancel, drain, rebalance.
    Operator,
    /// Change what is run, and thereby run anything.
    Editor,
    /// Everything.
    Admin,
}

impl Role {
    /// All roles, the weakest first.
    pub const ALL: [Role; 4] = [Role::Viewer, Role::Operator, Role::Editor, Role::Admin];

    /// The role as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Viewer => "viewer",
            Role::Operator => "operator",
            Role::Editor => "editor",
            Role::Admin => "admin",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a token is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grant {
    /// Everything that a role may do.
    Role(Role),
    /// Ask for work and report about it. No role: a worker may not even look.
    Worker,
    /// Read the metrics.
    Metrics,
}

impl Grant {
    /// All grants.
    pub const ALL: [Grant; 6] = [
        Grant::Role(Role::Viewer),
        Grant::Role(Role::Operator),
        Grant::Role(Role::Editor),
        Grant::Role(Role::Admin),
        Grant::Worker,
        Grant::Metrics,
    ];

    /// The grant as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Grant::Role(role) => role.as_str(),
            Grant::Worker => "worker",
            Grant::Metrics => "metrics",
        }
    }

    /// Whether it covers what a route needs.
    pub fn covers(self, need: Need) -> bool {
        match (self, need) {
            (Grant::Role(role), Need::Role(least)) => least <= role,
            (Grant::Role(_) | Grant::Metrics, Need::Metrics) => true,
            (Grant::Worker | Grant::Metrics, Need::Role(_)) | (Grant::Worker, Need::Metrics) => false,
        }
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Grant {
    type Err = UnknownGrant;

    fn from_str(text: &str) -> Result<Grant, UnknownGrant> {
        Grant::ALL.into_iter().find(|it| it.as_str() == text).ok_or(UnknownGrant)
    }
}

/// A text is not a role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the roles are `viewer`, `operator`, `editor`, `admin`, `worker` and `metrics`")]
pub struct UnknownGrant;

/// What a route needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// At least this role.
    Role(Role),
    /// Permission to read the metrics.
    Metrics,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_role_may_do_what_those_before_it_may() {
        for (idx, role) in Role::ALL.into_iter().enumerate() {
            for (least_idx, least) in Role::ALL.into_iter().enumerate() {
                assert_eq!(Grant::Role(role).covers(Need::Role(least)), least_idx <= idx, "{role} {least}");
            }
            assert!(Grant::Role(role).covers(Need::Metrics));
        }
    }

    #[test]
    fn a_worker_may_not_look_and_metrics_are_all_that_the_scope_of_that_name_reads() {
        for least in Role::ALL {
            assert!(!Grant::Worker.covers(Need::Role(least)));
            assert!(!Grant::Metrics.covers(Need::Role(least)));
        }
        assert!(!Grant::Worker.covers(Need::Metrics));
        assert!(Grant::Metrics.covers(Need::Metrics));
    }

    #[test]
    fn a_grant_is_read_as_it_is_written() {
        for grant in Grant::ALL {
            assert_eq!(grant.as_str().parse(), Ok(grant));
        }
        for text in ["", "Admin", "root", "viewer "] {
            assert_eq!(text.parse::<Grant>(), Err(UnknownGrant), "{text}");
        }
    }
}
