//! `examples/scraping-team`: sites, pools, tenants, retries, blackouts.

use std::fs;
use std::time::SystemTime;

use crate::examples::example::Example;
use crate::serve::node::until;

/// The same with its blackout half a day away: whatever time it is, nothing waits for its end.
fn example() -> Example {
    let example = Example::copy_of("scraping-team");
    let jobs = example.read("jobs.toml");
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let hour = (since_1970.as_secs() / 3_600 + 12) % 24;
    let written = r#"{ start = "03:00", end = "03:30" }"#;
    assert_eq!(jobs.matches(written).count(), 1);
    let moved = format!(r#"{{ start = "{hour:02}:00", end = "{hour:02}:30" }}"#);
    fs::write(example.path("jobs.toml"), jobs.replace(written, &moved)).unwrap();
    example
}

#[test]
fn a_scraping_teams_fleet_runs() {
    let mut example = example();
    assert_eq!(example.said(&["check", "jobs.toml"]), "jobs.toml: 12 jobs\n");
    assert_eq!(example.said(&["config", "--config", "evenbeat.toml", "--check"]), "evenbeat.toml: valid\n");
    example.serve(&["--config", "evenbeat.toml"]);
    assert!(example.said(&["apply", "jobs.toml"]).ends_with("12 created\n"));
    for (told, run) in example.check_ends() {
        assert_eq!(run["pages_processed"].to_string(), told.more[0], "{}", told.job);
    }
    example.check_answers();

    // A failure waits for its retry, one that is not worth it does not, and people are told.
    let forum = example.json(&["job", "show", "ForumThreads"]);
    assert_eq!((&forum["condition"], &forum["reason"]), (&"warning".into(), &"last_run_failed".into()));
    let recrawled = example.json(&["run", "list", "--job", "FullRecrawl"])["items"][0]["id"].clone();
    let log = example.said(&["run", "log", recrawled.as_str().unwrap()]);
    assert_eq!(log, "100 pages of everything, because of the manual, with {\"depth\":2}\n");

    // The forum comes back.
    fs::remove_file(example.path("down/forum.example")).unwrap();
    assert_eq!(example.ended_run_of("ForumThreads")["outcome"], "succeeded");
    until("a forum that is well", || {
        (example.json(&["job", "show", "ForumThreads"])["condition"] == "ok").then_some(())
    });
    assert_eq!(example.stop(), Some(0));
}
