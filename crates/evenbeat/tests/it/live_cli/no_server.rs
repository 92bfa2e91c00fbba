//! No server, the wrong one, or a strange place; and what needs none.

use std::io::{Read, Write};
use std::net::TcpListener;

use crate::live_cli::typed::{evenbeat, shown};

fn said(args: &[&str]) -> String {
    shown(&evenbeat(args).output().unwrap())
}

/// A port without a listener.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[test]
fn no_server_is_told_with_the_way_out() {
    let place = format!("http://127.0.0.1:{}", free_port());
    for args in [
        &["status"][..],
        &["job", "list"],
        &["export"],
        &["upcoming"],
        &["simulate"],
        &["rebalance", "--yes"],
    ] {
        let text = said(&[args, &["--server", &place]].concat());
        let expected = format!(
            "--- stderr\nerror: no server at {place} (Connection refused (os error 111)); start one with `evenbeat \
             serve`, or pass another address with `--server` or EVENBEAT_SERVER\n--- exit 6\n"
        );
        assert_eq!(text, expected, "{args:?}");
    }
    let text = said(&["probe", "--server", &place]);
    assert!(
        text.starts_with(&format!("UNKNOWN - no server at {place}")) && text.ends_with("--- exit 3\n"),
        "{text}"
    );
    let text = said(&["status", "--server", "unix:/nowhere/evenbeat.sock"]);
    assert!(
        text.contains("no server at unix:/nowhere/evenbeat.sock") && text.ends_with("--- exit 6\n"),
        "{text}"
    );
}

#[test]
fn a_place_that_is_none_is_wrong_usage() {
    let text = said(&["status", "--server", "localhost:8060"]);
    let expected = "--- stderr\nerror: --server: `localhost:8060` is not a server address; write `https://HOST:PORT`, `http://HOST:PORT` or \
                    `unix:PATH`\n--- exit 2\n";
    assert_eq!(text, expected);
}

/// What a command says if someone answers its first question with these bytes, and no other.
fn said_to(args: &[&str], answer: &[u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = format!("http://{}", listener.local_addr().unwrap());
    std::thread::scope(|scope| {
        let stranger = scope.spawn(|| {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 4_096]).unwrap();
            stream.write_all(answer).unwrap();
        });
        let text = said(&[args, &["--server", &place]].concat());
        stranger.join().unwrap();
        text
    })
}

#[test]
fn nobody_is_asked_where_there_is_no_terminal() {
    let at = "2026-02-04T10:15:00Z";
    let plan = serde_json::json!({
        "plan_id": "x", "would_move": 1, "would_skip": 0, "unchanged": 2, "is_complete": false,
        "current_score": 0.61, "projected_score": 0.97, "current_peak": 9, "projected_peak": 4,
        "skipped": [], "skipped_by_reason": {},
        "preview": [{"job_id": "shop", "current_time": at, "proposed_time": at, "gap_seconds": 60.0}],
    });
    let plan = plan.to_string();
    let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{plan}", plan.len());
    let text = said_to(&["rebalance"], answer.as_bytes());
    let plan = "3 scheduled jobs: 1 would move, 2 are well placed, 0 cannot move now\nevenness 0.61 → 0.97, busiest slot 9 → 4\n";
    assert!(text.starts_with(plan), "{text}");
    let part = "this is the first part of a large rebalance: apply it, then run `evenbeat rebalance` again\n";
    assert!(text.contains(part), "{text}");
    assert!(text.contains("shop  2026-02-04 10:15  2026-02-04 10:15\n"), "{text}");
    assert!(
        text.contains("nothing was changed: there is no terminal to ask for confirmation; add `--yes`"),
        "{text}"
    );
    assert!(text.ends_with("--- exit 2\n"), "{text}");
}

#[test]
fn a_stranger_who_answers_is_not_believed() {
    let check = |answer: &'static [u8], expected: &str| {
        let text = said_to(&["status"], answer);
        assert!(text.contains(expected) && text.ends_with("--- exit 1\n"), "{text}");
    };
    check(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "does not answer like an Evenbeat server");
    check(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "it answered 404 Not Found");
    check(b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{", "no answer from http://127.0.0.1");
    check(b"SSH-2.0-OpenSSH_9.2\r\n", "no answer from http://127.0.0.1");
}

#[test]
fn shells_and_manuals_know_every_command() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = said(&["completions", shell]);
        assert!(script.ends_with("--- exit 0\n") && script.contains("rebalance"), "{shell}");
    }
    assert!(said(&["man"]).contains(".TH evenbeat 1"));
    for page in [&["man"][..], &["man", "run", "log"], &["man", "probe"]] {
        assert!(said(page).contains(".SH \"EXIT STATUS\""), "{page:?}");
    }
    assert!(said(&["man", "job", "list"]).contains("condition"));
    assert_eq!(said(&["man", "nothing"]), "--- stderr\nerror: no such command: `nothing`\n--- exit 3\n");
    assert!(said(&["completions", "cobol"]).ends_with("--- exit 2\n"));
}
