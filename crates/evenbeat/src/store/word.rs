//! Words that stand for choices, as they are stored.

use evenbeat_core::job::PausedBy;
use evenbeat_core::occurrence::{RecordKind, Serves};
use evenbeat_core::run::{Outcome, Trigger};
use evenbeat_core::store::{RunPhase, SessionKind};

/// A choice that is stored as a word.
pub trait Word: Sized + Copy {
    /// The word.
    fn word(self) -> &'static str;

    /// What a word stands for.
    fn of_word(word: &str) -> Option<Self>;
}

impl Word for Outcome {
    fn word(self) -> &'static str {
        self.as_str()
    }

    fn of_word(word: &str) -> Option<Outcome> {
        Outcome::named(word)
    }
}

impl Word for Trigger {
    fn word(self) -> &'static str {
        self.as_str()
    }

    fn of_word(word: &str) -> Option<Trigger> {
        Trigger::named(word)
    }
}

/// By its reason: no two kinds have the same.
impl Word for RecordKind {
    fn word(self) -> &'static str {
        self.reason()
    }

    fn of_word(word: &str) -> Option<RecordKind> {
        RecordKind::of_reason(word)
    }
}

impl Word for PausedBy {
    fn word(self) -> &'static str {
        match self {
            PausedBy::Operator => "operator",
            PausedBy::Quota => "quota",
            PausedBy::Failures => "failures",
            PausedBy::Invalid => "invalid",
        }
    }

    fn of_word(word: &str) -> Option<PausedBy> {
        [PausedBy::Operator, PausedBy::Quota, PausedBy::Failures, PausedBy::Invalid]
            .into_iter()
            .find(|it| it.word() == word)
    }
}

impl Word for SessionKind {
    fn word(self) -> &'static str {
        match self {
            SessionKind::Node => "node",
            SessionKind::Worker => "worker",
        }
    }

    fn of_word(word: &str) -> Option<SessionKind> {
        [SessionKind::Node, SessionKind::Worker].into_iter().find(|it| it.word() == word)
    }
}

/// How far an open run has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenPhase {
    /// A session owns it; nothing has been started yet.
    Claimed,
    /// Its start message is with the broker.
    Published,
    /// It executes.
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

impl Word for OpenPhase {
    fn word(self) -> &'static str {
        match self {
            OpenPhase::Claimed => "claimed",
            OpenPhase::Published => "published",
            OpenPhase::Running => "running",
        }
    }

    fn of_word(word: &str) -> Option<OpenPhase> {
        [OpenPhase::Claimed, OpenPhase::Published, OpenPhase::Running]
            .into_iter()
            .find(|it| it.word() == word)
    }
}

/// What a run serves, without the id of an extra.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServesKind {
    /// The pending occurrence.
    Pending,
    /// One that the schedule has moved on from.
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

impl Word for ServesKind {
    fn word(self) -> &'static str {
        match self {
            ServesKind::Pending => "pending",
            ServesKind::Beside => "beside",
            ServesKind::Extra => "extra",
        }
    }

    fn of_word(word: &str) -> Option<ServesKind> {
        [ServesKind::Pending, ServesKind::Beside, ServesKind::Extra].into_iter().find(|it| it.word() == word)
    }
}
