//! The binary as people use it: what it prints, and how it ends.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

fn evenbeat(args: &[&str]) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("evenbeat"));
    command
        .args(args)
        .current_dir(root())
        .env_remove("NO_COLOR")
        .env_remove("CLICOLOR_FORCE")
        .env("TZ", "UTC");
    command
}

/// Standard output, standard error and the exit code, in one text.
fn shown(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let separator = if output.stderr.is_empty() { "" } else { "--- stderr\n" };
    let (out, err, code) = (text(&output.stdout), text(&output.stderr), output.status.code().unwrap());
    format!("{out}{separator}{err}--- exit {code}\n")
}

fn run(args: &[&str]) -> String {
    shown(&evenbeat(args).output().unwrap())
}

fn run_on(stdin: &str, args: &[&str]) -> String {
    let mut child =
        evenbeat(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(stdin.as_bytes()).unwrap();
    shown(&child.wait_with_output().unwrap())
}

const FLEET: &str = "examples/scraping-team/jobs.toml";

#[test]
fn next_shows_what_comes() {
    insta::assert_snapshot!(run(&["next", FLEET, "-n", "3", "--from", "2026-03-28T12:00:00Z"]));
}

#[test]
fn next_of_one_job_in_another_zone() {
    let args = [
        "next",
        FLEET,
        "--job",
        "MorningReport",
        "-n",
        "2",
        "--from",
        "2026-10-24T12:00:00Z",
        "--tz",
        "Asia/Tokyo",
    ];
    insta::assert_snapshot!(run(&args));
}

#[test]
fn next_for_machines() {
    let args = ["next", FLEET, "--job", "Vacuum", "-n", "2", "--from", "2026-03-28T12:00:00Z", "--json"];
    insta::assert_snapshot!(run(&args));
}

#[test]
fn next_tells_what_clock_changes_and_blackouts_do() {
    let fleet = r#"
        [defaults]
        tz = "Europe/Berlin"
        command = ["true"]
        [[job]]
        name = "once-a-night"
        cron = "30 2 * * *"
        [[job]]
        name = "half-hourly"
        cron = "*/30 2 * * *"
        [[job]]
        name = "held-up"
        cron = "0 2 * * *"
        estimate = "1h"
        blackout_periods = [{ start = "02:30", end = "05:00" }]
        [[job]]
        name = "never"
        cron = "0 2 * * *"
        blackout_periods = [{ start = "00:00", end = "24:00" }]
        [[job]]
        name = "paused"
        every = "1h"
        paused = true
        [[job]]
        name = "over"
        cron = "0 2 * * *"
        ends_at = "2026-10-24T00:00:00Z"
    "#;
    insta::assert_snapshot!(run_on(fleet, &["next", "-", "-n", "4", "--from", "2026-10-24T12:00:00Z"]));
}

#[test]
fn upcoming_shows_the_whole_fleet_in_order() {
    let window = ["--from", "2026-03-28T05:55:00Z", "--to", "2026-03-28T07:00:00Z"];
    insta::assert_snapshot!(run(
        &[&["upcoming", FLEET, "--tz", "Europe/Berlin"] as &[&str], &window].concat()
    ));
    insta::assert_snapshot!(run(
        &[&["upcoming", FLEET, "--limit", "2", "--json"] as &[&str], &window].concat()
    ));
    insta::assert_snapshot!(run(&[&["upcoming", FLEET, "--limit", "2"] as &[&str], &window].concat()));
}

#[test]
fn upcoming_refuses_windows_it_cannot_show() {
    let at = "2026-03-28T05:55:00Z";
    insta::assert_snapshot!(run(&["upcoming", FLEET, "--from", at, "--to", at]));
    insta::assert_snapshot!(run(&["upcoming", FLEET, "--from", at, "--to", "2026-06-01T00:00:00Z"]));
    insta::assert_snapshot!(run(&["upcoming", FLEET, "--from", at, "--job", "Vacum"]));
    insta::assert_snapshot!(run(&["upcoming", FLEET, "--from", at, "--job", "FullRecrawl"]));
}

const STATE: &str = r#"{
    "ShopPrices": {"last_good_start_at": "2026-03-28T05:00:00Z", "last_good_end_at": "2026-03-28T05:25:00Z",
                   "failure_count": 2, "last_start_at": "2026-03-28T09:00:00Z",
                   "last_end_at": "2026-03-28T09:31:00Z", "estimate": "25m"},
    "ShopStock": {"owner_started_at": "2026-03-28T09:00:00Z", "last_good_start_at": "2026-03-28T08:50:00Z"},
    "MorningReport": {"last_good_start_at": "2026-03-27T06:30:00Z", "paused_by": "operator"}
}"#;

