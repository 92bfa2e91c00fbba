//! A drained node finishes what runs and starts nothing new (L6), on either store.

use std::fs;
use std::time::Duration;

use serde_json::Value as Json;

use crate::serve::node::{Node, until};
use crate::support::database::Database;
use crate::support::wait::until_so;

const JOBS: &str = r#"
    [[job]]
    name = "often"
    command = ["sh", "-c", "echo started >> starts"]
    every = "1s"

    [[job]]
    name = "long"
    command = ["sh", "-c", "while ! test -e go-on; do sleep 0.05; done"]
    at = "now"
"#;

/// How many processes of the frequent job have started.
fn n_starts(node: &Node) -> usize {
    fs::read_to_string(node.path("starts")).unwrap_or_default().lines().count()
}

/// What the node says of itself in `node list`.
fn state(node: &Node) -> String {
    let nodes = node.json(&["node", "list"]);
    nodes["items"][0]["state"].as_str().unwrap_or_else(|| panic!("{nodes}")).to_owned()
}

fn name_of(node: &Node) -> String {
    let nodes = node.json(&["node", "list"]);
    nodes["items"][0]["node"].as_str().unwrap_or_else(|| panic!("{nodes}")).to_owned()
}

/// By the node's own clock, how long the frequent job has been due.
fn overdue_for(node: &Node) -> Duration {
    let explained = node.json(&["explain", "often"]);
    let instant = |field: &str| {
        let text = explained[field].as_str().unwrap_or_else(|| panic!("{field}: {explained}"));
        text.parse::<evenbeat_core::time::Timestamp>().unwrap().as_millis()
    };
    let millis = instant("at") - instant("can_start_by");
    Duration::from_millis(u64::try_from(millis).unwrap_or(0))
}

fn drains(more: &[&str]) {
    let mut node = Node::with(JOBS);
    node.start_with(more);
    let is_running = || node.runs("long").iter().any(|run| run["status"] == "running");
    until_so("runs of both jobs", || 3 <= n_starts(&node) && is_running());
    let name = name_of(&node);

    let answer = node.ask(&["node", "drain", &name]);
    let n_before = n_starts(&node);
    assert!(answer.status.success(), "{answer:?}");
    assert_eq!(state(&node), "draining");
    // Several occurrences come due and none is served.
    until_so("time to pass", || Duration::from_secs(4) <= overdue_for(&node));
    assert_eq!(n_starts(&node), n_before, "nothing starts after the drain was answered");
    assert_eq!(node.json(&["explain", "often"])["binding"], "draining");
    fs::write(node.path("go-on"), "").unwrap();
    until("the end of what ran", || node.runs("long").into_iter().find(|run| run["status"] == "succeeded"));
    assert_eq!(n_starts(&node), n_before, "nor when capacity becomes free");

    assert!(node.ask(&["node", "drain", &name, "--undo"]).status.success());
    until_so("new starts", || n_before < n_starts(&node));

    // A drain ends with the process that was drained.
    assert!(node.ask(&["node", "drain", &name]).status.success());
    node.stop();
    let n_before = n_starts(&node);
    node.start_with(more);
    until_so("starts after a restart", || n_before < n_starts(&node));
    assert_eq!(state(&node), Json::from("living"));
    node.stop();
}

#[test]
fn a_drained_node_starts_nothing_on_sqlite() {
    drains(&[]);
}

#[test]
fn a_drained_node_starts_nothing_on_postgres() {
    let database = Database::new();
    drains(&["--set", &database.setting()]);
}
