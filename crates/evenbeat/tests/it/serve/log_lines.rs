//! What an operator finds in the log (K4): one line for each thing that went wrong, none for what went well.

use std::fs;
use std::time::Duration;

use serde_json::json;

use crate::serve::node::{Node, until};
use crate::support::wait::live_for;

#[test]
fn a_failed_run_is_logged_once_and_a_good_one_not_at_all() {
    let mut node = Node::with(
        r#"
        [[job]]
        name = "bad"
        command = ["sh", "-c", "exit 3"]
        at = "now"

        [[job]]
        name = "slow"
        command = ["sleep", "600"]
        at = "now"
        max_allowed_duration = "1s"

        [[job]]
        name = "good"
        command = ["true"]
        at = "now"
        "#,
    );
    node.start();
    for job in ["bad", "slow", "good"] {
        until("its end", || node.runs(job).into_iter().find(|run| run["phase"] == "ended"));
    }
    assert_eq!(node.stop(), Some(0), "{}", node.log());
    let failed = node.log_lines("run failed");
    let bad = failed.iter().find(|it| it["job"] == "bad").expect("a line");
    assert_eq!(
        (&bad["level"], &bad["outcome"], &bad["exit_code"]),
        (&json!("WARN"), &json!("failed"), &json!(3)),
        "{bad}"
    );
    assert!(bad["took"].as_str().is_some_and(|took| took.ends_with('s')), "{bad}");
    assert!(bad["run"].as_str().is_some_and(|run| run.len() == 36), "{bad}");
    let slow = failed.iter().find(|it| it["job"] == "slow").expect("a line");
    assert_eq!(slow["outcome"], "timed_out", "{slow}");
    assert_eq!(failed.len(), 2, "{failed:?}");
    // All that is said of a good run is where its job goes next, under a target of its own.
    let log = node.log();
    for line in log.lines().filter(|line| line.contains("\"good\"")) {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(line["target"], "evenbeat::placement", "{line}");
    }
    let placed = node.log_lines("placed new job");
    assert!(placed.iter().all(|it| it["slot"].as_str().is_some_and(|at| at.ends_with(":00Z"))), "{placed:?}");
    let last = log.lines().last().unwrap();
    assert!(last.contains("\"stopped\""), "{last}");
}

#[test]
fn what_happens_to_jobs_and_nodes_is_logged() {
    let mut node = Node::with(
        r#"
        [[job]]
        name = "often"
        command = ["true"]
        every = "1s"
        missed = "skip"

        [[job]]
        name = "gives-up"
        command = ["false"]
        every = "1s"
        pause_after_failures = 1

        [[job]]
        name = "long"
        command = ["sh", "-c", "while ! test -e go-on; do sleep 0.05; done"]
        at = "now"

        [[job]]
        name = "broken"
        command = ["true"]
        every = "1h"
        "#,
    );
    node.start();
    until("a running run", || node.runs("long").into_iter().find(|run| run["status"] == "running"));
    let paused = node.logged("job paused by the system", 1);
    assert_eq!((&paused[0]["job"], &paused[0]["level"]), (&json!("gives-up"), &json!("WARN")), "{paused:?}");
    let name = node.json(&["node", "list"])["items"][0]["node"].as_str().unwrap().to_owned();
    assert_eq!(node.ask(&["node", "drain", &name]).status.code(), Some(0));
    assert_eq!(node.logged("node draining", 1)[0]["node"], name.as_str());
    node.kill();
    // Something else wrote into the store.
    let store = rusqlite::Connection::open(node.data().join("evenbeat.db")).unwrap();
    let sql = "UPDATE job SET definition = 'junk', terms = 'junk' WHERE key = 'broken'";
    assert_eq!(store.execute(sql, []).unwrap(), 1);
    drop(store);
    fs::write(node.path("jobs.toml"), "").unwrap();
    live_for(Duration::from_secs(4));
    node.start();
    let adopted = node.logged("runs adopted", 1);
    assert_eq!((adopted.len(), &adopted[0]["count"]), (1, &json!(1)), "{adopted:?}");
    let disabled = node.logged("job disabled, its definition cannot be read", 1);
    assert_eq!((disabled.len(), &disabled[0]["job"]), (1, &json!("broken")), "{disabled:?}");
    let missed = until("missed occurrences", || {
        node.log_lines("occurrences missed").into_iter().find(|it| it["job"] == "often")
    });
    assert_eq!(missed["reason"], "late", "{missed}");
    assert!(missed["count"].as_u64().is_some_and(|n| 1 <= n), "{missed}");
    assert!(missed["first"].as_str().unwrap() <= missed["last"].as_str().unwrap(), "{missed}");
    fs::write(node.path("go-on"), "").unwrap();
    node.stop();
}
