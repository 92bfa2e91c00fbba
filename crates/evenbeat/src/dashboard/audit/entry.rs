//! One entry: who, by what means, what, on what, and each changed field before and after.

use evenbeat_core::ids::JobKey;
use evenbeat_core::store::AuditEntry;
use evenbeat_core::time::Timestamp;
use maud::{Markup, html};
use serde_json::{Map, Value as Json};

use crate::dashboard::parts::job_path;
use crate::dashboard::times::{Times, counted};
use crate::printable;
use crate::store::query::AuditRow;

/// Fields of one change that are shown, and those of something that was created or deleted as a whole.
const FIELDS_MAX: usize = 6;
const FIELDS_OF_WHOLE_MAX: usize = 3;

/// Longest value that is shown whole.
const VALUE_CHARS_MAX: usize = 120;

/// What an action is called in the list, and in a sentence about it.
fn words(action: &str) -> Option<(&'static str, &'static str)> {
    Some(match action {
        "create" => ("Job created", "created"),
        "edit" => ("Job changed", "changed"),
        "delete" => ("Job deleted", "deleted"),
        "pause" => ("Job paused", "paused"),
        "resume" => ("Job resumed", "resumed"),
        "trigger" => ("Run started by hand", "ran"),
        "backfill" => ("Backfill started", "backfilled"),
        "cancel" => ("Run cancelled", "cancelled a run of"),
        "rebalance" => ("Moved by a rebalance", "moved"),
        "mend" => ("Next run repaired", "repaired"),
        "drain" => ("Node drained", "drained"),
        "undrain" => ("Node takes runs again", "undrained"),
        "create_token" => ("Token created", "created"),
        "revoke_token" => ("Token revoked", "revoked"),
        "create_login_link" => ("Login link created", "created a login link to the"),
        "login" => ("Signed in", "signed in to the"),
        "logout" => ("Signed out", "signed out of the"),
        _ => return None,
    })
}

/// `uid 1000 (page) drained node iad-2`.
pub(super) fn sentence(entry: &AuditEntry) -> String {
    let AuditEntry { actor, action, subject, .. } = entry;
    let verb = words(action).map_or_else(|| format!("did {action} to"), |(_, verb)| verb.to_owned());
    format!("{actor} {verb} {subject}").trim_end().to_owned()
}

/// Who, and by what means.
fn who(actor: &str) -> (String, &'static str) {
    if let Some(name) = actor.strip_suffix(" (page)") {
        return (name.to_owned(), "browser");
    }
    if let Some(token) = actor.strip_prefix("token ") {
        let label = token.split_once(" (").and_then(|(id, label)| Some((id, label.strip_suffix(')')?)));
        return match label {
            Some((id, label)) => (format!("{label} {id}"), "token"),
            None => (token.to_owned(), "token"),
        };
    }
    match actor {
        "system" => ("evenbeat".to_owned(), "system"),
        "loopback" => ("this machine".to_owned(), "trusted loopback"),
        it if it.starts_with("uid ") => (it.to_owned(), "command line"),
        it => (it.to_owned(), ""),
    }
}

pub(super) fn row(row: &AuditRow, times: &Times) -> Markup {
    let entry = &row.entry;
    let (name, means) = who(&entry.actor);
    let what =
        words(&entry.action).map_or_else(|| entry.action.replace('_', " "), |(what, _)| what.to_owned());
    html! {
        tr id={ "e" (row.no) } {
            td.nw { (times.exact(row.at)) }
            td.ell title=(printable::line(&entry.actor)) { b { (printable::line(&name)) } " " span.mut { (means) } }
            td { (printable::line(&what)) }
            td.t2.on { (subject(&entry.subject)) }
            td { (changes(entry, times)) }
        }
    }
}

fn subject(subject: &str) -> Markup {
    html! {
        @if let Some(node) = subject.strip_prefix("node ") { a href="/nodes" { (printable::line(node)) } }
        @else if subject.contains(' ') || subject == "pages" || subject.parse::<JobKey>().is_err() { (printable::line(subject)) }
        @else { a href=(job_path(subject)) { (subject) } }
    }
}

/// Each field that changed; and what was said about it.
fn changes(entry: &AuditEntry, times: &Times) -> Markup {
    let (before, after) = (fields(entry.before.as_deref()), fields(entry.after.as_deref()));
    let mut names: Vec<&String> = before.keys().chain(after.keys()).collect();
    names.sort();
    names.dedup();
    // It stands beside it already.
    names.retain(|name| *name != "name");
    let is_whole = entry.before.is_none() || entry.after.is_none();
    let most = if is_whole { FIELDS_OF_WHOLE_MAX } else { FIELDS_MAX };
    let n_more = names.len().saturating_sub(most);
    html! {
        @if !names.is_empty() || !entry.detail.is_empty() {
            span.diff {
                @for name in names.iter().take(most) {
                    span.mut { (printable::line(name)) }
                    span { (change(before.get(*name), after.get(*name), times)) }
                }
                @if 0 < n_more { span.mut { "and" } span.mut { (counted(n_more as u64, "more field")) } }
                @if !entry.detail.is_empty() { span.mut { "note" } span { (shortened(&entry.detail)) } }
            }
        }
    }
}

