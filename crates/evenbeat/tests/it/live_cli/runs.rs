//! `evenbeat run`.

use std::fmt::Write as _;
use std::io::Read;
use std::process::Stdio;

use crate::live_cli::mask::masked;
use crate::live_cli::typed::manual_jobs;
use crate::support::served::Served;

#[test]
fn runs_are_listed_shown_and_cancelled() {
    let served = Served::slow();
    served.add("shop", r#""manual":true"#);
    let mut text = String::new();
    let mut note = |args: &[&str]| {
        let typed = masked(&args.join(" "));
        write!(text, "$ evenbeat {}\n{}\n", typed.trim_end(), served.typed(args)).unwrap();
    };
    note(&["run", "list"]);
    let id = served.run_of("shop")["id"].as_str().unwrap().to_owned();
    served.until("the start", || {
        (served.get(&format!("/api/v1/runs/{id}")).json()["status"] == "running").then_some(())
    });
    note(&["run", "list", "--open"]);
    note(&["run", "cancel", &id]);
    served.until("its end", || {
        (served.get(&format!("/api/v1/runs/{id}")).json()["phase"] == "ended").then_some(())
    });
    note(&["run", "list", "--job", "shop", "--outcome", "cancelled"]);
    note(&["run", "show", &id]);
    note(&["run", "cancel", &id]);
    note(&["run", "show", "nothing"]);
    note(&["run", "log", &id]);
    note(&["run", "list", "--open", "--outcome", "failed"]);
    insta::assert_snapshot!(text);
}

#[test]
fn a_log_is_printed_and_followed() {
    let served = Served::slow();
    served.add("shop", r#""manual":true"#);
    let id = served.run_of("shop")["id"].as_str().unwrap().to_owned();
    served.logs.write(&id, "one\n", false);
    assert_eq!(served.said(&["run", "log", &id]), "one\n--- exit 0\n");
    let mut child = served.command(&["run", "log", "-f", &id]).stdout(Stdio::piped()).spawn().unwrap();
    let mut out = child.stdout.take().unwrap();
    let mut first = [0; 4];
    out.read_exact(&mut first).unwrap();
    // It finds nothing new, and asks again after a while.
    let n_reads = served.logs.n_reads();
    served.until("another look", || {
        assert_eq!(child.try_wait().unwrap(), None, "it goes on");
        (n_reads + 2 <= served.logs.n_reads()).then_some(())
    });
    served.logs.write(&id, "one\ntwo\n", true);
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    assert_eq!((&first, rest.as_str()), (b"one\n", "two\n"));
    assert!(child.wait().unwrap().success());
    // More than one part.
    served.logs.write(&id, "x".repeat(600_000), true);
    assert_eq!(served.said(&["run", "log", &id]).matches('x').count(), 600_000 + 1);
}

#[test]
fn a_run_that_wrote_nothing_has_an_empty_log() {
    let served = Served::start();
    served.add("shop", r#""manual":true"#);
    let id = served.ended_run_of("shop")["id"].as_str().unwrap().to_owned();
    assert_eq!(served.said(&["run", "log", &id]), "--- exit 0\n");
    assert_eq!(served.said(&["run", "log", "-f", &id]), "--- exit 0\n");
}

#[test]
fn control_characters_of_a_run_do_not_reach_the_terminal() {
    let served = Served::slow();
    served.add("shop", r#""manual":true"#);
    let id = served.run_of("shop")["id"].as_str().unwrap().to_owned();
    let written = b"a\tb\n50%\r100%\n\x1b]0;owned\x07\xc2\x9b2J\xe2\x80\xaetxt\n";
    served.logs.write(&id, written, true);
    let safe = "a\tb\n50%\\r100%\n\\x1b]0;owned\\x07\\u{9b}2J\\u{202e}txt\n";
    assert_eq!(served.said(&["run", "log", &id]), format!("{safe}--- exit 0\n"));
    let raw = served.command(&["run", "log", "--raw", &id]).output().unwrap();
    assert_eq!(raw.stdout, written);
}

#[test]
fn a_closed_pipe_ends_a_command_quietly() {
    let served = Served::slow();
    served.add("shop", r#""manual":true"#);
    let id = served.run_of("shop")["id"].as_str().unwrap().to_owned();
    served.logs.write(&id, "line\n".repeat(200_000), false);
    let jobs = manual_jobs(900);
    served.file("many.toml", &jobs);
    served.said(&["apply", "many.toml"]);
    for args in [&["run", "log", "-f", &id][..], &["job", "list", "--limit", "1000", "--json"], &["export"]] {
        let mut command = served.command(args);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut out = child.stdout.take().unwrap();
        out.read_exact(&mut [0; 10]).unwrap();
        drop(out);
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]), "{args:?}");
    }
}
