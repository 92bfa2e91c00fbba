//! Addresses that lead nowhere: a page for people, JSON for programs.

use super::client::{seen, text};
use crate::support::served::Served;

const BROWSER: (&str, &str) = ("Accept", "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8");

#[test]
fn a_browser_gets_a_page_with_a_way_home() {
    let served = Served::start();
    for path in ["/nowhere", "/nodes/one/nothing", "/%3Cscript%3E"] {
        let reply = served.ask_bare("GET", path, &[BROWSER], None);
        assert_eq!(
            (reply.status, reply.header("content-type")),
            (404, Some("text/html; charset=utf-8")),
            "{path}"
        );
        let page = text(&reply);
        assert!(seen(&page).contains("There is no such page"), "{page}");
        assert!(page.contains(r#"href="/""#) && !page.contains("<script>"), "{page}");
        assert!(reply.header("content-security-policy").unwrap().contains("default-src 'self'"));
        assert_eq!(reply.header("x-frame-options"), Some("DENY"));
        assert_eq!(reply.header("cache-control"), Some("no-store"));
    }
    let dark = served.ask_bare("GET", "/nowhere", &[BROWSER, ("Cookie", "evenbeat_theme=dark")], None);
    assert!(text(&dark).contains(r#"data-theme="dark""#));
}

#[test]
fn programs_and_the_api_get_json() {
    let served = Served::start();
    assert_eq!(served.ask_bare("GET", "/nowhere", &[], None).short(), "404 no_such_route");
    assert_eq!(served.ask_bare("GET", "/nowhere", &[("Accept", "*/*")], None).short(), "404 no_such_route");
    for path in ["/api", "/api/", "/api/v1/nowhere", "/api/v2/status"] {
        assert_eq!(served.ask_bare("GET", path, &[BROWSER], None).short(), "404 no_such_route", "{path}");
    }
}
