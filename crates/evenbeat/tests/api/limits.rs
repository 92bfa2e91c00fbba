//! Nothing is without end: bodies, heads, time, and how much is done at once.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration as Length;

use axum::body::Body;
use axum::http::Request;
use evenbeat::api::{ApiOptions, Peer, router};
use tower::ServiceExt;

use crate::served::{Served, Setup, converse, request};

#[test]
fn a_body_is_bounded() {
    let served = Served::start();
    let padded =
        |n: usize| format!(r#"{{"manual":true,"command":["true"],"params":{{"x":"{}"}}}}"#, "x".repeat(n));
    assert_eq!(served.put("shop", &padded(1 << 20)).short(), "413 body_too_large");
    assert_eq!(served.put("shop", &padded(1_000)).status, 201);
    // What declares a whole fleet may be larger, and is bounded too.
    let fleet = |n: usize| format!(r#"{{"dry_run":true,"jobs":[]{}}}"#, " ".repeat(n));
    assert_eq!(served.post("/api/v1/apply", &fleet(2 << 20)).status, 200);
    assert_eq!(served.post("/api/v1/apply", &fleet(16 << 20)).short(), "413 body_too_large");
}

#[test]
fn a_head_is_bounded() {
    let served = Served::start();
    let status = |headers: &[(&str, &str)]| served.ask("GET", "/healthz", headers, None).status;
    assert_eq!(status(&[("X-Long", &"x".repeat(100 << 10))]), 431);
    let many: Vec<(String, &str)> = (0..150).map(|it| (format!("X-{it}"), "y")).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    assert_eq!(status(&many), 431);
    assert_eq!(status(&many[..50]), 200);
}

#[test]
fn who_says_half_a_head_is_not_waited_for() {
    let served = Served::with(Setup { head_within: Length::from_millis(20), ..Setup::default() });
    let mut stream = TcpStream::connect(served.address).unwrap();
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: loc").unwrap();
    let mut heard = Vec::new();
    // The end comes although nothing more was said.
    stream.read_to_end(&mut heard).unwrap();
    let heard = String::from_utf8(heard).unwrap();
    assert!(heard.is_empty() || heard.starts_with("HTTP/1.1 408"), "{heard}");
}

#[test]
fn who_says_half_a_body_is_not_waited_for() {
    let options = ApiOptions { body_within: Length::from_millis(20), ..ApiOptions::default() };
    let served = Served::with(Setup { options, ..Setup::default() });
    let said = request(
        "PUT",
        "/api/v1/jobs/a",
        &[("Content-Length", "50"), ("Content-Type", "application/json")],
        None,
    );
    let reply = converse(TcpStream::connect(served.address).unwrap(), &said);
    assert_eq!(reply.short(), "408 body_too_slow");
}

#[test]
fn too_much_at_once_is_put_off() {
    let options = ApiOptions { n_requests_max: 0, turn_within: Length::ZERO, ..ApiOptions::default() };
    let served = Served::with(Setup { options, ..Setup::default() });
    let reply = served.get("/api/v1/status");
    assert_eq!((reply.short().as_str(), reply.header("retry-after")), ("503 too_many_requests", Some("1")));
}

#[test]
fn an_answer_that_takes_too_long_is_given_up() {
    let served = Served::start();
    served.add("shop", r#""manual":true"#);
    let id = served.ended_run_of("shop")["id"].as_str().unwrap().to_owned();
    served.logs.write(&id, "hello\n", true);
    let options = ApiOptions { answer_within: Length::from_millis(20), ..ApiOptions::default() };
    let routes = router(served.app.clone(), served.logs.clone(), options);
    let request = Request::builder().uri(format!("/api/v1/runs/{id}/log")).header("host", "localhost");
    let mut request = request.body(Body::empty()).unwrap();
    request.extensions_mut().insert(Peer::Socket { uid: 0 });
    // Nobody can read a log while this is held.
    let held = served.logs.hold();
    let answer = served.runtime.block_on(routes.oneshot(request)).unwrap();
    drop(held);
    assert_eq!(answer.status().as_u16(), 503);
    let body = served.runtime.block_on(axum::body::to_bytes(answer.into_body(), 10_000)).unwrap();
    let problem: serde_json::Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(problem["code"], "took_too_long");
}

#[test]
fn requests_follow_each_other_on_one_connection() {
    let served = Served::start();
    let mut stream = TcpStream::connect(served.address).unwrap();
    let mut said = Vec::new();
    for _ in 0..3 {
        said.extend(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
    }
    said.extend(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(&said).unwrap();
    let mut heard = String::new();
    stream.read_to_string(&mut heard).unwrap();
    assert_eq!(heard.matches("HTTP/1.1 200 OK").count(), 4, "{heard}");
}
