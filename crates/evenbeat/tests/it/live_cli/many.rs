//! Actions on many jobs, from the command line.

use std::fmt::Write as _;

use crate::support::served::Served;

#[test]
fn jobs_are_paused_resumed_triggered_and_deleted_by_filter() {
    let served = Served::start();
    served.file(
        "fleet.toml",
        "[[job]]\nname = \"books\"\nmanual = true\ncommand = [\"true\"]\nsite = \"shop.example\"\nlabels = { team = \"prices\" }\n\
         [[job]]\nname = \"toys\"\nmanual = true\ncommand = [\"true\"]\nsite = \"shop.example\"\n\
         [[job]]\nname = \"news\"\nmanual = true\ncommand = [\"true\"]\n",
    );
    served.said(&["apply", "fleet.toml"]);
    let mut text = String::new();
    let mut note =
        |args: &[&str]| write!(text, "$ evenbeat {}\n{}\n", args.join(" "), served.typed(args)).unwrap();
    note(&["job", "pause"]);
    note(&["job", "pause", "news", "--site", "shop.example"]);
    note(&["job", "pause", "--site", "shop.example", "--dry-run"]);
    note(&["job", "pause", "--site", "shop.example"]);
    note(&["job", "pause", "--site", "shop.example", "--yes", "--reason", "new layout"]);
    note(&["job", "pause", "--label", "team=prices", "--yes"]);
    note(&["job", "trigger", "--all", "--yes"]);
    note(&["job", "trigger", "--all", "--follow"]);
    note(&["job", "resume", "--status", "paused", "--yes"]);
    note(&["job", "resume", "--all", "--yes"]);
    note(&["job", "delete", "--prefix", "toy", "--yes"]);
    note(&["job", "delete", "--prefix", "toy", "--yes"]);
    note(&["job", "pause", "--site", "a b", "--yes"]);
    insta::assert_snapshot!(text);
}

#[test]
fn past_occurrences_are_requested_after_a_look() {
    let served = Served::slow();
    served.add("shop", r#""cron":"0 3 * * *","tz":"UTC""#);
    // While it runs, everything else of it waits.
    served.run_of("shop");
    served.add("hand", r#""manual":true"#);
    let mut text = String::new();
    let mut note =
        |args: &[&str]| write!(text, "$ evenbeat {}\n{}\n", args.join(" "), served.said(args)).unwrap();
    let range = ["--from", "2026-01-10", "--to", "2026-01-13"];
    note(&[&["job", "backfill", "shop"][..], &range, &["--dry-run"]].concat());
    note(&[&["job", "backfill", "shop"][..], &range, &["--tz", "America/New_York", "--dry-run"]].concat());
    note(&[&["job", "backfill", "shop"][..], &range, &["--max", "2", "--yes"]].concat());
    note(&[&["job", "backfill", "hand"][..], &range, &["--yes"]].concat());
    note(&[&["job", "backfill", "shop"][..], &range].concat());
    note(&["job", "backfill", "shop", "--from", "2026-01-01", "--to", "2026-09-01", "--yes"]);
    insta::assert_snapshot!(text);
}
