//! Conditions: a shape and a word; colour only supports them.

use maud::{Markup, html};

use super::icon;

/// How something stands, as it is marked on pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ConditionMark {
    Error,
    Warning,
    Ok,
    Paused,
    /// It has not run yet.
    New,
    Running,
}

impl ConditionMark {
    /// The mark of a condition or status by its word in the API; paused for what is not tracked.
    pub(crate) fn of(word: &str) -> ConditionMark {
        match word {
            "ok" => ConditionMark::Ok,
            "warning" => ConditionMark::Warning,
            "error" => ConditionMark::Error,
            "running" => ConditionMark::Running,
            "pending" => ConditionMark::New,
            _ => ConditionMark::Paused,
        }
    }

    /// The name of its icon and of its class.
    pub(crate) fn name(self) -> &'static str {
        match self {
            ConditionMark::Ok => "ok",
            ConditionMark::Warning => "warning",
            ConditionMark::Error => "error",
            ConditionMark::Paused => "paused",
            ConditionMark::New => "new",
            ConditionMark::Running => "run",
        }
    }

    /// The word that stands beside the icon.
    pub(crate) fn word(self) -> &'static str {
        match self {
            ConditionMark::Ok => "OK",
            ConditionMark::Warning => "Warning",
            ConditionMark::Error => "Error",
            ConditionMark::Paused => "Paused",
            ConditionMark::New => "New",
            ConditionMark::Running => "Running",
        }
    }

    /// Its icon alone, for headings that say the rest.
    pub(crate) fn icon(self) -> Markup {
        icon(self.name())
    }
}

/// Icon and a word of one's own: "Done", "Disabled".
pub(crate) fn status_with(mark: ConditionMark, word: &str) -> Markup {
    html! { span class={ "st st-" (mark.name()) } { (mark.icon()) span.w { (word) } } }
}

/// Icon and word on a ground, for headers.
pub(crate) fn status_pill(mark: ConditionMark, word: &str) -> Markup {
    html! { span class={ "st pill st-" (mark.name()) } { (mark.icon()) span.w { (word) } } }
}
