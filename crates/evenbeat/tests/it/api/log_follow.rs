//! A log that is followed: as it grows, until the run ends, from any byte on.

use std::io::{Read, Write};
use std::net::TcpStream;

use crate::support::served::Served;
use crate::support::wait::PATIENCE;

/// Opens a followed log without chunks, and skips the head.
fn follow(served: &Served, id: &str, query: &str) -> TcpStream {
    let mut stream = TcpStream::connect(served.address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let said = format!(
        "GET /api/v1/runs/{id}/log?follow=true{query} HTTP/1.0\r\nHost: localhost\r\nAuthorization: {}\r\n\r\n",
        served.authorization()
    );
    stream.write_all(said.as_bytes()).unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
    assert!(head.starts_with("http/1.0 200") && head.contains("x-accel-buffering: no"), "{head}");
    stream
}

fn expect(stream: &mut TcpStream, text: &str) {
    let mut heard = vec![0; text.len()];
    stream.read_exact(&mut heard).unwrap();
    assert_eq!(String::from_utf8_lossy(&heard), text);
}

#[test]
fn a_log_is_followed_to_the_end_of_its_run() {
    let served = Served::slow();
    served.add("shop", r#""every":"6h""#);
    let id = served.run_of("shop")["id"].as_str().unwrap().to_owned();
    let mut early = follow(&served, &id, "");
    served.logs.write(&id, "one\n", false);
    expect(&mut early, "one\n");
    let mut late = follow(&served, &id, "&from=2");
    expect(&mut late, "e\n");
    // Half of a character waits for the other half, and what is no text is escaped.
    served.logs.write(&id, b"one\n\xe2\x82", false);
    served.logs.write(&id, "one\n\u{20ac}\u{1b}[31m\n", true);
    let mut raw = follow(&served, &id, "&raw=true&from=4");
    for stream in [&mut early, &mut late] {
        let mut rest = String::new();
        stream.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "\u{20ac}\\x1b[31m\n");
    }
    let mut bytes = Vec::new();
    raw.read_to_end(&mut bytes).unwrap();
    assert_eq!(bytes, "\u{20ac}\u{1b}[31m\n".as_bytes());
}

#[test]
fn how_far_it_came_is_in_a_trailer() {
    let served = Served::start();
    served.add("shop", r#""every":"6h""#);
    let id = served.ended_run_of("shop")["id"].as_str().unwrap().to_owned();
    served.logs.write(&id, "a\u{1b}b\n", true);
    let path = format!("/api/v1/runs/{id}/log?follow=true");
    let reply = served.ask("GET", &path, &[("TE", "trailers")], None);
    let body = String::from_utf8(reply.body.clone()).unwrap();
    assert!(body.contains("a\\x1bb\n") && body.contains("evenbeat-log-next: 4\r\n"), "{reply:?} {body}");
}

#[test]
fn a_run_that_wrote_nothing_ends_its_log_too() {
    let served = Served::slow();
    served.add("shop", r#""every":"6h""#);
    let id = served.run_of("shop")["id"].as_str().unwrap().to_owned();
    let mut log = follow(&served, &id, "");
    assert_eq!(served.post(&format!("/api/v1/runs/{id}/cancel"), "").status, 202);
    let mut rest = Vec::new();
    log.read_to_end(&mut rest).unwrap();
    assert_eq!(rest, b"");
}

#[test]
fn a_followed_log_ends_when_the_server_stops() {
    let mut served = Served::slow();
    served.add("shop", r#""every":"6h""#);
    let id = served.run_of("shop")["id"].as_str().unwrap().to_owned();
    let mut log = follow(&served, &id, "");
    served.stop();
    let mut rest = Vec::new();
    log.read_to_end(&mut rest).unwrap();
    assert_eq!(rest, b"");
}
