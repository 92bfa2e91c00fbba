//! `evenbeat status`, `probe`, `explain`, `upcoming`, `distribution`, `rebalance`, `node`.

use std::fmt::Write as _;

use crate::support::served::Served;

#[test]
fn a_fleet_that_is_well() {
    let served = Served::start();
    served.add("news", r#""every":"6h""#);
    served.add("shop", r#""manual":true"#);
    served.counted(2);
    let mut text = String::new();
    let mut note = |args: &[&str]| {
        // Which of the two it is depends on the time of day.
        let typed = served.typed(args).replace(
            "due soon, within a quarter of its interval or 30 minutes",
            "placed or moved less than an hour ago",
        );
        write!(text, "$ evenbeat {}\n{typed}\n", args.join(" ")).unwrap();
    };
    note(&["status"]);
    note(&["probe"]);
    note(&["explain", "shop"]);
    note(&["explain", "news", "--at", "2090-01-01T00:00:00Z"]);
    note(&["explain", "none"]);
    note(&["upcoming", "--from", "2090-01-01T00:00:00Z", "--to", "2090-01-01T12:00:00Z"]);
    note(&["upcoming", "--from", "2090-01-01T00:00:00Z", "--to", "2090-01-01T00:00:00Z"]);
    note(&["rebalance", "--preview"]);
    note(&["rebalance", "--yes"]);
    note(&["node", "list"]);
    note(&["node", "drain", "two"]);
    note(&["node", "drain", "one", "--undo"]);
    insta::assert_snapshot!(text);
}

#[test]
fn a_fleet_with_a_doubt() {
    let served = Served::start();
    served.add("never", r#""fresh":"1h","cooldown":"1h","estimate":"30m""#);
    served.counted(1);
    assert!(served.typed(&["status"]).ends_with("--- exit 0\n"), "a warning is no error");
    let probe = served.typed(&["probe"]);
    assert!(probe.starts_with("WARNING - 1 job: 0 ok, 1 warning, 0 error; never: "), "{probe}");
    assert!(probe.ends_with("--- exit 1\n"), "{probe}");
}

#[test]
fn the_next_hours_are_drawn() {
    let served = Served::start();
    served.add("news", r#""every":"15m""#);
    let text = served.said(&["distribution", "--hours", "3"]);
    assert!(text.starts_with("1 job, 1"), "{text}");
    assert_eq!(text.lines().filter(|line| line.contains('█')).count(), 3, "{text}");
    assert!(text.contains(" peak"), "{text}");
    assert!(text.ends_with("--- exit 0\n"), "{text}");
}

#[test]
fn where_nothing_would_move_there_is_nothing_to_ask() {
    let served = Served::start();
    for key in ["a", "b"] {
        served.add(key, r#""every":"6h""#);
    }
    let text = served.typed_with("y\n", &["rebalance"]);
    assert!(text.ends_with("--- exit 0\n") && !text.contains("[y/N]"), "{text}");
    assert_eq!(served.runtime.block_on(served.app.store.audit(10)).unwrap().len(), 2);
}

#[test]
fn both_doors_lead_to_the_same_server() {
    let served = Served::start();
    served.add("shop", r#""manual":true"#);
    let through = |place: &str| served.said(&["job", "list", "--server", place]);
    let over_tcp = through(&served.url());
    assert!(over_tcp.contains("shop"), "{over_tcp}");
    assert_eq!(through(&format!("unix:{}", served.socket().display())), over_tcp);
    // If nothing is said, the socket of this user's server is found.
    let home = served.folder.path().join("state");
    std::fs::create_dir(&home).unwrap();
    std::os::unix::fs::symlink(served.folder.path(), home.join("evenbeat")).unwrap();
    let mut command = crate::live_cli::typed::evenbeat(&["job", "list"]);
    let output = command.env("XDG_STATE_HOME", &home).output().unwrap();
    assert_eq!(crate::live_cli::typed::shown(&output), over_tcp);
}

#[test]
fn one_job_shows_its_next_run_however_far_away_and_why_it_waits() {
    let served = Served::start();
    served.add("yearly", r#""cron":"0 0 1 1 *""#);
    let dark = r#""blackout_periods":[{"start":"00:00:00","end":"06:00:00"}]"#;
    served.add("dark", &format!(r#""cron":"0 5 * * *",{dark}"#));
    served.counted(2);
    let text = served.said(&["upcoming", "--job", "yearly", "--utc"]);
    assert_eq!(text.lines().filter(|line| line.contains("yearly")).count(), 1, "{text}");
    let text = served.said(&["upcoming", "--job", "dark", "--utc"]);
    assert!(text.contains("06:00") && text.contains("dark  blackout, due"), "{text}");
    let text = served.said(&["upcoming", "--job", "none"]);
    assert!(text.contains("none") && !text.ends_with("--- exit 0\n"), "{text}");
}