fn change(before: Option<&Json>, after: Option<&Json>, times: &Times) -> Markup {
    let shown = |it: &Json| value(it, times);
    html! {
        @match (before, after) {
            (Some(before), Some(after)) => { del { (shown(before)) } " → " ins { (shown(after)) } }
            (None, Some(after)) => ins { (shown(after)) },
            (Some(before), None) => { del { (shown(before)) } " → " ins { "none" } }
            (None, None) => {}
        }
    }
}

/// The fields of one side. What is not an object was written by another program, and is shown as one field.
fn fields(text: Option<&str>) -> Map<String, Json> {
    let Some(text) = text else { return Map::new() };
    match serde_json::from_str(text) {
        Ok(Json::Object(fields)) => fields,
        Ok(other) => Map::from_iter([("value".to_owned(), other)]),
        Err(_) => Map::from_iter([("value".to_owned(), Json::String(text.to_owned()))]),
    }
}

/// Instants in the zone of the reader, everything else as it is.
fn value(value: &Json, times: &Times) -> String {
    match value {
        Json::String(text) => match text.parse::<Timestamp>() {
            Ok(at) => times.short_text(at),
            Err(_) => shortened(text),
        },
        Json::Bool(true) => "yes".to_owned(),
        Json::Bool(false) => "no".to_owned(),
        Json::Null => "none".to_owned(),
        other => shortened(&other.to_string()),
    }
}

fn shortened(text: &str) -> String {
    let short: String = text.chars().take(VALUE_CHARS_MAX).collect();
    let end = if short.len() < text.len() { "…" } else { "" };
    format!("{}{end}", printable::line(&short))
}

#[cfg(test)]
mod tests {
    use evenbeat_core::zone::Zone;

    use super::*;

    fn times() -> Times {
        Times { zone: Zone::utc(), now: "2026-11-18T10:00:00Z".parse().unwrap() }
    }

    #[track_caller]
    fn check(actor: &str, name: &str, means: &str) {
        assert_eq!(who(actor), (name.to_owned(), means));
    }

    #[test]
    fn an_actor_is_a_name_and_a_means() {
        check("uid 1000", "uid 1000", "command line");
        check("uid 1000 (page)", "uid 1000", "browser");
        check("token 7c01 (ci)", "ci 7c01", "token");
        check("token 7c01", "7c01", "token");
        check("system", "evenbeat", "system");
        check("demo", "demo", "");
    }

    #[test]
    fn a_change_names_each_field() {
        let entry = AuditEntry {
            before: Some(r#"{"every":"2h","next_run_at":"2026-11-18T12:30:00Z"}"#.to_owned()),
            after: Some(
                r#"{"every":"4h","paused_by":"operator","next_run_at":"2026-11-19T14:30:00Z"}"#.to_owned(),
            ),
            ..AuditEntry::default()
        };
        let shown = changes(&entry, &times()).into_string();
        let every = r#"<span class="mut">every</span><span><del>2h</del> → <ins>4h</ins></span>"#;
        let at = "<del>12:30</del> → <ins>Thu 14:30</ins>";
        let pause = r#"<span class="mut">paused_by</span><span><ins>operator</ins></span>"#;
        assert!(shown.contains(every) && shown.contains(at) && shown.contains(pause), "{shown}");
    }

    #[test]
    fn hostile_text_stays_text() {
        let entry = AuditEntry {
            before: Some("not json <b>".to_owned()),
            detail: "<script>\u{202e}\u{1b}[2J".to_owned(),
            ..AuditEntry::default()
        };
        let shown = changes(&entry, &times()).into_string();
        assert!(
            shown.contains("not json &lt;b&gt;") && shown.contains("&lt;script&gt;\\u{202e}\\x1b[2J"),
            "{shown}"
        );
    }

    #[test]
    fn a_sentence_says_who_did_what() {
        let entry = |actor: &str, action: &str, subject: &str| AuditEntry {
            actor: actor.to_owned(),
            action: action.to_owned(),
            subject: subject.to_owned(),
            ..AuditEntry::default()
        };
        assert_eq!(
            sentence(&entry("uid 0 (page)", "drain", "node iad-2")),
            "uid 0 (page) drained node iad-2"
        );
        assert_eq!(sentence(&entry("uid 0", "login", "pages")), "uid 0 signed in to the pages");
        assert_eq!(sentence(&entry("system", "tidy", "x")), "system did tidy to x");
    }
}
