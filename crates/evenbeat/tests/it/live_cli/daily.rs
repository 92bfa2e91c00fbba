//! What one types and reads all day: tables that fit, local times, lengths, short ways to say when and what.

use serde_json::{Value as Json, json};

use crate::live_cli::typed::shown;
use crate::support::served::Served;

/// The text at a width, or in a pipe that has none.
fn said_at(served: &Served, columns: Option<&str>, args: &[&str]) -> String {
    let mut command = served.command(args);
    match columns {
        Some(columns) => command.env("COLUMNS", columns),
        None => command.env_remove("COLUMNS"),
    };
    shown(&command.output().unwrap())
}

/// The text where times are local to a zone.
fn said_in(served: &Served, zone: &str, args: &[&str]) -> String {
    shown(&served.command(args).env("TZ", zone).output().unwrap())
}

#[test]
fn run_list_shows_an_id_at_any_width_and_everything_in_a_pipe() {
    let served = Served::start();
    served.add("ShopPricesOfTheWholeWorld@test", r#""manual":true"#);
    let id = served.ended_run_of("ShopPricesOfTheWholeWorld@test")["id"].as_str().unwrap().to_owned();
    for columns in ["40", "60", "80"] {
        let text = said_at(&served, Some(columns), &["run", "list"]);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].contains("RUN"), "{text}");
        assert!(lines.iter().all(|line| line.chars().count() <= columns.parse().unwrap()), "{text}");
        let shown = lines[1].split_whitespace().find(|word| id.starts_with(word));
        assert!(shown.is_some_and(|shown| 13 <= shown.len()), "{columns} columns:\n{text}");
    }
    let text = said_at(&served, None, &["run", "list"]);
    for word in ["ShopPricesOfTheWholeWorld@test", &id, "TRIGGER", "manual", "NODE", "one"] {
        assert!(text.contains(word), "{word}:\n{text}");
    }
}

