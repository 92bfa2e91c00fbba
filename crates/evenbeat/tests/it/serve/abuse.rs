//! A server that is treated badly stays up, stays small, and ends when it is asked to.

use std::io::{Read, Write};
use std::net::TcpStream;

use crate::serve::node::{Node, until};

/// The most memory that a process has had, in MiB.
fn peak_mib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}

fn post(address: &str, token: &str, path: &str, body: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Authorization: Bearer {token}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    // A server that refuses early stops listening.
    let _ = stream.write_all(body.as_bytes());
    stream
}

fn answer(mut stream: TcpStream) -> String {
    let mut heard = Vec::new();
    let _ = stream.read_to_end(&mut heard);
    String::from_utf8(heard).unwrap()
}

#[test]
fn megabytes_of_junk_cost_no_gigabytes_and_nothing_outlives_the_last_word() {
    const JUNK_BYTES: usize = 15 << 20;
    let mut node = Node::with("");
    node.start();
    let (address, token) = (node.address(), node.token("admin"));
    let before = peak_mib(node.pid());
    let listed = |item: &str| {
        format!(r#"{{"jobs":[{}{item}]}}"#, format!("{item},").repeat(JUNK_BYTES / (item.len() + 1)))
    };
    let field = |no: u32| format!(r#""x{no}":0,"#);
    let junk = [
        listed("{}"),
        listed(r#"{"a":{}}"#),
        listed("[]"),
        format!(r#"{{"jobs":[{{{}"a":0}}]}}"#, (0..1_000_000).map(field).collect::<String>()),
        format!(r#"{{"jobs":{}}}"#, "[".repeat(JUNK_BYTES)),
        format!(r#"{{"jobs":[],"more":[{}0]}}"#, "0,".repeat(JUNK_BYTES / 2)),
    ];
    for body in &junk {
        let answer = answer(post(&address, &token, "/api/v1/apply", body));
        let head = answer.lines().next().unwrap_or_default();
        assert!(head.starts_with("HTTP/1.1 422"), "{}: {head}", &body[..40]);
        assert!(answer.len() < 100_000, "{} bytes of answer", answer.len());
    }
    // Once more, all at once, and asked to stop in the middle of it.
    let asking: Vec<TcpStream> =
        junk.iter().map(|body| post(&address, &token, "/api/v1/apply", body)).collect();
    let peak = peak_mib(node.pid());
    assert!(peak < before + 300, "{before} MiB before, {peak} MiB at most");
    assert_eq!(node.stop(), Some(0), "{}", node.log());
    drop(asking);
    let log = node.log();
    assert!(log.lines().last().is_some_and(|line| line.contains("\"stopped\"")), "{log}");
}

#[test]
fn clients_that_stay_keep_nobody_from_stopping_the_server() {
    let mut node = Node::with("");
    node.start();
    let (address, token) = (node.address(), node.token("viewer"));
    let ask =
        format!("GET /api/v1/status HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n");
    let deaf: Vec<TcpStream> = (0..100)
        .map(|_| {
            let mut stream = TcpStream::connect(&address).unwrap();
            stream.write_all(ask.repeat(20).as_bytes()).unwrap();
            stream
        })
        .collect();
    until("an answer", || node.ask(&["status"]).status.code().filter(|code| *code < 2));
    assert_eq!(node.stop(), Some(0), "{}", node.log());
    drop(deaf);
    let log = node.log();
    assert!(log.lines().last().is_some_and(|line| line.contains("\"stopped\"")), "{log}");
}
