//! Small pieces that pages are made of.

mod freshness;
mod outcome;
mod question;
mod slots;
mod status;
mod strip;
mod svg;
mod url;

use maud::{Markup, PreEscaped, html};

pub(super) use freshness::{Freshness, freshness_bar, time_left};
pub(super) use outcome::{run_mark, run_path, run_status, run_word};
pub(super) use question::{PageQuestion, question, question_or};
pub(super) use slots::{CELLS_MAX, SlotUnits, meter, slot_cells};
pub(super) use status::{ConditionMark, status_pill, status_with};
pub(super) use strip::{StripRun, run_strip};
pub(super) use svg::{percent, rounded_up};
pub(super) use url::url_query;

use super::user::FORM_TOKEN;
use crate::auth::PageSession;

/// An icon of the sprite: `ok`, `warning`, `error`, `paused`, `new`, `run`, `wait`, `drain`, `search`, `x`, `arrow`,
/// `theme`, `live`, `down`, `right`, `kill`, `node`.
pub(super) fn icon(name: &'static str) -> Markup {
    PreEscaped(format!("<svg class=\"i i-{name}\" aria-hidden=\"true\"><use href=\"#i-{name}\"/></svg>"))
}

/// The hidden field without which no form is accepted.
pub(super) fn form_token(session: &PageSession) -> Markup {
    html! { input type="hidden" name=(FORM_TOKEN) value=(session.form_token); }
}

/// The address of a job's page. Keys have no characters that an address would need to escape.
pub(super) fn job_path(key: &str) -> String {
    format!("/jobs/{key}")
}

/// A job's key as a link, with its configuration set back.
pub(super) fn job_link(key: &str) -> Markup {
    let (name, configuration) = key.split_once('@').map_or((key, None), |(name, it)| (name, Some(it)));
    html! {
        a.jid href=(job_path(key)) { (name) @if let Some(it) = configuration { span.pre { "@" (it) } } }
    }
}
