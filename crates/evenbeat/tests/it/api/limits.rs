//! Nothing is without end: bodies, heads, time, and how much is done at once.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration as Length;

use axum::body::Body;
use axum::http::Request;
use evenbeat::testing::api::{ApiOptions, ConnectionLimits, Peer};
use evenbeat_core::rights::{Grant, Role};
use tower::ServiceExt;

use crate::support::served::{Served, Setup, converse, request};

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
    let limits = ConnectionLimits { head_within: Length::from_millis(20), ..ConnectionLimits::default() };
    let served = Served::with(Setup { limits, ..Setup::default() });
    let mut stream = TcpStream::connect(served.address).unwrap();
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: loc").unwrap();
    let mut heard = Vec::new();
    // The end comes although nothing more was said.
    stream.read_to_end(&mut heard).unwrap();
    let heard = String::from_utf8(heard).unwrap();
    assert!(heard.is_empty() || heard.starts_with("HTTP/1.1 408"), "{heard}");
}

/// Says that on a connection that stays open, and hears a whole answer about health.
fn healthy(stream: &mut TcpStream) -> bool {
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let (mut heard, mut byte) = (Vec::new(), [0]);
    while !heard.ends_with(b"}") && stream.read(&mut byte).is_ok_and(|n| n == 1) {
        heard.push(byte[0]);
    }
    heard.starts_with(b"HTTP/1.1 200 OK")
}

#[test]
fn a_connection_may_rest_longer_than_a_head_may_take() {
    let limits = ConnectionLimits { head_within: Length::from_millis(50), ..ConnectionLimits::default() };
    let served = Served::with(Setup { limits, ..Setup::default() });
    let mut rests = TcpStream::connect(served.address).unwrap();
    assert!(healthy(&mut rests));
    // When this one is given up, the time of a head has passed.
    let mut trickles = TcpStream::connect(served.address).unwrap();
    trickles.write_all(b"GET /hea").unwrap();
    assert_eq!(trickles.read(&mut [0]).unwrap(), 0);
    assert!(healthy(&mut rests), "it is still there");
    rests.write_all(b"GET /hea").unwrap();
    assert_eq!(rests.read(&mut [0]).unwrap(), 0, "it has begun to say a head");
}

#[test]
fn a_connection_does_not_rest_for_ever() {
    let limits = ConnectionLimits {
        head_within: Length::from_mins(5),
        idle_within: Length::from_millis(50),
        ..ConnectionLimits::default()
    };
    let served = Served::with(Setup { limits, ..Setup::default() });
    let mut rests = TcpStream::connect(served.address).unwrap();
    assert!(healthy(&mut rests));
    assert_eq!(rests.read(&mut [0]).unwrap(), 0);
}