#[test]
fn status_says_why_at_80_columns() {
    let served = Served::start();
    served.add("never-in-time", r#""fresh":"1h","cooldown":"1h","estimate":"30m""#);
    served.counted(1);
    let job = served.get("/api/v1/jobs/never-in-time").json();
    let sentence = job["sentence"].as_str().unwrap();
    for columns in ["60", "80"] {
        let text = said_at(&served, Some(columns), &["status"]);
        let table: Vec<&str> = text.lines().skip_while(|line| !line.starts_with("JOB")).collect();
        assert!(table[0].contains("WHY"), "{text}");
        assert!(table[1].contains(&sentence[..20]), "{text}");
        assert!(table[1].chars().count() <= columns.parse().unwrap(), "{text}");
    }
    assert!(said_at(&served, None, &["status"]).contains(sentence), "whole in a pipe");
}

#[test]
fn times_are_local_to_the_second_and_json_is_utc() {
    let served = Served::start();
    served.add("night", r#""cron":"30 2 1 1 *","tz":"UTC""#);
    let next_run_at = served.get("/api/v1/jobs/night").json()["next_run_at"].as_str().unwrap().to_owned();
    let year = &next_run_at[..4];
    let check = |zone: &str, args: &[&str], expected: &str| {
        let text = said_in(&served, zone, args);
        assert!(text.contains(&expected.replace("YEAR", year)), "{zone} {args:?}:\n{text}");
    };
    check("Europe/Berlin", &["job", "show", "night"], "YEAR-01-01 03:30:00 CET");
    check("Europe/Berlin", &["job", "show", "night", "--utc"], "YEAR-01-01 02:30:00 UTC");
    check("Europe/Berlin", &["job", "show", "night", "--tz", "Asia/Tokyo"], "YEAR-01-01 11:30:00 JST");
    check("Asia/Tokyo", &["explain", "night"], "YEAR-01-01 11:30:00 JST");
    let (from, to) = (format!("{year}-01-01T00:00:00Z"), format!("{year}-01-02T00:00:00Z"));
    check("Asia/Tokyo", &["upcoming", "--from", &from, "--to", &to], "YEAR-01-01 11:30:00 JST");
    check("Asia/Tokyo", &["job", "show", "night", "--json"], "\"next_run_at\": \"YEAR-01-01T02:30:00Z\"");
    let text = said_in(&served, "UTC", &["job", "show", "night"]);
    assert!(!text.contains("Z "), "no instant of machines:\n{text}");
    let text = said_in(&served, "UTC", &["status", "--tz", "Mars/Olympus"]);
    assert!(
        text.contains("--tz") && text.contains("Mars/Olympus") && text.ends_with("--- exit 2\n"),
        "{text}"
    );
}

#[test]
fn lengths_are_read_at_a_glance() {
    let served = Served::start();
    served.add("shop", r#""manual":true,"estimate":"79390ms""#);
    let text = served.said(&["explain", "shop"]);
    assert!(text.contains("expected length 1m 19s"), "{text}");
}

#[test]
fn job_show_shows_the_whole_definition() {
    let served = Served::start();
    let definition = r#"{"command":{"argv":["scrapy","crawl","a b"],"cwd":"/srv"},"every":"6h",
        "retry":{"delays":["5m","1h"]},"max_allowed_duration":"90s","params":{"depth":3},"pool":"default","cost":2}"#;
    let reply = served.put("shop", definition);
    assert_eq!(reply.status, 201, "{reply:?}");
    let text = served.said(&["job", "show", "shop"]);
    for line in [
        "command.argv = [\"scrapy\", \"crawl\", \"a b\"]",
        "command.cwd = \"/srv\"",
        "retry.delays = [\"5m\", \"1h\"]",
        "params.depth = 3",
        "cost = 2",
    ] {
        assert!(text.contains(line), "{line}:\n{text}");
    }
}

#[test]
fn since_takes_lengths_dates_and_words() {
    let served = Served::start();
    served.add("shop", r#""manual":true"#);
    served.ended_run_of("shop");
    for since in
        ["1h", "30m", "2d", "today", "yesterday", "2026-11-17", "2026-11-17 00:00", "2026-11-17T00:00:00Z"]
    {
        let text = served.said(&["run", "list", "--since", since]);
        assert!(text.ends_with("--- exit 0\n"), "{since}: {text}");
    }
    assert!(served.said(&["run", "list", "--since", "1h"]).contains("shop"));
    assert!(served.said(&["run", "list", "--until", "1h"]).contains("no runs"));
    assert!(served.said(&["run", "list", "--since", "1h", "--until", "now"]).contains("shop"));
    let text = served.said(&["run", "list", "--since", "lately"]);
    assert!(text.ends_with("--- exit 2\n"), "{text}");
    assert!(text.contains("`1h`") && text.contains("`today`"), "says what would be right: {text}");
}

#[test]
fn times_ahead_are_said_the_same_way() {
    let served = Served::start();
    served.add("news", r#""every":"1h""#);
    let n_lines = |args: &[&str]| {
        let text = served.said(args);
        assert!(text.ends_with("--- exit 0\n"), "{text}");
        text.lines().filter(|line| line.ends_with("  news")).count()
    };
    assert_eq!(n_lines(&["upcoming", "--to", "6h"]), 6);
    assert_eq!(n_lines(&["upcoming", "--from", "1h", "--to", "2h"]), 1);
    assert_eq!(n_lines(&["upcoming", "--from", "2090-01-01", "--to", "2090-01-02"]), 24);
    let text = served.said(&["explain", "news", "--at", "tomorrow"]);
    assert!(text.lines().next().unwrap().contains(" 00:00:00 UTC"), "{text}");
}

#[test]
fn job_add_takes_flags_and_plain_values() {
    let served = Served::start();
    let text = served.said(&["job", "add", "shop", "--", "ls"]);
    assert!(text.contains("--every 6h") && text.contains("--manual"), "names the flags: {text}");
    assert!(text.ends_with("--- exit 2\n"), "{text}");
    let text = served.said(&["job", "add", "shop", "--every", "6h"]);
    assert!(text.contains("after `--`") && text.ends_with("--- exit 2\n"), "{text}");
    let line = ["job", "add", "shop", "--every", "6h", "--set", "site=shop.example", "--set", "estimate=5m"];
    let more = ["--set", "cost=2", "--set", "params.deep=true", "--", "ls", "-l"];
    let text = served.said(&[&line[..], &more].concat());
    assert!(text.ends_with("--- exit 0\n"), "{text}");
    let definition = served.get("/api/v1/jobs/shop").json()["definition"].clone();
    assert_eq!(definition["site"], "shop.example");
    assert_eq!(definition["estimate"], "5m");
    assert_eq!(definition["cost"], 2);
    assert_eq!(definition["params"], json!({ "deep": true }));
    let text = served.said(&["job", "add", "once", "--set", "at=2090-01-01T00:00:00Z", "--", "ls"]);
    assert!(text.ends_with("--- exit 0\n"), "{text}");
}

#[test]
fn a_log_for_machines_is_one_document_a_line() {
    let served = Served::slow();
    served.add("shop", r#""manual":true"#);
    let id = served.run_of("shop")["id"].as_str().unwrap().to_owned();
    served.logs.write(&id, "one\ntwo \"x\"\nthree", true);
    let output = served.command(&["run", "log", &id, "--json"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Json> = text.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    let expected = [(1, "one"), (2, "two \"x\""), (3, "three")];
    assert_eq!(lines, expected.map(|(line, text)| json!({ "line": line, "text": text })));
    let text = served.said(&["run", "log", &id, "--json", "--raw"]);
    assert!(text.ends_with("--- exit 2\n"), "{text}");
}

#[test]
fn a_plan_tells_why_jobs_stay_and_its_counts_add_up() {
    let served = Served::start();
    served.add("news", r#""every":"6h""#);
    served.add("daily", r#""cron":"0 4 * * *""#);
    served.add("hand", r#""manual":true"#);
    served.counted(3);
    let text = served.said(&["rebalance", "--preview"]);
    assert!(
        text.starts_with("2 scheduled jobs: 0 would move, 0 are well placed, 2 cannot move now"),
        "{text}"
    );
    assert!(!text.contains("placement_cooldown"), "{text}");
    assert!(text.contains("placed or moved less than an hour ago"), "{text}");
    let text = served.said(&["rebalance", "--preview", "--all"]);
    assert!(text.contains("news") && text.contains("daily"), "every job by name:\n{text}");
}

#[test]
fn nothing_is_claimed_that_is_not_so() {
    let served = Served::start();
    let text = served.said(&["status"]);
    assert!(text.starts_with("ok  no jobs\n"), "{text}");
    assert!(!text.contains("busiest hour"), "{text}");
    served.add("shop", r#""every":"6h""#);
    served.ended_run_of("shop");
    let text = served.said(&["run", "records", "shop"]);
    assert_eq!(text, "no skipped or missed occurrences so far\n--- exit 0\n");
    for args in [&["explain", "shop"][..], &["job", "show", "shop"]] {
        let text = served.said(args);
        assert!(!text.contains("ok ok"), "{text}");
        assert!(text.starts_with("shop  ok  "), "{text}");
    }
    let text = served.said(&["distribution"]);
    assert!(text.lines().next().unwrap().ends_with("good"), "the words of analyze: {text}");
}

#[test]
fn upcoming_lines_up() {
    let served = Served::start();
    served.add("a", r#""every":"1h","next_run_at":"2089-12-31T00:00:00Z""#);
    served.add("b", r#""every":"1h","next_run_at":"2089-12-31T00:00:07.250Z""#);
    let text = served.said(&["upcoming", "--from", "2090-01-01T00:00:00Z", "--to", "2090-01-01T02:00:00Z"]);
    let column = |name: &str| -> Vec<Option<usize>> {
        text.lines().filter(|line| line.ends_with(name)).map(|line| line.find(name)).collect()
    };
    assert_eq!(column("  a").len() + column("  b").len(), 4, "{text}");
    assert_eq!(column("  a")[0], column("  b")[0], "{text}");
    assert!(!text.contains(".250"), "to the second: {text}");
}