#[test]
fn condition_judges_a_fleet_and_ends_with_1_if_any_is_late() {
    insta::assert_snapshot!(run_on(
        STATE,
        &["condition", FLEET, "--state", "-", "--at", "2026-03-28T10:00:00Z"]
    ));
}

#[test]
fn condition_of_one_job_for_machines() {
    let args = ["condition", FLEET, "--job", "ShopPrices", "--at", "2026-03-28T10:00:00Z", "--json"];
    insta::assert_snapshot!(run(&args));
}

#[test]
fn a_bad_state_names_every_fault() {
    let state = r#"{"ShopPrice": {}, "ShopStock": {"failure_count": -1, "last_good_start": "2026", "estimate": "soon",
                    "next_run_at": 7, "paused_by": "me", "owner_node": "a b", "owner_started_at": "2026-03-28T09:00:00Z"},
                    "Vacuum": []}"#;
    insta::assert_snapshot!(run_on(
        state,
        &["condition", FLEET, "--state", "-", "--at", "2026-03-28T10:00:00Z"]
    ));
    insta::assert_snapshot!(run_on("{\n  \"ShopStock\": {\n", &["condition", FLEET, "--state", "-"]));
}

#[test]
fn what_is_not_there_is_said_with_the_nearest_name() {
    insta::assert_snapshot!(run(&["next", FLEET, "--job", "ShopPrice"]));
    insta::assert_snapshot!(run(&["next", FLEET, "--tz", "Europe/Berln"]));
    insta::assert_snapshot!(run(&["next", "no-such-file.toml"]));
    insta::assert_snapshot!(run(&["check", "no-such-file.toml", FLEET]));
}

#[test]
fn wrong_usage_ends_with_2() {
    for args in [
        &["next"] as &[&str],
        &["frobnicate"],
        &["next", FLEET, "-n", "0"],
        &["next", FLEET, "--from", "monday"],
        &[],
    ] {
        let output = evenbeat(args).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", shown(&output));
        assert!(!output.stderr.is_empty(), "{args:?}");
    }
    insta::assert_snapshot!(run(&["next", FLEET, "--from", "2026-03-28"]));
}

#[test]
fn help_is_complete() {
    for command in ["--help", "help"] {
        assert!(run(&[command]).contains("--- exit 0"));
    }
    insta::assert_snapshot!(run(&["--help"]));
}

/// The reader of our output may stop reading.
#[test]
fn a_closed_pipe_ends_quietly() {
    let args = ["next", FLEET, "-n", "10000", "--from", "2026-03-28T12:00:00Z"];
    let mut child = evenbeat(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0), "{}", shown(&output));
}

#[test]
fn colour_is_used_only_where_it_is_wanted() {
    let args = ["next", FLEET, "-n", "1", "--from", "2026-03-28T12:00:00Z"];
    let has_colour = |command: &mut Command| command.output().unwrap().stdout.contains(&0x1b);
    assert!(!has_colour(&mut evenbeat(&args)), "a pipe is no terminal");
    assert!(has_colour(evenbeat(&args).args(["--color", "always"])));
    assert!(!has_colour(evenbeat(&args).args(["--color", "never"]).env("CLICOLOR_FORCE", "1")));
    let broken = evenbeat(&["check", "--color", "always", "-"]).stdin(Stdio::null()).output().unwrap();
    assert!(broken.status.success(), "an empty file has no jobs and no faults");
}
