//! Who changed what, by what means, and from what to what.

mod chain;
mod entry;

use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use maud::{Markup, html};

use self::chain::ChainCheck;
use super::Pages;
use super::error::{NoPage, PageResult};
use super::frame::{Frame, Nav};
use super::parts::{ConditionMark, icon};
use super::times::{Distance, Times, count};
use super::user::{FormFields, PageOperator, PageUser};
use crate::printable;
use crate::store::query::{AUDIT_ROWS_MAX, ActorKind, AuditFilter, AuditPage};

/// Entries of one page.
const ROWS_MAX: usize = 50;

/// Longest text to look for.
const TEXT_CHARS_MAX: usize = 200;

pub(super) fn routes() -> Router<Pages> {
    Router::new().route("/audit", get(page))
}

/// What the address asks for.
#[derive(Debug)]
struct AuditAsk {
    kind: Option<ActorKind>,
    text: Option<String>,
    before: Option<u64>,
}

impl AuditAsk {
    fn of(query: &FormFields) -> Result<AuditAsk, String> {
        let kind = match query.get("who") {
            None => None,
            Some("people") => Some(ActorKind::Person),
            Some("tokens") => Some(ActorKind::Token),
            Some("system") => Some(ActorKind::System),
            Some(_) => return Err("`who` is `people`, `tokens` or `system`".to_owned()),
        };
        let text = query.get("q").map(|it| it.chars().take(TEXT_CHARS_MAX).collect());
        let before = query.get("before").map(str::parse).transpose();
        let before = before.map_err(|_| "`before` is the number of an entry".to_owned())?;
        Ok(AuditAsk { kind, text, before })
    }

    fn is_of_all(&self) -> bool {
        self.kind.is_none() && self.text.is_none()
    }

    /// The address of this list with another kind, from its beginning or from an entry on.
    fn path(&self, kind: Option<ActorKind>, before: Option<u64>) -> String {
        let mut query = Vec::new();
        query.extend(kind.map(|it| format!("who={}", word(it))));
        query.extend(self.text.as_deref().map(|it| format!("q={}", percent_encoded(it))));
        query.extend(before.map(|it| format!("before={it}")));
        if query.is_empty() { "/audit".to_owned() } else { format!("/audit?{}", query.join("&")) }
    }
}

fn word(kind: ActorKind) -> &'static str {
    match kind {
        ActorKind::Person => "people",
        ActorKind::Token => "tokens",
        ActorKind::System => "system",
    }
}

/// For the value of a query.
fn percent_encoded(text: &str) -> String {
    use std::fmt::Write as _;
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

async fn page(user: PageUser<PageOperator>, State(pages): State<Pages>) -> PageResult<Response> {
    let times = user.times(pages.app.intake.now());
    let ask = AuditAsk::of(&user.query).map_err(NoPage::Refused)?;
    let filter = AuditFilter { actor_kind: ask.kind, text: ask.text.clone(), ..AuditFilter::default() };
    let found = pages.app.store.list_audit(filter, ask.before, ROWS_MAX).await?;
    let checked = ChainCheck::of(&found.rows);
    let title = title(&ask, &found, &times);
    let body = html! {
        section.verdict aria-labelledby="v" {
            div {
                h1 id="v" { @if checked.is_broken() { (ConditionMark::Error.icon()) } (title) }
                p.sub { "Entries are only ever added, and each is chained to the one before it by a hash. " (checked.sentence()) }
            }
        }
        @if let Some(broken) = checked.broken() {
            div.banner.err.gap role="alert" { (icon("error")) span { b { (broken) } " Run " code { "evenbeat audit verify" } " to check the whole chain." } }
        }
        div.bar-f.gap {
            nav.tabs aria-label="Kinds" {
                @for (kind, label) in [(None, "All"), (Some(ActorKind::Person), "People"), (Some(ActorKind::Token), "Tokens"), (Some(ActorKind::System), "System")] {
                    a href=(ask.path(kind, None)) aria-current=[(kind == ask.kind).then_some("true")] { (label) }
                }
            }
            span.sp {}
            form.flt role="search" aria-label="Filter this list" {
                @if let Some(kind) = ask.kind { input type="hidden" name="who" value=(word(kind)); }
                label.sr for="aq" { "Who, what or job" }
                span.field { (icon("search")) input.in id="aq" name="q" type="search" placeholder="Who, what or job" value=[ask.text.as_deref()] maxlength=(TEXT_CHARS_MAX); }
                button.btn.no-js type="submit" { "Filter" }
            }
        }
        (list(&ask, &found, &times))
    };
    Ok(Frame::new(Nav::Audit, "Audit", body).show(&user, &times))
}

fn list(ask: &AuditAsk, found: &AuditPage, times: &Times) -> Markup {
    html! {
        @if !found.rows.is_empty() {
            table.tbl.fix.aud {
                colgroup { col.u1; col.u2; col.u4; col.u3; col; }
                thead { tr { th { "Time, " (times.zone_name()) } th { "Who" } th { "What" } th { "On" } th { "Before and after" } } }
                tbody { @for row in &found.rows { (entry::row(row, times)) } }
            }
        } @else if found.next.is_none() && ask.is_of_all() && ask.before.is_none() {
            div.empty { h3 { "No changes yet" } p { "Everything that people, tokens and the system change is listed here." } }
        } @else {
            div.empty {
                h3 { "Nothing matches" @if found.next.is_some() { " so far" } }
                // An unfinished search must not look like an empty one.
                @if found.next.is_some() { p { "Searched " (count(AUDIT_ROWS_MAX as u64)) " entries; there are older ones." } }
                a.btn href="/audit" { "Clear the filters" }
            }
        }
        @if found.next.is_some() || ask.before.is_some() {
            div.pager {
                span { @if !found.rows.is_empty() { @if found.rows.len() == 1 { "1 entry" } @else { (count(found.rows.len() as u64)) " entries" } ", newest first" } }
                span.sp {}
                @if ask.before.is_some() { a.btn href=(ask.path(ask.kind, None)) { "Newest" } }
                @if let Some(next) = found.next { a.btn href=(ask.path(ask.kind, Some(next))) { @if found.rows.is_empty() { "Search older entries" } @else { "Older" } } }
            }
        }
    }
}

fn title(ask: &AuditAsk, found: &AuditPage, times: &Times) -> String {
    match found.rows.first().filter(|_| ask.is_of_all() && ask.before.is_none()) {
        Some(row) => format!(
            "Last change {}: {}",
            times.distance_text(row.at, Distance::Ago),
            printable::line(&entry::sentence(&row.entry))
        ),
        None => "Who changed what".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_keeps_the_filter() {
        let ask = AuditAsk { kind: None, text: Some("a&b é".to_owned()), before: None };
        assert_eq!(ask.path(Some(ActorKind::Token), Some(7)), "/audit?who=tokens&q=a%26b%20%C3%A9&before=7");
        assert_eq!(AuditAsk { text: None, ..ask }.path(None, None), "/audit");
    }
}
