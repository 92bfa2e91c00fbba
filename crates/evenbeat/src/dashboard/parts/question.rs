//! A question before a change, with its consequence. It is a page of its own; with scripts, a link marked `data-ask` shows
//! the same form in a dialog.

use maud::{Markup, html};

use super::form_token;
use crate::auth::PageSession;

/// What is asked.
#[derive(Debug)]
pub(crate) struct PageQuestion<'a> {
    pub(crate) title: String,
    /// Consequences and fields.
    pub(crate) body: Markup,
    /// Where the answer is sent.
    pub(crate) action: String,
    /// The verb, with what it is about.
    pub(crate) verb: String,
    /// Whether it cannot be undone.
    pub(crate) is_final: bool,
    /// Where "Cancel" leads.
    pub(crate) back: &'a str,
}

/// The form, as a page shows it.
pub(crate) fn question(question: &PageQuestion<'_>, session: &PageSession) -> Markup {
    question_or(question, "Cancel", session)
}

/// The same with another word for leaving everything as it is, where "Cancel" could be taken for the verb.
pub(crate) fn question_or(question: &PageQuestion<'_>, keep: &str, session: &PageSession) -> Markup {
    let verb = if question.is_final { "btn dng-f" } else { "btn pri" };
    html! {
        section.qst {
            form method="post" action=(question.action) {
                (form_token(session))
                div.dlg-h { h1 tabindex="-1" { (question.title) } }
                div.dlg-b { (question.body) }
                div.dlg-f {
                    span.sp {}
                    a.btn href=(question.back) data-close { (keep) }
                    button class=(verb) type="submit" { (question.verb) }
                }
            }
        }
    }
}
