//! `evenbeat job`, `apply`, `diff`, `export`.

use std::fmt::Write as _;

use crate::live_cli::typed::manual_jobs;
use crate::support::served::Served;

const FLEET: &str = r#"
[defaults]
command = ["true"]

[[job]]
name = "news"
every = "6h"
labels = { team = "news" }

[[job]]
name = "shop"
configuration = "test"
manual = true
retry = { delays = ["1m"] }
"#;

#[test]
fn a_life_of_a_job() {
    let served = Served::start();
    let mut text = String::new();
    let mut note =
        |args: &[&str]| write!(text, "$ evenbeat {}\n{}\n", args.join(" "), served.typed(args)).unwrap();
    note(&["job", "list"]);
    note(&["job", "add", "shop", "--every", "6h", "-l", "team=news", "--", "scrapy", "crawl", "shop"]);
    note(&["job", "add", "shop", "--every", "6h", "--", "true"]);
    note(&["job", "add", "shop", "--every", "8h", "--replace", "--", "true"]);
    note(&["job", "add", "bad", "--cron", "0 25 * * *", "--set", "cost=0", "--", "true"]);
    note(&["job", "add", "hand", "--manual", "--", "true"]);
    note(&["job", "pause", "shop", "--reason", "holiday"]);
    note(&["job", "pause", "shop"]);
    note(&["job", "list"]);
    note(&["job", "show", "shop"]);
    note(&["job", "trigger", "shop"]);
    note(&["job", "resume", "shop"]);
    note(&["job", "trigger", "hand", "--params", r#"{"a": 1}"#, "--idempotency-key", "k"]);
    note(&["job", "trigger", "hand", "--params", "[]"]);
    note(&["job", "list", "--status", "paused"]);
    note(&["job", "list", "--condition", "error"]);
    note(&["job", "delete", "shop"]);
    note(&["job", "delete", "shop"]);
    note(&["job", "show", "a b"]);
    insta::assert_snapshot!(text);
}

#[test]
fn what_people_wrote_cannot_break_out_of_its_line() {
    let served = Served::start();
    served.add("shop", r#""manual":true"#);
    served.said(&["job", "pause", "shop", "--reason", "one\ntwo \u{1b}[31mred \u{202e}three"]);
    for args in [&["job", "show", "shop"][..], &["explain", "shop"]] {
        let text = String::from_utf8(served.command(args).output().unwrap().stdout).unwrap();
        let is_unsafe = |it: char| it.is_control() && it != '\n' || it == '\u{202e}';
        assert!(!text.contains(is_unsafe), "{args:?}: {text:?}");
        assert!(text.lines().all(|line| !line.starts_with("two")), "{args:?}: {text}");
    }
    let shown = served.said(&["job", "show", "shop"]);
    assert!(shown.contains("one\\ntwo \\x1b[31mred \\u{202e}three"), "{shown}");
}

#[test]
fn a_table_fits_the_terminal() {
    let served = Served::start();
    served.add("a-rather-long-name-of-a-job-that-does-something", r#""every":"6h""#);
    for columns in ["40", "60", "80", "200"] {
        let output = served.command(&["job", "list"]).env("COLUMNS", columns).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= columns.parse().unwrap(), "{columns}:\n{text}");
        assert!(text.contains("CONDITION"), "{columns}:\n{text}");
    }
}

#[test]
fn a_fleet_is_compared_applied_and_exported() {
    let served = Served::start();
    served.file("fleet.toml", FLEET);
    served.file("less.toml", &FLEET.replace("6h", "8h").replace("name = \"shop\"", "name = \"new\""));
    served.file("bad.toml", "[[job]]\nname = \"x\"\nevery = \"6\"\ncommand = [\"true\"]\n");
    served.file(
        "shell.toml",
        "[[job]]\nname = \"x\"\nevery = \"6h\"\ncommand = { argv = \"ls | wc\", shell = true }\n",
    );
    let mut text = String::new();
    let mut note =
        |args: &[&str]| write!(text, "$ evenbeat {}\n{}\n", args.join(" "), served.typed(args)).unwrap();
    note(&["diff", "fleet.toml"]);
    note(&["apply", "fleet.toml", "--dry-run"]);
    note(&["apply", "fleet.toml"]);
    note(&["apply", "fleet.toml"]);
    note(&["diff", "fleet.toml"]);
    note(&["diff", "less.toml", "--prune"]);
    note(&["apply", "less.toml", "--prune"]);
    note(&["export"]);
    note(&["apply", "bad.toml"]);
    note(&["apply", "shell.toml"]);
    note(&["apply", "nowhere.toml"]);
    insta::assert_snapshot!(text);
    assert!(served.typed_with(FLEET, &["apply", "-"]).contains("1 created"), "standard input is a file too");
}

#[test]
fn what_is_exported_can_be_applied() {
    let served = Served::start();
    served.file("fleet.toml", FLEET);
    assert!(served.typed(&["apply", "fleet.toml"]).contains("2 created"));
    let exported = String::from_utf8(served.command(&["export"]).output().unwrap().stdout).unwrap();
    served.file("exported.toml", &exported);
    assert_eq!(served.typed(&["diff", "exported.toml", "--prune"]), "2 unchanged\n--- exit 0\n");
}

#[test]
fn for_machines_it_is_the_servers_answer() {
    let served = Served::start();
    served.add("shop", r#""manual":true"#);
    served.file("fleet.toml", FLEET);
    let document = |args: &[&str]| -> serde_json::Value {
        let args = [&args[..1], &["--json"], &args[1..]].concat();
        let output = served.command(&args).output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{args:?}: {error}: {output:?}"))
    };
    assert_eq!(document(&["job", "list"])["items"][0]["key"], "shop");
    assert_eq!(document(&["job", "show", "shop"])["key"], "shop");
    assert_eq!(document(&["job", "pause", "shop"])["status"], "paused");
    assert_eq!(document(&["job", "resume", "shop"])["status"], "scheduled");
    assert_eq!(document(&["job", "trigger", "shop"])["job"], "shop");
    assert_eq!(document(&["job", "add", "new", "--manual", "--", "true"])["warnings"], serde_json::json!([]));
    assert_eq!(document(&["job", "delete", "new"])["deleted"], true);
    assert_eq!(document(&["diff", "fleet.toml"])["dry_run"], true);
    assert_eq!(document(&["apply", "fleet.toml"])["counts"]["created"], 2);
    assert_eq!(document(&["export"])["items"].as_array().unwrap().len(), 3);
    served.counted(3);
    assert_eq!(document(&["status"])["jobs"]["total"], 3);
    assert_eq!(document(&["explain", "news"])["job"], "news");
    assert_eq!(document(&["upcoming"])["next"], serde_json::Value::Null);
    assert_eq!(document(&["distribution"])["window_hours"], 24);
    assert_eq!(document(&["rebalance", "--preview"])["would_move"], 0);
    assert_eq!(document(&["rebalance", "--yes"])["moved"], serde_json::json!([]));
    assert_eq!(document(&["node", "list"])["items"][0]["node"], "one");
    assert_eq!(document(&["node", "drain", "one", "--undo"])["draining"], false);
    assert!(document(&["run", "list"])["items"].is_array());
}

#[test]
fn more_than_a_page_is_asked_for_in_pages() {
    let served = Served::start();
    let jobs = manual_jobs(620);
    served.file("many.toml", &jobs);
    assert_eq!(served.typed(&["apply", "many.toml"]).lines().rev().nth(1), Some("620 created"));
    let n_lines = |args: &[&str]| served.said(args).lines().count();
    assert_eq!(n_lines(&["job", "list", "--limit", "1000"]), 1 + 620 + 1);
    assert_eq!(
        n_lines(&["job", "list", "--limit", "600"]),
        1 + 600 + 1 + 1,
        "and one line that there are more"
    );
    assert_eq!(served.said(&["export"]).matches("[[job]]").count(), 620);
}
