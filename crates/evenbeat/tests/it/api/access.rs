//! Who may do what: every route of the document, for every kind of caller (R-29).

use std::io::{Read, Write};
use std::net::TcpStream;

use evenbeat::testing::store::access::{SecretHash, TokenRow};
use evenbeat_core::ids::{Fence, RunId};
use evenbeat_core::rights::{Grant, Role};
use evenbeat_core::time::Duration;

use super::routes::{Route, routes};
use crate::support::served::{Served, request, run_key};

/// The status of an answer, which may be a stream without an end.
fn status_of(served: &Served, route: &Route, key: &str, headers: &[(&str, &str)]) -> (u16, String) {
    let body = if route.method == "GET" { None } else { Some("{}") };
    let mut stream = TcpStream::connect(served.address).unwrap();
    stream.write_all(&request(&route.method, &route.path_of(key, "nowhere"), headers, body)).unwrap();
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap() == 1 {
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    let status = head.split(' ').nth(1).unwrap_or_else(|| panic!("{head}")).parse().unwrap();
    (status, head.to_ascii_lowercase())
}

/// A token whose row differs from a good one.
fn token_with(served: &Served, digit: &str, change: impl FnOnce(&mut TokenRow)) -> String {
    let now = served.app.clock.now();
    let id = digit.repeat(12);
    let token = format!("evb_{id}_{}", "0".repeat(64));
    let mut row = TokenRow {
        id,
        hash: SecretHash(*blake3::hash(token.as_bytes()).as_bytes()),
        label: "another".to_owned(),
        grant: Grant::Role(Role::Admin),
        pools: Vec::new(),
        created_at: now,
        created_by: "test".to_owned(),
        expires_at: None,
        revoked_at: None,
        last_used_at: None,
    };
    change(&mut row);
    assert!(served.runtime.block_on(served.app.store.put_token(row)).unwrap());
    token
}

fn rank(role: &str) -> usize {
    Role::ALL.iter().position(|it| it.as_str() == role).unwrap_or_else(|| panic!("no role `{role}`"))
}

/// What a route answers to a caller with this grant: 403, or anything that is not about rights.
fn is_allowed(route: &Route, grant: Grant) -> bool {
    match (route.role.as_str(), grant) {
        ("none", _) | ("metrics", Grant::Metrics | Grant::Role(_)) => true,
        ("metrics" | "owner", _) | (_, Grant::Worker | Grant::Metrics) => false,
        (least, Grant::Role(role)) => rank(least) <= rank(role.as_str()),
    }
}

#[test]
fn every_route_is_open_to_those_whom_its_type_names_and_to_no_others() {
    let served = Served::slow();
    served.add("shop", r#""manual":true"#);
    let run = served.run_of("shop");
    let tokens = Grant::ALL.map(|grant| (grant, format!("Bearer {}", served.token(grant))));
    for route in routes() {
        for (grant, shown) in &tokens {
            let (status, head) = status_of(&served, &route, "nobody", &[("Authorization", shown)]);
            if is_allowed(&route, *grant) {
                assert!(![401, 403].contains(&status) && status < 500, "{grant} {route:?}: {head}");
            } else {
                assert_eq!(status, 403, "{grant} {route:?}: {head}");
            }
        }
    }
    let id = RunId(uuid::Uuid::parse_str(run["id"].as_str().unwrap()).unwrap().as_u128());
    let fence = Fence(run["fence"].as_u64().unwrap());
    let of_run = format!("Bearer {}", run_key().token(id, fence));
    for route in routes().iter().filter(|it| !it.is_open()) {
        let (status, head) = status_of(&served, route, "shop", &[("Authorization", &of_run)]);
        assert_eq!(status, 403, "{route:?}: {head}");
    }
    let reply = served.ask("GET", "/api/v1/status", &[("Authorization", &of_run)], None);
    assert!(reply.json()["detail"].as_str().unwrap().contains("a run token"), "{reply:?}");
    let of_no_run = format!("Bearer {}", run_key().token(id, Fence(fence.0 + 1)));
    let reply = served.ask("GET", "/api/v1/status", &[("Authorization", &of_no_run)], None);
    assert_eq!(reply.short(), "401 not_authenticated");
}

#[test]
fn who_shows_nothing_or_something_worthless_is_told_the_way_in() {
    let served = Served::start();
    let now = served.app.clock.now();
    let expired = token_with(&served, "1", |row| row.expires_at = Some(now - Duration::from_secs(1)));
    let revoked = served.token(Grant::Role(Role::Admin));
    let id = revoked[4..16].to_owned();
    assert_eq!(served.ask_socket("DELETE", &format!("/api/v1/tokens/{id}")).status, 204);
    let session = session_of(&served, "admin");
    let wrong = format!("{}0", &served.admin[..served.admin.len() - 1]);
    let bearer = |token: &str| ("Authorization", format!("Bearer {token}"));
    let shown = [
        vec![],
        vec![bearer(&expired)],
        vec![bearer(&revoked)],
        vec![bearer(&wrong)],
        vec![bearer("x")],
        vec![bearer(&format!("{} {}", served.admin, served.admin))],
        vec![("Authorization", "Basic YTpi".to_owned())],
        vec![("Authorization", served.admin.clone())],
        vec![bearer(&served.admin), bearer(&served.admin)],
        vec![("X-Api-Key", served.admin.clone())],
        vec![("Cookie", session.clone())],
        vec![("Cookie", format!("token={}", served.admin))],
    ];
    // Jobs with names like open routes are as closed as any.
    for key in ["nobody", "healthz", "readyz", "metrics", "openapi.json", "x%2Fhealthz"] {
        for route in routes().iter().filter(|it| !it.is_open()) {
            for headers in &shown {
                let headers: Vec<(&str, &str)> =
                    headers.iter().map(|(name, it)| (*name, it.as_str())).collect();
                let is_reader = route.path.starts_with("/docs/") && headers == [("Cookie", session.as_str())];
                let (status, head) = status_of(&served, route, key, &headers);
                if is_reader {
                    assert_eq!(status, 200, "{route:?}: {head}");
                    continue;
                }
                // An address that spends its wrong tokens is put off.
                assert!([401, 429].contains(&status), "{route:?} {headers:?}: {head}");
                assert!(status == 429 || head.contains("www-authenticate: bearer"), "{head}");
            }
            if !route.path.contains("{key}") && key != "nobody" {
                break;
            }
        }
    }
    let detail = served.ask_bare("GET", "/api/v1/status", &[], None).json()["detail"].clone();
    for way in ["evenbeat token create", "evenbeat login"] {
        assert!(detail.as_str().unwrap().contains(way), "{detail}");
    }
}

/// A session cookie that was got by a login link.
pub(super) fn session_of(served: &Served, role: &str) -> String {
    served.session_of(role)
}

#[test]
fn tokens_are_created_listed_and_revoked_through_the_socket_alone() {
    let served = Served::start();
    let create = r#"{"role":"viewer","label":"grafana","expires_in":"90d"}"#;
    let reply = served.ask_socket_with("POST", "/api/v1/tokens", &[], Some(create));
    assert_eq!(reply.status, 201, "{reply:?}");
    let created = reply.json();
    let (token, id) =
        (created["token"].as_str().unwrap().to_owned(), created["id"].as_str().unwrap().to_owned());
    assert!(token.starts_with(&format!("evb_{id}_")) && token.len() == 81, "{token}");
    let shown = format!("Bearer {token}");
    assert_eq!(served.ask("GET", "/api/v1/status", &[("Authorization", &shown)], None).status, 200);

    let listed = served.ask_socket("GET", "/api/v1/tokens");
    let text = String::from_utf8(listed.body.clone()).unwrap();
    assert!(text.contains(&id) && !text.contains(&token) && !text.contains("hash"), "{text}");
    let item = listed.json()["items"].as_array().unwrap().iter().find(|it| it["id"] == *id).unwrap().clone();
    assert_eq!(
        (&item["label"], &item["role"], &item["state"]),
        (&"grafana".into(), &"viewer".into(), &"valid".into())
    );
    served.until("its last use", || {
        let items = served.ask_socket("GET", "/api/v1/tokens").json()["items"].clone();
        let item = items.as_array().unwrap().iter().find(|it| it["id"] == *id)?.clone();
        item["last_used_at"].is_string().then_some(())
    });

    // A token cannot make others, whatever its role.
    for (method, path, body) in [
        ("GET", "/api/v1/tokens".to_owned(), None),
        ("POST", "/api/v1/tokens".to_owned(), Some(create)),
        ("DELETE", format!("/api/v1/tokens/{id}"), None),
        ("POST", "/api/v1/login-links".to_owned(), Some("{}")),
    ] {
        assert_eq!(served.ask(method, &path, &[], body).short(), "403 not_allowed", "{method} {path}");
        let through_socket = [("Authorization", shown.as_str())];
        let reply = served.ask_socket_with(method, &path, &through_socket, body);
        assert_eq!(reply.short(), "403 not_allowed", "{method} {path}");
    }

    let revoke = || served.ask_socket("DELETE", &format!("/api/v1/tokens/{id}")).short();
    assert_eq!(revoke(), "204");
    assert_eq!(
        served.ask("GET", "/api/v1/status", &[("Authorization", &shown)], None).short(),
        "401 not_authenticated"
    );
    assert_eq!(revoke(), "409 token_is_dead");
    assert_eq!(served.ask_socket("DELETE", "/api/v1/tokens/000000000000").short(), "404 no_such_token");

    for (body, expected) in [
        ("{}", "422 invalid_body"),
        (r#"{"role":"root"}"#, "422 invalid_body"),
        (r#"{"role":"viewer","expires_in":"0s"}"#, "422 invalid_body"),
        (r#"{"role":"viewer","expires_in":"soon"}"#, "422 invalid_body"),
        (r#"{"role":"viewer","pools":["default"]}"#, "422 invalid_token"),
        (r#"{"role":"worker","pools":["a b"]}"#, "422 invalid_body"),
        (r#"{"role":"viewer","label":"a\nb"}"#, "422 invalid_token"),
        (r#"{"role":"worker","pools":["default"]}"#, "201"),
    ] {
        let reply = served.ask_socket_with("POST", "/api/v1/tokens", &[], Some(body));
        assert_eq!(reply.short(), expected, "{body}");
    }
    let audit = served.runtime.block_on(served.app.store.audit(100)).unwrap();
    let actions: Vec<&str> = audit.iter().map(|it| it.action.as_str()).collect();
    assert_eq!(actions[..2], ["create_token", "revoke_token"], "{audit:?}");
    assert!(!format!("{audit:?}").contains(&token[17..]), "{audit:?}");
    assert!(audit[0].detail.contains(&id) && audit[0].detail.contains("role=viewer"), "{audit:?}");
}

#[test]
fn wrong_tokens_are_put_off_and_known_ones_are_not() {
    let served = Served::start();
    assert_eq!(served.get("/api/v1/status").status, 200);
    let late = format!("Bearer {}", served.token(Grant::Role(Role::Viewer)));
    let wrong = |n: u32| format!("Bearer evb_{n:012}_{}", "0".repeat(64));
    let status = |shown: &str| served.ask("GET", "/api/v1/status", &[("Authorization", shown)], None);
    for n in 0..20 {
        assert_eq!(status(&wrong(n)).short(), "401 not_authenticated");
    }
    let reply = status(&wrong(20));
    assert_eq!((reply.short().as_str(), reply.header("retry-after")), ("429 rate_limited", Some("1")));
    assert_eq!(status(&late).short(), "429 rate_limited", "it has not been seen before");
    assert_eq!(served.get("/api/v1/status").status, 200, "it has");
    assert_eq!(served.ask_socket("GET", "/api/v1/status").status, 200);
    assert_eq!(served.get("/healthz").status, 200);
}
