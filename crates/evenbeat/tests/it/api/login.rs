//! The pages: how people log in and out, and what their cookie is good for.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use evenbeat::testing::clock::Clock;
use evenbeat::testing::store::sqlite::Options;
use evenbeat_core::rights::{Grant, Role};
use evenbeat_core::time::Duration;

use super::access::session_of;
use crate::support::served::{Reply, Served, Setup};

fn link(served: &Served) -> String {
    let link = served.ask_socket_with("POST", "/api/v1/login-links", &[], Some("{}")).json();
    link["url"].as_str().unwrap().strip_prefix(&served.url()).unwrap().to_owned()
}

fn page(served: &Served, path: &str, headers: &[(&str, &str)]) -> Reply {
    let reply = served.ask_bare("GET", path, headers, None);
    if reply.header("content-type") == Some("text/html; charset=utf-8") {
        let policy = reply.header("content-security-policy").unwrap();
        assert!(policy.contains("default-src 'self'") && !policy.contains("unsafe"), "{policy}");
        assert_eq!(reply.header("x-frame-options"), Some("DENY"));
        let text = String::from_utf8_lossy(&reply.body);
        // One script of our own, and nothing inline.
        assert_eq!(text.matches("<script").count(), 1, "{text}");
        assert!(text.contains(r#"<script src="/assets/evenbeat.js?v="#), "{text}");
        assert!(!text.contains("style=\"") && !text.contains("<style"), "{text}");
    }
    assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
    reply
}

fn text(reply: &Reply) -> String {
    String::from_utf8(reply.body.clone()).unwrap()
}

fn form(served: &Served, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
    let kind = ("Content-Type", "application/x-www-form-urlencoded");
    served.ask_bare("POST", path, &[headers, &[kind]].concat(), Some(body))
}

#[test]
fn a_link_opens_the_pages_once() {
    let served = Served::start();
    let link = link(&served);
    // A program that looks at links ahead of people does not use them up.
    assert_eq!(served.ask_bare("HEAD", &link, &[], None).status, 200);
    let reply = page(&served, &link, &[]);
    assert_eq!((reply.status, reply.header("location")), (303, Some("/")));
    assert_eq!(reply.header("referrer-policy"), Some("no-referrer"));
    assert_eq!(reply.header("cache-control"), Some("no-store"));
    let cookie = reply.header("set-cookie").unwrap();
    let (pair, flags) = cookie.split_once("; ").unwrap();
    assert!(pair.starts_with("evenbeat_session=") && pair.len() == 17 + 64, "{cookie}");
    assert_eq!(flags, "HttpOnly; SameSite=Strict; Path=/");

    let again = page(&served, &link, &[]);
    assert_eq!((again.status, again.header("set-cookie")), (403, None));
    assert!(text(&again).contains("Not valid, or used already"), "{again:?}");
    let home = page(&served, "/", &[("Cookie", pair)]);
    assert_eq!(home.status, 200);
    assert!(text(&home).contains(" (page), admin</span>"), "{}", text(&home));
    let audit = served.runtime.block_on(served.app.store.audit(100)).unwrap();
    let actions: Vec<&str> = audit.iter().map(|it| it.action.as_str()).collect();
    assert_eq!(actions, ["create_login_link", "login"]);
    let code = link.split_once("code=").unwrap().1;
    assert!(!format!("{audit:?}").contains(code), "{audit:?}");
}

#[test]
fn a_link_is_good_for_a_minute() {
    let ahead = Arc::new(AtomicI64::new(0));
    let (clock, shift) = (Clock::system(), Arc::clone(&ahead));
    let now = move || clock.now() + Duration::from_millis(shift.load(Ordering::Relaxed));
    let store = Options { clock: Arc::new(now), ..Options::default() };
    let served = Served::with(Setup { store, ..Setup::default() });
    let (first, second) = (link(&served), link(&served));
    ahead.store(30_000, Ordering::Relaxed);
    assert_eq!(page(&served, &first, &[]).status, 303);
    ahead.store(61_000, Ordering::Relaxed);
    assert_eq!(page(&served, &second, &[]).status, 403);
}

#[test]
fn who_has_no_session_is_asked_to_log_in_and_who_comes_from_elsewhere_tries_once_more() {
    let served = Served::start();
    let direct = page(&served, "/", &[]);
    assert_eq!((direct.status, direct.header("location")), (303, Some("/login")));
    assert_eq!(page(&served, "/", &[("Sec-Fetch-Site", "none")]).status, 303);
    assert_eq!(page(&served, "/", &[("Sec-Fetch-Site", "same-origin")]).status, 303);
    // The browser keeps the cookie to itself when a link elsewhere was clicked.
    let foreign = page(&served, "/", &[("Sec-Fetch-Site", "cross-site")]);
    assert_eq!(foreign.status, 200);
    assert!(text(&foreign).contains(r#"<meta http-equiv="refresh" content="0">"#), "{}", text(&foreign));
    let login = page(&served, "/login", &[]);
    assert_eq!(login.status, 200);
    assert!(text(&login).contains("evenbeat login"), "{}", text(&login));
    assert_eq!(page(&served, "/assets/evenbeat.css", &[]).status, 200);
    assert_eq!(page(&served, "/assets/other.css", &[]).status, 404);
}

#[test]
fn a_token_opens_a_session_that_ends_with_it() {
    let served = Served::start();
    let token = served.token(Grant::Role(Role::Operator));
    let reply = form(&served, "/login", &[], &format!("token={token}"));
    assert_eq!((reply.status, reply.header("location")), (303, Some("/")), "{}", text(&reply));
    let cookie = reply.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let home = page(&served, "/", &[("Cookie", &cookie)]);
    assert!(text(&home).contains(", operator</span>"), "{}", text(&home));
    assert_eq!(served.ask_socket("DELETE", &format!("/api/v1/tokens/{}", &token[4..16])).status, 204);
    assert_eq!(page(&served, "/", &[("Cookie", &cookie)]).status, 303);
    let refused = form(&served, "/login", &[], &format!("token={token}"));
    assert_eq!(refused.status, 403);
    let unknown = form(&served, "/login", &[], "token=evb_000000000000_00");
    assert_eq!(refused.body, unknown.body, "nobody learns which tokens there were");

    for grant in [Grant::Worker, Grant::Metrics] {
        let reply = form(&served, "/login", &[], &format!("token={}", served.token(grant)));
        assert_eq!((reply.status, reply.header("set-cookie")), (403, None), "{grant} is for programs");
    }
    let foreign =
        form(&served, "/login", &[("Origin", "http://evil.example")], &format!("token={}", served.admin));
    assert_eq!(foreign.short(), "403 origin_not_allowed");
    assert_eq!(form(&served, "/login", &[], "nothing=1").status, 400);
    for _ in 0..30 {
        form(&served, "/login", &[], "token=guess");
    }
    assert_eq!(form(&served, "/login", &[], "token=guess").status, 429);
}

#[test]
fn a_form_counts_only_with_the_token_of_its_session() {
    let served = Served::start();
    let (mine, theirs) = (session_of(&served, "viewer"), session_of(&served, "admin"));
    let token_of = |cookie: &str| {
        let home = text(&page(&served, "/", &[("Cookie", cookie)]));
        let (_, rest) = home.split_once(r#"name="form_token" value=""#).unwrap();
        rest.split('"').next().unwrap().to_owned()
    };
    let logout = |body: &str, headers: &[(&str, &str)]| {
        form(&served, "/logout", &[&[("Cookie", mine.as_str())], headers].concat(), body).status
    };
    assert_eq!(logout("", &[]), 403);
    assert_eq!(logout("form_token=", &[]), 403);
    assert_eq!(logout(&format!("form_token={}", token_of(&theirs)), &[]), 403);
    let own = format!("form_token={}", token_of(&mine));
    assert_eq!(logout(&own, &[("Sec-Fetch-Site", "cross-site")]), 403);
    assert_eq!(page(&served, "/", &[("Cookie", &mine)]).status, 200, "nothing has happened");
    assert_eq!(logout(&own, &[]), 303);
    assert_eq!(page(&served, "/", &[("Cookie", &mine)]).status, 303, "the session is over");
    assert_eq!(page(&served, "/", &[("Cookie", &theirs)]).status, 200);
    assert_eq!(served.ask_bare("GET", "/logout", &[("Cookie", &theirs)], None).status, 405);
}

#[test]
fn behind_a_proxy_that_is_trusted_the_cookie_is_for_https() {
    let mut setup = Setup::default();
    setup.options.trusted_proxies = vec!["127.0.0.1".parse().unwrap()];
    let served = Served::with(setup);
    let https = [("X-Forwarded-Proto", "https"), ("X-Forwarded-For", "192.0.2.7")];
    let reply = page(&served, &link(&served), &https);
    let cookie = reply.header("set-cookie").unwrap();
    assert!(cookie.starts_with("__Host-evenbeat_session="), "{cookie}");
    assert!(cookie.ends_with("; Secure; HttpOnly; SameSite=Strict; Path=/"), "{cookie}");
    let pair = cookie.split(';').next().unwrap();
    assert_eq!(page(&served, "/", &[&https[..], &[("Cookie", pair)]].concat()).status, 200);
    // Over a network without encryption nobody logs in.
    let plain = [("X-Forwarded-For", "192.0.2.7")];
    let refused = page(&served, &link(&served), &plain);
    assert_eq!((refused.status, refused.header("set-cookie")), (403, None));
    assert!(text(&refused).contains("not encrypted"), "{}", text(&refused));
}
