//! The first page.

use maud::html;

use super::html::PageHtml;
use super::user::{FORM_TOKEN, PageUser, PageViewer};

pub(super) async fn home(user: PageUser<PageViewer>) -> PageHtml {
    let session = &user.session;
    let body = html! {
        h1 { "Evenbeat" }
        p { "You are logged in as " strong { (session.actor.0) } " with the role " strong { (session.role) } "." }
        ul {
            li { a href="/docs/api" { "Reference of the API" } }
            li { a href="/api/v1" { "The API" } " takes tokens only; create one with " code { "evenbeat token create" } "." }
        }
        form method="post" action="/logout" {
            input type="hidden" name=(FORM_TOKEN) value=(session.form_token);
            button type="submit" { "Log out" }
        }
    };
    PageHtml::new("Start", body)
}
