//! Enums as they are stored in a column: by keyword.

use evenbeat_core::job::PausedBy;
use evenbeat_core::occurrence::{RecordKind, Serves};
use evenbeat_core::run::{Outcome, Trigger};
use evenbeat_core::store::{RunPhase, SessionKind};

/// An enum that is stored as a keyword.
pub trait Keyword: Sized + Copy {
    /// The keyword of a value.
    fn keyword(self) -> &'static str;

    /// The value of a keyword. Returns None if there is no such keyword.
    fn from_keyword(keyword: &str) -> Option<Self>;
}

impl Keyword for Outcome {
    fn keyword(self) -> &'static str {
        self.as_str()
    }

    fn from_keyword(keyword: &str) -> Option<Outcome> {
        Outcome::named(keyword)
    }
}

impl Keyword for Trigger {
    fn keyword(self) -> &'static str {
        self.as_str()
    }

    fn from_keyword(keyword: &str) -> Option<Trigger> {
        Trigger::named(keyword)
    }
}

/// The keyword is the reason, which no two kinds share.
impl Keyword for RecordKind {
    fn keyword(self) -> &'static str {
        self.reason()
    }

    fn from_keyword(keyword: &str) -> Option<RecordKind> {
        RecordKind::of_reason(keyword)
    }
}

impl Keyword for PausedBy {
    fn keyword(self) -> &'static str {
        match self {
            PausedBy::Operator => "operator",
            PausedBy::Quota => "quota",
            PausedBy::Failures => "failures",
            PausedBy::Invalid => "invalid",
        }
    }

    fn from_keyword(keyword: &str) -> Option<PausedBy> {
        [PausedBy::Operator, PausedBy::Quota, PausedBy::Failures, PausedBy::Invalid]
            .into_iter()
            .find(|it| it.keyword() == keyword)
    }
}

impl Keyword for SessionKind {
    fn keyword(self) -> &'static str {
        match self {
            SessionKind::Node => "node",
            SessionKind::Worker => "worker",
        }
    }

    fn from_keyword(keyword: &str) -> Option<SessionKind> {
        [SessionKind::Node, SessionKind::Worker].into_iter().find(|it| it.keyword() == keyword)
    }
}

/// The phase of an open run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenPhase {
    /// Owned by a session, and not started yet.
    Claimed,
    /// Its start message is with the broker.
    Published,
    /// It is executing.
    Running,
}

impl From<OpenPhase> for RunPhase {
    fn from(phase: OpenPhase) -> RunPhase {
        match phase {
            OpenPhase::Claimed => RunPhase::Claimed,
            OpenPhase::Published => RunPhase::Published,
            OpenPhase::Running => RunPhase::Running,
        }
    }
}

impl Keyword for OpenPhase {
    fn keyword(self) -> &'static str {
        match self {
            OpenPhase::Claimed => "claimed",
            OpenPhase::Published => "published",
            OpenPhase::Running => "running",
        }
    }

    fn from_keyword(keyword: &str) -> Option<OpenPhase> {
        [OpenPhase::Claimed, OpenPhase::Published, OpenPhase::Running]
            .into_iter()
            .find(|it| it.keyword() == keyword)
    }
}

/// What a run serves, without the id of an extra.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServesKind {
    /// The pending occurrence.
    Pending,
    /// An occurrence that the schedule has moved on from.
    Beside,
    /// An extra.
    Extra,
}

impl From<Serves> for ServesKind {
    fn from(serves: Serves) -> ServesKind {
        match serves {
            Serves::Pending => ServesKind::Pending,
            Serves::Beside => ServesKind::Beside,
            Serves::Extra(_) => ServesKind::Extra,
        }
    }
}

impl Keyword for ServesKind {
    fn keyword(self) -> &'static str {
        match self {
            ServesKind::Pending => "pending",
            ServesKind::Beside => "beside",
            ServesKind::Extra => "extra",
        }
    }

    fn from_keyword(keyword: &str) -> Option<ServesKind> {
        [ServesKind::Pending, ServesKind::Beside, ServesKind::Extra]
            .into_iter()
            .find(|it| it.keyword() == keyword)
    }
}