#[test]
fn who_says_half_a_body_is_not_waited_for() {
    let options = ApiOptions { body_within: Length::from_millis(20), ..ApiOptions::default() };
    let served = Served::with(Setup { options, ..Setup::default() });
    let said = request(
        "PUT",
        "/api/v1/jobs/a",
        &[
            ("Content-Length", "50"),
            ("Content-Type", "application/json"),
            ("Authorization", &served.authorization()),
        ],
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
    // Health is not put off.
    assert_eq!(served.get("/healthz").status, 200);
    assert_eq!(served.get("/readyz").status, 200);
}

#[test]
fn bodies_that_trickle_take_nobodys_turn() {
    let options = ApiOptions {
        n_requests_max: 4,
        turn_within: Length::ZERO,
        body_within: Length::from_mins(1),
        ..ApiOptions::default()
    };
    let served = Served::with(Setup { options, ..Setup::default() });
    let said = request(
        "PUT",
        "/api/v1/jobs/a",
        &[
            ("Content-Length", "50"),
            ("Content-Type", "application/json"),
            ("Authorization", &served.authorization()),
        ],
        None,
    );
    let slow: Vec<TcpStream> = (0..8)
        .map(|_| {
            let mut stream = TcpStream::connect(served.address).unwrap();
            stream.write_all(&said).unwrap();
            stream.write_all(b"{").unwrap();
            stream
        })
        .collect();
    for _ in 0..5 {
        assert_eq!(served.get("/healthz").status, 200);
        assert_eq!(served.get("/api/v1/status").status, 200);
        assert_eq!(served.put("shop", r#"{"manual":true,"command":["true"]}"#).status / 100, 2);
    }
    drop(slow);
}

#[test]
fn bodies_that_are_held_in_memory_are_bounded_together() {
    let options =
        ApiOptions { body_bytes_max: 1_000, body_within: Length::from_millis(50), ..ApiOptions::default() };
    let served = Served::with(Setup { options, ..Setup::default() });
    let padded = |n: usize| format!(r#"{{"manual":true,"command":["true"]{}}}"#, " ".repeat(n));
    assert_eq!(served.put("shop", &padded(2_000)).short(), "408 body_too_slow");
    for _ in 0..3 {
        assert_eq!(served.put("shop", &padded(500)).status / 100, 2);
    }
}

/// Clients that ask for much and read nothing.
fn deaf(served: &Served, n: usize) -> Vec<TcpStream> {
    served.add("shop", r#""manual":true"#);
    let id = served.ended_run_of("shop")["id"].as_str().unwrap().to_owned();
    served.logs.write(&id, "x".repeat(256 << 10), true);
    let shown = served.authorization();
    let ask =
        format!("GET /api/v1/runs/{id}/log HTTP/1.1\r\nHost: localhost\r\nAuthorization: {shown}\r\n\r\n");
    let all = (0..n).map(|_| {
        let mut stream = TcpStream::connect(served.address).unwrap();
        stream.write_all(ask.repeat(64).as_bytes()).unwrap();
        stream
    });
    all.collect()
}

#[test]
fn clients_that_do_not_read_lock_nobody_out() {
    let limits = ConnectionLimits {
        tcp_max: 6,
        overflow_max: 4,
        write_within: Length::from_mins(5),
        head_within: Length::from_mins(5),
        ..ConnectionLimits::default()
    };
    let served = Served::with(Setup { limits, ..Setup::default() });
    let deaf = deaf(&served, 30);
    // There is no place left, and that is said at once.
    served.until("the last place", || {
        let reply = served.get("/api/v1/status");
        (reply.short() == "503 too_many_requests").then_some(())
    });
    for _ in 0..10 {
        assert_eq!(served.get("/healthz").status, 200);
        assert_eq!(served.get("/readyz").status, 200);
        assert_eq!(served.ask_socket("GET", "/api/v1/status").status, 200);
    }
    drop(deaf);
}

#[test]
fn who_does_not_read_is_not_waited_for() {
    let limits = ConnectionLimits {
        tcp_max: 6,
        write_within: Length::from_millis(200),
        head_within: Length::from_mins(5),
        ..ConnectionLimits::default()
    };
    let served = Served::with(Setup { limits, ..Setup::default() });
    let deaf = deaf(&served, 6);
    for mut stream in deaf {
        served.until("the end of the connection", || stream.write_all(b"x").is_err().then_some(()));
    }
    served.until("a free place", || (served.get("/api/v1/status").status == 200).then_some(()));
}

#[test]
fn one_address_does_not_take_every_place_and_tokens_are_not_held_to_it() {
    let limits = ConnectionLimits {
        per_address_max: 2,
        overflow_max: 4,
        head_within: Length::from_mins(5),
        ..ConnectionLimits::default()
    };
    let served = Served::with(Setup { limits, ..Setup::default() });
    let idle: Vec<TcpStream> = (0..2).map(|_| TcpStream::connect(served.address).unwrap()).collect();
    served.until("both are counted", || {
        let reply = served.ask_bare("GET", "/login", &[], None);
        (reply.short() == "503 too_many_requests").then_some(())
    });
    assert_eq!(served.ask_bare("GET", "/api/v1/status", &[], None).short(), "401 not_authenticated");
    assert_eq!(served.ask_bare("GET", "/api/v1/openapi.json", &[], None).short(), "503 too_many_requests");
    assert_eq!(served.get("/api/v1/status").status, 200, "with a token");
    assert_eq!(served.ask_bare("GET", "/healthz", &[], None).status, 200);
    drop(idle);
    served.until("a place", || (served.ask_bare("GET", "/login", &[], None).status == 200).then_some(()));
}

#[test]
fn a_token_has_a_rate_of_its_own() {
    let mut setup = Setup::default();
    setup.rules.request_rate = Some(1);
    let served = Served::with(setup);
    let other = format!("Bearer {}", served.token(Grant::Role(Role::Viewer)));
    served.until("more than two a second", || {
        let reply = served.get("/api/v1/status");
        (reply.short() == "429 rate_limited" && reply.header("retry-after") == Some("1")).then_some(())
    });
    assert_eq!(served.ask("GET", "/api/v1/status", &[("Authorization", &other)], None).status, 200);
    assert_eq!(served.ask_socket("GET", "/api/v1/status").status, 200);
}

/// The short form of the test with a thousand: counts only.
#[test]
fn connections_that_say_nothing_keep_nobody_with_a_token_out() {
    let limits = ConnectionLimits { head_within: Length::from_mins(5), ..ConnectionLimits::default() };
    let served = Served::with(Setup { limits, ..Setup::default() });
    let slow: Vec<TcpStream> = (0..300)
        .map(|_| {
            let mut stream = TcpStream::connect(served.address).unwrap();
            stream.write_all(b"GET /api/v1/sta").unwrap();
            stream
        })
        .collect();
    for _ in 0..20 {
        assert_eq!(served.get("/api/v1/status").status, 200);
        assert_eq!(served.ask_bare("GET", "/healthz", &[], None).status, 200);
    }
    drop(slow);
}

#[test]
fn an_answer_that_takes_too_long_is_given_up() {
    let served = Served::start();
    served.add("shop", r#""manual":true"#);
    let id = served.ended_run_of("shop")["id"].as_str().unwrap().to_owned();
    served.logs.write(&id, "hello\n", true);
    let options = ApiOptions { answer_within: Length::from_millis(20), ..ApiOptions::default() };
    let routes = served.routes_with(options);
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
